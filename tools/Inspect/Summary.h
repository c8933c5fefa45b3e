//===- Summary.h - what a package says about itself, counted
//-------------------------===//
#pragma once

#include "runtime/Package/MemoryPlan.h"
#include "runtime/Package/Package.h"

#include <map>
#include <string>
#include <vector>

namespace sprig::tools {

struct KernelSummary {
  std::string name, family, key, workgroup;
  uint64_t spirvBytes = 0;
  std::map<uint32_t, uint32_t> dispatches; ///< width → in its program
  /// Of a kernel that no width's program uses: kind of program → width → count.
  std::map<std::string, std::map<uint32_t, uint32_t>> elsewhere;
  double longest = 0; ///< estimated seconds of its longest dispatch
};

/// One target of a package. A width stands for its `sample` program, where
/// there is none for `append` or `logits`.
struct TargetSummary {
  std::string name;
  std::vector<std::string> requirements;
  std::vector<uint32_t> widths;
  std::vector<KernelSummary> kernels;
  std::map<uint32_t, uint32_t> dispatches, barriers, submissions; ///< by width
  /// Of a step with a full context, by the rates of the target's profile.
  std::map<uint32_t, double> estimatedSeconds;
  MemoryPlan memory;
  /// Weight bytes that decoding a token reads; the cache adds kvBytesPerToken
  /// for every token in it.
  uint64_t bytesPerToken = 0;
  uint64_t kvBytesPerToken = 0;
};

TargetSummary summarise(const format::Target &target,
                        const format::Model &model);

/// Characters of English a token, by the package's own tokenizer on a page of a
/// novel; 0 where it has none.
double charactersPerToken(const Package &package);

/// What a memory bandwidth allows.
struct Reach {
  double tokens = 0, characters = 0; ///< a second
};
Reach reach(const TargetSummary &target, double gigabytesPerSecond,
            uint64_t depth, double charactersPerToken);

} // namespace sprig::tools
