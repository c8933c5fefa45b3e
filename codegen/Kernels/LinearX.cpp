#include "codegen/Kernels/LinearX.h"

#include <cmath>

namespace mlir::llm {

std::unique_ptr<XSource>
XSource::create(KernelBuilder &b, const LinearSchedule &schedule,
                const BlockCodec &codec, int64_t k, unsigned binding,
                std::optional<unsigned> gamma, bool squares,
                Value firstToken) {
  std::unique_ptr<XSource> source(new XSource(b, schedule, codec));
  source->k = k;
  source->binding = binding;
  source->gamma = gamma;
  source->firstToken = firstToken;
  if (squares || schedule.x != LinearSchedule::X::Direct)
    source->quad = b.rem(b.localId(), 8);
  if (schedule.x != LinearSchedule::X::Direct) {
    Value lane = b.toI32(b.localId());
    // With subgroups of 8 this is zero, but a driver that knew it would turn
    // the shuffles into general broadcasts, which some drivers do by a search
    // for the first active lane.
    Value inSubgroup = b.rem(lane, b.target().subgroupSize);
    source->base =
        b.shl(b.shr(b.target().subgroupSize == 8 ? lane : inSubgroup, 3), 3);
  }
  return source;
}

Value XSource::laneFactor(unsigned chunk, unsigned j) {
  // Few different powers occur: pick by comparing the lane's quad, not by a
  // table.
  Value factor;
  for (unsigned q = 0; q < kChunk / 4; ++q) {
    Value power =
        b.constant(std::ldexp(1.0f, -int(codec.shift(chunk, 4 * q + j))));
    if (!factor)
      factor = power;
    else if (codec.shift(chunk, 4 * q + j) !=
             codec.shift(chunk, 4 * (q - 1) + j))
      factor = b.select(b.less(quad, int64_t(q)), factor, power);
  }
  return factor;
}

Values XChunk::gather(unsigned from, Value start, Value quad) {
  std::optional<int64_t> fixed = getConstantIntValue(quad);
  bool guarded = !fixed && count < kChunk;
  Values numbers;
  if (source.k % 4 == 0) {
    Value at = guarded ? b.min(quad, b.index(count / 4 - 1)) : quad;
    numbers = b.unpack(b.load(from, b.add(b.div(start, 4), at)));
    if (guarded)
      for (Value &number : numbers)
        number = b.select(b.less(quad, count / 4), number, b.constant(0.0f));
    return numbers;
  }
  Value first = b.mul(quad, 4);
  for (unsigned j = 0; j < 4; ++j) {
    if (fixed && *fixed * 4 + j >= count)
      break;
    Value place = b.add(first, int64_t(j));
    Value at = guarded ? b.min(place, b.index(count - 1)) : place;
    Value number = b.load(from, b.add(start, at));
    numbers.push_back(
        guarded ? b.select(b.less(place, count), number, b.constant(0.0f))
                : number);
  }
  return numbers;
}

Values XChunk::quadOfX(unsigned token, Value quad) {
  Value line = b.add(source.firstToken, int64_t(token));
  return gather(source.binding, b.add(b.mul(line, source.k), offset), quad);
}

const Values &XChunk::quadOfGamma(Value quad) {
  Values &known = gammas[quad]; // once for all tokens
  if (known.empty())
    known = gather(*source.gamma, offset, quad);
  return known;
}

Values XChunk::timesGamma(Values numbers, Value quad) {
  if (source.gamma)
    for (auto [number, weight] : llvm::zip_equal(numbers, quadOfGamma(quad)))
      number = b.mul(number, weight);
  return numbers;
}

XChunk::Token &XChunk::fetch(unsigned token) {
  if (tokens.size() <= token)
    tokens.resize(token + 1);
  Token &known = tokens[token];
  if (!known.all.empty())
    return known;
  known.all.resize(kChunk);
  if (!exchanged()) {
    known.raw.resize(kChunk);
    for (SmallVectorImpl<Value> &level : known.tree)
      level.resize(kChunk / 4);
    return known;
  }
  known.plain = quadOfX(token, source.quad);
  known.lane = timesGamma(known.plain, source.quad);
  known.laneScaled = known.lane;
  if (source.schedule.prescale)
    for (auto [j, number] : llvm::enumerate(known.laneScaled))
      number = b.mul(number, source.laneFactor(chunk, unsigned(j)));
  return known;
}

void XChunk::fetchQuad(Token &known, unsigned token, unsigned quad) {
  if (known.raw[4 * quad])
    return;
  Values x = timesGamma(quadOfX(token, b.index(quad)), b.index(quad));
  llvm::copy(x, known.raw.begin() + 4 * quad);
  // At once, and joined as far as it goes, so that little is kept for later.
  if (!source.codec.hasMinimum())
    return;
  for (unsigned level = 0, i = quad; level < known.tree.size();
       ++level, i /= 2) {
    sumOfQuads(known, token, level, i);
    if (i % 2 == 0)
      break;
  }
}

Value XChunk::sumOfQuads(Token &known, unsigned token, unsigned level,
                         unsigned i) {
  Value &sum = known.tree[level][i];
  if (sum)
    return sum;
  if (level > 0)
    return sum = b.add(sumOfQuads(known, token, level - 1, 2 * i),
                       sumOfQuads(known, token, level - 1, 2 * i + 1));
  fetchQuad(known, token, i);
  const Value *x = &known.raw[4 * i];
  return sum = b.add(b.add(x[0], x[1]), b.add(x[2], x[3]));
}

Value XChunk::squares(unsigned token) {
  // Lanes that have all numbers still load theirs anew: which they would be of
  // those at hand is known at run time only.
  Values x = exchanged() ? fetch(token).plain : quadOfX(token, source.quad);
  for (Value &number : x)
    number = b.mul(number, number);
  return b.add(b.add(x[0], x[1]), b.add(x[2], x[3]));
}

Value XChunk::spread(Value laneValue, unsigned lane) {
  if (source.schedule.x == LinearSchedule::X::Broadcast)
    return b.broadcast(laneValue, lane);
  return b.shuffle(laneValue, b.add(source.base, int64_t(lane)));
}

Value XChunk::number(unsigned token, unsigned k) {
  Token &known = fetch(token);
  if (!known.all[k]) {
    if (!exchanged())
      fetchQuad(known, token, k / 4);
    if (exchanged())
      known.all[k] = spread(known.laneScaled[k % 4], k / 4);
    else if (unsigned shift =
                 source.schedule.prescale ? source.codec.shift(chunk, k) : 0)
      known.all[k] =
          b.mul(known.raw[k], b.constant(std::ldexp(1.0f, -int(shift))));
    else
      known.all[k] = known.raw[k];
  }
  return known.all[k];
}

Value XChunk::sum(unsigned token, unsigned first, unsigned length) {
  Token &known = fetch(token);
  if (exchanged()) {
    if (known.sums.empty()) {
      const Values &quad = known.lane;
      known.sums.push_back(
          b.add(b.add(quad[0], quad[1]), b.add(quad[2], quad[3])));
    }
    // sums[i] in lane l: the tree over the aligned run of 2^i quads that lane l
    // belongs to.
    unsigned level = llvm::Log2_32(length / 4);
    while (known.sums.size() <= level)
      known.sums.push_back(b.add(
          known.sums.back(),
          b.shuffleXor(known.sums.back(), 1u << (known.sums.size() - 1))));
    return length == kChunk ? known.sums[level]
                            : spread(known.sums[level], first / 4);
  }
  return sumOfQuads(known, token, llvm::Log2_32(length / 4), first / length);
}

} // namespace mlir::llm
