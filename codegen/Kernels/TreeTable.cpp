#include "codegen/Kernels/TreeTable.h"

#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr unsigned kControl = 0, kTree = 1;
constexpr uint32_t kLanes = 8;
constexpr int64_t kNodes = 4; ///< of a lane: their depths share a word

} // namespace

FailureOr<TreeTableSpec> TreeTableSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  TreeTableSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1, sprig::format::kMostNodes);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr TreeTableSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context).add("width", width).done();
}

FailureOr<KernelInterface> TreeTableSpec::interface(const TargetProfile &,
                                                    EmitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("tree_table {0}", width);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("tree_table_{0}", width).str(), interface.key);
  interface.workgroup = {kLanes, 1, 1};
  interface.bindings = {{"control", Access::ReadWrite, StepControl::kBytes},
                        {"tree", Access::Write, bytes(width)}};
  interface.groups[0] = {
      uint32_t((width + kLanes * kNodes - 1) / (kLanes * kNodes)), 0};
  return interface;
}

void TreeTableSpec::build(KernelBuilder &b, const KernelInterface &) const {
  b.open({b.i32(), b.i32()});
  StepControl control(b, kControl);
  // A node's parent, or the node itself at a root.
  auto above = [&](Value of) {
    Value parent = control.packedByte(sprig::format::Parents, of);
    return b.select(b.less(parent, of), parent, of);
  };
  // Writes the path of a node and returns its depth.
  auto walk = [&](Value node) {
    Value start = b.select(b.less(node, control.count()), node, b.index(0));
    Value depth = b.loop(
        b.index(0), start, b.index(1), {start, b.index(0)},
        [&](Value, ValueRange state) {
          Value next = above(state[0]);
          Value more = b.less(next, state[0]);
          return Values{next, b.select(more, b.add(state[1], 1), state[1])};
        })[1];
    Value row = b.mul(node, width);
    b.loop(b.index(0), b.add(depth, 1), b.index(1), {start},
           [&](Value step, ValueRange state) {
             b.store(b.toI32(state[0]), kTree, b.add(row, b.sub(depth, step)));
             return Values{above(state[0])};
           });
    return b.toI32(depth);
  };
  Value word = b.globalId();
  b.when(b.less(word, (width + kNodes - 1) / kNodes), [&] {
    Value depths = b.constant(0u);
    for (int64_t i = 0; i < kNodes; ++i) {
      // The last lane walks its last node again where the width ends.
      Value node = b.min(b.add(b.mul(word, kNodes), i), b.index(width - 1));
      depths = b.bitOr(depths, b.shl(walk(node), 8 * i));
    }
    b.store(depths, kControl, b.add(word, int64_t(sprig::format::Depths)));
  });
  b.close();
}

} // namespace mlir::llm
