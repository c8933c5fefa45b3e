#include "codegen/Kernels/RopeAppend.h"
#include "CacheSide.h"

#include <bit>
#include <cmath>

namespace mlir::llm::test {
namespace {

struct Case {
  RopeAppendSpec spec;
  uint32_t base, count, width;
};

void check(const Case &c, const TargetProfile &profile, uint64_t seed) {
  const RopeAppendSpec &s = c.spec;
  const CompiledKernel *kernel =
      compile("rope_append", s.toAttr(context()), profile);
  ASSERT_TRUE(kernel);
  Random random(seed);
  int64_t E = s.headSize, queries = s.heads * E, keys = s.kvHeads * E;
  const int64_t EV = s.valueNumbers(), values = s.kvHeads * EV;
  std::vector<float> q = random.numbers(c.width * queries),
                     k = random.numbers(c.width * keys),
                     v = random.numbers(c.width * values);
  std::vector<double> frequencies, further;
  for (int64_t i = 0; i < s.dims / 2; ++i) {
    frequencies.push_back(std::pow(10000.0, -2.0 * i / double(s.dims)));
    further.push_back(frequencies.back() / (1.5 + double(i)));
  }

  std::vector<Bytes> buffers;
  if (s.fused) {
    std::vector<float> all;
    for (uint32_t t = 0; t < c.width; ++t) {
      all.insert(all.end(), q.begin() + t * queries,
                 q.begin() + (t + 1) * queries);
      all.insert(all.end(), k.begin() + t * keys, k.begin() + (t + 1) * keys);
      all.insert(all.end(), v.begin() + t * keys, v.begin() + (t + 1) * keys);
    }
    buffers.push_back(toBytes(all));
  } else {
    buffers = {toBytes(q), toBytes(k), toBytes(v)};
  }
  if (s.dims) {
    std::vector<float> table = ropeTable(frequencies, s.capacity);
    if (s.longFrom)
      for (float number : ropeTable(further, s.capacity))
        table.push_back(number);
    ASSERT_EQ(table.size() * 4, s.tableBytes());
    buffers.push_back(toBytes(table));
  }
  buffers.push_back(toBytes(control(c.base, c.count, s.capacity)));
  size_t out = buffers.size();
  CacheSide cachedKeys(s.kv, s.capacity, s.kvHeads, E, 0xdeadbeef);
  CacheSide cachedValues = cachedKeys;
  buffers.push_back(Bytes(q.size() * 4));
  buffers.push_back(toBytes(cachedKeys.words));
  buffers.push_back(toBytes(cachedValues.words));
  run(*kernel, buffers, c.width);

  auto turned = [&](const std::vector<float> &x, size_t head, int64_t e,
                    double position) -> double {
    if (e >= s.dims)
      return x[head + e];
    int64_t half = s.dims / 2;
    int64_t pair = s.interleaved ? e / 2 : e % half;
    int64_t first = s.interleaved ? pair * 2 : pair;
    int64_t second = s.interleaved ? first + 1 : first + half;
    const bool beyond = s.longFrom && position >= double(s.longFrom);
    double angle = position * (beyond ? further : frequencies)[pair];
    double a = x[head + first], b = x[head + second];
    return e == first ? a * std::cos(angle) - b * std::sin(angle)
                      : a * std::sin(angle) + b * std::cos(angle);
  };
  auto rotated = [&](const std::vector<float> &x, size_t head, int64_t e,
                     double position) -> double {
    if (!s.hadamard)
      return turned(x, head, e, position);
    // Row e of the Sylvester matrix of e's block.
    double sum = 0;
    for (int64_t i = 0; i < s.hadamard; ++i) {
      double number =
          turned(x, head, e / s.hadamard * s.hadamard + i, position);
      bool negative = std::popcount(uint64_t(i & e)) & 1;
      sum += negative ? -number : number;
    }
    return sum / std::sqrt(double(s.hadamard));
  };
  std::vector<float> y = fromBytes<float>(buffers[out]);
  cachedKeys.words = fromBytes<uint32_t>(buffers[out + 1]);
  cachedValues.words = fromBytes<uint32_t>(buffers[out + 2]);
  for (uint32_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < queries; ++i)
      ASSERT_NEAR(y[t * queries + i],
                  rotated(q, t * queries + i / E * E, i % E, c.base + t), 2e-6)
          << kernel->interface.key << " query " << i << " token " << t;
    for (int64_t i = 0; i < keys; ++i) {
      size_t at = (c.base + t) * keys + i;
      ASSERT_NEAR(cachedKeys[at],
                  rotated(k, t * keys + i / E * E, i % E, c.base + t),
                  cachedKeys.unit(at))
          << kernel->interface.key << " key " << i << " token " << t;
      // A shorter value is filled up with zeros.
      const float value =
          i % E < EV ? v[t * values + i / E * EV + i % E] : 0.0f;
      ASSERT_NEAR(cachedValues[at], value, cachedValues.unit(at));
    }
  }
  // Nothing outside the step's valid slots is touched.
  for (size_t i = 0; i < size_t(s.capacity * keys); ++i) {
    size_t slot = i / keys;
    if (slot >= c.base && slot < c.base + c.count)
      continue;
    for (const CacheSide *side : {&cachedKeys, &cachedValues}) {
      ASSERT_EQ(side->words[i / side->format.elementsPerWord()], 0xdeadbeef)
          << "slot " << slot;
      if (side->format.quantised())
        ASSERT_EQ(side->words[side->scaleAt(i)], 0xdeadbeef) << "slot " << slot;
    }
  }
}

RopeAppendSpec shape(int64_t heads, int64_t kvHeads, int64_t headSize,
                     int64_t capacity) {
  RopeAppendSpec spec;
  spec.heads = heads, spec.kvHeads = kvHeads, spec.headSize = headSize;
  spec.dims = headSize, spec.capacity = capacity;
  return spec;
}

TEST(RopeAppend, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(11);
  for (int i = 0; i < 20; ++i) {
    RopeAppendSpec spec =
        shape(random.among<int64_t>({1, 3, 9}), random.among<int64_t>({1, 3}),
              random.among<int64_t>({6, 24, 64, 128}), 600);
    spec.kv = random.among<std::string>({"f16", "f32"});
    if (i % 2) { // 160: more than one word a lane, and lanes without any
      spec.headSize = spec.dims = random.among<int64_t>({64, 128, 160, 320});
      spec.kv = random.among<std::string>({"i8", "u4x16"});
      spec.hadamard = i % 3 ? spec.headSize & -spec.headSize : 0;
    }
    spec.interleaved = random.below(2);
    spec.fused = random.below(2);
    if (random.below(3) == 0)
      spec.dims = random.below(2) ? 0 : spec.headSize / 2 / 2 * 2;
    for (uint32_t width : {1, 7, 64}) {
      uint32_t count = 1 + random.below(width);
      check({spec, random.below(600 - count + 1), count, width},
            i % 4 == 3 ? profile("generic") : deviceProfile(), i);
    }
  }
}

TEST(RopeAppend, ShorterValuesAndPositionsBeyondTheFirstTable) {
  SKIP_WITHOUT_DEVICE();
  for (StringRef kv : {"f16", "f32", "i8"})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      RopeAppendSpec spec = shape(4, 2, 24, 600);
      spec.kv = kv.str();
      spec.dims = 8, spec.valueSize = kv == "f16" ? 13 : 16;
      spec.longFrom = 260, spec.interleaved = kv == "i8";
      check({spec, 250, 20, 20}, profile(target), 8); // on both sides
      check({spec, 512, 1, 4}, profile(target), 9);
    }
}

TEST(RopeAppend, PaddingNeverLeavesTheContext) {
  SKIP_WITHOUT_DEVICE();
  RopeAppendSpec spec = shape(3, 1, 64, 300);
  spec.interleaved = true;
  check({spec, 298, 2, 16}, deviceProfile(), 3);
  check({spec, 0, 1, 16}, deviceProfile(), 4);
}

} // namespace
} // namespace mlir::llm::test
