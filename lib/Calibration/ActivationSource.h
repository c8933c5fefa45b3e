// How a pass asks for activations: what flows through a function when it reads a calibration text, layer by layer, so
// that a large model needs the activations of one layer at a time.
//
// A tool attaches a source to the context (lib/Reference has the one there is); passes find it there:
//
//   ActivationSource *source = ActivationSource::of(context);
//   if (!source)
//     return emitError(...) << "needs activations: name a text with --calibrate";
//   source->statistics(function, {.tokens = 16384}, request, [&](Operation *layer, const LayerStatistics &inputs) {
//     // choose new weights for the products of this layer
//     return LayerChange::None;
//   });
#ifndef SPRIG_LIB_CALIBRATION_ACTIVATIONSOURCE_H
#define SPRIG_LIB_CALIBRATION_ACTIVATIONSOURCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>
#include <vector>

namespace mlir::llm {

/// How much of the text is read, as windows that do not see each other.
struct CalibrationOptions {
  int64_t tokens = 16384; ///< in all; a text with fewer is refused
  int64_t window = 512;   ///< in one window, the begin token included
};

/// Rows of numbers, row-major; valid during the call that hands them over.
struct ActivationRows {
  ArrayRef<float> numbers;
  int64_t rows = 0, width = 0;
  ArrayRef<float> row(int64_t i) const { return numbers.slice(size_t(i * width), size_t(width)); }
};

/// Whether a visitor rewrote the layer that it was told about.
enum class LayerChange {
  None,     ///< what follows sees the outputs that were computed
  Rewritten ///< the layer is evaluated again, so that what follows sees its new outputs
};

/// Sees activations as they are computed. All windows pass a top-level op of the function (a layer, or what stands
/// between layers) before the next one is begun.
class ActivationVisitor {
public:
  virtual ~ActivationVisitor() = default;
  /// Of layers, and of the ops inside them.
  virtual bool wants(Operation *op) = 0;
  /// First operand and first result of a wanted op for one window; windows count from 0. Of a product the input is what
  /// meets the weight: a folded gamma and row scale are applied, and rows are as long as the weight's.
  virtual LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input,
                              const ActivationRows &output) = 0;
  /// All windows have passed this op of the function's body. A visitor that changed the IR inside `op` (and nothing
  /// outside but weights before it) says so.
  virtual FailureOr<LayerChange> passed(Operation *op) { return LayerChange::None; }
};

/// What met the weight of a product, over all rows of all windows (of an expert product: of all tokens).
struct InputStatistics {
  int64_t rows = 0, width = 0;
  std::vector<float> largest;     ///< max |x_j|
  std::vector<double> sums;       ///< Σ x_j
  std::vector<double> magnitudes; ///< Σ |x_j|
  std::vector<double> squares;    ///< Σ x_j²
  std::vector<float> gram;        ///< [width, width]: Σ x xᵀ, both halves; empty unless it was asked for

  double meanSquare(int64_t j) const { return squares[size_t(j)] / double(rows); }
};

/// By product, in program order. Products that read one value share one entry.
using LayerStatistics = llvm::MapVector<Operation *, std::shared_ptr<const InputStatistics>>;

struct StatisticsRequest {
  /// The products whose inputs are wanted; null: every llm.linear, llm.gated_linear and llm.expert_linear.
  std::function<bool(Operation *)> wants;
  bool gram = true;
  /// Layers that the callback says it rewrote are evaluated again, and later layers see the change; nothing is then
  /// read from or left in the disk cache. Without it all statistics are those of the function as it was.
  bool replay = false;
};

using LayerCallback = llvm::function_ref<FailureOr<LayerChange>(Operation *layer, const LayerStatistics &inputs)>;

class ActivationSource {
public:
  virtual ~ActivationSource() = default;

  /// Tokens of the text that the source reads.
  virtual int64_t available() const = 0;

  /// Evaluates `function` (ids, positions, rows) → logits over the text. Errors are diagnostics.
  virtual LogicalResult visit(func::FuncOp function, const CalibrationOptions &options, ActivationVisitor &visitor) = 0;

  /// Gathers statistics and calls `layerDone` after each op of the function's body that holds wanted products. Results
  /// are cached on disk by the content of module, weights and text, layer by layer: an interrupted run goes on where
  /// it stopped.
  virtual LogicalResult statistics(func::FuncOp function, const CalibrationOptions &options,
                                   const StatisticsRequest &request, LayerCallback layerDone) = 0;

  /// The source of a context, or null where no tool attached one.
  static ActivationSource *of(MLIRContext *context);
  /// Gives the context a source; its `llm` dialect is loaded by this.
  static void attach(MLIRContext *context, std::shared_ptr<ActivationSource> source);
};

} // namespace mlir::llm

#endif // SPRIG_LIB_CALIBRATION_ACTIVATIONSOURCE_H
