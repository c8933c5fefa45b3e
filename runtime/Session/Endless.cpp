// Session past the end of its context: the first tokens and the last ones stay,
// those between them go.
#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

using format::ProgramKind;

Status Session::setEndless(const Endless *wanted) {
  if (!wanted) {
    endlessly.reset();
    return {};
  }
  if (!findProgram(owner->target(), ProgramKind::evict, 1))
    return {StatusCode::Unsupported,
            "expects a package with a program that makes room in a full "
            "context, but it has none; compile it with --endless"};
  const uint64_t stays = uint64_t(wanted->sinks) + std::max(wanted->window, 1u);
  if (stays >= capacity())
    return {StatusCode::InvalidArgument,
            concat("expects sinks and a window that leave room in a context of ",
                   capacity(), " tokens, but got ", wanted->sinks, " and ",
                   wanted->window)};
  endlessly = *wanted;
  return {};
}

std::vector<uint32_t> Session::live() const {
  std::vector<uint32_t> tokens(known.begin(), known.begin() + kept);
  tokens.insert(tokens.end(), known.begin() + kept + gone, known.end());
  return tokens;
}

Status Session::evict() {
  const uint32_t all = slots();
  if (gone == 0)
    kept = std::min(endlessly->sinks, all);
  const uint32_t behind = all - kept;
  const uint32_t window =
      endlessly->window ? endlessly->window : std::max(behind / 2, 1u);
  // At least the slot that is needed.
  const uint32_t dropped = behind > window ? behind - window : 1;
  Result<vulkan::RecordedProgram *> step = program(ProgramKind::evict, 1);
  if (!step.ok())
    return step.status();
  StepInput given = input(all, nullptr, 0);
  given.sinks = kept, given.dropped = dropped;
  // What follows is submitted behind it, and told where it starts.
  if (Result<uint64_t> number = queue->submit(**step, &given); !number.ok())
    return number.status();
  gone += dropped;
  astray = true;
  return {};
}

Status Session::feedOverflow() {
  const std::vector<uint32_t> inner = innerWidths();
  while (known.size() - filled > room()) {
    if (room() > 0)
      if (Result<uint64_t> number = submitPlan(
              planSteps(room(), inner, inner), ProgramKind::append);
          !number.ok())
        return number.status();
    if (Status status = evict(); !status.ok())
      return status;
  }
  return {};
}

} // namespace sprig
