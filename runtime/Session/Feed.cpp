// How a session's cache is filled: which programs take the tokens that are fed.
#include "runtime/Session/Session.h"
#include "runtime/Support/Strings.h"

namespace sprig {

using format::ProgramKind;
using vulkan::RecordedProgram;

ProgramKind Session::innerKind(uint32_t width) const {
  return findProgram(owner->target(), ProgramKind::append, width)
             ? ProgramKind::append
             : ProgramKind::sample;
}

std::vector<uint32_t> Session::innerWidths() const {
  std::vector<uint32_t> widths = widthsOf(owner->target(), ProgramKind::append);
  if (widths.empty())
    widths = widthsOf(owner->target(), ProgramKind::sample);
  return widths;
}

Status Session::checkFeed(const uint32_t *tokens, size_t count) const {
  uint32_t vocabulary = owner->metadata().model()->vocabulary();
  for (size_t i = 0; i < count; ++i)
    if (tokens[i] >= vocabulary)
      return {StatusCode::InvalidArgument,
              concat("expects token ids below ", vocabulary, ", but token ", i,
                     " is ", tokens[i])};
  const uint64_t wanted = uint64_t(known.size()) - gone + count;
  if (wanted > capacity() && !endlessly)
    return {StatusCode::Context,
            concat("expects at most ", capacity(),
                   " tokens (the context the package was compiled for), but "
                   "got ",
                   wanted,
                   "; shorten the prompt, or compile with a larger --context")};
  if (uint64_t(known.size()) + count > UINT32_MAX)
    return {StatusCode::Context,
            concat("expects at most ", UINT32_MAX, " tokens, but got ",
                   uint64_t(known.size()) + count)};
  if (filled == known.size() && count == 0)
    return {StatusCode::InvalidArgument,
            "expects at least one token to go on from, but got none"};
  return {};
}

Result<uint64_t> Session::feed(const uint32_t *tokens, size_t count,
                               ProgramKind kind) {
  if (Status status = stop(); !status.ok())
    return status;
  if (Status status = checkFeed(tokens, count); !status.ok())
    return status;
  size_t before = known.size();
  uint32_t filledBefore = filled;
  known.insert(known.end(), tokens, tokens + count);
  const uint32_t goneBefore = gone;
  if (Status status = feedOverflow(); !status.ok()) {
    (void)truncate(0); // nobody knows what the cache holds
    return status;
  }
  Result<uint64_t> number =
      submitPlan(planFor(uint32_t(known.size()) - filled, kind), kind);
  if (!number.ok() && gone != goneBefore) {
    (void)truncate(0);
  } else if (!number.ok()) {
    known.resize(before);
    filled = filledBefore;
  }
  return number;
}

std::vector<PlannedStep> Session::planFor(uint32_t tokens, ProgramKind kind) {
  const std::vector<uint32_t> inner = innerWidths(),
                              last = kind == ProgramKind::append
                                         ? inner
                                         : widthsOf(owner->target(), kind);
  std::vector<PlannedStep> plan = planSteps(tokens, inner, last);
  const auto hasOne = [](const std::vector<uint32_t> &widths) {
    return !widths.empty() && widths.front() == 1;
  };
  if (!owner->startsAnew() || !hasOne(inner) || !hasOne(last))
    return plan;
  const std::vector<PlannedStep> narrow = planSteps(tokens, {1}, {1});
  // Kernels of wider steps alone.
  const std::set<uint32_t> wide = kernelsOf(plan, kind),
                           shared = kernelsOf(narrow, kind);
  PipelineCost more;
  std::vector<uint32_t> fresh;
  for (uint32_t kernel : wide) {
    if (shared.count(kernel))
      continue;
    const bool known = owner->pipelines().known(kernel);
    more.add(owner->target().kernels()->Get(kernel)->code()->size(), known);
    if (!known)
      fresh.push_back(kernel);
  }
  vulkan::PipelineCache &cache = owner->pipelineCache();
  double lost = cache.lost();
  const bool narrower = takesNarrow(costOf(narrow), costOf(plan), more, lost);
  cache.setLost(lost);
  if (narrower)
    owner->makeAhead(fresh);
  return narrower ? narrow : plan;
}

ProgramKind Session::kindOf(const std::vector<PlannedStep> &plan, size_t i,
                            ProgramKind kind) const {
  const bool last = i + 1 == plan.size() && kind != ProgramKind::append;
  return last ? kind : innerKind(plan[i].width);
}

std::set<uint32_t> Session::kernelsOf(const std::vector<PlannedStep> &plan,
                                      ProgramKind kind) const {
  std::set<uint32_t> kernels;
  for (size_t i = 0; i < plan.size(); ++i)
    if (const format::Program *next = findProgram(
            owner->target(), kindOf(plan, i, kind), plan[i].width)) {
      const std::vector<uint32_t> own =
          vulkan::kernelsOf(owner->target(), *next);
      kernels.insert(own.begin(), own.end());
    }
  return kernels;
}

Result<uint64_t> Session::submitPlan(const std::vector<PlannedStep> &plan,
                                     ProgramKind kind) {
  // All pipelines first, so that the threads that make them work at once.
  const std::set<uint32_t> kernels = kernelsOf(plan, kind);
  if (Status status =
          owner->pipelines().ensure({kernels.begin(), kernels.end()});
      !status.ok())
    return status;

  uint64_t number = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    Result<RecordedProgram *> step = program(kindOf(plan, i, kind), plan[i].width);
    if (!step.ok())
      return step.status();
    StepInput given = input(slots(), known.data() + filled, plan[i].count);
    Result<uint64_t> submitted = queue->submit(**step, &given);
    if (!submitted.ok())
      return submitted.status();
    number = *submitted;
    filled += plan[i].count;
  }
  astray = false;
  return number;
}

