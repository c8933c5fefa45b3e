#include "codegen/Kernels/IntegerLinear.h"

#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/SpecAttr.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Layout.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

bool IntegerLinearSpec::canMultiply(sprig::quant::Format format,
                                    int64_t group) {
  const BlockCodec *codec = BlockCodec::find(format);
  return codec && codec->hasIntegers() && group % kChunk == 0;
}

FailureOr<IntegerLinearSpec>
IntegerLinearSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  IntegerLinearSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  std::string format;
  reader.read("format", format);
  reader.read("n", spec.n, 1);
  reader.read("k", spec.k, 1);
  reader.maybe("x_group", spec.xGroup, 1);
  reader.maybe("tokens", spec.tokens, 1, 64);
  reader.maybe("gate", spec.gate);
  reader.read("bias", spec.bias);
  reader.read("residual", spec.residual);
  if (failed(reader.finish()))
    return failure();
  auto known = sprig::quant::formatOfName(format);
  if (!known || !canMultiply(*known, spec.xRow().group))
    reader.fail("expects a format of integers and groups of x of a multiple of " +
                Twine(kChunk) + " numbers, but got '" + format + "' and " +
                Twine(spec.xRow().group));
  else
    spec.format = *known;
  if (spec.k % spec.xRow().group)
    reader.fail("expects groups of x that divide k, but got " +
                Twine(spec.xRow().group) + " of " + Twine(spec.k));
  if (!spec.gate.empty() && (!activationByName(spec.gate) || spec.bias))
    reader.fail("expects gate to be silu, gelu, gelu_tanh or relu, without a "
                "bias, but got '" +
                spec.gate + "'");
  if (reader.bad())
    return failure();
  return spec;
}

DictionaryAttr IntegerLinearSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("format", sprig::quant::info(format).name)
      .add("n", n)
      .add("k", k)
      .add("x_group", xGroup)
      .add("tokens", tokens)
      .add("gate", gate)
      .flag("bias", bias)
      .flag("residual", residual)
      .done();
}

LinearSpec IntegerLinearSpec::inFloats() const {
  LinearSpec plain;
  plain.format = format, plain.n = n, plain.k = k, plain.tokens = tokens;
  plain.gate = gate;
  return plain;
}

FailureOr<LinearSchedule>
IntegerLinearSpec::schedule(const TargetProfile &profile,
                            EmitError emitError) const {
  FailureOr<LinearSchedule> chosen = inFloats().schedule(profile, emitError);
  if (succeeded(chosen))
    chosen->texels = 0;
  return chosen;
}

FailureOr<KernelInterface>
IntegerLinearSpec::interface(const TargetProfile &profile,
                             EmitError emitError) const {
  FailureOr<LinearSchedule> chosen = schedule(profile, emitError);
  if (failed(chosen))
    return failure();
  KernelInterface interface;
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  interface.key = llvm::formatv(
      "integer_linear {0} n={1} k={2}/{3} tokens={4}{5}{6}{7} | {8}", info.name,
      n, k, xRow().group, tokens, gate.empty() ? "" : " gate=" + gate,
      bias ? " bias" : "", residual ? " residual" : "", chosen->key());
  interface.name = KernelInterface::nameFor(
      llvm::formatv("integer_linear{0}_{1}_{2}x{3}_t{4}",
                    gate.empty() ? "" : "_gated", StringRef(info.name).lower(),
                    n, k, tokens),
      interface.key);
  auto layout = sprig::quant::describe(format, size_t(n), size_t(k));
  SmallVector<StringRef, 2> weights;
  if (gate.empty())
    weights = {"weight"};
  else
    weights = {"gate", "up"};
  for (StringRef weight : weights)
    for (const sprig::quant::PlaneLayout &plane : layout.planes)
      interface.bindings.push_back({(weight + "." + plane.name).str(),
                                    Access::Read, plane.bytes});
  interface.bindings.push_back(
      {"x", Access::Read, uint64_t(xRow().words()) * 4, true});
  if (bias)
    interface.bindings.push_back({"bias", Access::Read, uint64_t(n) * 4});
  if (residual)
    interface.bindings.push_back(
        {"residual", Access::Read, uint64_t(n) * 4, true});
  interface.bindings.push_back({"y", Access::Write, uint64_t(n) * 4, true});

  inFloats().spread(*chosen, profile, interface);
  if (chosen->split > 1) {
    int64_t sums = tokens * chosen->rows * (gate.empty() ? 1 : 2);
    if (profile.canShuffle() && 8 * chosen->split <= profile.subgroupSize)
      interface.subgroupSize = profile.subgroupSize;
    else
      interface.sharedBytes = uint32_t(sums) * interface.workgroup[0] * 4;
  }
  return interface;
}

