// Weights as the evaluator reads them: tensors of files decoded on first use and kept within a budget, tensors that
// were set at run time, and inline values.
#ifndef SPRIG_LIB_REFERENCE_WEIGHTLOADER_H
#define SPRIG_LIB_REFERENCE_WEIGHTLOADER_H

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Math/Workers.h"
#include "lib/Reference/Tensor.h"
#include "lib/Weights/WeightStore.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <list>
#include <optional>
#include <string>

namespace mlir::llm::reference {

/// Tensors by name, the least recently used dropped when they outgrow the budget. Two names may share numbers; these
/// are counted twice, which errs on the safe side.
class TensorCache {
public:
  /// In bytes; 0: no limit.
  explicit TensorCache(uint64_t budget) : budget(budget) {}
  std::optional<Tensor> find(StringRef key);
  void insert(StringRef key, Tensor tensor);
  void erase(StringRef key);
  uint64_t bytes() const { return held; }

private:
  struct Entry {
    std::string key;
    Tensor tensor;
  };
  uint64_t budget, held = 0;
  std::list<Entry> entries; ///< the most recently used first
  llvm::StringMap<std::list<Entry>::iterator> index;
};

template <typename F> class WeightLoader {
public:
  WeightLoader(WeightStore &files, uint64_t cacheBytes, Workers &workers)
      : files(files), workers(workers), decoded(cacheBytes) {}

  /// The whole tensor: floats for float and quantised types, i32 for integers. Errors name the op.
  FailureOr<Tensor> load(WeightOp op);
  /// Only the rows asked for, clamped to the tensor.
  FailureOr<Tensor> rows(WeightOp op, ArrayRef<int32_t> ids);

  /// Gives a tensor of a run-time source its value.
  void set(StringRef source, StringRef key, Tensor value);
  uint64_t cachedBytes() const { return decoded.bytes(); }

  /// Results of expressions over weights share the budget of the weights.
  std::optional<Tensor> findExpression(Value value) { return decoded.find(nameOf(value)); }
  void keepExpression(Value value, Tensor tensor);
  /// Forgets them all, for values that may be gone.
  void dropExpressions();

private:
  static std::string nameOf(Value value);
  /// The value of a run-time source, or none with an error.
  FailureOr<Tensor> given(WeightOp op);
  bool isRuntime(WeightOp op);
  /// The tensor of a file behind a weight, with the format to read it by.
  FailureOr<std::pair<WeightTensor, sprig::quant::Format>> locate(WeightOp op);

  WeightStore &files;
  Workers &workers;
  TensorCache decoded;
  llvm::StringMap<Tensor> runtime; ///< by source and key
  llvm::StringSet<> expressions;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_WEIGHTLOADER_H
