// How the lanes of a kernel exchange values: subgroup operations, and sums
// across lanes by them or by shared memory.
#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::llm {

Value KernelBuilder::broadcast(Value value, unsigned lane) {
  // SPIR-V before 1.5 wants a constant lane, and MLIR one of its own dialect.
  Value id = spirv::ConstantOp::create(
      builder, location, i32(), builder.getI32IntegerAttr(int32_t(lane)));
  return spirv::GroupNonUniformBroadcastOp::create(
      builder, location, spirv::Scope::Subgroup, value, id);
}
Value KernelBuilder::shuffle(Value value, Value lane) {
  return spirv::GroupNonUniformShuffleOp::create(
      builder, location, spirv::Scope::Subgroup, value, toI32(lane));
}
Value KernelBuilder::shuffleXor(Value value, unsigned mask) {
  return spirv::GroupNonUniformShuffleXorOp::create(
      builder, location, spirv::Scope::Subgroup, value, constant(mask));
}

Value KernelBuilder::combine(Value a, Value b, Reduction reduction) {
  return reduction == Reduction::Add ? add(a, b) : max(a, b);
}

Value KernelBuilder::reduce(Value value, unsigned lanes, Reduction reduction) {
  // Lane l adds lane l^m for m = 1, 2, 4, …: addition commutes, so all lanes
  // reach the same bits, by either road.
  unsigned reach =
      profile.canShuffle() ? std::min(lanes, profile.subgroupSize) : 1;
  for (unsigned mask = 1; mask < reach; mask *= 2)
    value = combine(value, shuffleXor(value, mask), reduction);
  if (reach == lanes)
    return value;
  Value array = shared(value.getType(), interface.workgroup[0]);
  for (unsigned mask = reach; mask < lanes; mask *= 2) {
    barrier();
    store(value, array, localId());
    barrier();
    value =
        combine(value, load(array, bitXor(localId(), index(mask))), reduction);
  }
  return value;
}

Values KernelBuilder::reduceAll(Values values, unsigned lanes,
                                unsigned stride) {
  if (profile.canShuffle() && lanes * stride <= profile.subgroupSize) {
    for (unsigned mask = stride; mask < lanes * stride; mask *= 2)
      for (Value &value : values)
        value = add(value, shuffleXor(value, mask));
    return values;
  }
  int64_t group = interface.workgroup[0];
  Value array = shared(values[0].getType(), group * int64_t(values.size()));
  for (auto [i, value] : llvm::enumerate(values))
    store(value, array, add(localId(), int64_t(i) * group));
  barrier();
  // The order of the shuffles: neighbours first. Every lane reads its run from
  // the start.
  Value within = rem(div(localId(), stride), lanes);
  Value first = sub(localId(), mul(within, stride));
  for (auto [i, value] : llvm::enumerate(values)) {
    Values level;
    for (unsigned lane = 0; lane < lanes; ++lane)
      level.push_back(
          load(array, add(first, int64_t(i) * group + lane * stride)));
    while (level.size() > 1) {
      Values half;
      for (size_t j = 0; j < level.size(); j += 2)
        half.push_back(add(level[j], level[j + 1]));
      level = half;
    }
    value = level[0];
  }
  return values;
}

} // namespace mlir::llm
