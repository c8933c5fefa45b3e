// What llm-eval evaluates: IR or a model file on the CPU reference, or a package on a device.
#ifndef SPRIG_TOOLS_EVAL_MODEL_H
#define SPRIG_TOOLS_EVAL_MODEL_H

#include "lib/Reference/Evaluator.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir::llm {

struct OpenOptions {
  reference::Precision precision = reference::Precision::F32;
  unsigned threads = 0;
  uint64_t cacheBytes = 0;
  int64_t context = 0;  ///< tokens of one sequence that will be evaluated
  std::string function; ///< of IR; empty: @forward, or the only one
  std::string device, target;
  std::string adapter; ///< of those that can be switched; empty: none
};

class EvalModel {
public:
  virtual ~EvalModel() = default;

  /// Opens a .sprig package, IR (.mlir, .mlirbc), or whatever lib/Import takes. Errors name the file.
  static llvm::Expected<std::unique_ptr<EvalModel>> open(llvm::StringRef path, const OpenOptions &options);

  virtual int64_t vocabulary() const = 0;
  /// Bytes of the weights as they are stored.
  virtual uint64_t weightBytes() const = 0;
  /// Without begin and control tokens.
  virtual llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) = 0;
  virtual llvm::Expected<int32_t> beginToken() = 0;
  /// Whether the tokenizer puts it before a text.
  virtual llvm::Expected<bool> addsBegin() = 0;

  /// Forgets all tokens.
  virtual llvm::Error reset() = 0;
  /// Appends tokens to the sequence: logits after each of them, [tokens, vocabulary].
  virtual llvm::Expected<reference::Tensor> step(llvm::ArrayRef<int32_t> tokens) = 0;
};

// One for each file of this folder.
llvm::Expected<std::unique_ptr<EvalModel>> openReferenceModel(llvm::StringRef path, const OpenOptions &options);
llvm::Expected<std::unique_ptr<EvalModel>> openDeviceModel(llvm::StringRef path, const OpenOptions &options);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_EVAL_MODEL_H
