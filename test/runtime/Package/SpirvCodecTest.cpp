// Whatever words a module has come back, and whatever bytes a package has do no
// harm.
#include "runtime/Format/SpirvCodec.h"
#include "../Tiny/TinyPackage.h"

#include <gtest/gtest.h>
#include <random>

using namespace sprig;
using namespace sprig::format;

namespace {

using Words = std::vector<uint32_t>;

void expectBack(const Words &words) {
  const std::vector<uint8_t> bytes = encodeSpirv(words);
  EXPECT_EQ(bytes.size(), 4 * (words.size() + 1));
  EXPECT_EQ(spirvBytes(bytes.size()), 4 * words.size());
  ASSERT_EQ(decodeSpirv(bytes), words);
}

std::vector<Words> tinyKernels() {
  const PackageT package = test::tinyMetadata();
  std::vector<Words> all;
  for (const auto &kernel : package.targets[0]->kernels)
    all.push_back(*decodeSpirv(kernel->code));
  return all;
}

TEST(SpirvCodec, KernelsOfAnyLengthComeBack) {
  for (const Words &whole : tinyKernels()) {
    ASSERT_GT(whole.size(), 50u);
    EXPECT_EQ(whole[0], 0x07230203u);
    for (size_t length = 0; length <= whole.size(); ++length)
      expectBack({whole.begin(), whole.begin() + ptrdiff_t(length)});
  }
}

TEST(SpirvCodec, EqualCodeHasEqualBytesWhateverItsIds) {
  // Two additions of the results before them.
  const Words first = {0, 0, 0, 0, 0, 5u << 16 | 128, 7, 20, 19, 18},
              second = {0, 0, 0, 0, 0, 5u << 16 | 128, 7, 90, 89, 88};
  Words both = first;
  both.insert(both.end(), second.begin() + 5, second.end());
  const std::vector<uint8_t> bytes = encodeSpirv(both);
  expectBack(both);
  // The lowest bytes of columns: after the number of instructions, the header
  // and two first words come types, results, and two operands.
  const auto lowest = [&](size_t word) {
    return std::vector<int>{bytes[4 * word], bytes[4 * word + 1]};
  };
  EXPECT_EQ(bytes[0], 2u);
  EXPECT_EQ(lowest(8), (std::vector<int>{7, 7}));
  EXPECT_EQ(lowest(10), (std::vector<int>{19, 69}));
  EXPECT_EQ(lowest(12), (std::vector<int>{256 - 19, 256 - 69}));
}

TEST(SpirvCodec, AnyWordsComeBack) {
  std::mt19937 random(1);
  for (uint32_t round = 0; round < 4000; ++round) {
    Words words(random() % 64);
    for (uint32_t &word : words)
      word = random();
    // Some look like instructions for a while.
    if (round % 2)
      for (size_t at = 5; at < words.size();) {
        const uint32_t count = random() % 12;
        words[at] = count << 16 | random() % 400;
        at += count + (count == 0);
      }
    expectBack(words);
  }
  // One instruction that is as long as any can be.
  Words longest(5 + 65535);
  for (uint32_t &word : longest)
    word = random();
  longest[5] = 65535u << 16 | 44;
  expectBack(longest);
}

TEST(SpirvCodec, AnyBytesAreRefusedOrDecoded) {
  std::mt19937 random(2);
  uint32_t refused = 0, decoded = 0;
  const auto take = [&](const std::vector<uint8_t> &bytes) {
    const std::optional<Words> words = decodeSpirv(bytes);
    ++(words ? decoded : refused);
    if (words)
      expectBack(*words);
  };
  for (uint32_t round = 0; round < 4000; ++round) {
    std::vector<uint8_t> bytes(random() % 80);
    for (uint8_t &byte : bytes)
      byte = uint8_t(random() % 3 ? 0 : random());
    take(bytes);
  }
  for (const Words &words : tinyKernels()) {
    const std::vector<uint8_t> good = encodeSpirv(words);
    for (size_t i = 0; i < good.size(); ++i) {
      std::vector<uint8_t> bytes = good;
      bytes[i] ^= uint8_t(1u << random() % 8);
      take(bytes);
      bytes.resize(i);
      take(bytes);
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(decoded, 1000u);
}

} // namespace
