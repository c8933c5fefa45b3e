// Codecs of unquantised weights: f32, f16 and bf16, in units of 16 bytes.
#include "codegen/Kernels/BlockCodec.h"

using sprig::quant::Format;

namespace mlir::llm {
namespace {

/// A chunk of 32 numbers in 32 / perUnit units. `read(words, i)` makes number i
/// of the chunk from its words.
class PlainCodec final : public BlockCodec {
public:
  using Read = Value (*)(KernelBuilder &, ArrayRef<Value> words, unsigned i);
  PlainCodec(Format format, unsigned perUnit, Read read)
      : BlockCodec(format, kChunk, 1, kChunk / perUnit), perUnit(perUnit),
        read(read) {}

  SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value,
                                     unsigned count) const override {
    Values words;
    for (unsigned unit = 0; unit * perUnit < count; ++unit)
      words.append(reader.next(unit).words(0, 0, 4));
    WeightChunk chunk;
    chunk.count = count;
    chunk.groups.push_back({0, count, {}, {}});
    chunk.code = [words, read = read, &b = reader.builder()](unsigned k, bool) {
      return read(b, words, k);
    };
    return {chunk};
  }

private:
  unsigned perUnit;
  Read read;
};

} // namespace

void addPlainCodecs(CodecList &list) {
  list.push_back(std::make_unique<PlainCodec>(
      Format::F32, 4, [](KernelBuilder &b, ArrayRef<Value> words, unsigned i) {
        return b.f32FromBits(words[i]);
      }));
  list.push_back(std::make_unique<PlainCodec>(
      Format::F16, 8, [](KernelBuilder &b, ArrayRef<Value> words, unsigned i) {
        auto [low, high] = b.unpackHalves(words[i / 2]);
        return i % 2 ? high : low;
      }));
  list.push_back(std::make_unique<PlainCodec>(
      Format::BF16, 8, [](KernelBuilder &b, ArrayRef<Value> words, unsigned i) {
        Value word = words[i / 2];
        return b.f32FromBits(i % 2 ? b.bitAnd(word, 0xffff0000)
                                   : b.shl(word, 16));
      }));
}

} // namespace mlir::llm
