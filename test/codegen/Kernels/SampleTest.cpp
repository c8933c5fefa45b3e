#include "codegen/Kernels/Sample.h"
#include "StepState.h"

#include <algorithm>
#include <cmath>

namespace mlir::llm::test {
namespace {

// docs/sampling.md once more, by sorting, for the tests alone.
uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x21f0aaad, x ^= x >> 15, x *= 0x735a2d97, x ^= x >> 15;
  return x;
}
double gumbel(uint32_t low, uint32_t high, uint32_t position, uint32_t id) {
  uint32_t first = mix(low + 0x9e3779b9 * (position + 1));
  uint32_t second = mix(high ^ mix(first ^ 0x85ebca6b));
  uint32_t bits = mix(mix(id + first) ^ second);
  return -std::log(-std::log(double((bits >> 9) * 2 + 1) * 0x1p-24));
}

struct Parameters {
  float temperature = 0, topP = 1, minP = 0, penalty = 1;
  uint32_t topK = 0, lastN = 0, low = 1, high = 2;
};

/// The right token and how far ahead of the next one it is; 0 where a
/// threshold falls so close to a token that rounding decides.
std::pair<uint32_t, double> expected(std::vector<float> z,
                                     const std::vector<uint32_t> &history,
                                     uint32_t position, const Parameters &p) {
  std::vector<bool> seen(z.size());
  for (uint32_t i = position - std::min(p.lastN, position); i < position; ++i)
    if (!seen[history[i]]) {
      seen[history[i]] = true;
      float &value = z[history[i]];
      value = value > 0 ? value / p.penalty : value * p.penalty;
    }
  std::vector<uint32_t> order(z.size());
  for (uint32_t i = 0; i < z.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return z[a] != z[b] ? z[a] > z[b] : a < b;
  });
  if (p.temperature <= 0)
    return {order[0], z.size() > 1 ? z[order[0]] - z[order[1]] : 1};
  size_t keep = p.topK ? std::min<size_t>(p.topK, z.size()) : z.size();
  float inverse = 1 / p.temperature;
  double sure = 1, total = 0, reached = 0;
  std::vector<double> weight;
  for (size_t i = 0; i < keep; ++i) {
    weight.push_back(std::exp(double(z[order[i]] - z[order[0]]) * inverse));
    total += weight.back();
  }
  if (p.topP < 1) {
    size_t kept = 0;
    while (kept < keep && reached < p.topP * total)
      reached += weight[kept++];
    sure = std::min(
        {sure, (reached - p.topP * total) / total * 1e3,
         (p.topP * total - (reached - weight[kept - 1])) / total * 1e3});
    keep = kept;
  }
  if (p.minP > 0)
    while (keep > 1 && weight[keep - 1] < p.minP)
      --keep;
  uint32_t best = order[0];
  double most = -1e9, second = -1e9;
  for (size_t i = 0; i < keep; ++i) {
    double noisy = double(z[order[i]]) * inverse +
                   gumbel(p.low, p.high, position, order[i]);
    if (noisy > most)
      second = most, most = noisy, best = order[i];
    else
      second = std::max(second, noisy);
  }
  return {best, std::min(sure, most - second)};
}

struct Result {
  uint32_t token = 0;
  std::vector<uint32_t> block, history;
};

Result draw(const std::vector<float> &logits, std::vector<uint32_t> history,
            uint32_t base, uint32_t count, const Parameters &p,
            const TargetProfile &profile, int64_t tokens = 0) {
  SampleSpec spec;
  spec.tokens = tokens;
  spec.vocabulary = int64_t(logits.size());
  spec.capacity = int64_t(history.size()) - 1;
  const CompiledKernel *kernel =
      compile("sample", spec.toAttr(context()), profile);
  if (!kernel)
    return {};
  std::vector<uint32_t> block = control(base, count, uint32_t(spec.capacity));
  block[sprig::format::SeedLow] = p.low;
  block[sprig::format::SeedHigh] = p.high;
  block[sprig::format::TopK] = p.topK;
  block[sprig::format::RepeatLastN] = p.lastN;
  set(block, sprig::format::Temperature, p.temperature);
  set(block, sprig::format::TopP, p.topP);
  set(block, sprig::format::MinP, p.minP);
  set(block, sprig::format::RepeatPenalty, p.penalty);
  std::vector<Bytes> buffers = {toBytes(logits), toBytes(block),
                                toBytes(history)};
  run(*kernel, buffers, 1);
  Result result;
  result.block = fromBytes<uint32_t>(buffers[1]);
  result.history = fromBytes<uint32_t>(buffers[2]);
  result.token = result.block[sprig::format::Sampled];
  return result;
}

