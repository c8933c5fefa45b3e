// Codecs of blocks of 32 with f16 scales, and of the four-bit floats. Byte i of
// the codes holds number i in its low half and number i + 16 in its high half.
#include "codegen/Kernels/BlockCodec.h"
#include "lib/Quant/CodeTables.h"

using sprig::quant::Format;

namespace mlir::llm {
namespace {

/// The 4-bit code of number k among 32.
Value nibble(KernelBuilder &b, ArrayRef<Value> words, unsigned k) {
  return b.bits(words[k % 16 / 4], k % 4 * 8 + k / 16 * 4, 4);
}
unsigned nibbleShift(unsigned k) { return k % 4 * 8 + k / 16 * 4; }

/// The f16 in a tiny plane, or the first of a scale pair.
Value lowHalf(KernelBuilder &b, Value word) {
  return b.unpackHalves(word).first;
}

/// Q4_0 and Q4_1: planes {d, codes} or {d m, codes}.
class Q4Codec final : public BlockCodec {
public:
  Q4Codec(Format format, bool minimum)
      : BlockCodec(format, 32), minimum(minimum) {}
  bool hasMinimum() const override { return true; }
  bool hasIntegers() const override { return true; }
  // A code is left where it lies in its word; only the topmost must come down,
  // out of the way of the sign.
  unsigned shift(unsigned, unsigned k) const override {
    return nibbleShift(k) == 28 ? 0 : nibbleShift(k);
  }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4);
    WeightChunk chunk;
    if (minimum) {
      auto [d, m] = b.unpackHalves(reader.words(0, 0, 1)[0]);
      chunk.groups.push_back({0, kChunk, d, m});
    } else {
      // d * (code - 8) = d * code - 8 d
      Value d = lowHalf(b, reader.tiny(0));
      chunk.groups.push_back({0, kChunk, d, b.mul(d, b.constant(-8.0f))});
    }
    chunk.integer = [words, &b](unsigned k) { return nibble(b, words, k); };
    chunk.code = [words, &b](unsigned k, bool scaled) {
      if (!scaled || nibbleShift(k) == 28)
        return b.signedToF32(nibble(b, words, k));
      return b.signedToF32(
          b.bitAnd(words[k % 16 / 4], int64_t(15) << nibbleShift(k)));
    };
    return {chunk};
  }

private:
  bool minimum;
};

/// Q5_0 and Q5_1: planes {d or d m, high bits, codes}.
class Q5Codec final : public BlockCodec {
public:
  Q5Codec(Format format, bool minimum)
      : BlockCodec(format, 32), minimum(minimum) {}
  bool hasMinimum() const override { return true; }
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(2, 0, 4);
    Value high = reader.words(1, 0, 1)[0];
    WeightChunk chunk;
    if (minimum) {
      auto [d, m] = b.unpackHalves(reader.words(0, 0, 1)[0]);
      chunk.groups.push_back({0, kChunk, d, m});
    } else {
      Value d = lowHalf(b, reader.tiny(0));
      chunk.groups.push_back({0, kChunk, d, b.mul(d, b.constant(-16.0f))});
    }
    chunk.integer = [words, high, &b](unsigned k) {
      Value top = k >= 4 ? b.shr(high, k - 4) : b.shl(high, 4 - k);
      return b.bitOr(nibble(b, words, k), b.bitAnd(top, 16));
    };
    chunk.code = asF32(b, chunk.integer);
    return {chunk};
  }

private:
  bool minimum;
};

/// Q8_0: planes {d, codes}.
class Q8Codec final : public BlockCodec {
public:
  Q8Codec() : BlockCodec(Format::Q8_0, 32) {}
  // A byte moved to the top of the word is its own sign extension, times 2^24.
  unsigned shift(unsigned, unsigned) const override { return 24; }
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 8);
    WeightChunk chunk;
    chunk.groups.push_back({0, kChunk, lowHalf(b, reader.tiny(0)), {}});
    chunk.integer = [words, &b](unsigned k) {
      return b.signedBits(words[k / 4], k % 4 * 8, 8);
    };
    chunk.code = [words, &b](unsigned k, bool scaled) {
      if (!scaled)
        return b.signedToF32(b.signedBits(words[k / 4], k % 4 * 8, 8));
      Value top = b.shl(words[k / 4], 24 - k % 4 * 8);
      return b.signedToF32(k % 4 ? b.bitAnd(top, 0xff000000) : top);
    };
    return {chunk};
  }
};

