// The device-side step block (runtime/Format/Control.h) as kernels read it.
#ifndef SPRIG_CODEGEN_KERNELS_STEPCONTROL_H
#define SPRIG_CODEGEN_KERNELS_STEPCONTROL_H

#include "codegen/Kernels/KernelBuilder.h"
#include "runtime/Format/Control.h"

namespace mlir::llm {

/// Reads words of the control block bound at `binding`.
class StepControl {
public:
  StepControl(KernelBuilder &builder, unsigned binding)
      : b(builder), binding(binding) {}

  Value word(sprig::format::ControlWord which) {
    return b.load(binding, b.index(which));
  }
  /// As an address.
  Value base() { return b.toIndex(word(sprig::format::Base)); }
  Value count() { return b.toIndex(word(sprig::format::Count)); }
  Value number(sprig::format::ControlWord which) {
    return b.f32FromBits(word(which));
  }
  /// Byte `which` of the bytes from word `first` on, as an address.
  Value packedByte(sprig::format::ControlWord first, Value which) {
    Value word = b.load(binding, b.add(b.div(which, 4), int64_t(first)));
    Value shift = b.toI32(b.mul(b.rem(which, 4), 8));
    return b.toIndex(b.bitAnd(b.shr(word, shift), 0xff));
  }
  /// Depth of a node of the step's tree, once tree_table has run.
  Value depth(Value node) {
    return packedByte(sprig::format::Depths, node);
  }
  /// Row of the step's last valid token.
  Value lastRow() { return b.sub(count(), b.index(1)); }

  static constexpr uint64_t kBytes = sprig::format::ControlWords * 4;

private:
  KernelBuilder &b;
  unsigned binding;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_STEPCONTROL_H
