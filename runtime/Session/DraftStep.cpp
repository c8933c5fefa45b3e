#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

using format::ProgramKind;

Status Session::checkGuess() const {
  if (waiting() > 0)
    return {StatusCode::InvalidArgument,
            concat("expects guesses when all sampled tokens are taken, but ",
                   waiting(), " wait")};
  if (known.empty() || filled + 1 != known.size())
    return {StatusCode::InvalidArgument,
            concat("expects one token that is not in the cache yet, as after "
                   "sampling, but there are ",
                   known.size() - filled)};
  return {};
}

Result<uint32_t> Session::guess(const format::Draft &draft, uint32_t count,
                                uint32_t *tokens) {
  if (Status status = checkGuess(); !status.ok())
    return status;
  if (!draft.repeats())
    count = std::min(count, draft.count());
  // A guess needs a slot for the token before it.
  count = std::min(count, room());
  if (count == 0)
    return 0u;
  uint64_t last = 0;
  astray = true;
  for (uint32_t i = 0; i < count; ++i) {
    Result<vulkan::RecordedProgram *> step = program(
        ProgramKind::draft, 1, draft.first() + std::min(i, draft.count() - 1));
    if (!step.ok())
      return step.status();
    // The later ones go on from what the one before them left.
    StepInput given = input(slots(), &known.back(), 1);
    given.guesses = true;
    Result<uint64_t> number = queue->submit(**step, i == 0 ? &given : nullptr);
    if (!number.ok())
      return number.status();
    last = *number;
  }
  if (Status status = queue->wait(last); !status.ok())
    return status;
  if (Status status = owner->ready(); !status.ok())
    return status;
  const uint32_t vocabulary = owner->metadata().model()->vocabulary();
  for (uint32_t i = 0; i < count; ++i) {
    tokens[i] = buffers.token(slots() + 1 + i);
    if (tokens[i] >= vocabulary)
      return Status(StatusCode::DeviceError,
                    concat("expects a token id below ", vocabulary,
                           ", but the draft '", draft.name()->string_view(),
                           "' sampled ", tokens[i]));
  }
  return count;
}

} // namespace sprig
