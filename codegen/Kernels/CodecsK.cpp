// Codecs of blocks of 256: groups of 16 or 32 with small scales under one f16
// scale. The step of a block is chosen so that its code is the same for every
// step: what differs is an address or a shift.
#include "codegen/Kernels/BlockCodec.h"
#include "lib/Quant/CodeTables.h"

using sprig::quant::Format;

namespace mlir::llm {
namespace {

constexpr unsigned kBlock = 256;

Value less(KernelBuilder &b, Value code, unsigned offset) {
  return offset ? b.sub(code, b.constant(offset)) : code;
}
Value signedCode(KernelBuilder &b, Value code, unsigned offset) {
  return b.signedToF32(less(b, code, offset));
}

/// Q4_K and Q5_K: planes {d dmin, 6-bit scales and minima, [high bits,] codes}.
/// Step p is the pair of groups 2p and 2p + 1, which share 32 bytes of codes:
/// low halves and high halves.
class Q45KCodec final : public BlockCodec {
public:
  Q45KCodec(Format format, bool fifth)
      : BlockCodec(format, kBlock, /*steps=*/4), fifth(fifth) {}
  bool hasMinimum() const override { return true; }
  bool hasIntegers() const override { return true; }
  unsigned shift(unsigned chunk, unsigned k) const override {
    unsigned bit = k % 4 * 8 + chunk * 4;
    return fifth || bit == 28 ? 0 : bit;
  }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values codes = reader.words(fifth ? 3 : 2, 0, 8, b.mul(step, 8));
    Values high;
    if (fifth)
      for (Value word : reader.words(2, 0, 8))
        high.push_back(b.shr(word, b.shl(b.toI32(step), 1)));
    auto [d, dmin] = b.unpackHalves(reader.words(0, 0, 1)[0]);

    // Bytes 0-3 of the sub-scales belong to scales, 4-7 to minima, 8-11 to the
    // upper four of both. A pair takes two neighbouring bytes; the last two
    // pairs put theirs together from low bits (8-11) and top bits (0-7).
    Values packed = reader.words(1, 0, 3);
    Value upper = b.less(b.index(1), step);
    Value bit = b.shl(b.toI32(b.rem(step, 2)), 4);
    for (Value &word : packed)
      word = b.shr(word, bit);
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned half = 0; half < 2; ++half) {
      auto subscale = [&](Value first, unsigned lowBit) {
        Value byte = b.bits(first, half * 8, 8);
        Value joined = b.bitOr(b.bits(packed[2], half * 8 + lowBit, 4),
                               b.bitAnd(b.shr(byte, 2), 0x30));
        return b.signedToF32(b.select(upper, joined, b.bitAnd(byte, 63)));
      };
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = half * kChunk;
      chunk.dynamicOffset = b.mul(step, 64);
      chunk.groups.push_back({0, kChunk, b.mul(d, subscale(packed[0], 0)),
                              b.neg(b.mul(dmin, subscale(packed[1], 4)))});
      chunk.integer = [codes, high, half, this, &b](unsigned k) {
        Value code = b.bits(codes[k / 4], k % 4 * 8 + half * 4, 4);
        if (fifth)
          code =
              b.bitOr(code, b.shl(b.bits(high[k / 4], k % 4 * 8 + half, 1), 4));
        return code;
      };
      chunk.code = [codes, half, integer = chunk.integer, this,
                    &b](unsigned k, bool scaled) {
        unsigned place = k % 4 * 8 + half * 4;
        if (scaled && !fifth && shift(half, k) == place)
          return b.signedToF32(b.bitAnd(codes[k / 4], int64_t(15) << place));
        return b.signedToF32(integer(k));
      };
    }
    return chunks;
  }

private:
  bool fifth;
};

