#include "codegen/Kernels/ExpertLinear.h"

#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Kernels/SpecAttr.h"
#include "lib/Quant/Layout.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

/// Slices of k in a workgroup: as many as a subgroup holds.
unsigned slicesOf(const TargetProfile &profile) {
  return profile.canShuffle() ? std::max(1u, profile.subgroupSize / 8) : 8;
}

/// Whether scales of several units are loaded at once, as products that are not
/// of experts do it.
bool loadsSpans(const ExpertLinearSpec &spec, const TargetProfile &profile) {
  LinearSpec alone;
  alone.format = spec.format, alone.n = spec.n, alone.k = spec.k;
  FailureOr<LinearSchedule> schedule =
      alone.schedule(profile, [] { return InFlightDiagnostic(); });
  return failed(schedule) || schedule->spans;
}

class ExpertKernel {
public:
  ExpertKernel(const ExpertLinearSpec &spec, const KernelInterface &interface,
               KernelBuilder &b)
      : spec(spec), interface(interface), b(b),
        codec(*BlockCodec::find(spec.format)),
        layout(sprig::quant::describe(
            spec.format, size_t(spec.experts * spec.n), size_t(spec.k))),
        slices(slicesOf(b.target())), quads(spec.k % 4 == 0),
        spans(loadsSpans(spec, b.target())) {}

  void build();

private:
  unsigned binding(StringRef role) const { return interface.indexOf(role); }
  void open();
  /// This slice's part of row `column` of the expert times row `line` of x.
  Value product(Value expert, Value line);
  /// `place`: of the weight's row, its tile and its row there.
  using Place = std::pair<Value, Value>;
  Place placeOf(Value expert);
  Value step(const Place &place, Value line, const SpanWords &span,
             const BlockWalk::Step &at, unsigned count, Value sum);
  /// Numbers [offset, offset + count) of a row of x.
  Values numbers(Value line, Value offset, unsigned count);

  const ExpertLinearSpec &spec;
  const KernelInterface &interface;
  KernelBuilder &b;
  const BlockCodec &codec;
  sprig::quant::TensorLayout layout;
  unsigned slices;
  bool quads; // rows of x start at whole quads
  bool spans; // scales of several units are loaded at once
  SmallVector<PlaneBinding> planes;
  Value row, slice, column; ///< of a tile, of K, of y
};

void ExpertKernel::open() {
  SmallVector<Type> elements;
  for (const KernelBinding &known : interface.bindings) {
    const auto [weight, planeName] = StringRef(known.role).split('.');
    const bool wide = quads && known.role == "x";
    elements.push_back(!planeName.empty()
                           ? bindPlanes(
                                 b, planeName, unsigned(elements.size()),
                                 layout,
                                 [&](const sprig::quant::PlaneLayout &plane) {
                                   return planeElementBytes(plane, 16, spans);
                                 },
                                 planes)
                       : known.role == "ids" ? b.i32()
                       : wide                ? b.vec(4, b.f32())
                                             : b.f32());
  }
  b.open(elements);
  row = b.rem(b.localId(), 8);
  slice = b.div(b.localId(), 8);
  column = b.add(b.mul(b.groupId(0), 8), row);
}

Values ExpertKernel::numbers(Value line, Value offset, unsigned count) {
  Value from = b.add(b.mul(line, spec.k), offset);
  Values list;
  if (quads && count % 4 == 0) {
    Value quad = b.div(from, 4);
    for (unsigned i = 0; i < count / 4; ++i)
      list.append(b.unpack(b.load(binding("x"), b.add(quad, int64_t(i)))));
    return list;
  }
  for (unsigned i = 0; i < count; ++i) {
    Value at = b.add(from, int64_t(i));
    list.push_back(b.load(binding("x"), at));
  }
  return list;
}

ExpertKernel::Place ExpertKernel::placeOf(Value expert) {
  if (spec.n % 8 == 0)
    return {b.add(b.mul(expert, spec.n / 8), b.groupId(0)), row};
  // Experts begin within a tile; lanes past the last row read that once more.
  Value own = b.add(b.mul(expert, spec.n), b.min(column, b.index(spec.n - 1)));
  return {b.div(own, 8), b.rem(own, 8)};
}

