#include "codegen/Kernels/IntegerRows.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/SpecAttr.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

/// Numbers below are zeros: their scale's inverse is not a number of f32.
static constexpr float kLeast = 1e-30f;

IntegerScale::IntegerScale(KernelBuilder &b, Value most, int64_t bits) {
  const int64_t largest = (int64_t(1) << (bits - 1)) - 1;
  Value zero = b.constant(0.0f);
  most = b.select(b.less(b.constant(kLeast), most), most, zero);
  scale = b.div(most, b.constant(float(largest)));
  inverse = b.select(b.less(zero, scale), b.div(b.constant(1.0f), scale), zero);
}

Value IntegerScale::code(KernelBuilder &b, Value x) const {
  // As a number above zero, where rounding is cutting off.
  return b.min(b.floorToI32(b.max(b.fma(x, inverse, b.constant(128.5f)),
                                  b.constant(0.0f))),
               b.constant(255u));
}

FailureOr<QuantizeRowsSpec> QuantizeRowsSpec::fromAttr(DictionaryAttr attr,
                                                       EmitError emitError) {
  QuantizeRowsSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("width", spec.width, 1);
  reader.maybe("group", spec.group, 1);
  reader.maybe("bits", spec.bits, 2, 8);
  reader.read("rounded", spec.rounded);
  reader.read("norm", spec.norm);
  reader.maybe("eps", spec.eps);
  reader.maybe("count", spec.count, 1);
  reader.read("gamma", spec.gamma);
  if (spec.width % spec.row().group || spec.row().group % 4)
    reader.fail("expects groups of a multiple of 4 numbers that divide the "
                "row, but got " +
                Twine(spec.row().group) + " of " + Twine(spec.width));
  if (!spec.norm && (spec.gamma || spec.count))
    reader.fail("expects gamma and count only with a norm");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr QuantizeRowsSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("width", width)
      .add("group", group)
      .add("bits", bits)
      .flag("rounded", rounded)
      .flag("norm", norm)
      .add("eps", eps)
      .add("count", count)
      .flag("gamma", gamma)
      .done();
}

FailureOr<KernelInterface>
QuantizeRowsSpec::interface(const TargetProfile &profile, EmitError) const {
  KernelInterface interface;
  uint32_t lanes = profile.canShuffle() ? profile.subgroupSize : 64;
  interface.key = llvm::formatv(
      "quantize {0}/{1} to {2} bits{3}{4}{5} of {6} eps {7:e} lanes {8}", width,
      row().group, bits, rounded ? " rounded" : "", norm ? " norm" : "",
      gamma ? " gamma" : "", count ? count : width, eps, lanes);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("{0}_{1}", norm ? "norm_quantize" : "quantize", width)
          .str(),
      interface.key);
  interface.workgroup = {lanes, 1, 1};
  uint64_t rowBytes = uint64_t(width) * 4;
  interface.bindings = {{"x", Access::Read, rowBytes, true}};
  if (gamma)
    interface.bindings.push_back({"gamma", Access::Read, rowBytes});
  interface.bindings.push_back(
      {"y", Access::Write, rounded ? rowBytes : uint64_t(row().words()) * 4,
       true});
  interface.groups[0] = {uint32_t(row().groups()), 0};
  interface.groups[1] = {1, 1};
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  else
    interface.sharedBytes = lanes * 4 * (norm ? 2 : 1);
  return interface;
}

void QuantizeRowsSpec::build(KernelBuilder &b,
                             const KernelInterface &interface) const {
  const unsigned kX = 0, kGamma = 1, kY = gamma ? 2 : 1;
  const IntegerRow shape = row();
  Type four = b.vec(4, b.f32());
  SmallVector<Type> types(kY + 1, four);
  if (!rounded)
    types[kY] = b.i32();
  b.open(types);
  const int64_t lanes = interface.workgroup[0], quads = shape.group / 4;
  Value lane = b.localId(), group = b.groupId(0), token = b.groupId(1);
  Value first = b.add(b.mul(token, width / 4), b.mul(group, quads));
  auto plain = [&](Value quad) {
    return b.unpack(b.load(kX, b.add(first, quad)));
  };
  // Lane l takes the quads l, l + lanes, … of `count`.
  auto over = [&](int64_t count, Value initial, KernelBuilder::Reduction how,
                  function_ref<Value(Value, Value)> take) {
    Value own = b.loop(lane, b.index(count), b.index(lanes), initial,
                       [&](Value quad, ValueRange carried) {
                         return Values{take(quad, carried[0])};
                       })[0];
    return b.reduce(own, unsigned(lanes), how);
  };
  Value factor;
  if (norm) {
    // Of the whole row, by the workgroup of each of its groups.
    Value row = b.mul(token, width / 4);
    Value squares = over(
        width / 4, b.constant(0.0f), KernelBuilder::Reduction::Add,
        [&](Value quad, Value sum) {
          for (Value x : b.unpack(b.load(kX, b.add(row, quad))))
            sum = b.fma(x, x, sum);
          return sum;
        });
    Value mean =
        b.fma(squares, b.constant(float(1.0 / double(count ? count : width))),
              b.constant(float(eps)));
    factor = b.div(b.constant(1.0f), b.sqrt(mean));
  }
  auto numbers = [&](Value quad) {
    Values list = plain(quad);
    if (norm)
      for (Value &x : list)
        x = b.mul(x, factor);
    if (gamma)
      for (auto [x, scale] :
           llvm::zip_equal(list, b.unpack(b.load(
                                     kGamma, b.add(b.mul(group, quads), quad)))))
        x = b.mul(x, scale);
    return list;
  };
  Value most = over(quads, b.constant(0.0f), KernelBuilder::Reduction::Max,
                    [&](Value quad, Value largest) {
                      for (Value x : numbers(quad))
                        largest = b.max(largest, b.max(x, b.neg(x)));
                      return largest;
                    });
  const IntegerScale scale(b, most, bits);
  Value place = rounded ? first
                        : b.add(b.mul(token, shape.words()),
                                b.mul(group, quads));
  b.loop(lane, b.index(quads), b.index(lanes), {}, [&](Value quad, ValueRange) {
    Values codes;
    for (Value x : numbers(quad))
      codes.push_back(scale.code(b, x));
    if (rounded) {
      for (Value &code : codes)
        code = b.mul(b.sub(b.unsignedToF32(code), b.constant(128.0f)),
                     scale.scale);
      b.store(b.pack(codes), kY, b.add(place, quad));
      return Values{};
    }
    Value word = codes[0];
    for (int64_t i = 1; i < 4; ++i)
      word = b.bitOr(word, b.shl(codes[size_t(i)], 8 * i));
    b.store(b.bitXor(word, b.constant(kCodeSigns)), kY, b.add(place, quad));
    return Values{};
  });
  if (!rounded)
    b.when(b.equal(lane, b.index(0)), [&] {
      b.store(b.bitsOfF32(scale.scale), kY,
              b.add(b.add(b.mul(token, shape.words()), group), shape.codes()));
    });
  b.close();
}

} // namespace mlir::llm
