//===- llm-bench.cpp - how fast a compiled model is on a device
//-----------------------===//
#include "tools/Bench/Measure.h"
#include "runtime/Support/Strings.h"
#include "tools/Bench/Startup.h"
#include "tools/Support/Html.h"
#include "tools/Support/Json.h"
#include "tools/Support/Options.h"
#include "tools/Support/Process.h"

#include <algorithm>

using namespace sprig;
using namespace sprig::tools;

namespace {

/// 1/16 as f16, twice: a KV cache that was never filled has pages that do not
/// exist, which are faster than real ones.
constexpr uint32_t kFill = 0x2c002c00;

struct Arguments {
  std::string model, device, target, trace, html, cache;
  BenchOptions bench;
  uint64_t runs = 5, decodeTokens = 16;
  double memoryLimit = 0;
  bool json = false, probe = false, noStartup = false;
};

int fail(const std::string &message) {
  std::fprintf(stderr, "llm-bench: error: %s\n", message.c_str());
  return 1;
}

std::string text(const char *format, double value) {
  char out[64];
  std::snprintf(out, sizeof(out), format, value);
  return out;
}

Result<std::unique_ptr<Session>> open(const Arguments &args, bool fill) {
  ModelOptions options;
  options.choice.device = args.device;
  options.choice.target = args.target;
  if (!args.cache.empty())
    options.cacheFolder = args.cache;
  options.memoryLimit = uint64_t(args.memoryLimit * (1 << 20));
  if (!args.probe)
    options.plan = [](const MemoryPlan &plan, uint64_t available, bool inPlace,
                      uint32_t context) {
      std::fprintf(stderr,
                   "memory: weights %s%s, KV cache of %u tokens %s, "
                   "activations %s, logits %s; %s are free\n",
                   humanBytes(plan.weights).c_str(),
                   inPlace ? " (the file's own pages)" : "", unsigned(context),
                   humanBytes(plan.kv).c_str(),
                   humanBytes(plan.scratch + plan.control).c_str(),
                   humanBytes(plan.logits).c_str(),
                   humanBytes(available).c_str());
    };
  Result<std::shared_ptr<Model>> model = Model::open(args.model, options);
  if (!model.ok())
    return model.status();
  SessionOptions sessionOptions;
  if (fill)
    sessionOptions.fill = kFill;
  return Session::create(*model, sessionOptions);
}

/// What a start-up probe does: a prompt of five tokens, one token, a line.
int probe(const Arguments &args) {
  Result<std::unique_ptr<Session>> session = open(args, false);
  if (!session.ok())
    return fail(session.status().message());
  std::vector<uint32_t> tokens(5);
  Status status = (*session)->start(tokens.data(), tokens.size(), 1);
  if (status.ok())
    status = (*session)->next().status();
  if (!status.ok())
    return fail(status.message());
  std::puts("first token");
  std::fflush(stdout);
  return 0;
}

struct KernelTime {
  double ms = 0;
  uint64_t bytes = 0, macs = 0;
  unsigned dispatches = 0;
};

std::vector<std::pair<std::string, KernelTime>>
byKernel(const std::vector<DispatchTime> &dispatches) {
  std::map<std::string, KernelTime> sums;
  for (const DispatchTime &dispatch : dispatches) {
    KernelTime &sum = sums[dispatch.kernel];
    sum.ms += dispatch.ms;
    sum.bytes += dispatch.bytes;
    sum.macs += dispatch.macs;
    ++sum.dispatches;
  }
  std::vector<std::pair<std::string, KernelTime>> list(sums.begin(),
                                                       sums.end());
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
    return a.second.ms > b.second.ms;
  });
  return list;
}

/// Chrome's trace format, which Perfetto reads: a track a width.
std::string traceText(const Measured &measured) {
  Json json;
  json.open('{').key("traceEvents").open('[');
  for (const auto &[width, dispatches] : measured.profile) {
    json.open('{').pair("name", "thread_name").pair("ph", "M").pair("pid", 1);
    json.pair("tid", width).key("args").open('{');
    json.pair("name", "width " + std::to_string(width)).close().close();
    double at = 0;
    for (const DispatchTime &dispatch : dispatches) {
      json.open('{').pair("name", dispatch.label).pair("cat", dispatch.kernel);
      json.pair("ph", "X").pair("pid", 1).pair("tid", width);
      json.pair("ts", at).pair("dur", 1e3 * dispatch.ms).key("args").open('{');
      json.pair("kernel", dispatch.kernel).pair("bytes", dispatch.bytes);
      json.pair("macs", dispatch.macs).close().close();
      at += 1e3 * dispatch.ms;
    }
  }
  json.close().close();
  return json.text();
}

class Report {
public:
  Report(const Arguments &given, Session &used, const Measured &figures,
         const Startup *start)
      : args(given), session(used), measured(figures), startup(start) {}

