#include "codegen/Kernels/Embedding.h"
#include "StepState.h"
#include "codegen/Kernels/BlockCodec.h"
#include "lib/Quant/Layout.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

using sprig::quant::Format;

/// Rows of a table in the format's own bytes; random numbers where the format
/// can be written, random codes with tame scales where it can only be read.
std::vector<std::byte> tableOf(Format format, int64_t rows, int64_t width,
                               Random &random) {
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  std::vector<std::byte> bytes(rows * info.rowBytes(width));
  std::vector<float> numbers = random.numbers(rows * width);
  if (info.encode && sprig::quant::encode(format, numbers.data(), bytes.data(),
                                          numbers.size()))
    return bytes;
  for (std::byte &byte : bytes)
    byte = std::byte(random.below(64)); // no f16 exponent above 2^1
  return bytes;
}

void check(Format format, int64_t rows, int64_t width, uint32_t tokens,
           const TargetProfile &profile, uint64_t seed) {
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  Random random(seed);
  EmbeddingSpec spec;
  spec.format = info.name, spec.rows = rows, spec.width = width;
  spec.capacity = 100, spec.scale = seed % 2 ? 1 : 24;
  const CompiledKernel *kernel =
      compile("embedding", spec.toAttr(context()), profile);
  ASSERT_TRUE(kernel);

  std::vector<std::byte> table = tableOf(format, rows, width, random);
  sprig::quant::TensorLayout layout =
      sprig::quant::describe(format, rows, width);
  std::vector<std::byte> tiled(layout.bytes);
  sprig::quant::relayout(layout, table.data(), tiled.data());
  std::vector<Bytes> buffers;
  const BlockCodec &codec = *BlockCodec::find(format);
  if (codec.inOneBinding()) {
    auto *from = reinterpret_cast<const uint8_t *>(tiled.data());
    buffers.emplace_back(from, from + tiled.size());
  }
  for (const sprig::quant::PlaneLayout &plane : layout.planes) {
    if (codec.inOneBinding())
      break;
    auto *from = reinterpret_cast<const uint8_t *>(tiled.data()) + plane.offset;
    buffers.emplace_back(from, from + plane.bytes);
  }
  if (!codec.table().empty())
    buffers.push_back(toBytes(codec.table().vec()));
  std::vector<uint32_t> history(100, 0xffffffff); // hostile outside the step
  for (uint32_t t = 0; t < tokens; ++t)
    history[11 + t] = random.below(uint32_t(rows));
  history[11] = 7000; // past the table: its last row
  buffers.push_back(toBytes(control(11, tokens, 100)));
  buffers.push_back(toBytes(history));
  buffers.push_back(Bytes(tokens * width * 4));
  run(*kernel, buffers, tokens);

  std::vector<float> y = fromBytes<float>(buffers.back()), right(width);
  for (uint32_t t = 0; t < tokens; ++t) {
    uint32_t row = std::min(history[11 + t], uint32_t(rows - 1));
    sprig::quant::decode(format, table.data() + row * info.rowBytes(width),
                         right.data(), width);
    float size = 0;
    for (float x : right)
      size = std::max(size, std::abs(x));
    for (int64_t i = 0; i < width; ++i)
      ASSERT_NEAR(y[t * width + i], right[i] * float(spec.scale),
                  2e-6 * size * spec.scale)
          << info.name << " token " << t << " number " << i << " on "
          << profile.name;
  }
}

TEST(Embedding, EveryFormatThatKernelsRead) {
  SKIP_WITHOUT_DEVICE();
  uint64_t seed = 0;
  for (Format format : BlockCodec::formats()) {
    const sprig::quant::FormatInfo &info = sprig::quant::info(format);
    int64_t width = info.isPlain() ? 70 : 2 * info.blockElements;
    for (uint32_t tokens : {1u, 7u, 64u})
      check(format, 21, width, tokens,
            tokens == 7 ? profile("generic") : deviceProfile(), ++seed);
  }
}

} // namespace
} // namespace mlir::llm::test
