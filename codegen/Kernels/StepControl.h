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
  /// Row of the step's last valid token.
  Value lastRow() { return b.sub(count(), b.index(1)); }

  static constexpr uint64_t kBytes = sprig::format::ControlWords * 4;

private:
  KernelBuilder &b;
  unsigned binding;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_STEPCONTROL_H
