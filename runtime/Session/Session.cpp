#include "runtime/Session/Session.h"
#include "runtime/Package/Names.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

using format::ProgramKind;
using vulkan::RecordedProgram;

Result<std::unique_ptr<Session>>
Session::create(std::shared_ptr<Model> model, const SessionOptions &options) {
  std::unique_ptr<Session> made(new Session);
  made->owner = model;
  made->options = options;
  made->options.ahead =
      std::clamp<uint32_t>(options.ahead, 1, StepQueue::kMostUnderWay);
  made->recorded.resize(model->target().programs()->size());
  made->trees = widthsOf(model->target(), ProgramKind::verify);
  Result<std::shared_ptr<vulkan::CommandPool>> pool =
      vulkan::CommandPool::create(model->device());
  if (!pool.ok())
    return pool.status();
  made->pool = *pool;
  Result<std::shared_ptr<void>> memory = model->admitSession();
  if (!memory.ok())
    return memory.status();
  made->memory = std::move(*memory);
  Result<SessionBuffers> buffers = SessionBuffers::create(*model);
  if (!buffers.ok())
    return buffers.status();
  made->buffers = std::move(*buffers);
  Result<std::unique_ptr<StepQueue>> queue =
      StepQueue::create(made->pool, model->device(), made->buffers.control(),
                        made->buffers.history());
  if (!queue.ok())
    return queue.status();
  made->queue = std::move(*queue);
  if (Status status =
          made->buffers.fill(*made->pool, model->target(), options.fill);
      !status.ok())
    return status;
  made->known.reserve(size_t(made->capacity()) + 1); // no growth while running
  return made;
}

Session::~Session() {
  // Programs, queue and buffers go away below: nothing may be under way.
  queue.reset();
  recorded.clear();
}

uint32_t Session::capacity() const {
  return owner->metadata().model()->context();
}

size_t Session::match(const uint32_t *tokens, size_t count) const {
  size_t same = 0;
  while (same < count && same < known.size() && known[same] == tokens[same])
    ++same;
  return same;
}

Status Session::truncate(size_t length) {
  if (length > known.size())
    return {StatusCode::InvalidArgument,
            concat("expects a length of at most ", known.size(),
                   " tokens, but got ", length)};
  if (Status status = stop(); !status.ok())
    return status;
  known.resize(length);
  if (length < size_t(kept) + gone) {
    // Nothing behind the sinks is what this sequence would have.
    filled = std::min(filled, kept);
    gone = kept = 0;
  }
  filled = std::min<uint32_t>(filled, uint32_t(length));
  return {};
}

Status Session::setSampling(const Sampling &wanted) {
  if (Status status = wanted.check(); !status.ok())
    return status;
  sampling = wanted;
  return {};
}

Result<RecordedProgram *> Session::program(ProgramKind kind, uint32_t width,
                                           uint32_t guess) {
  const format::Target &target = owner->target();
  const format::Program *wanted = findProgram(target, kind, width, guess);
  if (!wanted)
    return Status(StatusCode::Unsupported,
                  concat("expects a program ", nameOf(kind), " at width ",
                         width, ", but target '", target.name()->string_view(),
                         "' has none"));
  size_t index = 0;
  while (target.programs()->Get(uint32_t(index)) != wanted)
    ++index;
  if (!recorded[index]) {
    const std::vector<uint32_t> kernels = vulkan::kernelsOf(target, *wanted);
    Status status = owner->pipelines().ensure(kernels);
    if (!status.ok())
      return status.within(concat("program ", nameOf(*wanted)));
    Result<Recorded> made =
        RecordedProgram::record(pool, owner->pipelines(), target, *wanted,
                                buffers.all(), /*timed=*/false);
    if (!made.ok())
      return made.status();
    owner->pipelines().learn(kernels);
    recorded[index] = std::move(*made);
  }
  return recorded[index].get();
}

Status Session::prepare(ProgramKind kind, uint32_t width) {
  return program(kind, width).status();
}

StepInput Session::input(uint32_t base, const uint32_t *tokens,
                         uint32_t count) const {
  StepInput given{base, tokens, count, capacity(), sampling, adapter};
  // Slots start again, noise does not.
  given.sampling.seed += gone * UINT64_C(0x9e3779b97f4a7c15);
  return given;
}

