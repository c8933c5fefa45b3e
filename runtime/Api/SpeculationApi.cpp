#include "runtime/Api/Boundary.h"
#include "runtime/Support/Strings.h"

using namespace sprig;
using namespace sprig::api;

namespace {

/// "ngram,self" to its names; empty ones are refused later, by name.
std::vector<std::string> namesIn(std::string_view list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    names.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

Result<Growth> growthOf(std::string_view rule) {
  if (rule == "comb")
    return Growth::Comb;
  if (rule == "clover")
    return Growth::Clover;
  if (rule == "eagle")
    return Growth::Eagle;
  return Status(StatusCode::InvalidArgument,
                concat("expects a rule for trees of comb, clover and eagle, "
                       "but got '",
                       rule, "'"));
}

} // namespace

void sprig_speculation_init(sprig_speculation *speculation) {
  *speculation = sprig_speculation{};
  speculation->struct_bytes = sizeof(*speculation);
}

sprig_code
sprig_session_set_speculation(sprig_session *session,
                              const sprig_speculation *speculation) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    const sprig_speculation given =
        readOptions(speculation, sprig_speculation_init);
    const std::string_view drafts = given.drafts ? given.drafts : "off";
    if (drafts == "off") {
      session->speculator.reset();
      return {};
    }
    SpeculationOptions options;
    options.drafts = namesIn(drafts);
    options.nodes = given.nodes;
    options.chain = given.chain != 0;
    options.drawn = given.draft_sampling != 0;
    Result<Growth> growth =
        growthOf(given.tree_rule ? given.tree_rule : "comb");
    if (!growth.ok())
      return growth.status();
    options.growth = *growth;
    if (given.draft_model)
      options.model = given.draft_model->model;
    Result<std::unique_ptr<Speculator>> made =
        Speculator::create(*session->session, options);
    if (!made.ok())
      return made.status();
    session->speculator.reset(); // it lets go of the session
    session->speculator = std::move(*made);
    return {};
  });
}

sprig_code sprig_session_get_speculation(const sprig_session *session,
                                         sprig_speculation_counts *counts) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    if (Status status = needs(counts, "counts"); !status.ok())
      return status;
    sprig_speculation_counts result{};
    if (session->speculator) {
      const SpeculationCounts &made = session->speculator->counts();
      result.steps = made.steps;
      result.trees = made.trees;
      result.drafted = made.drafted;
      result.accepted = made.accepted;
      result.tokens = made.tokens;
    }
    writeResult(counts, result);
    return {};
  });
}

sprig_code sprig_session_verify(sprig_session *session, const uint32_t *tokens,
                                const int32_t *parents, size_t count,
                                uint32_t *accepted, size_t *accepted_count,
                                float *logits) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    struct {
      const void *pointer;
      const char *name;
    } given[] = {{tokens, "tokens"},
                 {parents, "parents"},
                 {accepted, "accepted"},
                 {accepted_count, "accepted_count"}};
    for (const auto &one : given)
      if (Status status = needs(one.pointer, one.name); !status.ok())
        return status;
    Result<uint32_t> taken = session->session->verify(
        tokens, parents, uint32_t(std::min<size_t>(count, UINT32_MAX)),
        accepted, logits);
    if (taken.ok())
      *accepted_count = *taken;
    return taken.status();
  });
}

uint32_t sprig_session_largest_tree(const sprig_session *session) {
  return session ? session->session->largestTree() : 0;
}
