// The body of a kernel of integer products.
#include "codegen/Kernels/IntegerLinear.h"

#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/ByteDots.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Layout.h"

namespace mlir::llm {
namespace {

/// Whether the codes of `format`, less their zero points, are signed bytes:
/// those of all formats of files are.
bool fitBytes(sprig::quant::Format format) {
  auto affine = sprig::quant::affineOf(format);
  return !affine || affine->bits < 8 ||
         affine->kind == sprig::quant::AffineFormat::Kind::Symmetric;
}

class Builder {
public:
  Builder(KernelBuilder &builder, const IntegerLinearSpec &spec,
          const LinearSchedule &schedule, const KernelInterface &interface)
      : b(builder), s(spec), schedule(schedule), interface(interface),
        codec(*BlockCodec::find(spec.format)),
        layout(sprig::quant::describe(spec.format, size_t(spec.n),
                                      size_t(spec.k))),
        // Where they are no instructions, one token by itself does not pay for
        // the codes being packed.
        dots(schedule.dots && hasByteDots(builder.target()) &&
             (spec.tokens > 1 || schedule.dots > 1) &&
             fitBytes(spec.format)),
        floats(spec.multipliesFloats(schedule, builder.target())) {}

  void build();

private:
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
      Value part = dots ? byteDot(b, a, c) : b.mul(a, c);
      sum = sum ? b.add(sum, part) : part;
    }
    return sum;
  }
  void open();
  Values step(const BlockWalk::Step &at, ValueRange sums);
  void add(ArrayRef<IntegerUnit> weights, Value start, MutableArrayRef<Value> sums);
  /// The same with codes as f32, which holds all sums exactly; numbers of x are
  /// exchanged, each lane having a word of them.
  void addFloats(ArrayRef<IntegerUnit> weights, Value at, MutableArrayRef<Value> sums);
  struct UnitOfX {
    Values own; ///< f32, of this lane's word
    Value scale;
  };
  UnitOfX loadX(Value at, int64_t token);
  /// What lane `from` has.
  Value spread(Value value, unsigned from) {
    return b.shuffle(value, b.add(firstLane, int64_t(from)));
  }
  /// Adds a group: the sum of its products, and that of its codes of x where it
  /// has a minimum.
  Value close(const ChunkGroup &group, Value scale, Value dot, Value all,
              Value sum) {
    Value next = b.fma(b.mul(group.scale, scale), dot, sum);
    if (group.minimum)
      next = b.fma(b.mul(group.minimum, scale), all, next);
    return seen ? b.select(seen, next, sum) : next;
  }
  void finish(ValueRange sums);
  void finishRounded(ValueRange sums);
  Value activated(ValueRange sums, int64_t rowSet, int64_t token) {
    return b.mul(activate(b, *activationByName(s.gate), sums[at(size_t(rowSet), token)]),
                 sums[at(size_t(schedule.rows + rowSet), token)]);
  }
  unsigned binding(StringRef role) const { return interface.indexOf(role); }
  /// Rows that are rounded together lie side by side.
  Value tileOf(int64_t r) {
    return s.yGroup ? b.add(firstTile, r)
                    : s.inFloats().tileOf(b, schedule, set, r,
                                          interface.groups[2].fixed > 1);
  }
  size_t at(size_t rowSet, int64_t token) const {
    return rowSet * size_t(s.tokens) + size_t(token);
  }

  struct RowSet {
    SmallVector<PlaneBinding> planes;
    Value tile; ///< clamped to the last
    SpanWords span; ///< of the units at hand
  };

  KernelBuilder &b;
  const IntegerLinearSpec &s;
  const LinearSchedule &schedule;
  const KernelInterface &interface;
  const BlockCodec &codec;
  sprig::quant::TensorLayout layout;
  bool dots; ///< by SPV_KHR_integer_dot_product: sums are exact either way
  bool floats; ///< by f32: they are exact, too
  Value firstLane; ///< of eight that exchange; no constant, as in LinearX.cpp
  Value seen;      ///< BlockWalk::Step of the step at hand
  std::vector<RowSet> rowSets;
  Value row, slice, set, firstTile, firstToken;
};

