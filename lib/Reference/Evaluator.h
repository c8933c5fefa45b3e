// The CPU truth: evaluates functions of the llm dialect, op by op, in f32 or f64.
//
//   auto evaluator = Evaluator::create(module, "folder/of/the/ir", {});
//   auto results = (*evaluator)->run("forward", {Tensor::ids(tokens), Tensor::ids(positions), Tensor::ids(rows)});
//
// Key-value caches live in the evaluator: a prefill followed by single tokens works as on a device. Errors are
// diagnostics of the module's context, at the op concerned.
#ifndef SPRIG_LIB_REFERENCE_EVALUATOR_H
#define SPRIG_LIB_REFERENCE_EVALUATOR_H

#include "lib/Reference/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <memory>

namespace mlir::llm {
class WeightStore;
} // namespace mlir::llm

namespace mlir::llm::reference {

enum class Precision { F32, F64 };

struct Options {
  Precision precision = Precision::F32;
  /// 0: one a core.
  unsigned threads = 0;
  /// Decoded weights that are kept for later steps, in bytes; the least recently used go first. 0: all of them.
  uint64_t cacheBytes = 0;
  /// Floats of a cache (f16, bf16) are kept in the evaluator's precision unless this is set; quantised caches are
  /// always quantised.
  bool roundCaches = false;
  /// Which of a module's adapters are used, from 1; 0: none.
  uint32_t adapter = 0;
};

/// Sees ops as they are evaluated. Tensors are cheap to keep.
class Observer {
public:
  virtual ~Observer() = default;
  virtual bool wants(Operation *op) = 0;
  /// After the op; weights among the operands are left empty.
  virtual LogicalResult visit(Operation *op, ArrayRef<Tensor> operands, ArrayRef<Tensor> results) = 0;
};

/// Content of one key-value cache: slots 0 … the highest that was filled, in f64.
struct CacheContent {
  int64_t slots = 0, heads = 0, keyWidth = 0, valueWidth = 0;
  std::vector<double> keys;       ///< [slots, heads, keyWidth]
  std::vector<double> values;     ///< [slots, heads, valueWidth]; empty where values are a prefix of the keys
  std::vector<int32_t> positions; ///< -1: an empty slot
};

class Evaluator {
public:
  /// Paths of sources are relative to `folder`. The module must outlive the evaluator.
  static std::unique_ptr<Evaluator> create(ModuleOp module, StringRef folder, const Options &options = {});
  /// The same with files that are open already, those of new weights among them.
  static std::unique_ptr<Evaluator> create(ModuleOp module, std::shared_ptr<WeightStore> files,
                                           const Options &options = {});
  virtual ~Evaluator() = default;

  /// Evaluates a function of the module on inputs of its types (dynamic sizes as the inputs have them; floats of
  /// either kind are converted).
  virtual FailureOr<SmallVector<Tensor>> run(StringRef function, ArrayRef<Tensor> inputs) = 0;

  /// Empties all key-value caches.
  virtual void resetState() = 0;
  /// Forgets slots from `slots` on in every cache, as after a prompt whose tail is replaced.
  virtual void truncateState(int64_t slots) = 0;
  virtual FailureOr<CacheContent> cache(StringRef symbol, int64_t index) = 0;

  /// A tensor of a source that is filled at run time (an adapter).
  virtual void setWeight(StringRef source, StringRef key, Tensor value) = 0;
  /// To be called when ops of the module were changed or erased: drops what was remembered about them.
  virtual void moduleChanged() = 0;
  /// Null: none.
  virtual void setObserver(Observer *observer) = 0;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_EVALUATOR_H
