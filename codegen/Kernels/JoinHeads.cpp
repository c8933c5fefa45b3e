#include "codegen/Kernels/JoinHeads.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

static constexpr uint32_t kLanes = 64;

FailureOr<JoinHeadsSpec> JoinHeadsSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  JoinHeadsSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("heads", spec.heads, 1);
  reader.read("first", spec.first, 1);
  reader.read("second", spec.second, 1);
  reader.read("first_shared", spec.firstShared);
  reader.read("second_shared", spec.secondShared);
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr JoinHeadsSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("heads", heads)
      .add("first", first)
      .add("second", second)
      .flag("first_shared", firstShared)
      .flag("second_shared", secondShared)
      .done();
}

FailureOr<KernelInterface> JoinHeadsSpec::interface(const TargetProfile &,
                                                    EmitError) const {
  KernelInterface interface;
  interface.key = llvm::formatv("join_heads {0}x({1}{2} + {3}{4})", heads, first,
                                firstShared ? " shared" : "", second,
                                secondShared ? " shared" : "");
  interface.name = KernelInterface::nameFor(
      llvm::formatv("join_heads_{0}x{1}", heads, first + second).str(),
      interface.key);
  interface.workgroup = {kLanes, 1, 1};
  const int64_t width = heads * (first + second);
  interface.bindings = {
      {"a", Access::Read, uint64_t(firstRow()) * 4, true},
      {"b", Access::Read, uint64_t(secondRow()) * 4, true},
      {"y", Access::Write, uint64_t(width) * 4, true}};
  interface.groups[0] = {uint32_t((width + kLanes - 1) / kLanes), 0};
  interface.groups[1] = {1, 1};
  return interface;
}

void JoinHeadsSpec::build(KernelBuilder &b, const KernelInterface &) const {
  b.open({b.f32(), b.f32(), b.f32()});
  const int64_t size = first + second;
  Value item = b.globalId(0), token = b.groupId(1);
  b.when(b.less(item, heads * size), [&] {
    Value head = b.div(item, size), number = b.rem(item, size);
    const auto part = [&](unsigned binding, int64_t row, bool shared,
                          int64_t length, Value at) {
      Value start = b.mul(token, row);
      if (!shared)
        start = b.add(start, b.mul(head, length));
      return Values{b.load(binding, b.add(start, at))};
    };
    Value result = b.choose(
        b.less(number, first),
        [&] { return part(0, firstRow(), firstShared, first, number); },
        [&] {
          return part(1, secondRow(), secondShared, second,
                      b.sub(number, b.index(first)));
        })[0];
    b.store(result, 2, b.add(b.mul(token, heads * size), item));
  });
  b.close();
}

} // namespace mlir::llm
