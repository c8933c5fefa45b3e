#include "codegen/Kernels/HiddenRows.h"

#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

static constexpr uint32_t kLanes = 64;

FailureOr<HiddenRowsSpec> HiddenRowsSpec::fromAttr(DictionaryAttr attr,
                                                   EmitError emitError) {
  HiddenRowsSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("op", spec.op);
  reader.read("width", spec.width, 1);
  reader.maybe("rows", spec.rows, 0, sprig::format::kMostNodes);
  if (!llvm::is_contained({"previous", "parents", "above", "keep", "accepted"},
                          spec.op))
    reader.fail("expects op previous, parents, above, keep or accepted, but got "
                "'" + spec.op + "'");
  else if ((spec.op == "accepted" || spec.op == "above") != (spec.rows > 0))
    reader.fail("expects rows for the ops accepted and above alone, but got " +
                Twine(spec.rows) + " for '" + spec.op + "'");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr HiddenRowsSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("op", StringRef(op))
      .add("width", width)
      .add("rows", rows)
      .done();
}

FailureOr<KernelInterface>
HiddenRowsSpec::interface(const TargetProfile &, EmitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("hidden_rows {0} {1} of {2}", op, width, rows);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("hidden_rows_{0}_{1}", op, width).str(), interface.key);
  interface.workgroup = {kLanes, 1, 1};
  const uint64_t rowBytes = uint64_t(width) * 4;
  interface.bindings = {{"x", Access::Read, rowBytes, true}};
  if (rows)
    interface.bindings[0] = {"x", Access::Read, rowBytes * uint64_t(rows)};
  if (op == "above")
    interface.bindings.push_back({"first", Access::Read, rowBytes});
  else if (reads())
    interface.bindings.push_back({"ring", Access::Read, ringBytes()});
  interface.bindings.push_back({"control", Access::Read, StepControl::kBytes});
  if (reads())
    interface.bindings.push_back({"y", Access::Write, rowBytes, true});
  else
    interface.bindings.push_back({"ring", Access::Write, ringBytes()});
  interface.groups[0] = {uint32_t((width + kLanes - 1) / kLanes), 0};
  interface.groups[1] =
      op == "accepted" ? GroupCount{uint32_t(rows), 0} : GroupCount{1, 1};
  return interface;
}

void HiddenRowsSpec::build(KernelBuilder &b, const KernelInterface &) const {
  const unsigned kX = 0, kRingIn = 1, kControl = reads() ? 2 : 1,
                 kOut = reads() ? 3 : 2;
  SmallVector<Type> types(kOut + 1, b.f32());
  types[kControl] = b.i32();
  b.open(types);
  Value item = b.globalId(0), row = b.groupId(1);
  StepControl control(b, kControl);
  auto placeOf = [&](Value slot) {
    return b.add(b.mul(b.rem(slot, kRing), width), item);
  };
  b.when(b.less(item, width), [&] {
    if (reads()) {
      Value isRoot = b.equal(row, b.index(0)), before = row;
      if (tree()) {
        // The parent of a root is no node.
        Value parent = control.packedByte(
            sprig::format::Parents,
            b.min(row, b.index(sprig::format::kMostNodes - 1)));
        isRoot = b.less(b.index(sprig::format::kMostNodes - 1), parent);
        before = b.min(b.add(parent, 1), row);
      }
      Value inStep = b.sub(b.max(before, b.index(1)), b.index(1));
      Value kept;
      if (op == "above") {
        inStep = b.min(inStep, b.index(rows - 1));
        kept = b.load(kRingIn, item);
      } else {
        Value base = control.base();
        kept = b.load(kRingIn,
                      placeOf(b.sub(b.max(base, b.index(1)), b.index(1))));
        kept = b.select(b.equal(base, b.index(0)), b.constant(0.0f), kept);
      }
      Value own = b.load(kX, b.add(b.mul(inStep, width), item));
      b.store(b.select(isRoot, kept, own), kOut,
              b.add(b.mul(row, width), item));
      return;
    }
    if (op == "keep") {
      // Of a step that is longer than the ring, the last rows.
      Value count = control.count();
      Value late = b.less(count, b.add(row, kRing + 1));
      b.when(b.bitAnd(b.less(row, count), late), [&] {
        b.store(b.load(kX, b.add(b.mul(row, width), item)), kOut,
                placeOf(b.add(control.base(), row)));
      });
      return;
    }
    Value accepted = b.min(b.toIndex(control.word(sprig::format::Accepted)),
                           b.index(rows - 1));
    Value next = b.max(control.base(), b.add(accepted, 1));
    Value base = b.sub(next, b.add(accepted, 1)); // of node 0
    b.when(b.less(row, b.add(accepted, 1)), [&] {
      Value before = b.sub(b.max(row, b.index(1)), b.index(1));
      Value node = b.min(control.packedByte(sprig::format::Path, before),
                         b.index(rows - 1));
      node = b.select(b.equal(row, b.index(0)), row, node);
      b.store(b.load(kX, b.add(b.mul(node, width), item)), kOut,
              placeOf(b.add(base, row)));
    });
  });
  b.close();
}

} // namespace mlir::llm
