#include "CacheSide.h"
#include "codegen/Kernels/KvEvict.h"
#include "codegen/Kernels/RopeAppend.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

constexpr size_t kCapacity = 80;

struct Case {
  StringRef kv;
  int64_t kvHeads, headSize, dims;
  bool interleaved = false;
  int64_t hadamard = 0;
  uint32_t sinks = 3, drop = 30, end = 75;
};

std::vector<uint32_t> evictControl(const Case &c) {
  std::vector<uint32_t> words = control(c.end, 0, kCapacity);
  words[sprig::format::Sinks] = c.sinks;
  words[sprig::format::Dropped] = c.drop;
  return words;
}

double frequencyOf(int64_t pair, int64_t dims) {
  return std::pow(100.0, -2.0 * double(pair) / double(dims));
}

/// The Walsh-Hadamard transform of blocks.
void transform(double *x, int64_t width, int64_t block) {
  for (int64_t start = 0; block && start < width; start += block) {
    for (int64_t bit = 1; bit < block; bit *= 2)
      for (int64_t i = 0; i < block; ++i)
        if (!(i & bit)) {
          double low = x[start + i], high = x[start + (i | bit)];
          x[start + i] = low + high, x[start + (i | bit)] = low - high;
        }
    for (int64_t i = 0; i < block; ++i)
      x[start + i] /= std::sqrt(double(block));
  }
}

/// A head turned `drop` positions back.
std::vector<double> turned(const Case &c, std::vector<double> x) {
  transform(x.data(), c.headSize, c.hadamard);
  std::vector<double> y = x;
  for (int64_t i = 0; i < c.dims / 2; ++i) {
    size_t first = size_t(c.interleaved ? 2 * i : i),
           second = size_t(c.interleaved ? 2 * i + 1 : i + c.dims / 2);
    double angle = -double(c.drop) * frequencyOf(i, c.dims);
    y[first] = x[first] * std::cos(angle) - x[second] * std::sin(angle);
    y[second] = x[first] * std::sin(angle) + x[second] * std::cos(angle);
  }
  transform(y.data(), c.headSize, c.hadamard);
  return y;
}

void check(const Case &c, const TargetProfile &profile) {
  SCOPED_TRACE(::testing::Message()
               << c.kv.str() << " " << c.kvHeads << "x" << c.headSize
               << " dims " << c.dims << " on " << profile.name);
  KvEvictSpec spec;
  spec.kvHeads = c.kvHeads, spec.headSize = c.headSize;
  spec.capacity = kCapacity, spec.kv = c.kv.str();
  spec.dims = c.dims, spec.interleaved = c.interleaved;
  spec.hadamard = c.hadamard, spec.layers = 2;
  CacheSide side(c.kv, kCapacity, size_t(c.kvHeads), size_t(c.headSize));
  const size_t layerWords = side.words.size() + 4;
  spec.stride = int64_t(layerWords * 4);
  const CompiledKernel *kernel =
      compile("kv_evict", spec.toAttr(context()), profile);
  ASSERT_TRUE(kernel);
  Random random(c.drop + uint64_t(c.dims));
  const size_t row = size_t(c.kvHeads * c.headSize);
  side.write(random.numbers(kCapacity * row));
  // What goes, and what is behind the end, is poisoned: codes and scales.
  CacheSide poisoned = side;
  const size_t codes = size_t(c.kvHeads * poisoned.format.headWords(c.headSize)),
               scales = size_t(c.kvHeads * poisoned.format.groups(c.headSize));
  for (size_t slot = c.sinks; slot < kCapacity; ++slot)
    if (slot < c.sinks + c.drop || slot >= c.end) {
      std::fill_n(poisoned.words.begin() + long(slot * codes), codes,
                  0xffffffff);
      std::fill_n(poisoned.words.begin() +
                      long(kCapacity * codes + slot * scales),
                  scales, 0xffffffff);
    }
  std::vector<uint32_t> words = poisoned.words;
  words.resize(layerWords, 0xabcd);
  words.insert(words.end(), poisoned.words.begin(), poisoned.words.end());
  std::vector<Bytes> buffers = {toBytes(evictControl(c)), toBytes(words)};
  if (c.dims) {
    std::vector<double> frequencies;
    for (int64_t i = 0; i < c.dims / 2; ++i)
      frequencies.push_back(frequencyOf(i, c.dims));
    buffers.push_back(toBytes(ropeTable(frequencies, kCapacity)));
  }
  run(*kernel, buffers, 1);
  const auto result = fromBytes<uint32_t>(buffers[1]);
  ASSERT_EQ(result[side.words.size()], 0xabcdu) << "between the layers";
  for (size_t layer : {size_t(0), layerWords}) {
    CacheSide got = side;
    std::copy_n(result.begin() + long(layer), got.words.size(),
                got.words.begin());
    // The sinks stay as they are, to the bit.
    for (size_t i = 0; i < c.sinks * codes; ++i)
      ASSERT_EQ(got.words[i], side.words[i]);
    for (size_t slot = c.sinks; slot + c.drop < c.end; ++slot)
      for (size_t head = 0; head < size_t(c.kvHeads); ++head) {
        const size_t to = slot * row + head * size_t(c.headSize),
                     from = to + c.drop * row;
        std::vector<double> right;
        for (size_t i = 0; i < size_t(c.headSize); ++i)
          right.push_back(side[from + i]);
        if (c.dims)
          right = turned(c, right);
        for (size_t i = 0; i < right.size(); ++i)
          ASSERT_NEAR(got[to + i], right[i], c.dims ? got.unit(to + i) : 0)
              << "slot " << slot << " head " << head << " number " << i;
      }
  }
}