void Builder::open() {
  SmallVector<Type> elements;
  SmallVector<PlaneBinding> planes;
  for (const KernelBinding &known : interface.bindings) {
    auto [weight, planeName] = StringRef(known.role).split('.');
    if (planeName.empty()) {
      elements.push_back(known.role == "x" && !floats   ? b.vec(4, b.i32())
                         : known.role == "x"            ? b.i32()
                         : known.role == "y" && s.yGroup ? b.i32()
                                                         : b.f32());
      continue;
    }
    elements.push_back(bindPlanes(
        b, planeName, unsigned(elements.size()), layout,
        [&](const sprig::quant::PlaneLayout &plane) {
          return schedule.elementBytes(plane);
        },
        planes));
  }
  b.open(elements);
  Value lane = b.localId();
  row = b.rem(lane, 8);
  firstLane = b.shl(b.shr(b.toI32(lane), 3), 3);
  slice = b.rem(b.div(lane, 8), schedule.split);
  Value group = b.groupId(0);
  if (interface.groups[2].fixed > 1)
    group = b.add(b.mul(b.groupId(2), interface.groups[0].fixed), group);
  set = b.add(b.mul(group, schedule.waves), b.div(lane, 8 * schedule.split));
  firstTile = b.mul(set, schedule.rows);
  firstToken = b.mul(b.groupId(1), s.tokens);
  const size_t perWeight = layout.planes.size();
  for (size_t weight = 0; weight * perWeight < planes.size(); ++weight)
    for (int64_t r = 0; r < schedule.rows; ++r) {
      RowSet &rows = rowSets.emplace_back();
      rows.planes.assign(planes.begin() + weight * perWeight,
                         planes.begin() + (weight + 1) * perWeight);
      rows.tile = b.min(tileOf(r), b.index(s.tiles() - 1));
    }
}

/// One step of all row sets and tokens.
Values Builder::step(const BlockWalk::Step &at, ValueRange carried) {
  Values sums(carried);
  const Value block = at.block;
  seen = at.seen;
  std::vector<SmallVector<IntegerUnit, 2>> rows;
  for (RowSet &set : rowSets) {
    UnitReader reader(b, set.planes, {set.tile, block, row}, 0, set.span,
                      at.within);
    rows.push_back(codec.integers(reader, at.step));
  }
  for (size_t i = 0; i < rows[0].size(); ++i) {
    SmallVector<IntegerUnit> weights;
    for (SmallVector<IntegerUnit, 2> &units : rows) {
      weights.push_back(std::move(units[i]));
      if (dots)
        weights.back().codes = packed(weights.back().codes);
    }
    // In units of x.
    Value start = block;
    if (codec.blockElements() != kChunk) {
      Value first = b.mul(block, codec.blockElements());
      if (weights[0].dynamicOffset)
        first = b.add(first, weights[0].dynamicOffset);
      start = b.div(b.add(first, weights[0].offset), kChunk);
    }
    floats ? addFloats(weights, start, sums) : add(weights, start, sums);
  }
  return sums;
}

Builder::UnitOfX Builder::loadX(Value at, int64_t token) {
  const IntegerRow x = s.xRow();
  Value start = b.mul(b.add(firstToken, token), x.words());
  Value word = b.load(
      binding("x"), b.add(b.add(start, b.mul(at, kChunk / 4)), row));
  Value group = x.groups() == 1 ? b.index(0) : b.div(at, x.group / kChunk);
  UnitOfX unit;
  unit.scale = b.f32FromBits(
      b.load(binding("x"), b.add(b.add(start, x.codes()), group)));
  for (unsigned byte = 0; byte < 4; ++byte)
    unit.own.push_back(b.signedToF32(b.signedBits(word, byte * 8, 8)));
  return unit;
}

void Builder::addFloats(ArrayRef<IntegerUnit> weights, Value at,
                        MutableArrayRef<Value> sums) {
  std::vector<Values> codes; // once for all tokens
  for (const IntegerUnit &weight : weights) {
    Values &own = codes.emplace_back();
    for (Value code : weight.codes)
      own.push_back(b.signedToF32(code));
  }
  UnitOfX next = loadX(at, 0);
  for (int64_t token = 0; token < s.tokens; ++token) {
    const UnitOfX x = next;
    if (token + 1 < s.tokens) // as LinearKernel::byToken does
      next = loadX(at, token + 1);
    // Groups have the same extent in every row.
    for (auto [g, extent] : llvm::enumerate(weights[0].groups)) {
      SmallVector<std::array<Value, 2>> dots(weights.size());
      for (unsigned i = 0; i < extent.count; ++i) {
        const unsigned k = extent.first + i;
        Value number = spread(x.own[k % 4], k / 4);
        for (auto [dot, code] : llvm::zip_equal(dots, codes)) {
          Value &chain = dot[i % 2];
          chain = chain ? b.fma(code[k], number, chain) : b.mul(code[k], number);
        }
      }
      Value all; // of the codes of x
      if (weights[0].groups[g].minimum) {
        all = b.add(b.add(x.own[0], x.own[1]), b.add(x.own[2], x.own[3]));
        for (unsigned quads = 1; quads < extent.count / 4; quads *= 2)
          all = b.add(all, b.shuffleXor(all, quads));
        if (extent.count < kChunk)
          all = spread(all, extent.first / 4);
      }
      for (auto [r, weight] : llvm::enumerate(weights)) {
        const ChunkGroup &own = weight.groups[g];
        Value &sum = sums[this->at(r, token)];
        sum = close(own, x.scale, b.add(dots[r][0], dots[r][1]), all, sum);
      }
    }
  }
}

