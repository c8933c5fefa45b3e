// Codecs of blocks of 256 whose codes index a grid, a table of vectors of 4 or
// 8 small numbers (ggml's IQ1, IQ2 and IQ3 formats). The grid is a binding of
// the kernel: one f32 a vector, whose value is the vector packed to 16 bits.
#include "codegen/Kernels/BlockCodec.h"
#include "lib/Quant/CodeTables.h"

using sprig::quant::Format;

namespace mlir::llm {
namespace {

constexpr unsigned kBlock = 256;

/// A grid packed to 16 bits a vector: number j in 16 / width bits, as an index
/// into its few different values.
struct PackedGrid {
  unsigned width;
  SmallVector<int8_t> values;
  std::vector<float> entries;

  template <size_t count, size_t numbers>
  explicit PackedGrid(const sprig::quant::Grid<count, numbers> &grid)
      : width(numbers) {
    for (const auto &vector : grid)
      for (int8_t value : vector)
        if (!llvm::is_contained(values, value))
          values.push_back(value);
    llvm::sort(values);
    for (const auto &vector : grid) {
      uint32_t packed = 0;
      for (size_t j = 0; j < numbers; ++j) {
        auto index = uint32_t(llvm::find(values, vector[j]) - values.begin());
        packed |= index << (j * (16 / numbers));
      }
      entries.push_back(float(packed));
    }
  }

  /// Number j of a packed vector, as f32.
  Value number(KernelBuilder &b, Value vector, unsigned j) const {
    Value code = b.bits(vector, j * (16 / width), 16 / width);
    // Up to eight values: bytes of one or two constants.
    uint32_t bytes[2] = {0, 0};
    for (auto [i, value] : llvm::enumerate(values))
      bytes[i / 4] |= uint32_t(uint8_t(value)) << (i % 4 * 8);
    Value word = b.constant(bytes[0]);
    if (values.size() > 4)
      word = b.select(b.less(code, 4), word, b.constant(bytes[1]));
    return b.signedToF32(
        b.signedBits(b.shr(word, b.shl(b.bitAnd(code, 3), 3)), 0, 8));
  }
};

class GridCodec : public BlockCodec {
public:
  ArrayRef<float> table() const override { return grid.entries; }
  bool inOneBinding() const override { return true; }

protected:
  GridCodec(Format format, unsigned steps, PackedGrid grid)
      : BlockCodec(format, kBlock, steps), grid(std::move(grid)) {}
  PackedGrid grid;
};

/// `number` with its sign flipped where bit j of `signs` is set.
Value withSign(KernelBuilder &b, Value number, Value signs, unsigned j) {
  Value bit = b.bitAnd(b.shl(signs, 31 - j), 0x80000000);
  return b.f32FromBits(b.bitXor(b.bitsOfF32(number), bit));
}

/// Seven stored signs in the low bits; the eighth makes the number of minuses
/// even.
Value evenSigns(KernelBuilder &b, Value bits) {
  Value seven = b.bitAnd(bits, 127), parity = seven;
  for (unsigned shift : {4, 2, 1})
    parity = b.bitXor(parity, b.shr(parity, shift));
  return b.bitOr(seven, b.shl(b.bitAnd(parity, 1), 7));
}

/// A chunk made of 32 / width vectors, with signs by vector (null: none).
WeightChunk gridChunk(KernelBuilder &b, const PackedGrid &grid, Values vectors,
                      Values signs, unsigned offset, Value dynamicOffset) {
  WeightChunk chunk;
  chunk.offset = offset;
  chunk.dynamicOffset = dynamicOffset;
  chunk.code = [&b, &grid, vectors, signs](unsigned k, bool) {
    unsigned i = k / grid.width, j = k % grid.width;
    Value number = grid.number(b, vectors[i], j);
    return signs.empty() ? number : withSign(b, number, signs[i], j);
  };
  return chunk;
}

Value small(KernelBuilder &b, Value word, unsigned offset, unsigned count) {
  return b.signedToF32(b.bits(word, offset, count));
}

/// d * (1/2 + n) * factor
Value halfScale(KernelBuilder &b, Value d, Value n, float factor) {
  return b.mul(b.mul(d, b.add(n, b.constant(0.5f))), b.constant(factor));
}

/// d * (1 + 2n)
Value oddScale(KernelBuilder &b, Value d, Value n) {
  return b.mul(d, b.add(b.add(n, n), b.constant(1.0f)));
}

/// The two groups of 16 of chunk `part`, whose scales are nibbles of a word.
void addSixteens(KernelBuilder &b, WeightChunk &chunk, Value d, Value scales,
                 unsigned part) {
  for (unsigned group = 0; group < 2; ++group)
    chunk.groups.push_back(
        {group * 16,
         16,
         halfScale(b, d, small(b, scales, part * 8 + group * 4, 4), 0.25f),
         {}});
}

/// IQ2_XXS: planes {d, codes}: 8 bytes a group of 32: four codes, four times 7
/// signs and the scale. A step is two groups.
class IQ2XXSCodec final : public GridCodec {
public:
  IQ2XXSCodec()
      : GridCodec(Format::IQ2_XXS, /*steps=*/4,
                  PackedGrid(sprig::quant::gridIQ2_XXS())) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4, b.mul(step, 4));
    Value d = b.unpackHalves(reader.tiny(0)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned group = 0; group < 2; ++group) {
      Value codes = words[2 * group], packed = words[2 * group + 1];
      Values vectors, signs;
      for (unsigned i = 0; i < 4; ++i) {
        vectors.push_back(reader.table(b.bits(codes, 8 * i, 8)));
        signs.push_back(evenSigns(b, b.shr(packed, 7 * i)));
      }
      chunks.push_back(
          gridChunk(b, grid, vectors, signs, group * kChunk, b.mul(step, 64)));
      chunks.back().groups.push_back(
          {0, kChunk, halfScale(b, d, small(b, packed, 28, 4), 0.25f), {}});
    }
    return chunks;
  }
};