/// Q6_K: planes {low halves, high bit pairs, 8-bit scales, d}. Step s takes
/// quarters s % 2 and s % 2 + 2 of the 128 numbers of half s / 2: they share
/// their low bytes.
class Q6KCodec final : public BlockCodec {
public:
  Q6KCodec() : BlockCodec(Format::Q6_K, kBlock, /*steps=*/4) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Value half = b.div(step, 2), quarter = b.toI32(b.rem(step, 2));
    Values low = reader.words(0, 0, 8, b.mul(step, 8));
    Values high;
    for (Value word : reader.words(1, 0, 8, b.mul(half, 8)))
      high.push_back(b.shr(word, b.shl(quarter, 1)));
    Value d = b.unpackHalves(reader.tiny(3)).first;
    Values scales = reader.words(2, 0, 4);
    Value second = b.equal(half, b.index(1));
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 2; ++part) {
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = part * 64;
      chunk.dynamicOffset = b.add(b.mul(half, 128), b.mul(b.rem(step, 2), 32));
      Value pair = b.shr(b.select(second, scales[2 + part], scales[part]),
                         b.shl(quarter, 4));
      for (unsigned group = 0; group < 2; ++group)
        chunk.groups.push_back(
            {group * 16,
             16,
             b.mul(d, b.signedToF32(b.signedBits(pair, group * 8, 8))),
             {}});
      chunk.integer = [low, high, part, &b](unsigned k) {
        Value code = b.bits(low[k / 4], k % 4 * 8 + part * 4, 4);
        Value top = b.bits(high[k / 4], k % 4 * 8 + part * 4, 2);
        return less(b, b.bitOr(code, b.shl(top, 4)), 32);
      };
      chunk.code = asF32(b, chunk.integer);
    }
    return chunks;
  }
};

/// Q2_K: planes {4-bit scales and minima, codes, d dmin}. Step h is half a
/// block: 32 bytes hold the bit pairs of four chunks.
class Q2KCodec final : public BlockCodec {
public:
  Q2KCodec() : BlockCodec(Format::Q2_K, kBlock, /*steps=*/2) {}
  bool hasIntegers() const override { return true; }
  bool hasMinimum() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values codes = reader.words(1, 0, 8, b.mul(step, 8));
    Values packed = reader.words(0, 0, 4);
    auto [d, dmin] = b.unpackHalves(reader.words(2, 0, 1)[0]);
    Value second = b.equal(step, b.index(1));
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = part * kChunk;
      chunk.dynamicOffset = b.mul(step, 128);
      Value word = b.select(second, packed[2 + part / 2], packed[part / 2]);
      for (unsigned group = 0; group < 2; ++group) {
        unsigned at = (part % 2 * 2 + group) * 8;
        chunk.groups.push_back(
            {group * 16, 16, b.mul(d, b.signedToF32(b.bits(word, at, 4))),
             b.neg(b.mul(dmin, b.signedToF32(b.bits(word, at + 4, 4))))});
      }
      chunk.integer = [codes, part, &b](unsigned k) {
        return b.bits(codes[k / 4], k % 4 * 8 + part * 2, 2);
      };
      chunk.code = asF32(b, chunk.integer);
    }
    return chunks;
  }
};

/// Q3_K: planes {high bits, low bit pairs, 6-bit scales, d}. Steps as in Q2_K;
/// a clear high bit means "less four".
class Q3KCodec final : public BlockCodec {
public:
  Q3KCodec() : BlockCodec(Format::Q3_K, kBlock, /*steps=*/2) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Value four = b.shl(b.toI32(step), 2);
    Values codes = reader.words(1, 0, 8, b.mul(step, 8));
    Values high, packed;
    for (Value word : reader.words(0, 0, 8))
      high.push_back(b.shr(word, four));
    for (Value word : reader.words(2, 0, 3))
      packed.push_back(b.shr(word, four));
    Value d = b.unpackHalves(reader.tiny(3)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = part * kChunk;
      chunk.dynamicOffset = b.mul(step, 128);
      for (unsigned group = 0; group < 2; ++group) {
        unsigned i = part * 2 + group;
        Value low = b.bits(packed[i / 4], i % 4 * 8, 4);
        Value top = b.bits(packed[2], i % 4 * 8 + part / 2 * 2, 2);
        chunk.groups.push_back(
            {group * 16,
             16,
             b.mul(d, signedCode(b, b.bitOr(low, b.shl(top, 4)), 32)),
             {}});
      }
      chunk.integer = [codes, high, part, &b](unsigned k) {
        Value low = b.bits(codes[k / 4], k % 4 * 8 + part * 2, 2);
        Value top = b.bits(high[k / 4], k % 4 * 8 + part, 1);
        return less(b, b.bitOr(low, b.shl(top, 2)), 4);
      };
      chunk.code = asF32(b, chunk.integer);
    }
    return chunks;
  }
};

