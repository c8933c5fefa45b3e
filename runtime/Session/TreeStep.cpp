#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

using format::ProgramKind;

Status Session::checkTree(const uint32_t *tokens, const int32_t *parents,
                          uint32_t count, bool behind) const {
  auto refuse = [](auto... parts) {
    return Status(StatusCode::InvalidArgument, concat(parts...));
  };
  const uint32_t most = largestTree();
  if (most == 0)
    return {StatusCode::Unsupported,
            "expects a package with programs for trees, but it has none; "
            "compile it with --tree=16"};
  if (count == 0 || count > most)
    return refuse("expects a tree of 1 to ", most, " nodes, but got ", count);
  if (filled + 1 != known.size())
    return refuse("expects one token that is not in the cache yet, as after "
                  "sampling, but there are ",
                  known.size() - filled);
  if (!behind && tokens[0] != known.back())
    return refuse("expects node 0 to be the last token, ", known.back(),
                  ", but got ", tokens[0]);
  const uint32_t vocabulary = owner->metadata().model()->vocabulary();
  for (uint32_t i = 0; i < count; ++i) {
    if (tokens[i] >= vocabulary)
      return refuse("expects token ids below ", vocabulary, ", but node ", i,
                    " is ", tokens[i]);
    const int32_t least = i == 0 || behind ? -1 : 0;
    if (parents[i] < least || parents[i] >= int64_t(i))
      return refuse("expects the parent of node ", i,
                    i == 0 ? " to be -1, but got "
                           : " to come before it, but got ",
                    parents[i]);
  }
  const uint64_t first = uint64_t(slots()) + (behind ? 1 : 0);
  if (first + count > capacity())
    return {StatusCode::Context,
            concat("expects a tree that ends by slot ", capacity(),
                   ", but it would take slots ", first, " to ",
                   first + count - 1)};
  return {};
}

Session::Packed Session::packed(const int32_t *parents, uint32_t count) {
  Packed words{};
  for (uint32_t i = 0; i < count; ++i)
    words[i] = parents[i] < 0 ? uint8_t(format::kNoParent) : uint8_t(parents[i]);
  return words;
}

Result<uint32_t> Session::runTree(const uint32_t *tokens,
                                  const int32_t *parents, uint32_t count,
                                  float *logits, const uint32_t *rows) {
  if (Status status = checkTree(tokens, parents, count); !status.ok())
    return status;
  Result<vulkan::RecordedProgram *> step =
      program(ProgramKind::verify,
              *std::lower_bound(trees.begin(), trees.end(), count));
  if (!step.ok())
    return step.status();
  const Packed words = packed(parents, count);
  StepInput given = input(slots(), tokens, count);
  given.parents = words.data();
  given.rows = rows;
  Result<uint64_t> number = queue->submit(**step, &given);
  if (!number.ok())
    return number.status();
  // What was accepted is for heads to see, and not for what follows them.
  astray = true;
  if (Status status = queue->wait(*number); !status.ok())
    return status;
  if (Status status = owner->ready(); !status.ok())
    return status;
  const uint32_t vocabulary = owner->metadata().model()->vocabulary();
  if (logits)
    if (Status status = buffers.readLogits(*pool, count, vocabulary, logits);
        !status.ok())
      return status;
  const uint32_t taken = buffers.word(format::Accepted);
  if (taken >= count)
    return Status(StatusCode::DeviceError,
                  concat("expects fewer than ", count,
                         " accepted nodes, but the device says ", taken));
  for (uint32_t i = 0; i <= taken; ++i) {
    const uint32_t token = buffers.token(slots() + 1 + i);
    if (token >= vocabulary)
      return Status(StatusCode::DeviceError,
                    concat("expects a token id below ", vocabulary,
                           ", but the device sampled ", token));
    accepted[i] = token;
  }
  return taken + 1;
}

Result<uint32_t> Session::verify(const uint32_t *tokens, const int32_t *parents,
                                 uint32_t count, uint32_t *out, float *logits) {
  if (Status status = stop(); !status.ok())
    return status;
  if (endlessly && room() == 0)
    if (Status status = evict(); !status.ok())
      return status;
  Result<uint32_t> taken = runTree(tokens, parents, count, logits);
  if (!taken.ok())
    return taken;
  std::copy_n(accepted.begin(), *taken, out);
  known.insert(known.end(), out, out + *taken);
  filled += *taken;
  return taken;
}

Result<uint32_t> Session::stepTree(const uint32_t *tokens,
                                   const int32_t *parents, uint32_t count,
                                   const uint32_t *rows) {
  if (waiting() > 0 || budget == 0)
    return Status(StatusCode::InvalidArgument,
                  concat("expects a tree when all sampled tokens are taken and "
                         "some of the budget is left, but ",
                         waiting(), " wait and ", budget, " are left"));
  if (rows && !namesGuesses())
    return Status(StatusCode::Unsupported,
                  "expects a package with drafts to draw guesses from, but it "
                  "has none; compile it with --draft=skip:auto");
  Result<uint32_t> taken = runTree(tokens, parents, count, nullptr, rows);
  if (!taken.ok())
    return taken;
  // Where the device goes on from, should it be asked to.
  nextBase = slots() + *taken;
  firstAccepted = 0;
  acceptedCount = uint32_t(std::min<uint64_t>(*taken, budget));
  budget -= acceptedCount;
  return acceptedCount;
}

} // namespace sprig