/// IQ2_XS: planes {d, codes of 9 bits and 7 signs, 4-bit scales of 16 numbers}.
/// A step is 64 numbers.
class IQ2XSCodec final : public GridCodec {
public:
  IQ2XSCodec()
      : GridCodec(Format::IQ2_XS, /*steps=*/4,
                  PackedGrid(sprig::quant::gridIQ2_XS())) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4, b.mul(step, 4)),
           packed = reader.words(2, 0, 2);
    Value d = b.unpackHalves(reader.tiny(0)).first;
    Value scales = b.shr(b.select(b.less(step, 2), packed[0], packed[1]),
                         b.shl(b.toI32(b.rem(step, 2)), 4));
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 2; ++part) {
      Values vectors, signs;
      for (unsigned i = 0; i < 4; ++i) {
        Value word = words[part * 2 + i / 2];
        vectors.push_back(reader.table(b.bits(word, i % 2 * 16, 9)));
        signs.push_back(evenSigns(b, b.shr(word, i % 2 * 16 + 9)));
      }
      chunks.push_back(
          gridChunk(b, grid, vectors, signs, part * kChunk, b.mul(step, 64)));
      addSixteens(b, chunks.back(), d, scales, part);
    }
    return chunks;
  }
};

/// IQ2_S: planes {d, codes, signs, upper code bits, 4-bit scales of 16
/// numbers}. A step is half a block.
class IQ2SCodec final : public GridCodec {
public:
  IQ2SCodec()
      : GridCodec(Format::IQ2_S, /*steps=*/2,
                  PackedGrid(sprig::quant::gridIQ2_S())) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4, b.mul(step, 4)),
           minuses = reader.words(2, 0, 4, b.mul(step, 4));
    Values tops = reader.words(3, 0, 2), packed = reader.words(4, 0, 2);
    Value first = b.equal(step, b.index(0));
    Value top = b.select(first, tops[0], tops[1]),
          scales = b.select(first, packed[0], packed[1]);
    Value d = b.unpackHalves(reader.tiny(0)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      Values vectors, signs;
      for (unsigned i = 0; i < 4; ++i) {
        Value upper = b.shl(b.bits(top, part * 8 + i * 2, 2), 8);
        vectors.push_back(
            reader.table(b.bitOr(b.bits(words[part], i * 8, 8), upper)));
        signs.push_back(b.shr(minuses[part], i * 8));
      }
      chunks.push_back(
          gridChunk(b, grid, vectors, signs, part * kChunk, b.mul(step, 128)));
      addSixteens(b, chunks.back(), d, scales, part);
    }
    return chunks;
  }
};

