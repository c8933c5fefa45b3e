#include "tools/Run/Report.h"

#include "tools/Support/Json.h"
#include "tools/Support/Process.h"

#include <cstdio>

namespace sprig::tools {
namespace {

double rate(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

/// Tokens after the first, which the prompt brings.
double decoded(const RunReport &report) {
  return report.result.tokens > 1 ? double(report.result.tokens - 1) : 0;
}

} // namespace

void printSummary(const RunReport &report) {
  const sprig_generation &result = report.result;
  std::fflush(stdout);
  std::fprintf(
      stderr,
      "prompt: %zu tokens, %.1f tokens/s; generated: %zu tokens, %.1f "
      "tokens/s; on %s\n",
      size_t(result.prompt_tokens),
      rate(double(result.computed_tokens), result.prefill_s),
      size_t(result.tokens), rate(decoded(report), result.decode_s),
      report.info.device);
  if (report.args.endless)
    std::fprintf(stderr, "endless: %zu tokens went to make room\n",
                 size_t(report.evicted));
  const sprig_speculation_counts &counts = report.counts;
  if (report.args.speculate == "off")
    return;
  std::fprintf(stderr,
               "speculation (%s): %.2f tokens a step; %zu of %zu steps were "
               "trees, %zu of %zu guesses right\n",
               report.args.speculate.c_str(),
               rate(double(counts.tokens), double(counts.steps)),
               size_t(counts.trees), size_t(counts.steps),
               size_t(counts.accepted), size_t(counts.drafted));
}

std::string jsonReport(const RunReport &report) {
  const char *finishes[] = {"length", "stop", "context"};
  const sprig_generation &result = report.result;
  Json json;
  json.open('{');
  json.pair("prompt_tokens", result.prompt_tokens);
  json.pair("computed_tokens", result.computed_tokens);
  json.key("tokens").open('[');
  for (uint32_t token : report.tokens)
    json.value(token);
  json.close().pair("text", report.text);
  json.pair("finish", finishes[result.finish]);
  if (report.args.endless)
    json.pair("evicted", report.evicted);
  json.key("timing").open('{');
  json.pair("load_s", report.loadSeconds);
  json.pair("first_token_s", report.firstTokenSeconds);
  json.pair("prefill_s", result.prefill_s);
  json.pair("prefill_tokens_per_s",
            rate(double(result.computed_tokens), result.prefill_s));
  json.pair("decode_s", result.decode_s);
  json.pair("decode_processor_s", report.decodeProcessorSeconds);
  json.pair("decode_tokens_per_s", rate(decoded(report), result.decode_s));
  json.close();
  json.key("memory").open('{');
  json.pair("device_bytes", report.deviceBytes);
  json.pair("weight_bytes", report.info.weight_bytes);
  json.pair("kv_bytes", report.info.kv_bytes);
  json.pair("peak_rss_bytes", peakResidentBytes()).close();
  const bool off = report.args.speculate == "off";
  const uint64_t steps = off ? result.tokens : report.counts.steps;
  json.key("speculation").open('{').pair("mode", report.args.speculate);
  json.pair("steps", steps).pair("trees", report.counts.trees);
  json.pair("drafted", report.counts.drafted);
  json.pair("accepted", report.counts.accepted);
  json.pair("tokens_per_step", rate(double(result.tokens), double(steps)));
  json.close();
  json.pair("device", report.info.device).pair("target", report.info.target);
  json.close();
  return json.text();
}

} // namespace sprig::tools