  void print() const {
    const vulkan::PhysicalDevice &device = session.model().device()->physical();
    std::printf("%s on %s (%s), target %s\n", args.model.c_str(),
                device.name.c_str(), device.driver.c_str(),
                session.model().target().name()->c_str());
    for (const auto &[depth, rates] : measured.decodeRate)
      line("decode at depth " + std::to_string(depth), rates, "tokens/s");
    for (const auto &[count, rates] : measured.prefillRate)
      line("prefill of " + std::to_string(count), rates, "tokens/s");
    for (const auto &[width, times] : measured.stepMs)
      line("step of width " + std::to_string(width), times, "ms");
    for (const auto &[width, times] : measured.stepProcessorMs)
      line("processor, width " + std::to_string(width), times, "ms");
    for (const auto &[width, times] : measured.treeMs)
      line("tree of " + std::to_string(width), times, "ms");
    for (const auto &[width, times] : measured.treeProcessorMs)
      line("processor, tree of " + std::to_string(width), times, "ms");
    if (startup)
      std::printf("start to first token: %.2f s cold, %.2f s warm\n",
                  startup->cold, startup->warm);
    std::printf("memory: %.1f MiB of device, %.1f MiB resident at most\n",
                double(deviceBytes()) / (1 << 20),
                double(peakResidentBytes()) / (1 << 20));
    for (const auto &[width, dispatches] : measured.profile) {
      if (dispatches.empty())
        continue;
      std::printf("kernels at width %u:\n", width);
      for (const auto &[name, sum] : byKernel(dispatches))
        std::printf("  %9.3f ms  %4u x %-40s %6.2f GB/s\n", sum.ms,
                    sum.dispatches, name.c_str(),
                    double(sum.bytes) / 1e6 / sum.ms);
    }
  }

  std::string json() const {
    Json json;
    json.open('{');
    json.pair("decode_tokens_per_s", first(measured.decodeRate, 0.5));
    json.pair("prefill_tokens_per_s", first(measured.prefillRate, 0.5));
    for (double q : {0.1, 0.9}) {
      json.key(q < 0.5 ? "p10" : "p90").open('{');
      json.pair("decode_tokens_per_s", first(measured.decodeRate, q));
      json.pair("prefill_tokens_per_s", first(measured.prefillRate, q));
      json.close();
    }
    series(json, "step_ms", measured.stepMs);
    series(json, "step_processor_ms", measured.stepProcessorMs);
    series(json, "tree_ms", measured.treeMs);
    series(json, "tree_processor_ms", measured.treeProcessorMs);
    series(json, "decode_at", measured.decodeRate);
    series(json, "prefill_at", measured.prefillRate);
    series(json, "decode_processor_ms", measured.decodeProcessorMs);
    series(json, "prefill_processor_ms", measured.prefillProcessorMs);
    if (startup) {
      json.key("startup").open('{').pair("cold_s", startup->cold);
      json.pair("warm_s", startup->warm).close();
    }
    const MemoryPlan &plan = session.model().plan();
    json.key("memory").open('{').pair("device_bytes", deviceBytes());
    json.pair("weight_bytes", plan.weights).pair("kv_bytes", plan.kv);
    json.pair("peak_rss_bytes", peakResidentBytes()).close();
    const vulkan::PhysicalDevice &device = session.model().device()->physical();
    json.pair("package_bytes", session.model().package().mapping().size());
    json.pair("device", device.name).pair("driver", device.driver);
    json.pair("target", session.model().target().name()->c_str());
    json.pair("runs", args.bench.runs);
    json.key("kernels").open('{');
    for (const auto &[width, dispatches] : measured.profile) {
      json.key(std::to_string(width)).open('[');
      for (const auto &[name, sum] : byKernel(dispatches)) {
        json.open('{').pair("name", name).pair("ms", sum.ms);
        json.pair("dispatches", sum.dispatches).pair("bytes", sum.bytes);
        json.pair("macs", sum.macs).close();
      }
      json.close();
    }
    json.close().close();
    return json.text();
  }

  bool html(const std::string &path) const {
    HtmlReport page("Benchmark of " + args.model);
    const vulkan::PhysicalDevice &device = session.model().device()->physical();
    page.paragraph(device.name + ", " + device.driver + "; target " +
                   session.model().target().name()->str() + "; " +
                   std::to_string(args.bench.runs) + " runs, medians");
    chart(page, "Decode, tokens a second by depth", measured.decodeRate);
    chart(page, "Prefill, tokens a second by prompt", measured.prefillRate);
    chart(page, "Step, milliseconds by width", measured.stepMs);
    for (const auto &[width, dispatches] : measured.profile) {
      page.heading("Kernels at width " + std::to_string(width));
      std::vector<HtmlReport::Bar> bars;
      for (const auto &[name, sum] : byKernel(dispatches))
        bars.push_back({name, sum.ms,
                        text("%.3f ms", sum.ms) + " in " +
                            std::to_string(sum.dispatches) + " dispatches"});
      page.bars(bars);
    }
    return page.write(path);
  }

private:
  using Series = std::map<uint32_t, Samples>;