TEST(Sample, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(3);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    uint32_t vocabulary = random.among<uint32_t>({1, 7, 9, 1000});
    std::vector<float> logits = random.numbers(vocabulary);
    for (float &z : logits)
      z *= 8;
    std::vector<uint32_t> history(65);
    for (uint32_t &id : history)
      id = random.below(vocabulary);
    Parameters p;
    p.low = random.bits(), p.high = random.bits();
    if (i % 5)
      p.temperature = random.among<float>({0.3f, 0.8f, 1, 1.7f});
    if (random.below(2))
      p.topK = random.among<uint32_t>({1, 2, 5, 40, 5000});
    if (random.below(2))
      p.topP = random.among<float>({0, 0.1f, 0.5f, 0.9f, 0.99f});
    if (random.below(3) == 0)
      p.minP = random.among<float>({0.01f, 0.1f, 1});
    if (random.below(3) == 0)
      p.penalty = random.among<float>({0.8f, 1.1f, 2}), p.lastN = 64;
    uint32_t base = random.below(60), count = 1 + random.below(4);
    auto [token, margin] = expected(logits, history, base + count, p);
    Result got = draw(logits, history, base, count, p,
                      i % 4 == 3 ? profile("generic") : deviceProfile());
    if (margin < 1e-4)
      continue;
    ++compared;
    EXPECT_EQ(got.token, token)
        << "case " << i << " V " << vocabulary << " T " << p.temperature
        << " k " << p.topK << " p " << p.topP << " min " << p.minP;
    // The block has moved on, and nothing else of the history changed.
    ASSERT_EQ(got.block.size(), size_t(sprig::format::ControlWords));
    EXPECT_EQ(got.block[sprig::format::Base], base + count);
    EXPECT_EQ(got.block[sprig::format::Count], 1u);
    EXPECT_EQ(got.block[sprig::format::Steps], 1u);
    history[base + count] = token;
    EXPECT_EQ(got.history, history);
  }
  EXPECT_GT(compared, 45);
}

TEST(Sample, EqualLogitsGiveTheLowestId) {
  SKIP_WITHOUT_DEVICE();
  std::vector<float> logits(100, 1.5f);
  logits[0] = -1, logits[1] = NAN;
  for (StringRef target :
       {StringRef(deviceProfile().name), StringRef("generic")})
    EXPECT_EQ(
        draw(logits, std::vector<uint32_t>(9), 3, 1, {}, profile(target)).token,
        2u);
}

TEST(Sample, RowsThatPadTheVocabularyAreNeverDrawn) {
  SKIP_WITHOUT_DEVICE();
  Random random(8);
  Parameters p;
  for (float temperature : {0.0f, 1.0f, 3.0f}) {
    p.temperature = temperature;
    p.topK = temperature == 3 ? 5 : 0;
    p.topP = temperature == 3 ? 0.8f : 1;
    const std::vector<float> plain = random.numbers(100);
    std::vector<float> padded = plain;
    padded.resize(137, 1e9f);
    const std::vector<uint32_t> history(9);
    EXPECT_EQ(draw(padded, history, 3, 1, p, deviceProfile(), 100).token,
              draw(plain, history, 3, 1, p, deviceProfile()).token);
  }
}

TEST(Sample, ARowOfNaNIsSurvived) {
  SKIP_WITHOUT_DEVICE();
  std::vector<float> logits(100, NAN);
  Parameters p;
  for (float temperature : {0.0f, 1.0f}) {
    p.temperature = temperature;
    EXPECT_LT(
        draw(logits, std::vector<uint32_t>(9), 3, 1, p, deviceProfile()).token,
        100u);
  }
}

TEST(Sample, AHostileHistoryStaysInBounds) {
  SKIP_WITHOUT_DEVICE();
  std::vector<float> logits(10, 0.0f);
  logits[4] = 1;
  Parameters p;
  p.penalty = 1.5f, p.lastN = ~0u;
  std::vector<uint32_t> history(9, 0xffffffff);
  EXPECT_EQ(draw(logits, history, 3, 1, p, deviceProfile()).token, 4u);
}

} // namespace
} // namespace mlir::llm::test
