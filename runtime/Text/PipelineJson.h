//===- PipelineJson.h - steps of a tokenizer.json, read ------------------===//
#pragma once

#include "runtime/Text/Pipeline.h"
#include "runtime/Text/Regex.h"

#include <nlohmann/json_fwd.hpp>

namespace sprig {

/// Members of one step; what is wrong is told once, in `failure`.
class StepReader {
public:
  StepReader(const nlohmann::json &step, Status &failure)
      : step(step), failure(failure) {}

  std::string type() const;
  std::string text(const char *name) const;
  std::string text(const char *name, std::string_view absent) const;
  bool flag(const char *name, bool absent) const;
  const nlohmann::json *member(const char *name) const; // null: absent or null
  /// `{"Regex": …}` or `{"String": …}`, which becomes a pattern as well.
  Result<Regex> pattern() const;
  Status fail(std::string_view name, std::string_view message) const;

private:
  const nlohmann::json &step;
  Status &failure;
};

Status addNormalizer(const nlohmann::json &step, int depth,
                     NormalizerSteps &out);
Status addPreTokenizer(const nlohmann::json &step, int depth, SplitSteps &out,
                       bool &byteLevel);

/// Steps within steps within …: no file needs more.
constexpr int kDeepestStep = 8;

} // namespace sprig