/// IQ3_XXS: planes {d, codes, four times 7 signs and the scale of 32 numbers}.
/// A step is half a block.
class IQ3XXSCodec final : public GridCodec {
public:
  IQ3XXSCodec()
      : GridCodec(Format::IQ3_XXS, /*steps=*/2,
                  PackedGrid(sprig::quant::gridIQ3_XXS())) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 8, b.mul(step, 8)),
           packed = reader.words(2, 0, 4, b.mul(step, 4));
    Value d = b.unpackHalves(reader.tiny(0)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      Values vectors, signs;
      for (unsigned i = 0; i < 8; ++i) {
        vectors.push_back(reader.table(byteOf(b, words, part * 8 + i)));
        Value eight =
            i % 2 ? signs[i - 1] : evenSigns(b, b.shr(packed[part], i / 2 * 7));
        signs.push_back(i % 2 ? b.shr(eight, 4) : eight);
      }
      chunks.push_back(
          gridChunk(b, grid, vectors, signs, part * kChunk, b.mul(step, 128)));
      chunks.back().groups.push_back(
          {0,
           kChunk,
           halfScale(b, d, small(b, packed[part], 28, 4), 0.5f),
           {}});
    }
    return chunks;
  }
};

/// IQ3_S: planes {d, codes, upper code bits, signs, 4-bit scales of 32
/// numbers}. A step is half a block.
class IQ3SCodec final : public GridCodec {
public:
  IQ3SCodec()
      : GridCodec(Format::IQ3_S, /*steps=*/2,
                  PackedGrid(sprig::quant::gridIQ3_S())) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 8, b.mul(step, 8)),
           minuses = reader.words(3, 0, 4, b.mul(step, 4));
    Values tops = reader.words(2, 0, 2);
    Value top = b.select(b.equal(step, b.index(0)), tops[0], tops[1]);
    Value scales = b.shr(reader.words(4, 0, 1)[0], b.shl(b.toI32(step), 4));
    Value d = b.unpackHalves(reader.tiny(0)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      Values vectors, signs;
      for (unsigned i = 0; i < 8; ++i) {
        Value upper = b.shl(b.bits(top, part * 8 + i, 1), 8);
        vectors.push_back(
            reader.table(b.bitOr(byteOf(b, words, part * 8 + i), upper)));
        signs.push_back(b.shr(minuses[part], i * 4));
      }
      chunks.push_back(
          gridChunk(b, grid, vectors, signs, part * kChunk, b.mul(step, 128)));
      chunks.back().groups.push_back(
          {0, kChunk, oddScale(b, d, small(b, scales, part * 4, 4)), {}});
    }
    return chunks;
  }
};

constexpr float kIQ1Delta =
    0.125f; ///< numbers of a group are moved up or down by this

