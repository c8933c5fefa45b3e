#include "codegen/Kernels/KvFormat.h"

#include "codegen/Kernels/SpecAttr.h"

namespace mlir::llm {

/// Numbers below are zeros: their scale's inverse is not a number of f32.
static constexpr float kLeast = 1e-30f;

std::optional<KvFormat> KvFormat::find(llvm::StringRef name) {
  if (name == "f32")
    return KvFormat{32};
  if (name == "f16")
    return KvFormat{16};
  if (name == "i8")
    return KvFormat{8};
  for (int64_t group : {16, 32, 64})
    if (name == "u4x" + std::to_string(group))
      return KvFormat{4, group};
  return std::nullopt;
}

std::string KvFormat::whyRefused(llvm::StringRef name, int64_t headSize) {
  std::optional<KvFormat> format = find(name);
  if (!format)
    return ("expects kv to be one of " + kNames + ", but got '" + name + "'")
        .str();
  int64_t multiple = std::max<int64_t>(format->elementsPerWord(), format->group);
  if (headSize % multiple)
    return ("expects a head size that is a multiple of " + Twine(multiple) +
            " with a cache of " + name + ", but got " + Twine(headSize))
        .str();
  return {};
}

uint64_t KvFormat::sideBytes(int64_t slots, int64_t heads,
                             int64_t headSize) const {
  uint64_t bytes = uint64_t(slots * heads) *
                   uint64_t(headWords(headSize) + groups(headSize)) * 4;
  return quantised() ? llvm::alignTo(bytes, 16) : bytes;
}

Value KvFormat::scaleWord(KernelBuilder &b, Value head, int64_t slots,
                          int64_t heads, int64_t headSize) const {
  return b.add(b.mul(head, groups(headSize)),
               slots * heads * headWords(headSize));
}

KvScale KvFormat::scaleOf(KernelBuilder &b, Value word) const {
  if (bits == 8)
    return {b.f32FromBits(word), Value()};
  auto [scale, minimum] = b.unpackHalves(word);
  return {scale, minimum};
}

Values KvFormat::unpack(KernelBuilder &b, Value word, const KvScale &scale,
                        unsigned count) const {
  if (bits == 32)
    return {b.f32FromBits(word)};
  if (bits == 16) {
    auto [low, high] = b.unpackHalves(word);
    return {low, high};
  }
  Values numbers;
  for (unsigned i = 0; i < (count ? count : elementsPerWord()); ++i)
    if (scale.minimum)
      numbers.push_back(b.fma(b.unsignedToF32(b.bits(word, i * bits, bits)),
                              scale.scale, scale.minimum));
    else if (bits == 4) {
      numbers.push_back(b.unsignedToF32(b.bits(word, i * bits, bits)));
    } else {
      Value code = b.signedToF32(b.signedBits(word, i * bits, bits));
      numbers.push_back(scale.scale ? b.mul(code, scale.scale) : code);
    }
  return numbers;
}

Value KvFormat::pack(KernelBuilder &b, ValueRange numbers) const {
  return bits == 16 ? b.packHalves(numbers[0], numbers[1])
                    : b.bitsOfF32(numbers[0]);
}

Value KvFormat::scaleFor(KernelBuilder &b, Value most, Value least) const {
  if (bits == 8) {
    Value size = b.max(most, b.neg(least));
    size = b.select(b.less(b.constant(kLeast), size), size, b.constant(0.0f));
    return b.bitsOfF32(b.div(size, b.constant(127.0f)));
  }
  return b.packHalves(b.div(b.sub(most, least), b.constant(15.0f)), least);
}

Value KvFormat::encode(KernelBuilder &b, ValueRange numbers,
                       Value scaleWord) const {
  KvScale known = scaleOf(b, scaleWord);
  Value zero = b.constant(0.0f);
  Value inverse = b.select(b.less(zero, known.scale),
                           b.div(b.constant(1.0f), known.scale), zero);
  // Codes are rounded as numbers above zero, where it is cutting off.
  const float shift = bits == 8 ? 128.5f : 0.5f;
  const uint32_t largest = bits == 8 ? 255 : 15;
  Value word;
  for (auto [i, number] : llvm::enumerate(numbers)) {
    Value above = known.minimum ? b.sub(number, known.minimum) : number;
    Value code = b.floorToI32(
        b.max(b.fma(above, inverse, b.constant(shift)), zero));
    code = b.min(code, b.constant(largest));
    if (bits == 8)
      code = b.bitXor(code, b.constant(0x80u)); // code - 128 in two's complement
    code = b.shl(code, int64_t(i * bits));
    word = word ? b.bitOr(word, code) : code;
  }
  return word;
}

void HeadScales::add(ValueRange numbers) {
  Value high = numbers[0], low = b.neg(numbers[0]);
  for (Value number : numbers.drop_front()) {
    high = b.max(high, number);
    low = b.max(low, b.neg(number));
  }
  const bool later = whole() && !most.empty();
  most.push_back(later ? b.max(most.back(), high) : high);
  least.push_back(later ? b.max(least.back(), low) : low);
}

Values HeadScales::done() {
  using Reduction = KernelBuilder::Reduction;
  const int64_t sharers = whole() ? lanes : words / groups;
  Values scales(most.size());
  for (size_t r = whole() ? most.size() - 1 : 0; r < most.size(); ++r) {
    Value high = b.reduce(most[r], unsigned(sharers), Reduction::Max);
    Value low = b.reduce(least[r], unsigned(sharers), Reduction::Max);
    scales[r] = format.scaleFor(b, high, b.neg(low));
  }
  if (whole())
    std::fill(scales.begin(), scales.end(), scales.back());
  return scales;
}

void CacheLayers::readFrom(SpecReader &reader) {
  reader.read("kv_heads", kvHeads, 1);
  reader.read("head_size", headSize, 1);
  reader.read("capacity", capacity, 1);
  reader.read("kv", kv);
  reader.maybe("layers", layers, 1);
  reader.maybe("stride", stride, 4);
  if (layers > 1 && stride % 4 != 0)
    reader.fail("expects a stride of whole words between layers, but got " +
                Twine(stride));
  if (std::string why = KvFormat::whyRefused(kv, headSize); !why.empty())
    reader.fail(why);
}

void CacheLayers::addTo(SpecWriter &writer) const {
  writer.add("kv_heads", kvHeads)
      .add("head_size", headSize)
      .add("capacity", capacity)
      .add("kv", StringRef(kv))
      .add("layers", layers > 1 ? layers : 0)
      .add("stride", stride);
}

} // namespace mlir::llm
