// What llm-run says about a run.
#ifndef SPRIG_TOOLS_RUN_REPORT_H
#define SPRIG_TOOLS_RUN_REPORT_H

#include "runtime/sprig.h"
#include "tools/Run/Arguments.h"

namespace sprig::tools {

struct RunReport {
  const Arguments &args;
  const sprig_model_info &info;
  const sprig_generation &result;
  const sprig_speculation_counts &counts;
  const std::string &text;
  const std::vector<uint32_t> &tokens; ///< generated
  double loadSeconds, firstTokenSeconds;
  double decodeProcessorSeconds; ///< of all threads, from the first token on
  uint64_t deviceBytes;
  uint64_t evicted; ///< tokens that went to make room
};

/// The object of --json.
std::string jsonReport(const RunReport &report);

/// Of --stats: lines on stderr, so that the text stays alone on stdout.
void printSummary(const RunReport &report);

} // namespace sprig::tools

#endif // SPRIG_TOOLS_RUN_REPORT_H
