#include "codegen/Kernels/RopeAppend.h"

#include "codegen/Kernels/AttentionSchedule.h"
#include "codegen/Kernels/RopeAppendBuild.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace mlir::llm {

static constexpr uint32_t kLanes = 64;

std::vector<float> ropeTable(llvm::ArrayRef<double> frequencies,
                             int64_t capacity, double amplitude) {
  int64_t blocks =
      (capacity + RopeAppendSpec::kTableRows - 1) / RopeAppendSpec::kTableRows;
  std::vector<float> table;
  table.reserve((RopeAppendSpec::kTableRows + blocks) * frequencies.size() * 2);
  auto addRow = [&](double position, double scale) {
    for (double frequency : frequencies) {
      table.push_back(float(std::cos(position * frequency) * scale));
      table.push_back(float(std::sin(position * frequency) * scale));
    }
  };
  for (int64_t row = 0; row < RopeAppendSpec::kTableRows; ++row)
    addRow(double(row), amplitude);
  for (int64_t block = 0; block < blocks; ++block)
    addRow(double(block * RopeAppendSpec::kTableRows), 1);
  return table;
}

uint64_t RopeAppendSpec::tableBytes() const {
  return uint64_t(longFrom ? 2 : 1) * uint64_t(tableRows()) *
         uint64_t(dims / 2) * 8;
}

