//===- Measure.h - what llm-bench measures
//------------------------------------------===//
#pragma once

#include "runtime/Session/Session.h"

#include <map>

namespace sprig::tools {

struct BenchOptions {
  std::vector<uint32_t> depths = {0};
  std::vector<uint32_t> promptTokens = {64};
  uint32_t runs = 5;
  uint32_t decodeTokens = 16;
  std::vector<uint32_t> profileWidths = {1};
  bool profileTrees = false; ///< those of steps over trees
};

/// The values of several runs, in the order measured.
struct Samples {
  std::vector<double> values;
  /// 0.5 is the median; values between two are interpolated.
  double quantile(double q) const;
};

struct DispatchTime {
  std::string kernel, label;
  double ms = 0; ///< median
  uint64_t bytes = 0, macs = 0;
};

struct Measured {
  std::map<uint32_t, Samples> decodeRate;  ///< depth → tokens a second
  std::map<uint32_t, Samples> prefillRate; ///< tokens → tokens a second
  std::map<uint32_t, Samples> stepMs;      ///< width → milliseconds
  /// The same in processor time of this process, which other work on the
  /// machine hardly touches: what counts where the driver computes on the CPU.
  std::map<uint32_t, Samples> stepProcessorMs;
  /// Of steps over trees of so many nodes; empty where there are none.
  std::map<uint32_t, Samples> treeMs, treeProcessorMs;
  std::map<uint32_t, Samples> decodeProcessorMs;  ///< depth → of a token
  std::map<uint32_t, Samples> prefillProcessorMs; ///< tokens → of the prompt
  /// Width → each dispatch of its program; empty where the device has no
  /// timestamps.
  std::map<uint32_t, std::vector<DispatchTime>> profile;
};

/// Measures every figure once a run, in turn, so that a machine that drifts
/// drifts for all of them. Depths and prompts that do not fit the context are
/// left out.
Status measureAll(Session &session, const BenchOptions &options,
                  Measured &measured);

/// The program that llm-bench takes for a width: `sample` where there is one.
format::ProgramKind benchKind(const format::Target &target, uint32_t width);

} // namespace sprig::tools
