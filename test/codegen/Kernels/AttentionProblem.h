// Attention of random queries over random caches, and what it should give, for tests.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_ATTENTIONPROBLEM_H
#define SPRIG_TEST_CODEGEN_KERNELS_ATTENTIONPROBLEM_H

#include "CacheSide.h"
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/AttentionCombine.h"

#include <cmath>
#include <map>
#include <set>

namespace mlir::llm::test {

struct Case {
  AttentionSpec spec;
  uint32_t base, width;
};

/// The slope of a head's bias.
inline float slopeOf(int64_t head) { return 0.4f / float(1 + head); }

inline bool hides(const BlockShape &blocks, int64_t query, int64_t key) {
  if (!blocks)
    return false;
  const int64_t i = query / blocks.size, j = key / blocks.size;
  return i - j >= blocks.local && j >= blocks.first &&
         (!blocks.stride || (i - j) % blocks.stride);
}

inline double magnitude(ArrayRef<float> numbers) {
  double most = 0;
  for (float number : numbers)
    most = std::max(most, double(std::abs(number)));
  return most;
}

/// What the codes of a head stand for.
inline void roundHead(MutableArrayRef<float> numbers) {
  const double step = magnitude(numbers) / 127;
  for (float &number : numbers)
    number = float(std::floor(number / step + 0.5) * step);
}

/// The same of weights at `positions`, by the greatest of every eight.
inline void roundWeights(ArrayRef<int64_t> positions,
                         MutableArrayRef<double> weights,
                         llvm::function_ref<double(int64_t)> scaleAt) {
  std::map<int64_t, double> steps;
  for (auto [position, weight] : llvm::zip_equal(positions, weights))
    steps[position / 8] =
        std::max(steps[position / 8], weight * scaleAt(position) / 127);
  for (auto [position, weight] : llvm::zip_equal(positions, weights)) {
    const double step = steps[position / 8], scale = scaleAt(position);
    weight = std::floor(weight * scale / step + 0.5) * step / scale;
  }
}

inline std::vector<double> expected(const Case &c, const std::vector<float> &given,
                             const std::vector<float> &keys,
                             const std::vector<float> &values) {
  const AttentionSpec &s = c.spec;
  const int64_t EV = s.valueNumbers();
  std::vector<float> q = given;
  for (size_t head = 0; s.integers && head < q.size(); head += s.headSize)
    roundHead(MutableArrayRef(q).slice(head, size_t(s.headSize)));
  std::vector<double> y(size_t(c.width) * s.heads * EV);
  for (uint32_t t = 0; t < c.width; ++t)
    for (int64_t h = 0; h < s.heads; ++h) {
      int64_t g = h / (s.heads / s.kvHeads), position = c.base + t;
      size_t row = (size_t(t) * s.heads + h) * s.headSize;
      std::vector<double> score;
      std::vector<int64_t> seen;
      double most = -1e300;
      for (int64_t j = 0; j <= position; ++j) {
        if (s.window && position - j >= s.window && j >= s.sinks)
          continue;
        if (hides(s.blocks, position, j))
          continue;
        double sum = 0;
        for (int64_t e = 0; e < s.headSize; ++e)
          sum +=
              double(q[row + e]) * keys[(j * s.kvHeads + g) * s.headSize + e];
        sum *= s.scale;
        if (s.softcap != 0)
          sum = s.softcap * std::tanh(sum / s.softcap);
        if (s.bias)
          sum += double(slopeOf(h)) * double(j - position);
        score.push_back(sum);
        seen.push_back(j);
        most = std::max(most, sum);
      }
      double total = 0;
      for (double &value : score)
        total += value = std::exp(value - most);
      if (s.integers)
        roundWeights(seen, score, [&](int64_t j) {
          const float *first = &values[(j * s.kvHeads + g) * s.headSize];
          return magnitude({first, size_t(s.headSize)}) / 127;
        });
      for (size_t i = 0; i < seen.size(); ++i)
        for (int64_t e = 0; e < EV; ++e)
          y[(size_t(t) * s.heads + h) * EV + e] +=
              score[i] / total *
              values[(seen[i] * s.kvHeads + g) * s.headSize + e];
    }
  return y;
}

/// Runs the case with the cache past the step, and all results before they are
/// written, poisoned by NaN.
inline std::vector<float> attend(const Case &c, const TargetProfile &profile,
                          const std::vector<float> &q,
                          const std::vector<float> &keys,
                          const std::vector<float> &values) {
  const AttentionSpec &s = c.spec;
  const CompiledKernel *kernel =
      compile("attention", s.toAttr(context()), profile);
  if (!kernel)
    return {};
  auto poisoned = [&](const std::vector<float> &numbers) {
    // Of f16 as well as of f32: what is no scale may be a code.
    CacheSide side(s.kv, s.capacity, s.kvHeads, s.headSize, 0x7fc07e00);
    size_t live = size_t(c.base + c.width) * s.kvHeads * s.headSize;
    side.write({numbers.begin(), numbers.begin() + long(live)});
    return toBytes(side.words);
  };
  size_t rows = (c.width + s.tokens - 1) / s.tokens * s.tokens;
  auto unwritten = [&](size_t numbers) { return Bytes(numbers * 4, 0xff); };
  std::vector<float> padded = q;
  padded.resize(rows * size_t(s.heads * s.headSize));
  std::vector<Bytes> buffers = {
      toBytes(padded), toBytes(control(c.base, c.width, s.capacity)),
      poisoned(keys), poisoned(values),
      unwritten(rows * size_t(s.heads * s.valueNumbers()))};
  if (s.parts) {
    buffers.push_back(unwritten(padded.size() * s.parts));
    buffers.push_back(unwritten(rows * s.heads * s.parts * 2));
  }
  if (s.bias) {
    std::vector<float> slopes;
    for (int64_t h = 0; h < s.heads; ++h)
      slopes.push_back(slopeOf(h));
    buffers.push_back(toBytes(slopes));
  }
  run(*kernel, buffers, c.width);
  if (s.parts) {
    const CompiledKernel *combine =
        compile("attention_combine", AttentionCombineSpec(s).toAttr(context()),
                profile);
    if (!combine)
      return {};
    std::vector<Bytes> rest = {buffers[1], buffers[5], buffers[6], buffers[4]};
    run(*combine, rest, c.width);
    buffers[4] = rest[3];
  }
  std::vector<float> y = fromBytes<float>(buffers[4]);
  y.resize(size_t(c.width) * s.heads * s.valueNumbers());
  return y;
}

inline void check(const Case &c, const TargetProfile &profile, uint64_t seed) {
  const AttentionSpec &s = c.spec;
  Random random(seed);
  std::vector<float> q = random.numbers(size_t(c.width) * s.heads * s.headSize);
  size_t cache = size_t(s.capacity) * s.kvHeads * s.headSize;
  auto stored = [&](std::vector<float> numbers) {
    CacheSide side(s.kv, s.capacity, s.kvHeads, s.headSize);
    side.write(numbers);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = side[i];
    return numbers;
  };
  std::vector<float> keys = stored(random.numbers(cache)),
                     values = stored(random.numbers(cache));
  std::vector<float> y = attend(c, profile, q, keys, values);
  std::vector<double> right = expected(c, q, keys, values);
  ASSERT_EQ(y.size(), right.size());
  std::set<size_t> apart; // heads, by a code that was rounded to the other side
  for (size_t i = 0; i < y.size(); ++i) {
    if (s.integers && std::abs(y[i] - right[i]) > 3e-5)
      apart.insert(i / size_t(s.valueNumbers()));
    ASSERT_NEAR(y[i], right[i], s.integers ? 5e-3 : 3e-5)
        << "base " << c.base << " width " << c.width << " number " << i
        << " head " << s.headSize << " on " << profile.name;
  }
  EXPECT_LE(apart.size(), 1 + size_t(c.width * s.heads) / 50)
      << "base " << c.base << " width " << c.width << " head " << s.headSize
      << " on " << profile.name;
}

inline AttentionSpec shape(int64_t heads, int64_t kvHeads, int64_t headSize,
                    int64_t capacity, StringRef kv = "f16") {
  AttentionSpec spec;
  spec.heads = heads, spec.kvHeads = kvHeads, spec.headSize = headSize;
  spec.capacity = capacity, spec.kv = kv.str();
  spec.scale = 1 / std::sqrt(double(headSize));
  spec.split = AttentionSpec::splitFor(capacity);
  return spec;
}

/// The splits get workgroups of their own.
inline AttentionSpec apart(AttentionSpec spec, uint32_t width) {
  spec.parts = spec.partsFor(width);
  return spec;
}

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_ATTENTIONPROBLEM_H
