// Activation functions inside kernels.
#ifndef SPRIG_CODEGEN_KERNELS_ACTIVATION_H
#define SPRIG_CODEGEN_KERNELS_ACTIVATION_H

#include "codegen/Kernels/KernelBuilder.h"
#include <optional>

namespace mlir::llm {

/// Silu: x·σ(x). Gelu: x·Φ(x) (Hendrycks and Gimpel, arXiv 1606.08415),
/// GeluTanh its approximation by tanh. Relu: max(x, 0).
enum class ActivationKind { Silu, Gelu, GeluTanh, Relu };

/// "silu", "gelu", "gelu_tanh", "relu".
std::optional<ActivationKind> activationByName(llvm::StringRef name);

Value activate(KernelBuilder &builder, ActivationKind kind, Value x);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_ACTIVATION_H