namespace {

/// Whether the codes of `format`, less their zero points, are signed bytes.
bool fitBytes(sprig::quant::Format format) {
  auto affine = sprig::quant::affineOf(format);
  return affine && affine->kind != sprig::quant::AffineFormat::Kind::Book &&
         (affine->bits < 8 ||
          affine->kind == sprig::quant::AffineFormat::Kind::Symmetric);
}

class Builder {
public:
  Builder(KernelBuilder &builder, const IntegerLinearSpec &spec,
          const LinearSchedule &schedule, const KernelInterface &interface)
      : b(builder), s(spec), schedule(schedule), interface(interface),
        codec(*BlockCodec::find(spec.format)),
        layout(sprig::quant::describe(spec.format, size_t(spec.n),
                                      size_t(spec.k))),
        // MLIR has them for SPIR-V 1.6 alone. Where they are no instructions,
        // one token by itself does not pay for the codes being packed.
        dots(schedule.dots &&
             builder.target().has(Feature::IntegerDotProduct) &&
             builder.target().spirv >= Version{1, 6} &&
             (spec.tokens > 1 || schedule.dots > 1) &&
             fitBytes(spec.format)) {}

  void build();

private:
  /// Four signed bytes of each, multiplied and added.
  Value dot(Value left, Value right) {
    return spirv::SDotOp::create(
        b.ops(), b.loc(), b.i32(), left, right,
        spirv::PackedVectorFormatAttr::get(
            b.ops().getContext(),
            spirv::PackedVectorFormat::PackedVectorFormat4x8Bit));
  }
  /// Codes as signed bytes, four in a word.
  Values packed(ArrayRef<Value> codes) {
    Values words;
    for (unsigned k = 0; k < codes.size(); k += 4) {
      Value word = b.bitAnd(codes[k], 255);
      for (unsigned byte = 1; byte < 4; ++byte)
        word = b.bitOr(word, b.shl(b.bitAnd(codes[k + byte], 255), 8 * byte));
      words.push_back(word);
    }
    return words;
  }
  /// The sum of the products of two lists, as i32.
  Value product(ArrayRef<Value> left, ArrayRef<Value> right) {
    Value sum;
    for (auto [a, c] : llvm::zip_equal(left, right)) {
      Value part = dots ? dot(a, c) : b.mul(a, c);
      sum = sum ? b.add(sum, part) : part;
    }
    return sum;
  }
  void open();
  Values unit(Value at, ValueRange sums);
  void finish(ValueRange sums);
  unsigned binding(StringRef role) const { return interface.indexOf(role); }
  size_t at(size_t rowSet, int64_t token) const {
    return rowSet * size_t(s.tokens) + size_t(token);
  }

  struct RowSet {
    SmallVector<PlaneBinding> planes;
    Value tile; ///< clamped to the last
  };

