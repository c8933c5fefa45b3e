#include "codegen/Kernels/RopeTable.h"

namespace mlir::llm {

RopePair ropePair(KernelBuilder &b, Value element, int64_t dims,
                  bool interleaved) {
  RopePair found;
  Value other;
  if (interleaved) {
    found.index = b.div(element, 2);
    found.first = b.equal(b.rem(element, 2), b.index(0));
    other = b.bitXor(element, b.index(1));
  } else {
    found.index = b.rem(element, dims / 2);
    found.first = b.less(element, dims / 2);
    other = b.select(
        found.first, b.add(element, dims / 2),
        b.sub(b.max(element, b.index(dims / 2)), b.index(dims / 2)));
  }
  found.inside = b.less(element, dims);
  found.index = b.select(found.inside, found.index, b.index(0));
  found.partner = b.select(found.inside, other, element);
  return found;
}

Type RopeTable::elementType(KernelBuilder &b, const KernelInterface &interface,
                            unsigned binding) {
  bool viewed = interface.bindings[binding].texel != TexelFormat::None;
  return viewed ? b.f32() : b.vec(2, b.f32());
}

RopeTable::RopeTable(KernelBuilder &builder, const RopeAppendSpec &spec,
                     const KernelInterface &interface, unsigned binding,
                     Value position)
    : b(builder), binding(binding),
      pairs(interface.bindings[binding].texel == TexelFormat::None) {
  constexpr int64_t kRows = RopeAppendSpec::kTableRows;
  lowRow = b.mul(b.rem(position, kRows), spec.dims / 2);
  highRow = b.mul(b.add(b.div(position, kRows), kRows), spec.dims / 2);
  if (!spec.longFrom)
    return;
  Value second = b.index(spec.tableRows() * (spec.dims / 2));
  Value table =
      b.select(b.less(position, spec.longFrom), b.index(0), second);
  lowRow = b.add(lowRow, table);
  highRow = b.add(highRow, table);
}

std::pair<Value, Value> RopeTable::load(Value place) {
  if (!pairs) {
    Value first = b.mul(place, 2);
    return {b.load(binding, first), b.load(binding, b.add(first, 1))};
  }
  Value both = b.load(binding, place);
  return {b.extract(both, 0), b.extract(both, 1)};
}

Value RopeTable::turn(Value number, Value partner, Value first, Value pair) {
  auto [c0, s0] = load(b.add(lowRow, pair));
  auto [c1, s1] = load(b.add(highRow, pair));
  Value cosine = b.sub(b.mul(c1, c0), b.mul(s1, s0));
  Value sine = b.add(b.mul(s1, c0), b.mul(c1, s0));
  sine = b.select(first, b.neg(sine), sine);
  return b.add(b.mul(number, cosine), b.mul(partner, sine));
}

} // namespace mlir::llm