  uint64_t deviceBytes() const {
    return session.model().weightBytes() + session.deviceBytes();
  }
  static double first(const Series &series, double q) {
    return series.empty() ? 0 : series.begin()->second.quantile(q);
  }
  static void line(const std::string &what, const Samples &samples,
                   const char *unit) {
    std::printf("%-24s %10.3f %s (p10 %.3f, p90 %.3f)\n", what.c_str(),
                samples.quantile(0.5), unit, samples.quantile(0.1),
                samples.quantile(0.9));
  }
  static void series(Json &json, const char *name, const Series &series) {
    json.key(name).open('{');
    for (const auto &[key, samples] : series)
      json.pair(std::to_string(key), samples.quantile(0.5));
    json.close();
  }
  static void chart(HtmlReport &page, const std::string &title,
                    const Series &series) {
    if (series.empty())
      return;
    page.heading(title);
    std::vector<HtmlReport::Bar> bars;
    for (const auto &[key, samples] : series)
      bars.push_back({std::to_string(key), samples.quantile(0.5),
                      text("%.3f", samples.quantile(0.5)) + " (" +
                          text("%.3f", samples.quantile(0.1)) + " to " +
                          text("%.3f", samples.quantile(0.9)) + ")"});
    page.bars(bars);
  }

  const Arguments &args;
  Session &session;
  const Measured &measured;
  const Startup *startup;
};

int run(Arguments &args) {
  Progress progress;
  Startup startup;
  bool hasStartup = false;
  if (!args.noStartup) {
    progress.show("measuring the start");
    std::vector<std::string> command = {"/proc/self/exe", args.model,
                                        "--startup-probe"};
    if (!args.device.empty())
      command.push_back("--device=" + args.device);
    if (!args.target.empty())
      command.push_back("--target=" + args.target);
    hasStartup = measureStartup(command, startup);
    if (!hasStartup)
      return fail("a start of this program as a probe failed");
  }
  progress.show("measuring");
  Result<std::unique_ptr<Session>> session = open(args, true);
  if (!session.ok())
    return fail(session.status().message());
  Measured measured;
  if (Status status = measureAll(**session, args.bench, measured); !status.ok())
    return fail(status.message());
  progress.clear();
  Report report(args, **session, measured, hasStartup ? &startup : nullptr);
  if (args.json)
    std::puts(report.json().c_str());
  else
    report.print();
  if (!args.trace.empty() && !writeWhole(args.trace, traceText(measured)))
    return fail(args.trace + ": cannot write the trace");
  if (!args.html.empty() && !report.html(args.html))
    return fail(args.html + ": cannot write the report");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Arguments args;
  Options options(
      "llm-bench",
      "Measures decode, prefill, the step of every width, start-up and memory "
      "of a compiled model.",
      "llm-bench model.sprig\n"
      "llm-bench model.sprig --depth=0,1024 --prompt-tokens=64,512 --json\n"
      "llm-bench model.sprig --profile=1,16 --trace=trace.json");
  options.positional("MODEL", args.model, "A .sprig package");
  options.numbers("--depth", args.bench.depths, "N,...",
                  "Cached tokens before the decoded ones (0)");
  options.numbers("--prompt-tokens", args.bench.promptTokens, "N,...",
                  "Prompts to read (64)");
  options.number("--decode-tokens", args.decodeTokens, "N",
                 "Tokens decoded in a run (16)");
  options.number("--runs", args.runs, "N", "Of each measurement (5)");
  options.numbers("--profile", args.bench.profileWidths, "WIDTH,...",
                  "Widths whose kernels are timed one by one (1)");
  options.flag("--profile-trees", args.bench.profileTrees,
               "Times the kernels of steps over trees instead");
  options.flag("--no-startup", args.noStartup, "Leaves out the start-up");
  options.text("--device", args.device, "NAME|INDEX", "The device");
  options.text("--target", args.target, "NAME", "The package's target");
  options.real("--memory-limit", args.memoryLimit, "MIB",
                 "Device memory to take at most, weights in the file's own "
                 "pages not counted (all that is free)");
  options.text("--cache", args.cache, "FOLDER", "Of the pipeline cache");
  options.text("--trace", args.trace, "FILE",
               "Writes the timed kernels for Perfetto (ui.perfetto.dev)");
  options.text("--html", args.html, "FILE", "Writes a report");
  options.flag("--json", args.json, "Prints one JSON object");
  options.flag("--startup-probe", args.probe,
               "Prints a line at the first token, and ends");
  int exitCode = 0;
  if (!options.parse(argc, argv, exitCode))
    return exitCode;
  if (args.model.empty())
    return fail("expects a .sprig package (see llm-bench --help)");
  if (args.probe)
    return probe(args);
  if (args.runs == 0 || args.runs > 1000 || args.decodeTokens == 0 ||
      args.decodeTokens > 1 << 20)
    return fail("expects 1 to 1000 --runs of 1 to 1048576 --decode-tokens");
  if (!(args.memoryLimit >= 0 && args.memoryLimit <= 1e9))
    return fail("expects MiB from 0 to 1e+09 for --memory-limit");
  args.bench.runs = uint32_t(args.runs);
  args.bench.decodeTokens = uint32_t(args.decodeTokens);
  return flushed("llm-bench", run(args));
}
