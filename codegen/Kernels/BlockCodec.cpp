#include "codegen/Kernels/BlockCodec.h"

namespace mlir::llm {

unsigned planeElementBytes(const sprig::quant::PlaneLayout &plane,
                           unsigned widest, bool spans) {
  const unsigned together = plane.unitBytes * (spans ? plane.run : 1);
  for (unsigned bytes : {16u, 8u})
    if (bytes <= widest && together % bytes == 0)
      return bytes;
  return together > 4 && together % 4 == 0 && widest >= 8 ? 8 : 4;
}

Type bindPlanes(KernelBuilder &b, StringRef name, unsigned binding,
                const sprig::quant::TensorLayout &layout, PlaneLoad loadBytes,
                SmallVectorImpl<PlaneBinding> &planes) {
  if (name == kAllPlanes) {
    for (const sprig::quant::PlaneLayout &plane : layout.planes)
      planes.push_back({binding, 4, unsigned(plane.offset / 4), plane});
    return b.i32();
  }
  const sprig::quant::PlaneLayout *plane = layout.plane(name.str());
  const unsigned bytes = loadBytes(*plane);
  planes.push_back({binding, bytes, 0, *plane});
  return bytes == 4 ? b.i32() : b.vec(bytes / 4, b.i32());
}

namespace {

/// Bytes that a span of units has in a plane where they can be loaded at once;
/// else 0.
unsigned spanBytes(const sprig::quant::PlaneLayout &plane, unsigned span) {
  if (plane.run > 1)
    return plane.unitBytes * plane.run;
  const bool shared =
      plane.share == 0 || (plane.share > 1 && plane.share % span == 0);
  return shared ? plane.unitBytes : 0;
}

/// The piece that the unit at `place` has in a plane: its place there, in
/// pieces.
Value pieceAt(KernelBuilder &b, const sprig::quant::PlaneLayout &plane,
              const UnitPlace &place) {
  Value piece = plane.share == 1   ? place.unit
                : plane.share == 0 ? b.index(0)
                                   : b.div(place.unit, plane.share);
  const unsigned run = plane.run;
  const int64_t runs = int64_t(plane.units / run);
  Value at =
      b.add(b.mul(place.tile, runs), run == 1 ? piece : b.div(piece, run));
  at = b.add(b.mul(at, 8), place.row);
  return run == 1 ? at : b.add(b.mul(at, run), b.rem(piece, run));
}

/// The words of `bytes` bytes at element `at` of things of so many, as loads of
/// elements fetch them: of an element that is larger the part is picked.
Values wordsAt(KernelBuilder &b, const PlaneBinding &plane, Value at,
               unsigned bytes) {
  const unsigned element = plane.elementBytes;
  const int64_t base = plane.base;
  Values list;
  if (element <= bytes) {
    Value first = b.add(b.mul(at, bytes / element), base * 4 / element);
    for (unsigned i = 0; i < bytes / element; ++i)
      list.append(b.unpack(b.load(plane.binding, b.add(first, i))));
    return list;
  }
  const unsigned parts = element / bytes, words = bytes / 4;
  Values all = b.unpack(b.load(plane.binding, b.div(at, parts)));
  Value part = b.rem(at, parts);
  for (unsigned word = 0; word < words; ++word) {
    Value own = all[word];
    for (unsigned i = 1; i < parts; ++i)
      own = b.select(b.equal(part, b.index(i)), all[i * words + word], own);
    list.push_back(own);
  }
  return list;
}

/// The 1 or 2 bytes at place `at` of a list of words.
Value tinyOf(KernelBuilder &b, Value word, Value at, unsigned bytes) {
  Value bit = b.shl(b.toI32(b.rem(at, 4 / bytes)), bytes == 1 ? 3 : 4);
  return b.bitAnd(b.shr(word, bit), bytes == 1 ? 0xff : 0xffff);
}

/// Word `at` of a list.
Value pick(KernelBuilder &b, ArrayRef<Value> words, Value at) {
  Value own = words[0];
  for (size_t i = 1; i < words.size(); ++i)
    own = b.select(b.less(at, int64_t(i)), own, words[i]);
  return own;
}

} // namespace

SpanWords loadSpan(KernelBuilder &b, ArrayRef<PlaneBinding> planes,
                   const UnitPlace &first, unsigned span) {
  SpanWords list;
  for (const PlaneBinding &plane : planes) {
    Values &words = list.emplace_back();
    const unsigned bytes = spanBytes(plane.layout, span);
    if (!bytes)
      continue;
    Value at = pieceAt(b, plane.layout, first); // the first of its run
    if (plane.layout.run > 1)
      at = b.div(at, plane.layout.run);
    if (bytes < 4)
      words = {
          tinyOf(b, wordsAt(b, plane, b.div(at, 4 / bytes), 4)[0], at, bytes)};
    else
      words = wordsAt(b, plane, at, bytes);
  }
  return list;
}

Value UnitReader::inRun(unsigned plane) {
  const sprig::quant::PlaneLayout &known = planes[plane].layout;
  return known.share <= 1 ? within : b.div(within, known.share);
}

Values UnitReader::words(unsigned plane, unsigned first, unsigned count,
                         Value dynamic) {
  const PlaneBinding &known = planes[plane];
  const unsigned unitBytes = known.unitBytes();
  if (held(plane)) {
    ArrayRef<Value> all = span[plane];
    if (known.layout.run == 1)
      return Values(all.slice(first, count));
    Values list;
    for (unsigned word = first; word < first + count; ++word) {
      Values same;
      for (size_t i = word; i < all.size(); i += unitBytes / 4)
        same.push_back(all[i]);
      list.push_back(pick(b, same, inRun(plane)));
    }
    return list;
  }
  Value at = pieceAt(b, known.layout, unit);
  if (known.elementBytes > unitBytes) // one of a run
    return Values(
        ArrayRef(wordsAt(b, known, at, unitBytes)).slice(first, count));
  if (unitBytes % known.elementBytes && unitBytes > 4)
    return oddWords(plane);
  unsigned wide = known.elementBytes / 4;
  Value base = b.mul(at, unitBytes / known.elementBytes);
  if (known.base)
    base = b.add(base, int64_t(known.base) / wide);
  if (dynamic)
    base = b.add(base, wide == 1 ? dynamic : b.div(dynamic, wide));
  Values list;
  for (unsigned word = first / wide * wide; word < first + count; word += wide)
    for (auto [lane, scalar] : llvm::enumerate(
             b.unpack(b.load(known.binding, b.add(base, word / wide)))))
      if (word + lane >= first && word + lane < first + count)
        list.push_back(scalar);
  return list;
}

Values UnitReader::oddWords(unsigned plane) {
  const PlaneBinding &known = planes[plane];
  const unsigned count = known.unitBytes() / 4;
  Value at = pieceAt(b, known.layout, unit), first = b.div(b.mul(at, count), 2);
  // Units of odd rows begin in the middle of a pair; those of the last row end
  // with one.
  Value odd = b.equal(b.rem(at, 2), b.index(1));
  Values pairs, list;
  for (unsigned pair = 0; pair <= count / 2; ++pair)
    pairs.append(b.unpack(b.load(known.binding, b.add(first, pair))));
  for (unsigned word = 0; word < count; ++word)
    list.push_back(b.select(odd, pairs[word + 1], pairs[word]));
  return list;
}

Value UnitReader::tiny(unsigned plane) {
  // 1 or 2 bytes a unit: four or two units share a word.
  const PlaneBinding &known = planes[plane];
  const unsigned bytes = known.unitBytes(), share = 4 / bytes;
  if (held(plane)) {
    ArrayRef<Value> all = span[plane];
    if (known.layout.run == 1)
      return all[0];
    Value at = inRun(plane);
    if (known.runBytes() < 4) // part of a word
      return tinyOf(b, all[0], at, bytes);
    return tinyOf(b, pick(b, all, b.div(at, share)), at, bytes);
  }
  Value at = pieceAt(b, known.layout, unit);
  return tinyOf(b, wordsAt(b, known, b.div(at, share), 4)[0], at, bytes);
}

Value UnitReader::tinyNibble(unsigned plane) {
  const unsigned share = planes[plane].layout.share;
  Value byte = tiny(plane);
  if (share < 2) // alone in its byte
    return b.bitAnd(byte, 15);
  Value second = b.rem(b.div(unit.unit, share / 2), 2);
  return b.bitAnd(b.shr(byte, b.shl(b.toI32(second), 2)), 15);
}

BlockWalk::BlockWalk(KernelBuilder &b, const BlockCodec &codec,
                     const sprig::quant::TensorLayout &layout, bool spans,
                     Value slice, int64_t split)
    : b(b), span(spans ? layout.span : 1), steps(codec.stepsPerBlock()),
      blocks(int64_t(layout.K) / codec.blockElements()), split(split),
      slice(slice) {
  dealt = span == 1 ? blocks * steps : (blocks + span - 1) / span;
}

Values BlockWalk::run(ValueRange carried, llvm::function_ref<void(Value)> open,
                      llvm::function_ref<Values(const Step &, ValueRange)> body,
                      KernelBuilder::Rounds rounds) const {
  if (dealt == 0) // drivers need not see a loop without rounds
    return Values(carried.begin(), carried.end());
  const auto stepAt = [&](Value first, Value i) {
    Value within = steps == 1 ? i : b.div(i, steps), seen;
    Value block = first ? b.add(first, within) : within;
    if (first && blocks % span) {
      // A loop of fewer rounds in some lanes would take more registers.
      seen = b.less(block, blocks);
      block = b.min(block, b.index(blocks - 1));
    }
    return Step{block, steps == 1 ? Value() : b.rem(i, steps), within, seen};
  };
  return b.loop(split == 1 ? b.index(0) : slice, b.index(dealt), b.index(split),
                carried, [&](Value i, ValueRange outer) {
                  if (span == 1)
                    return body(stepAt({}, i), outer);
                  Value first = b.mul(i, span);
                  open(first);
                  return b.loop(
                      b.index(0), b.index(span * steps), b.index(1), outer,
                      [&](Value j, ValueRange inner) {
                        return body(stepAt(first, j), inner);
                      },
                      rounds);
                });
}

Value byteOf(KernelBuilder &b, ArrayRef<Value> words, unsigned i) {
  return b.bits(words[i / 4], i % 4 * 8, 8);
}

SmallVector<IntegerUnit, 2> BlockCodec::integers(UnitReader &reader,
                                                 Value step) const {
  SmallVector<IntegerUnit, 2> units;
  for (const WeightChunk &chunk : decode(reader, step, elements)) {
    IntegerUnit &unit = units.emplace_back();
    unit.offset = chunk.offset, unit.dynamicOffset = chunk.dynamicOffset;
    unit.groups = chunk.groups;
    for (unsigned k = 0; k < kChunk; ++k)
      unit.codes.push_back(chunk.integer(k));
  }
  return units;
}

Value lookUp16(KernelBuilder &b, const int8_t (&table)[16], Value code) {
  // Four entries a word: pick the word by the upper bits of the code, the byte
  // by the lower ones.
  Value words[4];
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t word = 0;
    for (unsigned j = 0; j < 4; ++j)
      word |= uint32_t(uint8_t(table[4 * i + j])) << 8 * j;
    words[i] = b.constant(word);
  }
  Value second = b.less(b.constant(7u), code);
  Value odd = b.equal(b.bitAnd(code, 4), b.constant(4u));
  Value word = b.select(odd, b.select(second, words[3], words[1]),
                        b.select(second, words[2], words[0]));
  Value byte = b.shr(word, b.shl(b.bitAnd(code, 3), 3));
  return b.signedBits(byte, 0, 8);
}

static const CodecList &codecs() {
  static const CodecList list = [] {
    CodecList made;
    addPlainCodecs(made);
    addLegacyCodecs(made);
    addKCodecs(made);
    addGridCodecs(made);
    return made;
  }();
  return list;
}

const BlockCodec *BlockCodec::find(sprig::quant::Format format) {
  if (const BlockCodec *codec = findAffineCodec(format))
    return codec;
  for (const std::unique_ptr<BlockCodec> &codec : codecs())
    if (codec->format().format == format)
      return codec.get();
  return nullptr;
}

SmallVector<sprig::quant::Format> BlockCodec::formats() {
  SmallVector<sprig::quant::Format> list;
  for (const std::unique_ptr<BlockCodec> &codec : codecs())
    list.push_back(codec->format().format);
  return list;
}

} // namespace mlir::llm
