#include "runtime/Speculation/ModelDraft.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <chrono>

namespace sprig {
namespace {

/// Before anything was seen: a draft made for the model is right this often,
/// as if that had been seen so many times.
constexpr double kPrior = 0.65, kPriorWeight = 4;
/// Of what was seen, a token later. Where the draft rests its record fades, so
/// that it is tried again.
constexpr double kFade = 0.98, kFadeAtRest = 0.995;
/// Weight of the newest time.
constexpr double kNewest = 0.3;

/// Where two vocabularies part; empty where they do not.
std::string difference(const format::Package &wanted,
                       const format::Package &got) {
  if (wanted.model()->vocabulary() != got.model()->vocabulary())
    return concat("its vocabulary has ", got.model()->vocabulary(),
                  " tokens instead of ", wanted.model()->vocabulary());
  const format::Tokenizer *a = wanted.tokenizer(), *b = got.tokenizer();
  if (!a || !b)
    return {}; // token ids are all there is
  for (uint32_t i = 0; i + 1 < a->token_offsets()->size() &&
                       i + 1 < b->token_offsets()->size();
       ++i) {
    auto spelled = [i](const format::Tokenizer &tokenizer) {
      const uint32_t begin = tokenizer.token_offsets()->Get(i);
      return std::string_view(
          reinterpret_cast<const char *>(tokenizer.token_bytes()->data()) +
              begin,
          tokenizer.token_offsets()->Get(i + 1) - begin);
    };
    if (spelled(*a) != spelled(*b))
      return concat("its token ", i, " is '", std::string(spelled(*b)),
                    "' instead of '", std::string(spelled(*a)), "'");
  }
  return {};
}

} // namespace

Result<std::unique_ptr<ModelDraft>>
ModelDraft::create(Session &target, const std::shared_ptr<Model> &model) {
  if (!model)
    return Status(StatusCode::InvalidArgument,
                  "expects a draft model with the draft 'model' (llm-run "
                  "--draft-model=FILE), but got none");
  const std::string parts =
      difference(target.model().metadata(), model->metadata());
  if (!parts.empty())
    return Status(StatusCode::InvalidArgument,
                  concat(model->package().path(),
                         ": expects a draft with the vocabulary of the model, "
                         "but ",
                         parts));
  std::unique_ptr<ModelDraft> made(new ModelDraft(target));
  Result<std::unique_ptr<Session>> session = Session::create(model, {});
  if (!session.ok())
    return session.status();
  made->session = std::move(*session);
  made->guessed.reserve(format::kMostNodes);
  return made;
}

double ModelDraft::agreement() const {
  return (right + kPrior * kPriorWeight) / (seen + kPriorWeight);
}

Status ModelDraft::follow(const std::vector<uint32_t> &tokens, bool sampled) {
  if (!sampled || tokens.size() <= guessedAt) {
    guessed.clear(); // another text
    checked = 0;
    return {};
  }
  // One token at a time, so that the last one is the new one.
  const size_t at = tokens.size() - 1 - guessedAt;
  if (at != checked || checked >= guessed.size()) {
    right *= kFadeAtRest;
    seen *= kFadeAtRest;
    return {};
  }
  const bool same = guessed[at] == tokens.back();
  right = right * kFade + (same ? 1 : 0);
  seen = seen * kFade + 1;
  checked = same ? checked + 1 : guessed.size();
  return {};
}

uint32_t ModelDraft::worth(const StepTimes &times, uint32_t most,
                           double least) {
  // A chain of k guesses brings 1 + a + … + a^k tokens.
  const double agree = agreement(),
               each = seconds > 0 ? seconds / times.plain() : 0.3;
  double sum = 1, power = 1;
  uint32_t best = 0;
  for (uint32_t k = 1; k < most; ++k) {
    sum += power *= agree;
    const double rate = sum / (times.cost(k + 1) + k * each);
    if (rate > least)
      least = rate, best = k;
  }
  return best;
}

Status ModelDraft::propose(DraftTree &tree, uint32_t nodes) {
  const std::vector<uint32_t> &tokens = target.tokens();
  guessed.clear();
  guessedAt = tokens.size();
  checked = 0;
  const uint64_t room = session->capacity() + 1;
  if (nodes < 2 || tokens.size() >= room)
    return {};
  const uint64_t wanted =
      std::min<uint64_t>(nodes - 1, room - tokens.size());
  // At least one token is fed: its logits are what sampling starts from.
  const size_t same = std::min(session->match(tokens.data(), tokens.size()),
                               tokens.size() - 1);
  if (Status status = session->truncate(same); !status.ok())
    return status;
  if (Status status = session->setSampling(target.sampled()); !status.ok())
    return status;
  const bool caughtUp = tokens.size() - same < 4;
  const auto began = std::chrono::steady_clock::now();
  if (Status status = session->start(tokens.data() + same,
                                     tokens.size() - same, wanted);
      !status.ok())
    return status;
  uint32_t node = 0;
  const float likely = float(agreement());
  while (guessed.size() < wanted && node != DraftTree::kNone) {
    Result<uint32_t> token = session->next();
    if (!token.ok())
      return token.status();
    guessed.push_back(*token);
    node = tree.add(node, *token, likely);
  }
  if (Status status = session->stop(); !status.ok())
    return status;
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
          .count() /
      double(guessed.size());
  // The first round reads the whole text.
  if (caughtUp)
    seconds = seconds > 0 ? seconds + kNewest * (took - seconds) : took;
  return {};
}

} // namespace sprig
