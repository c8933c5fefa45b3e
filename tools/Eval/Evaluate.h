// The evaluations of llm-eval.
#ifndef SPRIG_TOOLS_EVAL_EVALUATE_H
#define SPRIG_TOOLS_EVAL_EVALUATE_H

#include "lib/Reference/Math/Workers.h"
#include "tools/Eval/Model.h"

namespace mlir::llm {

struct TextOptions {
  std::string file;
  int64_t skipChars = 0, chars = 0;  ///< in Unicode characters; 0 chars: to the end
  int64_t window = 512, windows = 0; ///< 0 windows: as many as the text fills
  /// Whether a window starts with the begin token and gives up its last token; without a value as the tokenizer has it.
  std::optional<bool> begin;
};

/// Of each window, over the tokens that it predicts.
struct WindowResult {
  double negativeLogLikelihood = 0;
  double divergence = 0; ///< KL(against ‖ model)
  int64_t predicted = 0, agreed = 0;
};

/// Called after each window.
using Progress = llvm::function_ref<void(size_t done, size_t all, llvm::ArrayRef<WindowResult> results)>;

/// The windows of a text, as tokens.
llvm::Expected<std::vector<std::vector<int32_t>>> cutText(EvalModel &model, const TextOptions &options);

/// Scores windows of tokens; `against` may be null.
llvm::Expected<std::vector<WindowResult>> scoreWindows(EvalModel &model, EvalModel *against,
                                                       llvm::ArrayRef<std::vector<int32_t>> windows,
                                                       reference::Workers &workers, Progress progress);

struct TokenResult {
  std::vector<std::vector<double>> logits; ///< of the rows asked for
  std::vector<int32_t> argmax;             ///< after every token
  double divergence = 0;
  int64_t agreed = 0;
};

enum class LogitRows { Last, First, All };

/// Logits along one sequence of tokens; `against` may be null.
llvm::Expected<TokenResult> evaluateTokens(EvalModel &model, EvalModel *against, llvm::ArrayRef<int32_t> tokens,
                                           LogitRows rows, reference::Workers &workers);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_EVAL_EVALUATE_H
