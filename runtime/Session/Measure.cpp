// Session's own stopwatch: what llm-bench and llm-tune ask it.
#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

#include <chrono>

namespace sprig {

using format::ProgramKind;
using vulkan::RecordedProgram;

Status Session::prepareMeasure(uint32_t base, uint32_t slots) {
  if (base < this->slots() || uint64_t(base) + slots > capacity())
    return {StatusCode::InvalidArgument,
            concat("expects slots from ", this->slots(), " to ", capacity(),
                   ", but got ", slots, " from ", base)};
  return stop();
}

Result<std::vector<double>> Session::measure(ProgramKind kind, uint32_t width,
                                             uint32_t base, bool perDispatch) {
  if (Status status = prepareMeasure(base, width); !status.ok())
    return status;
  Result<RecordedProgram *> plain = program(kind, width);
  if (!plain.ok())
    return plain.status();
  RecordedProgram *step = *plain;
  Recorded timed;
  if (perDispatch) {
    Result<Recorded> made = RecordedProgram::record(
        pool, owner->pipelines(), owner->target(),
        *findProgram(owner->target(), kind, width), buffers.all(), true);
    if (!made.ok())
      return made.status();
    timed = std::move(*made);
    step = timed.get();
  }
  std::vector<uint32_t> zeros(width);
  StepInput given = input(base, zeros.data(), width);
  std::array<uint8_t, format::kMostNodes> chain;
  for (uint32_t i = 0; i < chain.size(); ++i)
    chain[i] = i == 0 ? uint8_t(format::kNoParent) : uint8_t(i - 1);
  if (kind == ProgramKind::verify)
    given.parents = chain.data();
  Result<uint64_t> number = queue->submit(*step, &given);
  if (!number.ok())
    return number.status();
  if (Status status = queue->wait(*number); !status.ok())
    return status;
  return perDispatch ? step->times() : std::vector<double>();
}

Result<double> Session::measureDecode(uint32_t base, uint32_t steps) {
  if (Status status = prepareMeasure(base, steps); !status.ok())
    return status;
  Result<RecordedProgram *> decode = program(ProgramKind::sample, 1);
  if (!decode.ok())
    return decode.status();
  uint32_t token = 0;
  StepInput given = input(base, &token, 1);
  auto began = std::chrono::steady_clock::now();
  uint64_t last = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    if (i >= options.ahead)
      if (Status status = queue->wait(last + 1 - options.ahead); !status.ok())
        return status;
    Result<uint64_t> number =
        queue->submit(**decode, i == 0 ? &given : nullptr);
    if (!number.ok())
      return number.status();
    last = *number;
  }
  if (Status status = queue->wait(last); !status.ok())
    return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
      .count();
}

} // namespace sprig
