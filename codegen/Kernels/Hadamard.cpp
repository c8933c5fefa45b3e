#include "codegen/Kernels/Hadamard.h"

#include "codegen/Kernels/LaneExchange.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace mlir::llm {

/// Numbers that a lane may hold: more would not stay in registers.
static constexpr int64_t kMostOfALane = 32;

FailureOr<HadamardSpec> HadamardSpec::fromAttr(DictionaryAttr attr,
                                               EmitError emitError) {
  HadamardSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1);
  reader.read("block", spec.block, 2);
  reader.read("signs", spec.signs);
  reader.read("inverse", spec.inverse);
  if (spec.block & (spec.block - 1) || spec.width % spec.block)
    reader.fail("expects a block of a power of two that divides the row, but "
                "got " +
                Twine(spec.block) + " of " + Twine(spec.width));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr HadamardSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("width", width)
      .add("block", block)
      .flag("signs", signs)
      .flag("inverse", inverse)
      .done();
}

/// Lanes of a workgroup: a subgroup where it can exchange, and more of them
/// through shared memory where a lane would hold too many numbers.
static int64_t lanesFor(int64_t block, const TargetProfile &profile) {
  int64_t lanes = profile.canShuffle() ? profile.subgroupSize : 64;
  while (block / lanes > kMostOfALane)
    lanes *= 2;
  return lanes;
}

FailureOr<KernelInterface>
HadamardSpec::interface(const TargetProfile &profile, EmitError) const {
  KernelInterface interface;
  const int64_t lanes = lanesFor(block, profile);
  const int64_t pack = std::max<int64_t>(1, block / lanes);
  interface.key = llvm::formatv("hadamard {0} of {1}{2}{3} lanes {4}", block,
                                width, signs ? " signs" : "",
                                inverse ? " inverse" : "", lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("hadamard_{0}", width).str(), interface.key);
  interface.workgroup = {uint32_t(lanes), 1, 1};
  const uint64_t rowBytes = uint64_t(width) * 4;
  interface.bindings = {{"x", Access::Read, rowBytes, true}};
  if (signs)
    interface.bindings.push_back({"signs", Access::Read, rowBytes});
  interface.bindings.push_back({"y", Access::Write, rowBytes, true});
  const int64_t span = lanes * pack;
  interface.groups[0] = {uint32_t((width + span - 1) / span), 0};
  interface.groups[1] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  if (!profile.canShuffle() || lanes > profile.subgroupSize)
    interface.sharedBytes = uint32_t(span * 4);
  return interface;
}

void HadamardSpec::build(KernelBuilder &b,
                         const KernelInterface &interface) const {
  const int64_t lanes = interface.workgroup[0];
  const int64_t pack = std::max<int64_t>(1, block / lanes);
  const int64_t wide = pack % 4 ? 1 : 4; // numbers of a load
  const unsigned y = signs ? 2 : 1;
  Type element = wide == 4 ? b.vec(4, b.f32()) : b.f32();
  b.open(SmallVector<Type>(y + 1, element));
  // Lanes behind the row work on its last numbers, for nobody.
  Value own = b.add(b.mul(b.groupId(0), lanes), b.localId());
  Value lane = b.min(own, b.index(width / pack - 1));
  Value column = b.mul(lane, pack / wide);
  Value first = b.add(b.mul(b.groupId(1), width / wide), column);
  auto read = [&](unsigned binding, Value from) {
    Values numbers;
    for (int64_t i = 0; i < pack / wide; ++i)
      numbers.append(b.unpack(b.load(binding, b.add(from, i))));
    return numbers;
  };
  Values numbers = read(0, first), flips;
  if (signs)
    flips = read(1, column);
  auto flip = [&](bool now) {
    if (signs && now)
      for (auto [number, sign] : llvm::zip_equal(numbers, flips))
        number = b.mul(number, sign);
  };
  flip(!inverse);
  Value scratch;
  transformLanes(b, numbers, block, b.localId(), lanes, scratch);
  Value unit = b.constant(float(1 / std::sqrt(double(block))));
  for (Value &number : numbers)
    number = b.mul(number, unit);
  flip(inverse);
  b.when(b.less(own, width / pack), [&] {
    for (int64_t i = 0; i < pack / wide; ++i)
      b.store(wide == 1 ? numbers[i]
                        : b.pack(ArrayRef(numbers).slice(size_t(i * 4), 4)),
              y, b.add(first, i));
  });
  b.close();
}

} // namespace mlir::llm