Status Session::setAdapter(std::string_view name) {
  uint32_t number = 0;
  if (!name.empty()) {
    std::string names;
    if (const auto *adapters = owner->metadata().adapters())
      for (uint32_t i = 0; i < adapters->size(); ++i) {
        const std::string_view known = adapters->Get(i)->string_view();
        names += (i ? ", " : "") + std::string(known);
        if (known == name)
          number = i + 1;
      }
    if (number == 0)
      return {StatusCode::InvalidArgument,
              concat("expects one of the package's adapters (",
                     names.empty() ? "it has none" : names, "), but got '",
                     name, "'")};
  }
  if (number == adapter)
    return {};
  if (Status status = truncate(0); !status.ok())
    return status;
  adapter = number;
  return {};
}

Status Session::start(const uint32_t *tokens, size_t count, uint64_t wanted,
                      bool held) {
  if (wanted == 0)
    return {StatusCode::InvalidArgument,
            "expects a budget of at least one token, but got 0"};
  Result<uint64_t> step = feed(tokens, count, ProgramKind::sample);
  if (!step.ok())
    return step.status();
  push(*step, slots());
  nextBase = slots();
  budget = wanted - 1;
  holding = held;
  // Made while the prompt runs.
  if (budget > 0 && (nextBase < capacity() || endlessly))
    if (Status status = prepare(ProgramKind::sample, 1); !status.ok())
      return status;
  return pump();
}

void Session::push(uint64_t step, uint32_t slot) {
  pending[(firstPending + pendingCount++) % pending.size()] = {step, slot};
}

/// Submits decode steps as far ahead as allowed. Each takes the token that the
/// step before it left in the history.
Status Session::pump() {
  while (!holding && budget > 0 && pendingCount < options.ahead &&
         nextBase < capacity())
    if (Status status = submitStep(); !status.ok())
      return status;
  return {};
}

Status Session::submitStep() {
  Result<RecordedProgram *> decode = program(ProgramKind::sample, 1);
  if (!decode.ok())
    return decode.status();
  // Nothing is under way where it has to be told.
  const uint32_t newest = acceptedCount > 0
                              ? accepted[firstAccepted + acceptedCount - 1]
                              : known.back();
  const StepInput given = input(nextBase, &newest, 1);
  Result<uint64_t> step = queue->submit(**decode, astray ? &given : nullptr);
  if (!step.ok())
    return step.status();
  astray = false;
  push(*step, ++nextBase);
  --budget;
  return {};
}

Result<uint32_t> Session::next() {
  if (acceptedCount > 0) {
    --acceptedCount;
    known.push_back(accepted[firstAccepted++]);
    filled = uint32_t(known.size()) - 1;
    const uint32_t token = known.back();
    if (Status status = pump(); !status.ok())
      return status;
    return token;
  }
  if (!holding) {
    const uint32_t before = gone;
    if (Status status = makeRoom(); !status.ok())
      return status;
    if (gone != before)
      if (Status status = pump(); !status.ok())
        return status;
  }
  if (pendingCount == 0) {
    if (budget > 0 && nextBase < capacity())
      return Status(StatusCode::InvalidArgument,
                    "expects a tree, or a session that is not held, but got "
                    "neither");
    if (budget > 0)
      return Status(StatusCode::Context,
                    concat("the context of ", capacity(), " tokens is full"));
    return Status(StatusCode::InvalidArgument,
                  "expects `start` with a budget of tokens before `next`, but "
                  "none is left");
  }
  Pending first = pending[firstPending];
  if (Status status = queue->wait(first.step); !status.ok())
    return status;
  if (Status status = owner->ready(); !status.ok())
    return status;
  uint32_t token = buffers.token(first.slot);
  uint32_t vocabulary = owner->metadata().model()->vocabulary();
  if (token >= vocabulary)
    return Status(StatusCode::DeviceError,
                  concat("expects a token id below ", vocabulary,
                         ", but the device sampled ", token));
  firstPending = (firstPending + 1) % pending.size();
  --pendingCount;
  known.push_back(token);
  filled = first.slot + gone;
  if (Status status = pump(); !status.ok())
    return status;
  return token;
}

Status Session::hold(bool wanted) {
  holding = wanted;
  return pump();
}

Status Session::makeRoom() {
  if (pendingCount > 0 || budget == 0 || !endlessly || nextBase < capacity())
    return {};
  if (Status status = evict(); !status.ok())
    return status;
  nextBase = slots();
  return {};
}

Status Session::stepOnce() {
  if (waiting() == 0)
    if (Status status = makeRoom(); !status.ok())
      return status;
  if (waiting() > 0 || budget == 0 || nextBase >= capacity())
    return {}; // `next` says what is wrong, if anything
  return submitStep();
}

Status Session::stop() {
  holding = false;
  budget = 0;
  pendingCount = acceptedCount = 0;
  return queue->drain();
}

} // namespace sprig
