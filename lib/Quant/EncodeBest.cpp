// Of several ranges the one of least squared error: scales from the very extremes of a block spend codes on few numbers.
#include "lib/Quant/Format.h"

#include <algorithm>
#include <array>

namespace sprig::quant {
namespace {

constexpr size_t kGroup = 32;        ///< numbers that share a scale, of most formats with encoders
constexpr size_t kLargestBlock = 256;
constexpr size_t kLargestBytes = 256;

/// Numbers with the ends of each group's range cut off by these shares of it.
void cutRanges(const float *src, size_t count, float low, float high, float *dst) {
  for (size_t begin = 0; begin < count; begin += kGroup) {
    const size_t end = std::min(count, begin + kGroup);
    const auto [least, most] = std::minmax_element(src + begin, src + end);
    const float range = *most - *least, from = *least + low * range, to = *most - high * range;
    for (size_t i = begin; i < end; ++i)
      dst[i] = std::clamp(src[i], from, to);
  }
}

} // namespace

bool encodeBest(Format format, const float *src, std::byte *dst, size_t elements) {
  const FormatInfo &row = info(format);
  if (!encode(format, src, dst, elements))
    return false;
  // With seven bits and more there is nothing to gain.
  if (row.isPlain() || row.blockBytes * 8 >= row.blockElements * 7 || row.blockElements > kLargestBlock)
    return true;
  constexpr std::array kCuts = {0.0f, 0.03f, 0.06f, 0.1f, 0.15f};
  const size_t count = row.blockElements;
  for (size_t block = 0; block < elements / count; ++block) {
    const float *numbers = src + block * count;
    std::byte *best = dst + block * row.blockBytes;
    float cut[kLargestBlock], decoded[kLargestBlock];
    std::byte tried[kLargestBytes];
    const auto errorOf = [&](const std::byte *bytes) {
      row.decode(bytes, decoded, 1);
      double sum = 0;
      for (size_t i = 0; i < count; ++i)
        sum += (double(numbers[i]) - decoded[i]) * (double(numbers[i]) - decoded[i]);
      return sum;
    };
    double least = errorOf(best);
    for (float low : kCuts)
      for (float high : kCuts) {
        if (!(least > 0)) // nothing is lost, or numbers are not finite
          break;
        cutRanges(numbers, count, low, high, cut);
        row.encode(cut, tried, 1);
        if (const double error = errorOf(tried); error < least) {
          least = error;
          std::copy_n(tried, row.blockBytes, best);
        }
      }
  }
  return true;
}

} // namespace sprig::quant
