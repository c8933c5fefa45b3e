// One program: a walk over the function for one kind and width, that turns each
// operation into dispatches. The lowerings of single operations (OpLowerings.h)
// see the function through this class.
#ifndef SPRIG_CODEGEN_LOWERING_PROGRAMLOWERING_H
#define SPRIG_CODEGEN_LOWERING_PROGRAMLOWERING_H

#include "codegen/Lowering/FlatFunction.h"
#include "codegen/Lowering/TargetLowering.h"

namespace mlir::llm {

/// A buffer for a role of a kernel's interface.
struct Operand {
  std::string role;
  Value view;
  /// Bytes of it that the dispatch has to move, for reports; -1: all that the
  /// kernel binds. Caches count as none: what is read of them grows with the
  /// context.
  int64_t touched = -1;
};

/// What a dispatch does beyond its `macs` and what it touches, with a full
/// context: for estimates of time.
struct ContextWork {
  int64_t macs = 0, bytes = 0;
};

/// Workgroups along z that a dispatch takes of a kernel's grid; count 0: all.
struct GridPart {
  int32_t first = 0, count = 0;
};

/// A weight in the weight section, one view for each plane.
struct WeightOperand {
  sprig::quant::TensorLayout layout;
  SmallVector<Operand> planes; ///< role: the plane's name

  /// The planes as roles "PREFIX.PLANE".
  SmallVector<Operand> named(StringRef prefix) const;
};

class ProgramLowering {
public:
  /// `guess`: of a draft, its number.
  ProgramLowering(TargetLowering &target, const FlatFunction &function,
                  plan::ProgramKind kind, int64_t width,
                  std::optional<int64_t> guess = std::nullopt);

  LogicalResult run();

  // What the lowerings of operations use.
  TargetLowering &target() { return targetLowering; }
  const FlatFunction &function() const { return flat; }
  const TargetProfile &profile() { return targetLowering.profile(); }
  MLIRContext *context() { return program.getContext(); }
  plan::ProgramKind kind() { return program.getKind(); }
  int64_t width() const { return stepWidth; }
  OpBuilder &ops() { return builder; }
  Value resolve(Value value) const { return flat.resolve(value); }
  bool isNeeded(Operation *op) const { return needed.contains(op); }
  /// The function's logits, before layers are looked through.
  bool isResult(Value value) const { return value == flat.logits(); }

  /// Rows of activations that `value` has in this program: the width, or the
  /// number of rows with logits.
  int64_t rowsOf(Value value) const;
  /// Elements of a row: 576 of tensor<?x576xf32>, and of tensor<?x9x64xf32>.
  static int64_t rowElements(Value value);
  /// Rows that buffers of activations hold for `rows` rows: whole token tiles.
  int64_t paddedRows(int64_t rows);
  /// Rows that one group of a product works on in a step of `rows` rows.
  int64_t tokenTile(int64_t rows);

  /// Where the numbers of `value` are. Every operand of a needed operation has
  /// a view before it is lowered.
  Value view(Value value) const { return views.lookup(resolve(value)); }
  /// Declares where the numbers of a result are (a view that exists, or a new
  /// one), and how many rows it has.
  void setView(Value result, Value view, int64_t rows);
  /// Space for `result` with as many rows as `like`: scratch, or the logits
  /// buffer for the function's result.
  Value allocate(Value result, int64_t rows);
  Value scratch(StringRef label, uint64_t bytes);

  /// A range of a buffer; equal ranges are one operation.
  Value bufferView(plan::BufferOp buffer, uint64_t offset, uint64_t bytes);
  Value controlView();
  Value historyView();

  /// Adds the table that kernels of the weight's format read, if there is one.
  void addFormatTable(sprig::quant::Format format,
                      SmallVectorImpl<Operand> &operands);
  /// A table of numbers that lowering made up.
  Value constant(StringRef name, DenseElementsAttr value);
  /// A matrix in the tiled layout that kernels read; no planes where they have
  /// to be one binding that is larger than the target's: rowsOfWeight has parts.
  FailureOr<WeightOperand> tiledWeight(Value weight, Operation *user);
  /// The rows [first, first + count) of it; `first` is a multiple of
  /// kRowsOfAPart.
  FailureOr<WeightOperand> rowsOfWeight(Value weight, int64_t first,
                                        int64_t count, Operation *user);
  /// Parts of a weight start at such rows, so that their planes, and columns of
  /// f32, are aligned for every device.
  static constexpr int64_t kRowsOfAPart = 256;
  /// How many of the `rows` rows of a kernel's weights its bindings can span on
  /// this target: `rows`, a multiple of kRowsOfAPart, or 0.
  int64_t rowsWithin(const KernelInterface &interface, int64_t rows) const;
  /// A part of a view.
  Value slice(Value view, uint64_t offset, uint64_t bytes);
  /// A vector (gamma, bias, table) decoded to f32.
  FailureOr<Value> vectorWeight(Value weight, Operation *user);

  /// Runs the kernel (family, spec) over `rows` rows. `operands` offers a view
  /// for each role; those that the kernel does not ask for are ignored. The
  /// label is the operation's place and `what`. With `counts` the device reads
  /// the numbers of workgroups there, at most those of the width.
  LogicalResult dispatch(Operation *op, StringRef family, DictionaryAttr spec,
                         ArrayRef<Operand> operands, int64_t rows,
                         StringRef what, int64_t macs = 0, Value counts = {},
                         ContextWork context = {}, GridPart along = {});

  /// The same of a kernel whose bindings "keys", "values" and, of a quantised
  /// cache in parts, "scales" are those of `cache`: a dispatch for each part,
  /// which takes `groupsOfAPart` workgroups along z. `operands` has the first two
  /// for a cache in one part.
  LogicalResult dispatchOnCache(Operation *op, StringRef family,
                                DictionaryAttr spec, const CachePlan &cache,
                                SmallVector<Operand> operands, int64_t rows,
                                StringRef what, Value counts = {},
                                ContextWork context = {},
                                int64_t groupsOfAPart = 1);
  /// How many layers' caches one binding spans, of a cache in one part.
  int64_t layersWithin(const CachePlan &cache) {
    return 1 + int64_t((profile().limits.storageRange - cache.sideBytes) /
                       cache.layerBytes);
  }
  /// What kernels over so many layers of it are told.
  CacheLayers layersOf(const CachePlan &cache, KVType type, int64_t layers);
  /// "keys" and "values" of the first part.
  SmallVector<Operand, 2> cacheOperands(const CachePlan &cache) {
    return cacheOperands(cache, 0);
  }

  /// A place for a value that several operations of the program share, by a
  /// name of their own; null at first.
  Value &remembered(Attribute name) { return shared[name]; }

private:
  LogicalResult lower(const FlatOp &entry);
  SmallVector<Operand, 2> cacheOperands(const CachePlan &cache, int64_t part);
  Value weightView(plan::TensorOp tensor, uint64_t offset, uint64_t bytes);
  /// The rows as a tensor of their own.
  FailureOr<WeightOperand> rowsApart(Value weight, int64_t first, int64_t count,
                                     const sprig::quant::TensorLayout &all,
                                     Operation *user);

  TargetLowering &targetLowering;
  const FlatFunction &flat;
  llvm::DenseSet<Operation *> needed;
  int64_t stepWidth;
  plan::ProgramOp program;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> views;
  llvm::DenseMap<Value, int64_t> rows;
  llvm::DenseMap<Attribute, Value>
      placed;      // views of buffers and tensors, by name and offset
  llvm::DenseMap<Attribute, Value> shared;
  StringRef where; // of the operation that is being lowered
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_PROGRAMLOWERING_H
