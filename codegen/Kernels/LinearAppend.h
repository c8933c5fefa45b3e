// The end of a product whose rows are the queries, keys and values of all
// heads: instead of y as it is, it stores queries that are rotated by their
// positions, and keys (rotated) and values in the cache. A dispatch and a
// barrier less in every layer; the numbers are those of rope_append, bit for
// bit.
//
// The two numbers that are turned together have to meet. Where they are
// neighbours, they are rows of neighbouring lanes, which exchange them; where
// they lie half a head apart, a lane's row tiles are chosen so that it has both.
#ifndef SPRIG_CODEGEN_KERNELS_LINEARAPPEND_H
#define SPRIG_CODEGEN_KERNELS_LINEARAPPEND_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/KvFormat.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Kernels/StepControl.h"

namespace mlir::llm {

class LinearAppend {
public:
  /// Whether a product can end so under `schedule`.
  static bool possible(const RopeAppendSpec &append,
                       const LinearSchedule &schedule,
                       const TargetProfile &profile);
  /// Adds the bindings, y among them.
  static void bind(const RopeAppendSpec &append, TexelFormat single,
                   KernelInterface &interface);
  /// Row tile `r` of those that set `set` of lanes works on, where halves of
  /// heads are turned; others have those of LinearSpec::tileOf.
  static Value tile(KernelBuilder &b, const RopeAppendSpec &append,
                    const LinearSchedule &schedule, Value set, int64_t r);

  LinearAppend(KernelBuilder &b, const RopeAppendSpec &append,
               const KernelInterface &interface, Value row);

  /// Stores what a lane has of token `line` of the step: a number of each of
  /// its row tiles.
  void store(ArrayRef<Value> numbers, ArrayRef<Value> tiles, Value line);

private:
  unsigned binding(StringRef role) const { return interface.indexOf(role); }
  /// Number `r`, turned.
  Value turned(ArrayRef<Value> numbers, size_t r, Value element,
               class RopeTable &table);
  void storeCached(Value number, Value head, Value element, Value slot,
                   Value valid);

  KernelBuilder &b;
  const RopeAppendSpec &append;
  const KernelInterface &interface;
  KvFormat format;
  StepControl control;
  Value row; ///< of the lane, within a tile
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LINEARAPPEND_H
