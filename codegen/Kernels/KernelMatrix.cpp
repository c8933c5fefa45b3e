// Cooperative matrices: 16 × 16 numbers that the lanes of a subgroup hold
// together.
#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::llm {

constexpr int64_t kSide = 16;

static gpu::MMAMatrixType matrixType(Type element, StringRef use) {
  return gpu::MMAMatrixType::get({kSide, kSide}, element, use);
}

Value KernelBuilder::toF16(Value number) {
  return make<arith::TruncFOp>(f16(), number);
}

Value KernelBuilder::zeroMatrix() {
  return gpu::SubgroupMmaConstantMatrixOp::create(
      builder, location, matrixType(f32(), "COp"), constant(0.0f));
}

Value KernelBuilder::loadMatrix(MatrixUse use, Value array, Value first,
                                int64_t line) {
  bool right = use == MatrixUse::B;
  return gpu::SubgroupMmaLoadMatrixOp::create(
      builder, location, matrixType(f16(), right ? "BOp" : "AOp"), array,
      ValueRange{first}, builder.getIndexAttr(line),
      right ? builder.getUnitAttr() : UnitAttr());
}

Value KernelBuilder::multiplyAdd(Value a, Value b, Value c) {
  return gpu::SubgroupMmaComputeOp::create(builder, location, c.getType(), a, b,
                                           c, UnitAttr(), UnitAttr());
}

void KernelBuilder::storeMatrix(Value matrix, Value array, Value first,
                                int64_t line) {
  gpu::SubgroupMmaStoreMatrixOp::create(builder, location, matrix, array,
                                        ValueRange{first},
                                        builder.getIndexAttr(line), UnitAttr());
}

} // namespace mlir::llm