/// IQ1_S: planes {d, codes, words of 4 x 3 upper code bits, 3 bits of scale and
/// the sign of the shift}. A step is half a block.
class IQ1SCodec final : public GridCodec {
public:
  IQ1SCodec()
      : GridCodec(Format::IQ1_S, /*steps=*/2,
                  PackedGrid(sprig::quant::gridIQ1())) {}
  bool hasMinimum() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(1, 0, 4, b.mul(step, 4)),
           highs = reader.words(2, 0, 4);
    Value first = b.equal(step, b.index(0));
    Value d = b.unpackHalves(reader.tiny(0)).first;
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      Value high = b.bits(b.select(first, highs[part / 2], highs[2 + part / 2]),
                          part % 2 * 16, 16);
      Values vectors;
      for (unsigned i = 0; i < 4; ++i)
        vectors.push_back(reader.table(b.bitOr(
            b.bits(words[part], i * 8, 8), b.shl(b.bits(high, i * 3, 3), 8))));
      chunks.push_back(
          gridChunk(b, grid, vectors, {}, part * kChunk, b.mul(step, 128)));
      Value scale = oddScale(b, d, small(b, high, 12, 3));
      Value shift = withSign(b, b.constant(kIQ1Delta), b.shr(high, 15), 0);
      chunks.back().groups.push_back({0, kChunk, scale, b.mul(scale, shift)});
    }
    return chunks;
  }
};

/// IQ1_M: planes {codes, nibbles of 3 upper code bits and the sign of the
/// shift, words of 4 x 3 bits of scale whose top bits together are d}. A step
/// is half a block; scales are of 16 numbers, shifts of 8.
class IQ1MCodec final : public GridCodec {
public:
  IQ1MCodec()
      : GridCodec(Format::IQ1_M, /*steps=*/2,
                  PackedGrid(sprig::quant::gridIQ1())) {}
  bool hasMinimum() const override { return true; }

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                     unsigned) const override {
    KernelBuilder &b = reader.builder();
    Values words = reader.words(0, 0, 4, b.mul(step, 4)),
           highs = reader.words(1, 0, 4);
    Values scales = reader.words(2, 0, 2);
    Value first = b.equal(step, b.index(0));
    Value half;
    for (unsigned i = 0; i < 4; ++i) {
      Value digit = b.shl(b.bits(scales[i / 2], i % 2 * 16 + 12, 4), i * 4);
      half = half ? b.bitOr(half, digit) : digit;
    }
    Value d = b.unpackHalves(half).first;
    Value threes = b.select(first, scales[0], scales[1]);
    SmallVector<WeightChunk, 2> chunks;
    for (unsigned part = 0; part < 4; ++part) {
      Value high = b.shr(b.select(first, highs[part / 2], highs[2 + part / 2]),
                         part % 2 * 16);
      Values vectors;
      for (unsigned i = 0; i < 4; ++i)
        vectors.push_back(reader.table(b.bitOr(
            b.bits(words[part], i * 8, 8), b.shl(b.bits(high, i * 4, 3), 8))));
      chunks.push_back(
          gridChunk(b, grid, vectors, {}, part * kChunk, b.mul(step, 128)));
      for (unsigned i = 0; i < 4; ++i) {
        unsigned at = part / 2 * 16 + (part * 2 + i / 2) % 4 * 3;
        Value scale = oddScale(b, d, small(b, threes, at, 3));
        Value shift =
            withSign(b, b.constant(kIQ1Delta), b.shr(high, i * 4 + 3), 0);
        chunks.back().groups.push_back({i * 8, 8, scale, b.mul(scale, shift)});
      }
    }
    return chunks;
  }
};

} // namespace

void addGridCodecs(CodecList &list) {
  list.push_back(std::make_unique<IQ2XXSCodec>());
  list.push_back(std::make_unique<IQ2XSCodec>());
  list.push_back(std::make_unique<IQ2SCodec>());
  list.push_back(std::make_unique<IQ3XXSCodec>());
  list.push_back(std::make_unique<IQ3SCodec>());
  list.push_back(std::make_unique<IQ1SCodec>());
  list.push_back(std::make_unique<IQ1MCodec>());
}

} // namespace mlir::llm
