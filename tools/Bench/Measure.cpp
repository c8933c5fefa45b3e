#include "tools/Bench/Measure.h"
#include "runtime/Package/Commands.h"
#include "tools/Support/Process.h"

#include <algorithm>
#include <set>

namespace sprig::tools {

using format::ProgramKind;

double Samples::quantile(double q) const {
  if (values.empty())
    return 0;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  double at = q * double(sorted.size() - 1);
  size_t below = size_t(at);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - double(below)) * (sorted[above] - sorted[below]);
}

ProgramKind benchKind(const format::Target &target, uint32_t width) {
  for (ProgramKind kind : {ProgramKind::sample, ProgramKind::append})
    if (findProgram(target, kind, width))
      return kind;
  return ProgramKind::logits;
}

namespace {

std::set<uint32_t> allWidths(const format::Target &target) {
  std::set<uint32_t> widths;
  for (const format::Program *program : *target.programs())
    widths.insert(program->width());
  return widths;
}

/// Some tokens of the vocabulary, always the same.
std::vector<uint32_t> someTokens(uint32_t count, uint32_t vocabulary) {
  std::vector<uint32_t> tokens(count);
  for (uint32_t i = 0; i < count; ++i)
    tokens[i] = uint32_t(uint64_t(i) * 2654435761u % vocabulary);
  return tokens;
}

Status measurePrefill(Session &session, uint32_t count, double &rate,
                      double &processor) {
  std::vector<uint32_t> tokens =
      someTokens(count, session.model().metadata().model()->vocabulary());
  if (Status status = session.truncate(0); !status.ok())
    return status;
  Stopwatch clock;
  if (Status status = session.start(tokens.data(), tokens.size(), 1);
      !status.ok())
    return status;
  if (Status status = session.next().status(); !status.ok())
    return status;
  rate = count / clock.seconds();
  processor = clock.ofProcessor();
  return session.truncate(0);
}

/// One run of everything; kept unless it is there to warm up.
Status runOnce(Session &session, const BenchOptions &options, bool keep,
               Measured &measured) {
  const format::Target &target = session.model().target();
  for (uint32_t depth : options.depths) {
    if (uint64_t(depth) + options.decodeTokens > session.capacity())
      continue;
    Stopwatch clock;
    Result<double> seconds =
        session.measureDecode(depth, keep ? options.decodeTokens
                                          : std::min(2u, options.decodeTokens));
    if (!seconds.ok())
      return seconds.status();
    if (!keep)
      continue;
    measured.decodeRate[depth].values.push_back(options.decodeTokens /
                                                *seconds);
    measured.decodeProcessorMs[depth].values.push_back(
        1e3 * clock.ofProcessor() / options.decodeTokens);
  }
  for (uint32_t count : options.promptTokens) {
    if (count == 0 || count > session.capacity())
      continue;
    double rate = 0, processor = 0;
    if (Status status = measurePrefill(session, count, rate, processor);
        !status.ok())
      return status;
    if (!keep)
      continue;
    measured.prefillRate[count].values.push_back(rate);
    measured.prefillProcessorMs[count].values.push_back(1e3 * processor);
  }
  for (uint32_t width : session.treeWidths()) {
    Stopwatch clock;
    Status status = session.measure(ProgramKind::verify, width, 0, false).status();
    if (!status.ok())
      return status;
    if (keep) {
      measured.treeMs[width].values.push_back(1e3 * clock.seconds());
      measured.treeProcessorMs[width].values.push_back(1e3 *
                                                       clock.ofProcessor());
    }
  }
  for (uint32_t width : allWidths(target)) {
    if (width > session.capacity())
      continue;
    Stopwatch clock;
    Status status =
        session.measure(benchKind(target, width), width, 0, false).status();
    if (!status.ok())
      return status;
    if (keep) {
      measured.stepMs[width].values.push_back(1e3 * clock.seconds());
      measured.stepProcessorMs[width].values.push_back(1e3 *
                                                       clock.ofProcessor());
    }
  }
  return {};
}

Status profile(Session &session, uint32_t width, uint32_t depth, uint32_t runs,
               bool trees, std::vector<DispatchTime> &out) {
  const format::Target &target = session.model().target();
  ProgramKind kind = trees ? ProgramKind::verify : benchKind(target, width);
  const format::Program *program = findProgram(target, kind, width);
  if (!program || uint64_t(depth) + width > session.capacity())
    return {};
  std::vector<Samples> times;
  for (uint32_t run = 0; run < runs; ++run) {
    Result<std::vector<double>> ends =
        session.measure(kind, width, depth, true);
    if (!ends.ok() && ends.status().code() == StatusCode::Unsupported)
      return {}; // no timestamps here
    if (!ends.ok())
      return ends.status();
    times.resize(ends->size() - 1);
    for (size_t i = 0; i < times.size(); ++i)
      times[i].values.push_back(((*ends)[i + 1] - (*ends)[i]) / 1e6);
  }
  size_t next = 0;
  for (const format::Command *command : commandsOf(target, *program)) {
    const format::Dispatch *dispatch = command->dispatch();
    if (!dispatch)
      continue;
    DispatchTime time;
    time.kernel = target.kernels()->Get(dispatch->kernel())->name()->str();
    time.label = dispatch->label() ? std::string(labelOf(target, *dispatch))
                                   : time.kernel;
    time.ms = times[next++].quantile(0.5);
    time.bytes = dispatch->bytes();
    time.macs = dispatch->macs();
    out.push_back(std::move(time));
  }
  return {};
}

} // namespace

Status measureAll(Session &session, const BenchOptions &options,
                  Measured &measured) {
  for (uint32_t run = 0; run <= options.runs; ++run)
    if (Status status = runOnce(session, options, run > 0, measured);
        !status.ok())
      return status;
  for (uint32_t width : options.profileWidths)
    if (Status status = profile(session, width,
                                options.depths.empty() ? 0 : options.depths[0],
                                options.runs, options.profileTrees,
                                measured.profile[width]);
        !status.ok())
      return status;
  return {};
}

} // namespace sprig::tools
