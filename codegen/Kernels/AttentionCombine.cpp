#include "codegen/Kernels/AttentionCombine.h"

#include "codegen/Kernels/AttentionRange.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr unsigned kControl = 0, kPartial = 1, kStats = 2, kY = 3, kTree = 4;
constexpr uint32_t kLanes = 64;

} // namespace

FailureOr<AttentionCombineSpec>
AttentionCombineSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  AttentionCombineSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.maybe("value_size", spec.valueSize, 0, spec.headSize);
  reader.maybe("window", spec.window, 0);
  reader.maybe("sinks", spec.sinks, 0);
  reader.read("split", spec.split, 1);
  reader.read("parts", spec.parts, 1);
  reader.maybe("tree", spec.tree, 0, sprig::format::kMostNodes);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr AttentionCombineSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("heads", heads)
      .add("head_size", headSize)
      .add("value_size", valueSize)
      .add("capacity", capacity)
      .add("window", window)
      .add("sinks", sinks)
      .add("split", split)
      .add("parts", parts)
      .add("tree", tree)
      .done();
}

FailureOr<KernelInterface>
AttentionCombineSpec::interface(const TargetProfile &profile, EmitError) const {
  KernelInterface interface;
  // Lanes exchange nothing; where subgroups are narrow, one is enough.
  bool narrow = profile.subgroupSize && profile.subgroupSize <= 8;
  interface.workgroup = {narrow ? profile.subgroupSize : kLanes, 1, 1};
  interface.key =
      llvm::formatv("attention_combine heads {0}x{1} capacity {2} window {3} "
                    "sinks {4} split {5} parts {6} tree {7} lanes {8}",
                    heads, headSize, capacity, window, sinks, split, parts,
                    tree, interface.workgroup[0]);
  if (valueSize)
    interface.key += llvm::formatv(" values {0}", valueSize);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("attention_combine_{0}x{1}", heads, headSize).str(),
      interface.key);
  uint64_t rowBytes = uint64_t(heads * headSize) * 4;
  interface.bindings = {
      {"control", Access::Read, StepControl::kBytes},
      {"partial", Access::Read, rowBytes * uint64_t(parts), true},
      {"stats", Access::Read, uint64_t(heads * parts) * 8, true},
      {"y", Access::Write,
       uint64_t(heads * (valueSize ? valueSize : headSize)) * 4, true}};
  if (tree)
    interface.bindings.push_back(
        {"tree", Access::Read, TreeTableSpec::bytes(tree)});
  interface.groups[0] = {uint32_t(heads), 0};
  interface.groups[1] = {1, 1};
  return interface;
}

void AttentionCombineSpec::build(KernelBuilder &b,
                                 const KernelInterface &interface) const {
  const int64_t out = valueSize ? valueSize : headSize;
  int64_t lanes = interface.workgroup[0],
          quad = headSize % 4 == 0 && out % 4 == 0 ? 4 : 1;
  int64_t quads = headSize / quad, laneQuads = (quads + lanes - 1) / lanes;
  Type number = quad == 4 ? b.vec(4, b.f32()) : b.f32();
  SmallVector<Type> types{b.i32(), number, b.vec(2, b.f32()), number};
  if (tree)
    types.push_back(b.i32());
  b.open(types);
  AttentionRange range(b, {capacity, window, sinks, split, tree, kTree},
                       kControl);
  Value head = b.groupId(0), token = b.groupId(1);
  Value limit = range.limit(token), line = b.add(b.mul(token, heads), head);
  Value first = b.div(range.first(limit), split);
  Value last = b.div(b.sub(limit, b.index(1)), split);

  b.when(b.less(first, last), [&] {
    Values folded =
        b.loop(first, b.add(last, 1), b.index(1),
               emptyFold(b, laneQuads * quad), [&](Value at, ValueRange known) {
                 Value place =
                     b.add(b.mul(line, parts), b.sub(at, range.firstSplit()));
                 Values next = b.unpack(b.load(kStats, place));
                 for (int64_t i = 0; i < laneQuads; ++i) {
                   Value own =
                       b.min(b.add(b.localId(), i * lanes), b.index(quads - 1));
                   next.append(b.unpack(
                       b.load(kPartial, b.add(b.mul(place, quads), own))));
                 }
                 return foldSplit(b, known, next);
               });
    Value inverse = b.div(b.constant(1.0f), folded[1]);
    for (int64_t i = 0; i < laneQuads; ++i) {
      Value own = b.add(b.localId(), i * lanes);
      b.when(b.less(own, out / quad), [&] {
        Values numbers;
        for (int64_t j = 0; j < quad; ++j)
          numbers.push_back(b.mul(folded[2 + i * quad + j], inverse));
        b.store(quad == 1 ? numbers[0] : b.pack(numbers), kY,
                b.add(b.mul(line, out / quad), own));
      });
    }
  });
  b.close();
}

} // namespace mlir::llm