Value ExpertKernel::step(const Place &place, Value line, const SpanWords &span,
                         const BlockWalk::Step &at, unsigned count,
                         const Value before) {
  Value sum = before;
  UnitReader reader(
      b, planes,
      {place.first, b.mul(at.block, codec.unitsPerBlock()), place.second},
      codec.table().empty() ? 0 : binding(kTableRole), span, at.within);
  for (WeightChunk &chunk : codec.decode(reader, at.step, count)) {
    Value offset = b.mul(at.block, codec.blockElements());
    if (chunk.dynamicOffset)
      offset = b.add(offset, chunk.dynamicOffset);
    offset = b.add(offset, int64_t(chunk.offset));
    const Values x = numbers(line, offset, chunk.count);
    for (const ChunkGroup &group : chunk.groups) {
      Value dot, all;
      for (unsigned i = group.first; i < group.first + group.count; ++i) {
        Value code = chunk.code(i, false);
        dot = dot ? b.fma(code, x[i], dot) : b.mul(code, x[i]);
        if (group.minimum)
          all = all ? b.add(all, x[i]) : x[i];
      }
      sum = group.scale ? b.fma(group.scale, dot, sum) : b.add(sum, dot);
      if (group.minimum)
        sum = b.fma(group.minimum, all, sum);
    }
  }
  return at.seen ? b.select(at.seen, sum, before) : sum;
}

Value ExpertKernel::product(Value expert, Value line) {
  const Place place = placeOf(expert);
  const unsigned whole = codec.blockElements();
  const unsigned tail = unsigned(spec.k % whole); // plain formats
  const BlockWalk walk(b, codec, layout, spans, slice, slices);
  SpanWords span;
  Value sum = walk.run(
      Values{b.constant(0.0f)},
      [&](Value first) {
        span = loadSpan(b, planes, {place.first, first, place.second},
                        layout.span);
      },
      [&](const BlockWalk::Step &at, ValueRange carried) {
        return Values{step(place, line, span, at, whole, carried[0])};
      })[0];
  if (!tail)
    return sum;
  const BlockWalk::Step last{b.index(walk.count()), {}, {}, {}};
  if (slices == 1)
    return step(place, line, {}, last, tail, sum);
  return b.choose(
      b.equal(slice, b.index(walk.count() % slices)),
      [&] { return Values{step(place, line, {}, last, tail, sum)}; },
      [&] { return Values{sum}; })[0];
}

void ExpertKernel::build() {
  open();
  const Value token = b.groupId(1);
  const auto place = [&](Value j) { return b.add(b.mul(token, spec.top), j); };
  Value isHere; // where not all experts are
  const auto part = [&](Value j) {
    Value expert = b.min(b.toIndex(b.load(binding("ids"), place(j))),
                         b.index((spec.of ? spec.of : spec.experts) - 1));
    if (!spec.of)
      return product(expert, spec.each ? place(j) : token);
    // Wraps below `first`: not less than `experts`.
    expert = b.sub(expert, b.index(spec.first));
    isHere = b.less(expert, spec.experts);
    return b.choose(
        isHere,
        [&] { return Values{product(expert, spec.each ? place(j) : token)}; },
        [&] { return Values{b.constant(0.0f)}; })[0];
  };
  Value sum, line;
  if (spec.combine) {
    // Weights first, slices last: a sum is taken apart once.
    sum = b.loop(0, spec.top, 1, b.constant(0.0f),
                 [&](Value j, ValueRange carried) {
                   Value weight = b.load(binding("combine"), place(j));
                   return Values{b.fma(weight, part(j), carried[0])};
                 })[0];
    line = token;
  } else {
    sum = part(b.groupId(2));
    line = place(b.groupId(2));
  }
  if (spec.combine)
    isHere = Value(); // the sum is of all that are
  if (slices > 1)
    sum = b.reduceAll({sum}, slices, /*stride=*/8)[0];
  const auto finish = [&] {
    Value at = b.add(b.mul(line, spec.rowLength()), column);
    if (spec.residual)
      sum = b.add(sum, b.load(binding("residual"), at));
    b.store(sum, binding("y"), at);
  };
  Value mine = slices > 1 ? b.equal(slice, b.index(0)) : Value();
  const auto only = [&](Value condition) {
    mine = mine ? b.bitAnd(mine, condition) : condition;
  };
  if (spec.n % 8)
    only(b.less(column, spec.n));
  if (isHere)
    only(isHere);
  if (mine)
    b.when(mine, finish);
  else
    finish();
  b.close();
}

} // namespace