Status Session::append(const uint32_t *tokens, size_t count) {
  Result<uint64_t> step = feed(tokens, count, ProgramKind::append);
  return step.ok() ? queue->wait(*step) : step.status();
}

Status Session::evaluateLast(const uint32_t *tokens, size_t count,
                             float *logits) {
  if (!buffers.hasLogits())
    return {StatusCode::Unsupported, "the package gives no logits out"};
  Result<uint64_t> step = feed(tokens, count, ProgramKind::sample);
  if (!step.ok())
    return step.status();
  if (Status status = queue->wait(*step); !status.ok())
    return status;
  if (Status status = owner->ready(); !status.ok())
    return status;
  return buffers.readLogits(*pool, 1, owner->metadata().model()->vocabulary(),
                            logits);
}

Status Session::evaluate(const uint32_t *tokens, size_t count, float *logits) {
  std::vector<uint32_t> widths = widthsOf(owner->target(), ProgramKind::logits);
  if (!buffers.hasLogits() || widths.empty())
    return {StatusCode::Unsupported,
            "expects a package with programs that give all logits out, but it "
            "has none; compile it with small --widths"};
  if (Status status = stop(); !status.ok())
    return status;
  // What was sampled last and never fed belongs before the new tokens.
  if (filled < known.size())
    if (Status status = append(nullptr, 0); !status.ok())
      return status;
  if (Status status = checkFeed(tokens, count); !status.ok())
    return status;
  uint32_t vocabulary = owner->metadata().model()->vocabulary();
  while (count > 0) {
    if (room() == 0)
      if (Status status = evict(); !status.ok())
        return status;
    const auto now = uint32_t(std::min<size_t>(count, room()));
    count -= now;
    for (const PlannedStep &step : planSteps(now, widths, widths)) {
      Result<RecordedProgram *> made = program(ProgramKind::logits, step.width);
      if (!made.ok())
        return made.status();
      known.insert(known.end(), tokens, tokens + step.count);
      StepInput given = input(slots(), tokens, step.count);
      Result<uint64_t> number = queue->submit(**made, &given);
      if (!number.ok())
        return number.status();
      if (Status status = queue->wait(*number); !status.ok())
        return status;
      if (Status status =
              buffers.readLogits(*pool, step.count, vocabulary, logits);
          !status.ok())
        return status;
      filled += step.count;
      tokens += step.count;
      logits += size_t(step.count) * vocabulary;
    }
  }
  return owner->ready();
}

} // namespace sprig
