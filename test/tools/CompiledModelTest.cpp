// A generated model, compiled and run on a device: the whole way but for the
// command lines.
#include "codegen/Target/TargetProfile.h"
#include "test/lib/Weights/TinyLlama.h"
#include "test/tools/DeviceModelTest.h"
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

constexpr size_t kLength = 70; // past one program of 64 and one of 4

/// The same tokens in every test, spread over the vocabulary.
std::vector<uint32_t> someTokens(size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = uint32_t((i * 97 + 41) % 280);
  return tokens;
}

const std::vector<uint32_t> kTokens = someTokens(kLength);

class CompiledModelTest : public mlir::llm::testing::DeviceModelTest {
protected:
  /// Skips where there is no device.
  void compile(StringRef variant, StringRef target) {
    ASSERT_FALSE(::llvm::errorToBool(mlir::llm::testing::writeTinyLlama(
        file("tiny.gguf"), *mlir::llm::testing::tinyLlamaVariant(variant))));
    CompileOptions options = optionsFor(file("tiny.gguf"), target.str());
    options.context = contextSize;
    if (!cachePass.empty())
      options.passPipeline =
          "builtin.module(" + cachePass + ",llm-default-pipeline)";
    options.widths = {1, 4, 16, 64};
    DeviceModelTest::compile(options);
    if (!HasFatalFailure())
      open(/*validated=*/true, /*poisoned=*/true);
  }

  /// Logits after each token of kTokens, fed in pieces of `piece`.
  std::vector<float> evaluate(size_t piece) { return logitsOf(kTokens, piece); }

  uint32_t largest(const float *row) const {
    return uint32_t(std::max_element(row, row + vocabulary) - row);
  }

  int64_t contextSize = 96;
  std::string cachePass;
};

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The contract of batch invariance, on a whole model: the bits of a token's
// logits do not depend on which tokens it was computed with.
TEST_F(CompiledModelTest, NumbersDoNotDependOnTheWidth) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> one = evaluate(1);
  for (float number : one)
    ASSERT_TRUE(std::isfinite(number));
  for (size_t piece : {2, 3, 4, 7, 13, 16})
    EXPECT_TRUE(sameBits(one, evaluate(piece))) << "in pieces of " << piece;
  // Rows of logits come from programs of up to 16 tokens; the keys and values
  // before them may come from any, 64 among them.
  std::vector<float> row(vocabulary);
  for (size_t count : {size_t(17), size_t(64), size_t(65), kLength}) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->evaluateLast(kTokens.data(), count, row.data()).ok());
    EXPECT_EQ(std::memcmp(row.data(), one.data() + (count - 1) * vocabulary,
                          vocabulary * sizeof(float)),
              0)
        << "after " << count << " tokens at once";
  }
}

// Nor with caches in integers, which are saved and read back with their
// scales; and where attention is of integers.
class QuantisedCachesTest : public CompiledModelTest,
                            public ::testing::WithParamInterface<const char *> {
};

TEST_P(QuantisedCachesTest, KeepTheirBits) {
  cachePass = GetParam();
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> one = evaluate(1);
  for (size_t piece : {4, 7, 16})
    EXPECT_TRUE(sameBits(one, evaluate(piece))) << "in pieces of " << piece;
  std::string note;
  std::vector<float> row(vocabulary);
  ASSERT_TRUE(session->truncate(40).ok());
  ASSERT_TRUE(session->save(file("caches.session"), "").ok());
  evaluate(64); // something else in the slots
  Status status = session->load(file("caches.session"), note);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(session->evaluate(&kTokens[40], 1, row.data()).ok());
  EXPECT_EQ(std::memcmp(row.data(), one.data() + 40 * vocabulary,
                        vocabulary * sizeof(float)),
            0);
}

INSTANTIATE_TEST_SUITE_P(Attention, QuantisedCachesTest,
                         ::testing::Values("llm-quantize-kv",
                                           "llm-quantize-kv{attention=8}"));

