// A linear kernel while it is being built.
#ifndef SPRIG_CODEGEN_KERNELS_LINEARKERNEL_H
#define SPRIG_CODEGEN_KERNELS_LINEARKERNEL_H

#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Kernels/LinearX.h"
#include "lib/Quant/Layout.h"

namespace mlir::llm {

class LinearKernel {
public:
  LinearKernel(const LinearSpec &spec, const LinearSchedule &schedule,
               const KernelInterface &interface, KernelBuilder &b)
      : spec(spec), schedule(schedule), interface(interface), b(b),
        codec(*BlockCodec::find(spec.format)),
        layout(sprig::quant::describe(spec.format, size_t(spec.n),
                                      size_t(spec.k))) {}

  void build();

private:
  /// One of the row tiles a lane works on, of one of the weights.
  struct RowSet {
    SmallVector<PlaneBinding> planes;
    Value tile; ///< clamped to the last
    SpanWords span; ///< of the units at hand
  };

  void open();
  /// Of a binding that is not of the weight; `quads`: rows of x are whole quads.
  Type otherElement(unsigned binding, bool quads);
  Value tileOf(int64_t r); ///< the lane's row tile `r`
  Value biasOf(int64_t r); ///< of the lane's row of it
  Values mainLoop();
  /// The same by cooperative matrices: LinearMatrix.cpp.
  Values matrixLoop();
  using Chunks = SmallVector<WeightChunk, 2>;
  void openSpan(Value firstUnit);
  /// The chunks of one step, of every row set.
  std::vector<Chunks> decode(const BlockWalk::Step &at, unsigned count);
  /// Of the chunk's first number in a row of x.
  Value offsetOf(const WeightChunk &chunk, Value block);
  /// The quads of x that one lane brings to shared memory: each belongs to one
  /// token, and to one place in every chunk.
  struct XItem {
    Value token, quad, factor;
  };
  SmallVector<XItem> itemsOfX(Value lane);
  void stageX(ArrayRef<XItem> items, Value lane, Value offset, unsigned count,
              Value shared);
  void stageRow(const WeightChunk &chunk, Value line, Value shared);
  Values step(const BlockWalk::Step &at, unsigned count, ValueRange sums);
  /// Adds a chunk's products to the sums. Token by token, few sums are alive at
  /// once and x comes by exchange; number by number, few numbers are.
  void byToken(ArrayRef<WeightChunk> rows, XChunk &x,
               MutableArrayRef<Value> sums);
  void byNumber(ArrayRef<WeightChunk> rows, XChunk &x,
                MutableArrayRef<Value> sums);
  void extend(Values &chains, unsigned i, Value code, Value number);
  void close(const ChunkGroup &group, ChunkGroup extent, const Values &chains,
             XChunk &x, unsigned token, Value &sum);
  void addSquares(XChunk &x, unsigned token, MutableArrayRef<Value> sums);
  /// What a sum becomes with the step at hand, if that is of the row.
  void put(Value &sum, Value next);
  void addSlices(Values &sums);
  void finish(ValueRange sums);
  void finishAppend(ValueRange sums); ///< LinearAppend.cpp
  Values factors(ValueRange sums);
  Value rmsFactor(Value sumOfSquares);
  void store(Value value, unsigned row, unsigned token);
  unsigned binding(StringRef role) const { return interface.indexOf(role); }
  /// Sums are ordered [row set][token]; behind them, where the kernel finds the
  /// RMS factor, come the sums of squares by token.
  size_t at(size_t rowSet, size_t token) const {
    return rowSet * size_t(spec.tokens) + token;
  }

  const LinearSpec &spec;
  const LinearSchedule &schedule;
  const KernelInterface &interface;
  KernelBuilder &b;
  const BlockCodec &codec;
  sprig::quant::TensorLayout layout;

  Value row, slice; ///< of this lane, within its tile and its set
  Value set;        ///< of lanes, which share row tiles
  Value firstToken; ///< of the workgroup
  Value seen;       ///< BlockWalk::Step of the step at hand
  std::vector<RowSet> rowSets;
  std::unique_ptr<XSource> source;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LINEARKERNEL_H
