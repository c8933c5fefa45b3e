// Codecs of the formats of groups (lib/Quant/Affine.h): one class for integers of all widths, kinds and groups, one for
// floats, one for books. A block is a unit of 32 codes, number k at bit k * bits; scales and zero points lie in planes
// that several units share. Of a sparse unit the codes of all 32 numbers are made first (SparseCodes.h), and what
// follows is that of dense ones.
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/SparseCodes.h"
#include "lib/Quant/Affine.h"
#include <map>
#include <mutex>

using sprig::quant::AffineFormat;
using sprig::quant::Format;

namespace mlir::llm {
namespace {

/// The scale of a unit's group, as f32.
Value readGroupScale(UnitReader &reader, AffineFormat::Scale type) {
  KernelBuilder &b = reader.builder();
  switch (type) {
  case AffineFormat::Scale::F16:
    return b.unpackHalves(reader.tiny(1)).first;
  case AffineFormat::Scale::BF16:
    return b.f32FromBits(b.shl(reader.tiny(1), 16));
  case AffineFormat::Scale::F32:
    return b.f32FromBits(reader.words(1, 0, 1)[0]);
  }
  return {};
}

class AffineCodec final : public BlockCodec {
public:
  AffineCodec(Format format, const AffineFormat &affine)
      : BlockCodec(format, sprig::quant::kAffineUnit), affine(affine),
        isSigned(affine.isSigned()),
        isCentred(affine.kind != AffineFormat::Kind::Minimum && !isSigned &&
                  affine.scale == AffineFormat::Scale::F32) {}

  // Zero points are taken off by way of the sum of x, which all rows share; but from the codes where scales have so
  // many bits that their product with a zero point is rounded.
  bool hasMinimum() const override { return !isSigned && !isCentred; }

  // A code stays where it lies in its word unless it reaches into the next word, or up to the sign. Signed bytes are
  // moved to the top, as Q8_0's are.
  unsigned shift(unsigned, unsigned k) const override {
    if (isSigned)
      return 24;
    if (isCentred)
      return 0;
    const unsigned at = placeOf(k).at;
    return at + affine.bits < 32 ? at : 0;
  }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value, unsigned) const override {
    KernelBuilder &b = reader.builder();
    const Values words = readCodes(reader);
    WeightChunk chunk;
    if (isCentred) {
      chunk.groups.push_back({0, kChunk, readScale(reader), Value()});
      chunk.code = [this, words, zero = readZero(reader), &b](unsigned k, bool) {
        return b.sub(code(b, words, k, /*scaled=*/false), zero);
      };
      return {chunk};
    }
    auto [scale, minimum] = readScales(reader);
    chunk.groups.push_back({0, kChunk, scale, minimum});
    chunk.code = [this, words, &b](unsigned k, bool scaled) { return code(b, words, k, scaled); };
    return {chunk};
  }

  bool hasIntegers() const override { return true; }

  SmallVector<IntegerUnit, 2> integers(UnitReader &reader, Value) const override {
    KernelBuilder &b = reader.builder();
    const Values words = readCodes(reader);
    IntegerUnit unit;
    ChunkGroup &group = unit.groups.emplace_back();
    Value zero;
    if (affine.kind == AffineFormat::Kind::Minimum)
      std::tie(group.scale, group.minimum) = readScales(reader);
    else
      group.scale = readScale(reader);
    if (affine.kind == AffineFormat::Kind::Zero || affine.half())
      zero = storedZero(reader);
    for (unsigned k = 0; k < kChunk; ++k) {
      const CodePlace place = placeOf(k);
      Value code = isSigned ? b.signedBits(words[place.word], place.at, 8) : integer(b, words, k);
      unit.codes.push_back(zero ? b.sub(code, zero) : code);
    }
    return {unit};
  }

private:
  /// Where the code of number `k` lies in readCodes().
  CodePlace placeOf(unsigned k) const {
    if (affine.among)
      return placeOfSparse(affine, k);
    return {k * affine.bits / 32, k * affine.bits % 32};
  }

  /// The words of a unit's codes; of sparse units with the code that means zero where a number is not kept.
  Values readCodes(UnitReader &reader) const {
    const Values words = reader.words(0, 0, affine.codeBytes() / 4);
    if (!affine.among)
      return words;
    const unsigned patterns = affine.kind == AffineFormat::Kind::Zero ? 3 : 2;
    Value zero = isSigned ? Value() : storedZero(reader);
    return spreadCodes(reader.builder(), affine, words, reader.words(patterns, 0, 1)[0], zero);
  }

  /// The code that stands for zero, as an i32.
  Value storedZero(UnitReader &reader) const {
    if (affine.kind == AffineFormat::Kind::Symmetric)
      return reader.builder().constant(affine.half());
    return affine.bits <= 4 ? reader.tinyNibble(2) : reader.tiny(2);
  }

  /// Code `k` as it is stored.
  Value integer(KernelBuilder &b, ArrayRef<Value> words, unsigned k) const {
    const auto [word, at] = placeOf(k);
    const unsigned end = at + affine.bits;
    if (end <= 32)
      return b.bits(words[word], at, affine.bits);
    // The upper bits lie in the next word.
    Value low = b.shr(words[word], at), high = b.shl(words[word + 1], 32 - at);
    return b.bitAnd(b.bitOr(low, high), (int64_t(1) << affine.bits) - 1);
  }

