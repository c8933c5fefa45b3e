// Reads the rotation table (RopeAppend.h) at one position.
#ifndef SPRIG_CODEGEN_KERNELS_ROPETABLE_H
#define SPRIG_CODEGEN_KERNELS_ROPETABLE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/RopeAppend.h"

namespace mlir::llm {

/// Where number `element` of a head stands in its rotation.
struct RopePair {
  Value inside;  ///< whether it is rotated at all
  Value index;   ///< of its pair
  Value first;   ///< whether it is the pair's first number
  Value partner; ///< the other number's element; its own where it is not inside
};
RopePair ropePair(KernelBuilder &b, Value element, int64_t dims,
                  bool interleaved);

class RopeTable {
public:
  /// The element type of binding `binding` of `interface`: pairs, or numbers
  /// where they are read through a texel view, which has no format of two
  /// numbers that every device reads.
  static Type elementType(KernelBuilder &b, const KernelInterface &interface,
                          unsigned binding);

  /// Of kernels that rotate numbers: `dims` is not 0.
  RopeTable(KernelBuilder &builder, const RopeAppendSpec &spec,
            const KernelInterface &interface, unsigned binding, Value position);

  /// Number `element` of a head, turned with its partner: the other number of
  /// its pair. `first` (i1): it is the pair's first.
  Value turn(Value number, Value partner, Value first, Value pair);

private:
  std::pair<Value, Value> load(Value place);

  KernelBuilder &b;
  unsigned binding;
  bool pairs;
  Value lowRow, highRow;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ROPETABLE_H
