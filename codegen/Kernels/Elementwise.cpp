#include "codegen/Kernels/Elementwise.h"

#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr uint32_t kLanes = 64;

/// Arrays read; 0 for an unknown operation.
unsigned inputsOf(StringRef op) {
  return llvm::StringSwitch<unsigned>(op)
      .Cases({"add", "gated", "last", "accepted", "scale_columns", "gather"}, 2)
      .Cases({"scale", "softcap", "activation"}, 1)
      .Default(0);
}

/// Operations that pick one row.
bool picks(StringRef op) { return op == "last" || op == "accepted"; }

/// The row of the last accepted node; 0 where none was.
Value acceptedRow(KernelBuilder &b, int64_t rows) {
  StepControl control(b, 1);
  Value accepted = b.toIndex(control.word(sprig::format::Accepted));
  Value before = b.sub(b.max(accepted, b.index(1)), b.index(1));
  Value node = control.packedByte(
      sprig::format::Path,
      b.min(before, b.index(sprig::format::kMostNodes - 1)));
  return b.select(b.equal(accepted, b.index(0)), b.index(0),
                  b.min(node, b.index(rows - 1)));
}

} // namespace

FailureOr<ElementwiseSpec> ElementwiseSpec::fromAttr(DictionaryAttr attr,
                                                     EmitError emitError) {
  ElementwiseSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("op", spec.op);
  reader.read("width", spec.width, 1);
  reader.maybe("kind", spec.kind);
  reader.maybe("number", spec.number);
  reader.maybe("from", spec.from, 1);
  reader.maybe("rows", spec.rows, 0, sprig::format::kMostNodes);
  if (!inputsOf(spec.op))
    reader.fail("expects op add, scale, softcap, activation, gated, last, "
                "accepted, scale_columns or gather, but got '" +
                spec.op + "'");
  else if (spec.byColumn() != (spec.from != 0))
    reader.fail("expects from just with scale_columns and gather");
  else if ((spec.op == "accepted") != (spec.rows > 0))
    reader.fail("expects rows for op accepted alone, but got " +
                std::to_string(spec.rows) + " for '" + spec.op + "'");
  else if ((spec.op == "activation" || spec.op == "gated") &&
           !activationByName(spec.kind))
    reader.fail("expects kind silu, gelu, gelu_tanh or relu, but got '" +
                spec.kind + "'");
  else if ((spec.op == "scale" || spec.op == "softcap") && spec.number == 0)
    reader.fail("expects a number other than zero, but got none");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr ElementwiseSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("op", StringRef(op))
      .add("width", width)
      .add("kind", StringRef(kind))
      .add("number", number)
      .add("from", from)
      .add("rows", rows)
      .done();
}

FailureOr<KernelInterface>
ElementwiseSpec::interface(const TargetProfile &profile,
                           EmitError emitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("elementwise {0} {1} {2} {3:e}{4}{5}", op, kind,
                                width, number,
                                from ? " from " + std::to_string(from) : "",
                                rows ? " of " + std::to_string(rows) : "");
  interface.name = KernelInterface::nameFor(
      llvm::formatv("{0}_{1}", op, width).str(), interface.key);
  interface.workgroup = {kLanes, 1, 1};
  uint64_t rowBytes = uint64_t(width) * 4;
  const bool one = picks(op);
  interface.bindings = {{inputsOf(op) == 2 && !one && !from ? "a" : "x",
                         Access::Read,
                         op == "gather" ? uint64_t(from) * 4 : rowBytes, true}};
  if (rows)
    interface.bindings[0].bytes = rowBytes * uint64_t(rows);
  if (from)
    interface.bindings.push_back(
        {"b", Access::Read, op == "gather" ? rowBytes : uint64_t(from) * 4});
  else if (one)
    interface.bindings.push_back(
        {"control", Access::Read, StepControl::kBytes});
  else if (inputsOf(op) == 2)
    interface.bindings.push_back({"b", Access::Read, rowBytes, true});
  interface.bindings.push_back({"y", Access::Write, rowBytes, !one});
  interface.groups[0] = {uint32_t((width + kLanes - 1) / kLanes), 0};
  interface.groups[1] = one ? GroupCount{1, 0} : GroupCount{1, 1};
  return interface;
}

void ElementwiseSpec::build(KernelBuilder &b,
                            const KernelInterface &interface) const {
  SmallVector<Type> types(interface.bindings.size(), b.f32());
  if (picks(op))
    types[1] = b.i32();
  b.open(types);
  Value item = b.globalId(0), token = b.groupId(1);
  unsigned y = unsigned(types.size()) - 1;
  b.when(b.less(item, width), [&] {
    Value at = b.add(b.mul(token, width), item);
    Value place = at;
    if (picks(op))
      place = b.add(b.mul(op == "last" ? StepControl(b, 1).lastRow()
                                       : acceptedRow(b, rows),
                          width),
                    item);
    else if (op == "gather")
      place = b.add(b.mul(token, from),
                    b.toIndex(b.floorToI32(b.load(1, item))));
    Value result = b.load(0, place);
    if (op == "scale_columns")
      result = b.mul(result, b.load(1, b.rem(item, from)));
    else if (op == "add")
      result = b.add(result, b.load(1, at));
    else if (op == "gated")
      result =
          b.mul(activate(b, *activationByName(kind), result), b.load(1, at));
    else if (op == "activation")
      result = activate(b, *activationByName(kind), result);
    else if (op == "scale")
      result = b.mul(result, b.constant(float(number)));
    else if (op == "softcap")
      result = b.mul(b.tanh(b.mul(result, b.constant(float(1 / number)))),
                     b.constant(float(number)));
    b.store(result, y, at);
  });
  b.close();
}

} // namespace mlir::llm