  Value code(KernelBuilder &b, ArrayRef<Value> words, unsigned k, bool scaled) const {
    const auto [word, at] = placeOf(k);
    const unsigned end = at + affine.bits;
    const int64_t mask = (int64_t(1) << affine.bits) - 1;
    if (isSigned) {
      if (!scaled)
        return b.signedToF32(b.signedBits(words[word], at, 8));
      Value top = b.shl(words[word], 24 - at);
      return b.signedToF32(at ? b.bitAnd(top, 0xff000000) : top);
    }
    if (end > 32)
      return b.signedToF32(integer(b, words, k));
    if (scaled && end < 32)
      return b.signedToF32(b.bitAnd(words[word], mask << at));
    return b.signedToF32(b.bits(words[word], at, affine.bits));
  }

  /// The scale of a unit's group, and what is added to its scaled codes. Both products are exact in f32: a zero point
  /// is a small integer.
  std::pair<Value, Value> readScales(UnitReader &reader) const {
    KernelBuilder &b = reader.builder();
    if (affine.kind == AffineFormat::Kind::Minimum) {
      Values words = reader.words(1, 0, affine.scaleBytes() / 2);
      switch (affine.scale) {
      case AffineFormat::Scale::F16:
        return b.unpackHalves(words[0]);
      case AffineFormat::Scale::BF16:
        return {b.f32FromBits(b.shl(words[0], 16)), b.f32FromBits(b.bitAnd(words[0], 0xffff0000))};
      case AffineFormat::Scale::F32:
        return {b.f32FromBits(words[0]), b.f32FromBits(words[1])};
      }
    }
    Value scale = readScale(reader);
    if (isSigned)
      return {scale, Value()};
    return {scale, b.neg(b.mul(scale, readZero(reader)))};
  }

  Value readScale(UnitReader &reader) const { return readGroupScale(reader, affine.scale); }

  /// What codes stand for zero, as f32.
  Value readZero(UnitReader &reader) const {
    KernelBuilder &b = reader.builder();
    if (affine.kind == AffineFormat::Kind::Symmetric)
      return b.constant(float(affine.half()));
    return b.signedToF32(storedZero(reader));
  }

  AffineFormat affine;
  bool isSigned, isCentred;
};

/// Codes that are floats of 8 bits. Two of them at a time become halves: an E5M2 is the upper byte of one, and an E4M3,
/// with its seven bits of size moved to where a half has them, is one of a 256th of its value, which the scale makes up
/// for. Both are exact; a NaN of E4M3, which has no place in a half, reads as 480.
class FloatCodec final : public BlockCodec {
public:
  FloatCodec(Format format, const AffineFormat &affine)
      : BlockCodec(format, sprig::quant::kAffineUnit), scale(affine.scale),
        isE4M3(affine.code == AffineFormat::Code::E4M3) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value, unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values numbers;
    for (Value word : reader.words(0, 0, kChunk / 4)) {
      auto [first, third] = b.unpackHalves(halves(b, word, /*odd=*/false));
      auto [second, fourth] = b.unpackHalves(halves(b, word, /*odd=*/true));
      numbers.append({first, second, third, fourth});
    }
    WeightChunk chunk;
    Value factor = readGroupScale(reader, scale);
    chunk.groups.push_back({0, kChunk, isE4M3 ? b.mul(factor, b.constant(256.0f)) : factor, Value()});
    chunk.code = [numbers](unsigned k, bool) { return numbers[k]; };
    return {chunk};
  }

private:
  /// Bytes 0 and 2 of a word, or 1 and 3, as two halves.
  Value halves(KernelBuilder &b, Value word, bool odd) const {
    if (!isE4M3)
      return b.bitAnd(odd ? word : b.shl(word, 8), 0xff00ff00);
    Value sizes = b.bitAnd(odd ? b.shr(word, 1) : b.shl(word, 7), 0x3f803f80);
    return b.bitOr(sizes, b.bitAnd(odd ? word : b.shl(word, 8), 0x80008000));
  }

  AffineFormat::Scale scale;
  bool isE4M3;
};

/// Codes that choose from a book of the row. The book is read with each unit, and a code picks by its bits: a load a
/// number would cost more.
class BookCodec final : public BlockCodec {
public:
  BookCodec(Format format, unsigned bits) : BlockCodec(format, sprig::quant::kAffineUnit), bits(bits) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value, unsigned) const override {
    KernelBuilder &b = reader.builder();
    const Values words = reader.words(0, 0, bits);
    Values book;
    for (Value word : reader.words(1, 0, (1u << bits) / 2)) {
      auto [low, high] = b.unpackHalves(word);
      book.append({low, high});
    }
    WeightChunk chunk;
    chunk.groups.push_back({0, kChunk, Value(), Value()});
    chunk.code = [this, words, book, &b](unsigned k, bool) {
      Values left = book;
      for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned at = k * bits + bit;
        Value isSet = b.less(b.constant(0u), b.bitAnd(words[at / 32], int64_t(1) << (at % 32)));
        for (size_t i = 0; i < left.size() / 2; ++i)
          left[i] = b.select(isSet, left[2 * i + 1], left[2 * i]);
        left.resize(left.size() / 2);
      }
      return left[0];
    };
    return {chunk};
  }

private:
  unsigned bits;
};

} // namespace

const BlockCodec *findAffineCodec(Format format) {
  const auto affine = sprig::quant::affineOf(format);
  if (!affine)
    return nullptr;
  static std::mutex mutex;
  static std::map<Format, std::unique_ptr<BlockCodec>> made;
  const std::lock_guard lock(mutex);
  std::unique_ptr<BlockCodec> &codec = made[format];
  if (!codec && affine->kind == AffineFormat::Kind::Book)
    codec = std::make_unique<BookCodec>(format, affine->bits);
  else if (!codec && affine->isFloat())
    codec = std::make_unique<FloatCodec>(format, *affine);
  else if (!codec)
    codec = std::make_unique<AffineCodec>(format, *affine);
  return codec.get();
}

} // namespace mlir::llm