FailureOr<RopeAppendSpec> RopeAppendSpec::fromAttr(DictionaryAttr attr,
                                                   EmitError emitError) {
  RopeAppendSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.maybe("heads", spec.heads, 0);
  reader.read("kv_heads", spec.kvHeads, 1);
  reader.read("head_size", spec.headSize, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.read("kv", spec.kv);
  spec.dims = spec.headSize;
  reader.maybe("dims", spec.dims, 0);
  reader.maybe("hadamard", spec.hadamard, 0, kMostHadamard);
  reader.maybe("value_size", spec.valueSize, 0, spec.headSize);
  reader.maybe("long_from", spec.longFrom, 0);
  reader.read("interleaved", spec.interleaved);
  reader.read("fused", spec.fused);
  reader.read("tree", spec.tree);
  reader.maybe("part", spec.cache.part, 0);
  if (std::string why = KvFormat::whyRefused(spec.kv, spec.headSize);
      !why.empty())
    reader.fail(why);
  else if (spec.hadamard &&
           (!KvFormat::named(spec.kv).quantised() ||
            !llvm::isPowerOf2_64(uint64_t(spec.hadamard)) ||
            spec.headSize % spec.hadamard))
    reader.fail("expects hadamard to be a power of two that divides the head, "
                "with a cache in integers, but got " +
                Twine(spec.hadamard) + " with heads of " +
                Twine(spec.headSize) + " in " + spec.kv);
  if (spec.dims % 2 || spec.dims > spec.headSize)
    reader.fail("expects an even number of rotated dims of at most " +
                Twine(spec.headSize) + ", but got " + Twine(spec.dims));
  if (spec.fused && spec.valueSize)
    reader.fail("expects values as long as keys where they lie in one array, "
                "but got " +
                Twine(spec.valueSize));
  if (spec.fused && !spec.heads)
    reader.fail("expects heads where they lie in one array, but got none");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr RopeAppendSpec::toAttr(MLIRContext *context) const {
  NamedAttrList members(SpecWriter(context)
                            .add("heads", heads)
                            .add("kv_heads", kvHeads)
                            .add("head_size", headSize)
                            .add("capacity", capacity)
                            .add("kv", StringRef(kv))
                            .add("hadamard", hadamard)
                            .add("value_size", valueSize)
                            .add("long_from", longFrom)
                            .flag("interleaved", interleaved)
                            .flag("fused", fused)
                            .flag("tree", tree)
                            .add("part", cache.part)
                            .done());
  if (dims != headSize) // zero is a choice here, not a default
    members.set("dims", Builder(context).getI64IntegerAttr(dims));
  return members.getDictionary(context);
}

std::string RopeAppendSpec::shapeKey() const {
  std::string key = llvm::formatv("rope_append heads {0}/{1}x{2} dims {3}{4}{5} kv {6} "
                       "capacity {7}{8} hadamard {9}",
                       heads, kvHeads, headSize, dims,
                       interleaved ? " interleaved" : "",
                       fused ? " fused" : "", kv, capacity,
                       tree ? " tree" : "", hadamard);
  if (valueSize)
    key += llvm::formatv(" values {0}", valueSize);
  if (longFrom)
    key += llvm::formatv(" long from {0}", longFrom);
  if (cache)
    key += llvm::formatv(" part {0}", cache.part);
  return key;
}

FailureOr<KernelInterface>
RopeAppendSpec::interface(const TargetProfile &profile,
                          EmitError emitError) const {
  KvFormat format = KvFormat::named(kv);
  KernelInterface interface;
  interface.key = shapeKey();
  interface.name = KernelInterface::nameFor(
      llvm::formatv("rope_append_{0}x{1}", heads, headSize).str(),
      interface.key);
  interface.workgroup = {kLanes, 1, 1};
  uint64_t queryBytes = uint64_t(heads) * headSize * 4,
           keyBytes = uint64_t(kvHeads) * headSize * 4,
           valueBytes = uint64_t(kvHeads) * uint64_t(valueNumbers()) * 4;
  uint64_t cacheBytes =
      cache ? format.codeBytes(cache.spanned(capacity), kvHeads, headSize)
            : format.sideBytes(capacity, kvHeads, headSize);
  auto &bindings = interface.bindings;
  if (fused) {
    bindings.push_back({"qkv", Access::Read, queryBytes + 2 * keyBytes, true});
  } else {
    if (heads)
      bindings.push_back({"q", Access::Read, queryBytes, true});
    bindings.push_back({"k", Access::Read, keyBytes, true});
    bindings.push_back({"v", Access::Read, valueBytes, true});
  }
  if (dims)
    bindings.push_back({"table", Access::Read, tableBytes()});
  bindings.push_back({"control", Access::Read, StepControl::kBytes});
  if (heads)
    bindings.push_back({"y", Access::Write, queryBytes, true});
  bindings.push_back({"keys", Access::Write, cacheBytes});
  bindings.push_back({"values", Access::Write, cacheBytes});
  if (cache) {
    for (size_t i = bindings.size() - 2; i < bindings.size(); ++i)
      bindings[i].shorter = cacheBytes - format.codeBytes(
                                             cache.leastSpanned(capacity),
                                             kvHeads, headSize);
    if (format.quantised())
      bindings.push_back({"scales", Access::Write,
                          2 * format.scaleBytes(capacity, kvHeads, headSize)});
  }
  FailureOr<AttentionSchedule> schedule =
      AttentionSchedule::from(profile, emitError);
  if (failed(schedule))
    return failure();
  if (schedule->texels)
    for (KernelBinding &binding : bindings)
      if (binding.access == Access::Read && binding.role != "control")
        binding.texel = TexelFormat::R32Sfloat;
  int64_t lanes = ropeAppendLanes(*this, kLanes);
  if (format.quantised()) {
    // Two reductions a round of words.
    int64_t rounds = (format.headWords(headSize) + lanes - 1) / lanes;
    interface.sharedBytes = uint32_t(
        format.groups(headSize) == 1 ? 2 : 2 * rounds) * kLanes * 4;
    if (hadamard)
      interface.sharedBytes += format.elementsPerWord() * kLanes * 4;
    if (profile.canShuffle())
      interface.subgroupSize = profile.subgroupSize;
  }
  uint64_t items = uint64_t(heads + 2 * kvHeads) * uint64_t(lanes);
  interface.groups[0] = {uint32_t((items + kLanes - 1) / kLanes), 0};
  interface.groups[1] = {1, 1};
  interface.groups[2] = {uint32_t(cache.count(capacity)), 0};
  return interface;
}

void RopeAppendSpec::build(KernelBuilder &b,
                           const KernelInterface &interface) const {
  buildRopeAppend(b, *this, interface);
}

} // namespace mlir::llm