  KernelBuilder &b;
  const IntegerLinearSpec &s;
  const LinearSchedule &schedule;
  const KernelInterface &interface;
  const BlockCodec &codec;
  sprig::quant::TensorLayout layout;
  bool dots; ///< by SPV_KHR_integer_dot_product: sums are exact either way
  SmallVector<RowSet> rowSets;
  Value row, slice, firstTile, firstToken;
};

void Builder::open() {
  SmallVector<Type> elements;
  SmallVector<PlaneBinding> planes;
  for (const KernelBinding &known : interface.bindings) {
    auto [weight, planeName] = StringRef(known.role).split('.');
    if (planeName.empty()) {
      elements.push_back(known.role == "x" ? b.vec(4, b.i32()) : b.f32());
      continue;
    }
    const sprig::quant::PlaneLayout *plane = layout.plane(planeName.str());
    unsigned bytes = schedule.elementBytes(plane->unitBytes);
    planes.push_back({unsigned(elements.size()), plane->unitBytes, bytes,
                      plane->share, unsigned(layout.units)});
    elements.push_back(bytes == 4 ? b.i32() : b.vec(bytes / 4, b.i32()));
  }
  b.open(elements);
  Value lane = b.localId();
  row = b.rem(lane, 8);
  slice = b.rem(b.div(lane, 8), schedule.split);
  Value group = b.groupId(0);
  if (interface.groups[2].fixed > 1)
    group = b.add(b.mul(b.groupId(2), interface.groups[0].fixed), group);
  Value set = b.add(b.mul(group, schedule.waves),
                    b.div(lane, 8 * schedule.split));
  firstTile = b.mul(set, schedule.rows);
  firstToken = b.mul(b.groupId(1), s.tokens);
  const size_t perWeight = layout.planes.size();
  for (size_t weight = 0; weight * perWeight < planes.size(); ++weight)
    for (int64_t r = 0; r < schedule.rows; ++r) {
      RowSet &rows = rowSets.emplace_back();
      rows.planes.assign(planes.begin() + weight * perWeight,
                         planes.begin() + (weight + 1) * perWeight);
      rows.tile = b.min(b.add(firstTile, r), b.index(s.tiles() - 1));
    }
}

Values Builder::unit(Value at, ValueRange carried) {
  Values sums(carried);
  SmallVector<IntegerUnit> weights;
  for (RowSet &set : rowSets) {
    Value place = b.add(
        b.mul(b.add(b.mul(set.tile, int64_t(layout.units)), at), 8), row);
    UnitReader reader(b, set.planes, place);
    weights.push_back(codec.integers(reader));
    if (dots)
      weights.back().codes = packed(weights.back().codes);
  }
  const IntegerRow x = s.xRow();
  const unsigned kX = binding("x");
  for (int64_t token = 0; token < s.tokens; ++token) {
    Value start = b.mul(b.add(firstToken, token), x.words() / 4);
    Values codes;
    for (int64_t i = 0; i < 2; ++i)
      for (Value word :
           b.unpack(b.load(kX, b.add(b.add(start, b.mul(at, 2)), i)))) {
        if (dots)
          codes.push_back(word);
        for (unsigned byte = 0; byte < 4 && !dots; ++byte)
          codes.push_back(b.signedBits(word, byte * 8, 8));
      }
    // The scale is one word of the vector that a load fetches.
    Value group = x.groups() == 1 ? b.index(0) : b.div(at, x.group / kChunk);
    Values four = b.unpack(
        b.load(kX, b.add(b.add(start, x.codes() / 4), b.div(group, 4))));
    Value scale = four[0];
    if (x.groups() > 1)
      for (int64_t i = 1; i < 4; ++i)
        scale = b.select(b.equal(b.rem(group, 4), b.index(i)), four[size_t(i)],
                         scale);
    scale = b.f32FromBits(scale);
    Value all; // of the codes of x
    for (auto [r, weight] : llvm::enumerate(weights)) {
      Value &sum = sums[this->at(r, token)];
      sum = b.fma(b.mul(weight.scale, scale), b.signedToF32(product(weight.codes, codes)), sum);
      if (!weight.minimum)
        continue;
      if (!all) {
        Value one = b.constant(uint32_t(dots ? 0x01010101 : 1));
        all = b.signedToF32(product(codes, Values(codes.size(), one)));
      }
      sum = b.fma(b.mul(weight.minimum, scale), all, sum);
    }
  }
  return sums;
}

void Builder::finish(ValueRange sums) {
  for (int64_t r = 0; r < schedule.rows; ++r) {
    Value column = b.add(b.mul(b.add(firstTile, r), 8), row);
    b.when(b.less(column, s.n), [&] {
      for (int64_t token = 0; token < s.tokens; ++token) {
        Value value = sums[at(size_t(r), token)];
        Value place = b.add(b.mul(b.add(firstToken, token), s.n), column);
        if (s.bias)
          value = b.add(value, b.load(binding("bias"), column));
        if (!s.gate.empty())
          value = b.mul(activate(b, *activationByName(s.gate), value),
                        sums[at(size_t(schedule.rows + r), token)]);
        if (s.residual)
          value = b.add(value, b.load(binding("residual"), place));
        b.store(value, binding("y"), place);
      }
    });
  }
}

void Builder::build() {
  open();
  Values sums = b.loop(
      slice, b.index(int64_t(layout.units)), b.index(schedule.split),
      Values(at(rowSets.size(), 0), b.constant(0.0f)),
      [&](Value at, ValueRange carried) { return unit(at, carried); });
  if (schedule.split > 1)
    sums = b.reduceAll(sums, unsigned(schedule.split), /*stride=*/8);
  if (schedule.split == 1)
    finish(sums);
  else
    b.when(b.equal(slice, b.index(0)), [&] { finish(sums); });
  b.close();
}

} // namespace

void IntegerLinearSpec::build(KernelBuilder &b,
                              const KernelInterface &interface) const {
  auto unreachable = [&] { return emitError(b.loc()); };
  FailureOr<LinearSchedule> chosen =
      schedule(b.target(), unreachable); // made once already for `interface`
  Builder(b, *this, *chosen, interface).build();
}

} // namespace mlir::llm
