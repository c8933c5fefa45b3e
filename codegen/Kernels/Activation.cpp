#include "codegen/Kernels/Activation.h"

#include "llvm/ADT/StringSwitch.h"

namespace mlir::llm {
namespace {

/// x / (1 + e^-t): x·σ(t). A large e^-t is infinite and the quotient zero.
Value timesSigmoid(KernelBuilder &b, Value x, Value t) {
  return b.div(x, b.add(b.constant(1.0f), b.exp(b.neg(t))));
}

/// erf |x| to 1.5e-7 (Abramowitz and Stegun, 7.1.26), then its sign.
Value erf(KernelBuilder &b, Value x) {
  Value size = b.max(x, b.neg(x));
  Value t = b.div(b.constant(1.0f),
                  b.fma(size, b.constant(0.3275911f), b.constant(1.0f)));
  Value p = b.constant(1.061405429f);
  for (float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
    p = b.fma(p, t, b.constant(c));
  Value tail = b.mul(b.mul(p, t), b.exp(b.neg(b.mul(size, size))));
  Value value = b.sub(b.constant(1.0f), tail);
  return b.select(b.less(x, b.constant(0.0f)), b.neg(value), value);
}

} // namespace

std::optional<ActivationKind> activationByName(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<ActivationKind>>(name)
      .Case("silu", ActivationKind::Silu)
      .Case("gelu", ActivationKind::Gelu)
      .Case("gelu_tanh", ActivationKind::GeluTanh)
      .Case("relu", ActivationKind::Relu)
      .Default(std::nullopt);
}

Value activate(KernelBuilder &b, ActivationKind kind, Value x) {
  switch (kind) {
  case ActivationKind::Silu:
    return timesSigmoid(b, x, x);
  case ActivationKind::Gelu:
    return b.mul(
        b.mul(x, b.constant(0.5f)),
        b.add(b.constant(1.0f), erf(b, b.mul(x, b.constant(0.70710678f)))));
  case ActivationKind::GeluTanh: {
    // (1 + tanh u) / 2 = σ(2u)
    Value cube = b.mul(b.mul(x, x), x);
    Value u =
        b.mul(b.fma(cube, b.constant(0.044715f), x), b.constant(1.595769122f));
    return timesSigmoid(b, x, u);
  }
  case ActivationKind::Relu:
    return b.max(x, b.constant(0.0f));
  }
  return x;
}

} // namespace mlir::llm