/// IQ4_NL and MXFP4: planes {scale, codes}, codes through a table.
class TableCodec final : public BlockCodec {
public:
  explicit TableCodec(Format format) : BlockCodec(format, 32) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4);
    Value scale = reader.tiny(0);
    bool nl = format().format == Format::IQ4_NL;
    if (nl) {
      scale = lowHalf(b, scale);
    } else {
      // Half of 2^(e - 127): the table holds doubled values. The two smallest
      // are subnormal.
      Value normal = b.shl(b.sub(scale, b.constant(1u)), 23);
      Value subnormal =
          b.select(b.equal(scale, b.constant(0u)), b.constant(0x00200000u),
                   b.constant(0x00400000u));
      scale = b.f32FromBits(b.select(b.less(scale, 2), subnormal, normal));
    }
    WeightChunk chunk;
    chunk.groups.push_back({0, kChunk, scale, {}});
    chunk.integer = [words, nl, &b](unsigned k) {
      return lookUp16(
          b, nl ? sprig::quant::kIQ4Values : sprig::quant::kE2M1Doubled,
          nibble(b, words, k));
    };
    chunk.code = asF32(b, chunk.integer);
    return {chunk};
  }
};

/// NVFP4: planes {four UE4M3 scales, codes}; blocks of 64, groups of 16 in 8
/// bytes. A step is 32 numbers.
class NVFP4Codec final : public BlockCodec {
public:
  NVFP4Codec() : BlockCodec(Format::NVFP4, 64, /*steps=*/2) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4, b.mul(step, 4));
    Value packed = b.shr(reader.words(0, 0, 1)[0], b.shl(b.toI32(step), 4));
    WeightChunk chunk;
    chunk.dynamicOffset = b.mul(step, 32);
    for (unsigned group = 0; group < 2; ++group)
      chunk.groups.push_back(
          {group * 16, 16, halfOfUE4M3(b, b.bits(packed, group * 8, 8)), {}});
    chunk.integer = [words, &b](unsigned k) {
      unsigned i = k % 16;
      Value code =
          b.bits(words[k / 16 * 2 + i % 8 / 4], i % 4 * 8 + i / 8 * 4, 4);
      return lookUp16(b, sprig::quant::kE2M1Doubled, code);
    };
    chunk.code = asF32(b, chunk.integer);
    return {chunk};
  }

private:
  /// Half of an unsigned E4M3 number; 0x7f reads as zero, the top bit is
  /// ignored.
  static Value halfOfUE4M3(KernelBuilder &b, Value byte) {
    Value exponent = b.bits(byte, 3, 4), mantissa = b.bitAnd(byte, 7);
    Value normal = b.f32FromBits(
        b.bitOr(b.shl(b.add(exponent, 119), 23), b.shl(mantissa, 20)));
    Value subnormal = b.mul(b.signedToF32(mantissa), b.constant(0x1p-10f));
    Value value =
        b.select(b.equal(exponent, b.constant(0u)), subnormal, normal);
    return b.select(b.equal(byte, b.constant(0x7fu)), b.constant(0.0f), value);
  }
};

} // namespace

void addLegacyCodecs(CodecList &list) {
  list.push_back(std::make_unique<Q4Codec>(Format::Q4_0, false));
  list.push_back(std::make_unique<Q4Codec>(Format::Q4_1, true));
  list.push_back(std::make_unique<Q5Codec>(Format::Q5_0, false));
  list.push_back(std::make_unique<Q5Codec>(Format::Q5_1, true));
  list.push_back(std::make_unique<Q8Codec>());
  list.push_back(std::make_unique<TableCodec>(Format::IQ4_NL));
  list.push_back(std::make_unique<TableCodec>(Format::MXFP4));
  list.push_back(std::make_unique<NVFP4Codec>());
}

} // namespace mlir::llm
