// What drafts of the package say, beyond the token that they would draw.
#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sprig {

using format::ProgramKind;

Status Session::guessRow(uint32_t index, GuessRow &row) {
  if (!namesGuesses())
    return {StatusCode::Unsupported,
            "expects a package whose drafts say what else may follow, but got "
            "one of an older compiler; compile it again"};
  row.count = 0;
  const uint32_t at = index % format::kGuessRows;
  const uint32_t vocabulary = owner->metadata().model()->vocabulary();
  for (uint32_t i = 0; i < format::kGuesses; ++i) {
    const uint32_t token = buffers.guess(at, i);
    if (token == format::kNoGuess)
      break;
    if (token >= vocabulary)
      return {StatusCode::DeviceError,
              concat("expects a token id below ", vocabulary,
                     ", but a draft named ", token)};
    const uint32_t bits = buffers.guess(at, format::kGuesses + i);
    float logarithm;
    std::memcpy(&logarithm, &bits, sizeof(bits));
    // Where the logits are no numbers, neither is this.
    row.add(token, logarithm <= 0 ? std::exp(logarithm) : 0);
  }
  return {};
}

Status Session::runGuess(ProgramKind kind, uint32_t width, uint32_t guess,
                         StepInput given) {
  Result<vulkan::RecordedProgram *> step = program(kind, width, guess);
  if (!step.ok())
    return step.status();
  given.guesses = true;
  astray = true;
  Result<uint64_t> number = queue->submit(**step, &given);
  if (!number.ok())
    return number.status();
  if (Status status = queue->wait(*number); !status.ok())
    return status;
  return owner->ready();
}

Status Session::guessNext(const format::Draft &draft, uint32_t index,
                          uint32_t token, GuessRow &row) {
  if (Status status = checkGuess(); !status.ok())
    return status;
  if (index >= room())
    return {StatusCode::Context,
            concat("the context of ", capacity(), " tokens is full")};
  if (!draft.repeats() && index >= draft.count())
    return {StatusCode::InvalidArgument,
            concat("expects guesses below ", draft.count(), " of the draft '",
                   draft.name()->string_view(), "', but got ", index)};
  const StepInput given = input(slots() + index, &token, 1);
  if (Status status = runGuess(
          ProgramKind::draft, 1,
          draft.first() + std::min(index, draft.count() - 1), given);
      !status.ok())
    return status;
  return guessRow(0, row);
}

/// The guess of a draft that has programs for trees, where one has: that which
/// all later ones are.
static uint32_t treeGuess(const format::Draft &draft) {
  return draft.first() + draft.count() - 1;
}

uint32_t Session::largestGuessTree(const format::Draft &draft) const {
  uint32_t most = 0;
  for (const format::Program *each : *owner->target().programs())
    if (each->kind() == ProgramKind::draft && each->width() > 1 &&
        each->guess() == treeGuess(draft))
      most = std::max(most, each->width());
  return most;
}

Status Session::prepareDraft(const format::Draft &draft, bool withTrees) {
  for (const format::Program *each : *owner->target().programs())
    if (each->kind() == ProgramKind::draft &&
        each->guess() >= draft.first() &&
        each->guess() - draft.first() < draft.count() &&
        (each->width() == 1 || withTrees))
      if (Status status =
              program(ProgramKind::draft, each->width(), each->guess())
                  .status();
          !status.ok())
        return status;
  return {};
}

Status Session::guessTree(const format::Draft &draft, const uint32_t *tokens,
                          const int32_t *parents, uint32_t count) {
  if (Status status = checkGuess(); !status.ok())
    return status;
  const bool behind = goesOn(draft);
  if (Status status = checkTree(tokens, parents, count, behind); !status.ok())
    return status;
  // The narrowest that takes it.
  uint32_t width = 0;
  for (const format::Program *each : *owner->target().programs())
    if (each->kind() == ProgramKind::draft && each->width() > 1 &&
        each->guess() == treeGuess(draft) && each->width() >= count &&
        (width == 0 || each->width() < width))
      width = each->width();
  if (width == 0)
    return {StatusCode::Unsupported,
            concat("expects a draft with a program for trees of ", count,
                   " nodes, but '", draft.name()->string_view(),
                   "' has none; compile the package with --tree=16")};
  const Packed words = packed(parents, count);
  StepInput given = input(slots() + (behind ? 1 : 0), tokens, count);
  given.parents = words.data();
  return runGuess(ProgramKind::draft, width, treeGuess(draft), given);
}

} // namespace sprig