/// TQ2_0: planes {codes, d}, laid out as in Q2_K; codes 0, 1, 2 mean -1, 0, 1.
class TQ2Codec final : public BlockCodec {
public:
  TQ2Codec() : BlockCodec(Format::TQ2_0, kBlock, /*steps=*/2) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values codes = reader.words(0, 0, 8, b.mul(step, 8));
    Value d = b.unpackHalves(reader.tiny(1)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = part * kChunk;
      chunk.dynamicOffset = b.mul(step, 128);
      chunk.groups.push_back({0, kChunk, d, {}});
      chunk.integer = [codes, part, &b](unsigned k) {
        return less(b, b.bits(codes[k / 4], k % 4 * 8 + part * 2, 2), 1);
      };
      chunk.code = asF32(b, chunk.integer);
    }
    return chunks;
  }
};

/// TQ1_0: planes {codes, high, d}: five base-3 digits a byte, as the fraction
/// byte / 256; multiplying by 3^n (modulo 256) moves digit n to the top. 32
/// bytes give five chunks, 16 bytes the next 80 numbers, four bytes the
/// last 16.
class TQ1Codec final : public BlockCodec {
public:
  TQ1Codec() : BlockCodec(Format::TQ1_0, kBlock) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(0, 0, 12);
    words.append(reader.words(1, 0, 1));
    Value d = b.unpackHalves(reader.tiny(2)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 8; ++part) {
      WeightChunk &chunk = chunks.emplace_back();
      chunk.offset = part * kChunk;
      chunk.groups.push_back({0, kChunk, d, {}});
      chunk.integer = [words, part, &b](unsigned k) {
        static constexpr unsigned kPowers[5] = {1, 3, 9, 27, 81};
        unsigned i = part * kChunk + k;
        unsigned byte = i < 160 ? i % 32 : i < 240 ? 32 + i % 16 : 48 + i % 4;
        unsigned digit = i < 160   ? i / 32
                         : i < 240 ? (i - 160) / 16
                                   : (i - 240) / 4;
        Value moved = b.bitAnd(
            b.mul(byteOf(b, words, byte), int64_t(kPowers[digit])), 0xff);
        return less(b, b.shr(b.mul(moved, int64_t(3)), 8), 1);
      };
      chunk.code = asF32(b, chunk.integer);
    }
    return chunks;
  }
};

/// IQ4_XS: planes {d, high bit pairs of the scales, their low halves, codes}; a
/// step is a group of 32.
class IQ4XSCodec final : public BlockCodec {
public:
  IQ4XSCodec() : BlockCodec(Format::IQ4_XS, kBlock, /*steps=*/8) {}
  bool hasIntegers() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(3, 0, 4, b.mul(step, 4));
    Value group = b.toI32(step);
    Value low = b.bitAnd(b.shr(reader.words(2, 0, 1)[0], b.shl(group, 2)), 15);
    Value high = b.bitAnd(b.shr(reader.tiny(1), b.shl(group, 1)), 3);
    Value d = b.unpackHalves(reader.tiny(0)).first;
    WeightChunk chunk;
    chunk.dynamicOffset = b.mul(step, 32);
    chunk.groups.push_back(
        {0,
         kChunk,
         b.mul(d, signedCode(b, b.bitOr(low, b.shl(high, 4)), 32)),
         {}});
    chunk.integer = [words, &b](unsigned k) {
      return lookUp16(b, sprig::quant::kIQ4Values,
                      b.bits(words[k % 16 / 4], k % 4 * 8 + k / 16 * 4, 4));
    };
    chunk.code = asF32(b, chunk.integer);
    return {chunk};
  }
};

} // namespace

void addKCodecs(CodecList &list) {
  list.push_back(std::make_unique<Q2KCodec>());
  list.push_back(std::make_unique<Q3KCodec>());
  list.push_back(std::make_unique<Q45KCodec>(Format::Q4_K, false));
  list.push_back(std::make_unique<Q45KCodec>(Format::Q5_K, true));
  list.push_back(std::make_unique<Q6KCodec>());
  list.push_back(std::make_unique<TQ1Codec>());
  list.push_back(std::make_unique<TQ2Codec>());
  list.push_back(std::make_unique<IQ4XSCodec>());
}

} // namespace mlir::llm