// A context of two splits: their workgroups follow it, step by step, also
// while steps are submitted ahead, and no width changes a bit.
TEST_F(CompiledModelTest, LongContextsAreSplit) {
  contextSize = 512;
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  constexpr size_t kBefore = 245, kTail = 24, kSampled = 20;
  std::vector<uint32_t> tokens = someTokens(kBefore + kTail);
  auto tail = [&](size_t piece) {
    EXPECT_TRUE(session->truncate(0).ok());
    EXPECT_TRUE(session->append(tokens.data(), kBefore).ok());
    std::vector<float> logits(kTail * vocabulary);
    for (size_t at = 0; at < kTail; at += piece) {
      size_t count = std::min(piece, kTail - at);
      Status status = session->evaluate(tokens.data() + kBefore + at, count,
                                        logits.data() + at * vocabulary);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return logits;
  };
  std::vector<float> one = tail(1);
  for (float number : one)
    ASSERT_TRUE(std::isfinite(number));
  for (size_t piece : {3, 4, 16})
    EXPECT_TRUE(sameBits(one, tail(piece))) << "in pieces of " << piece;

  std::vector<uint32_t> sampled;
  ASSERT_TRUE(session->truncate(0).ok());
  ASSERT_TRUE(session->start(tokens.data(), kBefore, kSampled).ok());
  for (size_t i = 0; i < kSampled; ++i) {
    auto token = session->next();
    ASSERT_TRUE(token.ok()) << token.status().message();
    sampled.push_back(*token);
  }
  std::vector<uint32_t> known(tokens.begin(), tokens.begin() + kBefore);
  std::vector<float> row(vocabulary);
  ASSERT_TRUE(session->truncate(0).ok());
  ASSERT_TRUE(session->append(known.data(), kBefore - 1).ok());
  for (size_t i = 0; i < kSampled; ++i) {
    ASSERT_TRUE(session->evaluate(&known.back(), 1, row.data()).ok());
    known.push_back(largest(row.data()));
    EXPECT_EQ(sampled[i], known.back()) << "token " << i;
  }
}

std::atomic<uint32_t> submissions, partsOfGrids;
vulkan::DeviceFunctions real;

// A device so slow that nearly every dispatch of a step would run into its
// driver's watchdog: they are split, the step is many submissions, and not a
// bit changes. The context is of two splits, so attention is split as well.
TEST_F(CompiledModelTest, StepsShortOfTheWatchdog) {
  contextSize = 512;
  intercept = [](vulkan::DeviceFunctions &functions) {
    real = functions;
    functions.QueueSubmit = [](auto... arguments) {
      ++submissions;
      return real.QueueSubmit(arguments...);
    };
    functions.CmdDispatchBase = [](auto... arguments) {
      ++partsOfGrids;
      real.CmdDispatchBase(arguments...);
    };
  };
  auto profile = findProfile("lavapipe");
  ASSERT_TRUE(bool(profile));
  profile->rates = {/*readGbPerSecond=*/1e-5, /*gflopPerSecond=*/1e-4,
                    /*dispatchMicroseconds=*/20, /*watchdogSeconds=*/2};
  ASSERT_FALSE(::llvm::errorToBool(::llvm::writeToOutput(
      file("slow.json"), [&](::llvm::raw_ostream &os) {
        os << printProfile(*profile);
        return ::llvm::Error::success();
      })));
  std::vector<float> expected[2];
  for (bool slow : {false, true}) {
    compile("default", slow ? file("slow.json") : "lavapipe");
    if (IsSkipped() || HasFatalFailure())
      return;
    submissions = partsOfGrids = 0;
    std::vector<float> logits[2] = {evaluate(1), evaluate(16)};
    std::vector<float> row(vocabulary);
    ASSERT_TRUE(session->truncate(0).ok());
    std::vector<uint32_t> tokens = someTokens(300);
    ASSERT_TRUE(
        session->evaluateLast(tokens.data(), tokens.size(), row.data()).ok());
    logits[0].insert(logits[0].end(), row.begin(), row.end());
    if (!slow) {
      EXPECT_EQ(partsOfGrids, 0u);
      std::move(logits, logits + 2, expected);
      continue;
    }
    EXPECT_GT(partsOfGrids, 100u);
    EXPECT_GT(submissions, 1000u);
    EXPECT_TRUE(sameBits(expected[0], logits[0]));
    EXPECT_TRUE(sameBits(expected[1], logits[1]));
  }
}

// A hundred times, with other widths in between. Repeats across processes are
// determinism.test.
TEST_F(CompiledModelTest, RepeatsAreEqual) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  constexpr size_t kRepeats = 100, kCount = 5, kSampled = 4;
  std::vector<float> expected(kCount * vocabulary), got(kCount * vocabulary);
  std::vector<uint32_t> expectedTokens;
  const size_t between[] = {1, 3, 16, 64, 20};
  for (size_t repeat = 0; repeat < kRepeats; ++repeat) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(
        session->append(kTokens.data(), between[repeat % std::size(between)])
            .ok());
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->evaluate(kTokens.data(), kCount, got.data()).ok());
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->start(kTokens.data(), kCount, kSampled).ok());
    std::vector<uint32_t> tokens;
    for (size_t i = 0; i < kSampled; ++i) {
      auto token = session->next();
      ASSERT_TRUE(token.ok()) << token.status().message();
      tokens.push_back(*token);
    }
    if (repeat == 0) {
      expected = got;
      expectedTokens = tokens;
    }
    ASSERT_TRUE(sameBits(expected, got)) << "repeat " << repeat;
    ASSERT_EQ(expectedTokens, tokens) << "repeat " << repeat;
  }
}

TEST_F(CompiledModelTest, SamplingTakesTheLargestLogit) {
  compile("biases", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  constexpr size_t kSampled = 6;
  const size_t count = 11;
  std::vector<uint32_t> expected(kTokens.begin(), kTokens.begin() + count);
  std::vector<float> row(vocabulary);
  for (size_t i = 0; i < kSampled; ++i) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(
        session->evaluateLast(expected.data(), expected.size(), row.data())
            .ok());
    expected.push_back(largest(row.data()));
  }
  ASSERT_TRUE(session->truncate(0).ok());
  ASSERT_TRUE(session->start(kTokens.data(), count, kSampled).ok());
  for (size_t i = 0; i < kSampled; ++i) {
    auto token = session->next();
    ASSERT_TRUE(token.ok()) << token.status().message();
    EXPECT_EQ(*token, expected[count + i]);
  }
}

// The target that needs nothing but Vulkan 1.1 gives nearly the same numbers.
TEST_F(CompiledModelTest, TheFallbackAgrees) {
  compile("odd-groups", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> expected = evaluate(4);
  compile("odd-groups", "generic");
  if (IsSkipped() || HasFatalFailure())
    return;
  std::vector<float> got = evaluate(4);
  // A key or value next to the middle of two f16 numbers may be rounded to
  // either of them.
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 5e-3f) << i;
}

} // namespace