FailureOr<ExpertLinearSpec> ExpertLinearSpec::fromAttr(DictionaryAttr attr,
                                                       EmitError emitError) {
  ExpertLinearSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  std::string format;
  reader.read("format", format);
  reader.read("n", spec.n, 1);
  reader.read("k", spec.k, 1);
  reader.read("experts", spec.experts, 1);
  reader.read("top", spec.top, 1);
  reader.read("each", spec.each);
  reader.read("combine", spec.combine);
  reader.read("residual", spec.residual);
  reader.maybe("first", spec.first, 0);
  reader.maybe("of", spec.of, 1);
  reader.maybe("stride", spec.stride, 1);
  if (failed(reader.finish()))
    return failure();
  const auto known = sprig::quant::formatOfName(format);
  const BlockCodec *codec = known ? BlockCodec::find(*known) : nullptr;
  if (!codec) {
    reader.fail("expects a format that kernels of experts can read, but got '" + format +
                "'");
    return failure();
  }
  spec.format = *known;
  const unsigned block = codec->format().blockElements;
  if (spec.k % block)
    reader.fail("expects k to be a multiple of the block of " +
                Twine(codec->format().name) + ", " + Twine(block) +
                ", but got " + Twine(spec.k));
  if (spec.of ? spec.of - spec.first < spec.experts : spec.first != 0)
    reader.fail("expects experts among the " + Twine(spec.of) +
                " of all, but got " + Twine(spec.experts) + " from " +
                Twine(spec.first));
  if (spec.stride && spec.stride < spec.n)
    reader.fail("expects a stride of at least n = " + Twine(spec.n) +
                ", but got " + Twine(spec.stride));
  if (spec.residual && !spec.combine)
    reader.fail("expects a residual only with combine");
  if (reader.bad())
    return failure();
  return spec;
}

DictionaryAttr ExpertLinearSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("format", sprig::quant::info(format).name)
      .add("n", n)
      .add("k", k)
      .add("experts", experts)
      .add("top", top)
      .flag("each", each)
      .flag("combine", combine)
      .flag("residual", residual)
      .add("first", first)
      .add("of", of)
      .add("stride", stride)
      .done();
}

FailureOr<KernelInterface>
ExpertLinearSpec::interface(const TargetProfile &profile,
                            EmitError emitError) const {
  KernelInterface interface;
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  const unsigned slices = slicesOf(profile);
  interface.key = llvm::formatv(
      "expert_linear {0} n={1} k={2} {3} of {4}{5}{6}{7} slices {8}", info.name,
      n, k, top, experts, each ? " each" : "", combine ? " combine" : "",
      residual ? " residual" : "", slices);
  if (!loadsSpans(*this, profile))
    interface.key += " spans=0";
  if (of)
    interface.key += llvm::formatv(" first {0} of {1}", first, of);
  if (stride)
    interface.key += llvm::formatv(" stride {0}", stride);
  interface.name = KernelInterface::nameFor(
      llvm::formatv("experts_{0}_{1}x{2}", StringRef(info.name).lower(), n, k),
      interface.key);
  const auto layout =
      sprig::quant::describe(format, size_t(experts * n), size_t(k));
  const BlockCodec &codec = *BlockCodec::find(format);
  if (codec.inOneBinding())
    interface.bindings.push_back({"weight." + kAllPlanes.str(), Access::Read,
                                  uint64_t(layout.bytes)});
  else
    for (const sprig::quant::PlaneLayout &plane : layout.planes)
      interface.bindings.push_back(
          {"weight." + std::string(plane.name), Access::Read, plane.bytes});
  if (!codec.table().empty())
    interface.bindings.push_back({kTableRole.str(), Access::Read,
                                  uint64_t(codec.table().size()) * 4});
  const auto bind = [&](const char *role, Access access, int64_t numbers) {
    interface.bindings.push_back({role, access, uint64_t(numbers) * 4, true});
  };
  // Rows whose last one begins further on, and ends where it does.
  const auto bindRows = [&](const char *role, Access access, int64_t rows) {
    bind(role, access, rows * rowLength());
    interface.bindings.back().shorter = uint64_t(rowLength() - n) * 4;
  };
  bind("x", Access::Read, each ? top * k : k);
  bind("ids", Access::Read, top);
  if (combine)
    bind("combine", Access::Read, top);
  if (residual)
    bindRows("residual", Access::Read, 1);
  bindRows("y", Access::Write, combine ? 1 : top);
  interface.workgroup = {8 * slices, 1, 1};
  interface.groups[0] = {uint32_t((n + 7) / 8), 0};
  interface.groups[1] = {1, 1};
  interface.groups[2] = {combine ? 1 : uint32_t(top), 0};
  if (slices > 1) {
    if (profile.canShuffle())
      interface.subgroupSize = profile.subgroupSize;
    else
      interface.sharedBytes = interface.workgroup[0] * 4;
  }
  return interface;
}

void ExpertLinearSpec::build(KernelBuilder &builder,
                             const KernelInterface &interface) const {
  ExpertKernel(*this, interface, builder).build();
}

} // namespace mlir::llm
