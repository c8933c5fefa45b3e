#include "codegen/Kernels/BlockCodec.h"

namespace mlir::llm {

unsigned planeElementBytes(unsigned unitBytes, unsigned widest) {
  for (unsigned bytes : {16u, 8u})
    if (bytes <= widest && unitBytes % bytes == 0)
      return bytes;
  return unitBytes > 4 && unitBytes % 4 == 0 && widest >= 8 ? 8 : 4;
}

Type bindPlanes(KernelBuilder &b, StringRef name, unsigned binding,
                const sprig::quant::TensorLayout &layout,
                llvm::function_ref<unsigned(unsigned)> loadBytes,
                SmallVectorImpl<PlaneBinding> &planes) {
  if (name == kAllPlanes) {
    for (const sprig::quant::PlaneLayout &plane : layout.planes)
      planes.push_back({binding, plane.unitBytes, 4, plane.share,
                        unsigned(layout.units), unsigned(plane.offset / 4)});
    return b.i32();
  }
  const sprig::quant::PlaneLayout *plane = layout.plane(name.str());
  const unsigned bytes = loadBytes(plane->unitBytes);
  planes.push_back(
      {binding, plane->unitBytes, bytes, plane->share, unsigned(layout.units)});
  return bytes == 4 ? b.i32() : b.vec(bytes / 4, b.i32());
}

Value UnitReader::place(unsigned plane) {
  const PlaneBinding &known = planes[plane];
  if (known.share == 1)
    return unit;
  Value row = b.rem(unit, 8), counted = b.div(unit, 8), piece;
  if (known.share == 0) {
    piece = b.div(counted, known.units);
  } else if (known.units % known.share == 0) { // no piece reaches into two rows
    piece = b.div(counted, known.share);
  } else {
    const int64_t pieces = (known.units + known.share - 1) / known.share;
    piece = b.add(b.mul(b.div(counted, known.units), pieces),
                  b.div(b.rem(counted, known.units), known.share));
  }
  return b.add(b.mul(piece, 8), row);
}

Values UnitReader::words(unsigned plane, unsigned first, unsigned count,
                         Value dynamic) {
  const PlaneBinding &place = planes[plane];
  if (place.unitBytes % place.elementBytes && place.unitBytes > 4)
    return oddWords(plane);
  unsigned wide = place.elementBytes / 4;
  Value base = b.mul(this->place(plane), place.unitBytes / place.elementBytes);
  if (place.base)
    base = b.add(base, int64_t(place.base) / wide);
  if (dynamic)
    base = b.add(base, wide == 1 ? dynamic : b.div(dynamic, wide));
  Values list;
  for (unsigned word = first / wide * wide; word < first + count; word += wide)
    for (auto [lane, scalar] : llvm::enumerate(
             b.unpack(b.load(place.binding, b.add(base, word / wide)))))
      if (word + lane >= first && word + lane < first + count)
        list.push_back(scalar);
  return list;
}

Values UnitReader::oddWords(unsigned plane) {
  const PlaneBinding &place = planes[plane];
  const unsigned count = place.unitBytes / 4;
  Value at = this->place(plane), first = b.div(b.mul(at, count), 2);
  // Units of odd rows begin in the middle of a pair; those of the last row end
  // with one.
  Value odd = b.equal(b.rem(at, 2), b.index(1));
  Values pairs, list;
  for (unsigned pair = 0; pair <= count / 2; ++pair)
    pairs.append(b.unpack(b.load(place.binding, b.add(first, pair))));
  for (unsigned word = 0; word < count; ++word)
    list.push_back(b.select(odd, pairs[word + 1], pairs[word]));
  return list;
}

Value UnitReader::tiny(unsigned plane) {
  // 1 or 2 bytes a unit: four or two units share a word.
  unsigned bytes = planes[plane].unitBytes, share = 4 / bytes;
  Value at = place(plane);
  Value word = b.load(planes[plane].binding,
                      b.add(b.div(at, share), int64_t(planes[plane].base)));
  Value bit = b.shl(b.toI32(b.rem(at, share)), bytes == 1 ? 3 : 4);
  return b.bitAnd(b.shr(word, bit), bytes == 1 ? 0xff : 0xffff);
}

Value UnitReader::tinyNibble(unsigned plane) {
  const PlaneBinding &known = planes[plane];
  Value byte = tiny(plane);
  if (known.share < 2) // alone in its byte
    return b.bitAnd(byte, 15);
  Value within = b.rem(b.div(unit, 8), known.units);
  Value second = b.rem(b.div(within, known.share / 2), 2);
  return b.bitAnd(b.shr(byte, b.shl(b.toI32(second), 2)), 15);
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