TEST(Evict, KeysAreTurnedBackAndMoveUp) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef target :
       {StringRef(deviceProfile().name), StringRef("generic")}) {
    check({"f16", 3, 64, 64}, profile(target));
    check({"f16", 2, 24, 24, true}, profile(target));
    check({"f32", 1, 80, 20}, profile(target));
    check({"i8", 3, 64, 64, false, 64}, profile(target));
    check({"i8", 2, 80, 40, true}, profile(target));
    check({"u4x32", 5, 64, 64, true, 64}, profile(target));
    check({"u4x16", 2, 48, 32}, profile(target));
  }
}

TEST(Evict, ValuesKeepTheirBits) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef kv : {"f16", "f32", "i8", "u4x32"}) {
    check({kv, 3, 64, 0}, deviceProfile());
    check({kv, 3, 64, 0}, profile("generic"));
  }
}

// One slot at a time, all but one, no sinks, and nothing behind what goes.
TEST(Evict, Edges) {
  SKIP_WITHOUT_DEVICE();
  for (auto [sinks, drop, end] :
       {std::tuple(0u, 1u, 80u), {4u, 1u, 80u}, {1u, 78u, 80u}, {10u, 6u, 16u},
        {0u, 40u, 80u}, {0u, 33u, 34u}})
    for (int64_t dims : {0, 64}) {
      Case c{"f16", 2, 64, dims};
      c.sinks = sinks, c.drop = drop, c.end = end;
      check(c, deviceProfile());
    }
}

TEST(Evict, RefusesWhatDoesNotFit) {
  auto message = [](KvEvictSpec spec) {
    EXPECT_TRUE(failed(KvEvictSpec::fromAttr(spec.toAttr(context()), [] {
      return mlir::emitError(UnknownLoc::get(context()));
    })));
    return takeDiagnostics();
  };
  KvEvictSpec spec;
  spec.kvHeads = 2, spec.headSize = 64, spec.capacity = 16, spec.dims = 3;
  EXPECT_NE(message(spec).find("an even number of rotated dims, but got 3"),
            std::string::npos);
  spec.dims = 64, spec.hadamard = 64;
  EXPECT_NE(message(spec).find("with a cache in integers"), std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