/// Units of all rows that meet unit `at` of x.
void Builder::add(ArrayRef<IntegerUnit> weights, Value at, MutableArrayRef<Value> sums) {
  const IntegerRow x = s.xRow();
  const unsigned kX = binding("x"), perCode = dots ? 4 : 1;
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
    // Groups have the same extent in every row.
    for (auto [g, extent] : llvm::enumerate(weights[0].groups)) {
      const auto part = [&, &extent = extent](const Values &all) {
        return ArrayRef(all).slice(extent.first / perCode, extent.count / perCode);
      };
      Value all; // of the codes of x
      for (auto [r, weight] : llvm::enumerate(weights)) {
        const ChunkGroup &own = weight.groups[g];
        Value &sum = sums[this->at(r, token)];
        Value dot = b.signedToF32(product(part(weight.codes), part(codes)));
        if (own.minimum && !all) {
          Value one = b.constant(uint32_t(dots ? 0x01010101 : 1));
          all = b.signedToF32(
              product(part(codes), Values(extent.count / perCode, one)));
        }
        sum = close(own, scale, dot, all, sum);
      }
    }
  }
}

void Builder::finish(ValueRange sums) {
  for (int64_t r = 0; r < schedule.rows; ++r) {
    Value column = b.add(b.mul(tileOf(r), 8), row);
    b.when(b.less(column, s.n), [&] {
      for (int64_t token = 0; token < s.tokens; ++token) {
        Value value = sums[at(size_t(r), token)];
        Value place = b.add(b.mul(b.add(firstToken, token), s.n), column);
        if (s.bias)
          value = b.add(value, b.load(binding("bias"), column));
        if (!s.gate.empty())
          value = activated(sums, r, token);
        if (s.residual)
          value = b.add(value, b.load(binding("residual"), place));
        b.store(value, binding("y"), place);
      }
    });
  }
}

/// As the kernel "quantize" would round what finish() stores. Lanes of slices
/// other than the first have no sums, but every lane takes part in the exchange.
void Builder::finishRounded(ValueRange sums) {
  const IntegerRow y = s.yRow();
  const unsigned kY = binding("y"), lanes = unsigned(s.lanesOfGroup(schedule, s.yGroup));
  const Value holds = b.equal(slice, b.index(0));
  const Value bit = b.toI32(b.mul(b.rem(row, 4), 8));
  for (int64_t token = 0; token < s.tokens; ++token) {
    Values values;
    Value most = b.constant(0.0f);
    for (int64_t r = 0; r < schedule.rows; ++r) {
      Value value = activated(sums, r, token);
      if (schedule.split > 1)
        value = b.select(holds, value, b.constant(0.0f));
      values.push_back(value);
      most = b.max(most, b.max(value, b.neg(value)));
    }
    const IntegerScale scale(b, b.reduce(most, lanes, KernelBuilder::Reduction::Max), 8);
    Value start = b.mul(b.add(firstToken, token), y.words());
    for (int64_t r = 0; r < schedule.rows; ++r) {
      // Four rows side by side are a word.
      Value code = b.shl(scale.code(b, values[size_t(r)]), bit);
      Value word = b.bitXor(b.reduce(code, 4), b.constant(kCodeSigns));
      Value column = b.add(b.mul(b.add(firstTile, r), 8), row);
      Value first = b.equal(b.rem(row, 4), b.index(0));
      b.when(holds, [&] {
        b.when(first, [&] {
          b.when(b.less(column, s.n), [&] {
            b.store(word, kY, b.add(start, b.div(column, 4)));
          });
        });
      });
    }
    // The lane of the first number of a group has its scale.
    Value column = b.add(b.mul(firstTile, 8), row);
    b.when(holds, [&] {
      b.when(b.equal(b.rem(column, s.yGroup), b.index(0)), [&] {
        b.when(b.less(column, s.n), [&] {
          b.store(b.bitsOfF32(scale.scale), kY,
                  b.add(b.add(start, y.codes()), b.div(column, s.yGroup)));
        });
      });
    });
  }
}

void Builder::build() {
  open();
  Values sums =
      BlockWalk(b, codec, layout, schedule.spans, slice, schedule.split)
          .run(
              Values(at(rowSets.size(), 0), b.constant(0.0f)),
              [&](Value first) {
                for (RowSet &set : rowSets)
                  set.span = loadSpan(b, set.planes, {set.tile, first, row},
                                      layout.span);
              },
              [&](const BlockWalk::Step &at, ValueRange carried) {
                return step(at, carried);
              });
  if (schedule.split > 1)
    sums = b.reduceAll(sums, unsigned(schedule.split), /*stride=*/8);
  if (s.yGroup)
    finishRounded(sums);
  else if (schedule.split == 1)
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
