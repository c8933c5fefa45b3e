// llm-eval's parts on a model that can be followed by hand.
#include "tools/Eval/Evaluate.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;

namespace {

/// Logits of token t are row t of a table: a bigram model over three tokens.
std::string bigram(const std::string &table) {
  return R"(func.func @forward(%ids: tensor<?xi32>, %p: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x3xf32> {
  %t = llm.weight dense<)" +
         table + R"(> : tensor<3x3xf16>
  %x = llm.embedding %ids, %t : tensor<3x3xf16> -> tensor<?x3xf32>
  %y = llm.select_rows %x, %rows : tensor<?x3xf32>, tensor<?xi32>
  return %y : tensor<?x3xf32>
})";
}

/// Models whose tokens are the digits of a text; a test of what stands between a file and scores.
class Digits final : public EvalModel {
public:
  int64_t vocabulary() const override { return 10; }
  uint64_t weightBytes() const override { return 0; }
  llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) override {
    std::vector<int32_t> ids;
    for (char c : text)
      if (c >= '0' && c <= '9')
        ids.push_back(c - '0');
    return ids;
  }
  llvm::Expected<int32_t> beginToken() override { return 9; }
  llvm::Expected<bool> addsBegin() override { return begins; }
  llvm::Error reset() override { return llvm::Error::success(); }
  llvm::Expected<reference::Tensor> step(llvm::ArrayRef<int32_t> tokens) override {
    float *logits;
    auto result = reference::Tensor::make<float>({int64_t(tokens.size()), 10}, logits);
    std::fill_n(logits, tokens.size() * 10, 0.0f);
    return result;
  }
  bool begins = false; ///< the tokenizer's habit
};

class Evaluate : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-eval", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string write(const std::string &name, const std::string &content) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << content;
    return path.str().str();
  }
  std::unique_ptr<EvalModel> open(const std::string &path, OpenOptions options = {}) {
    auto model = EvalModel::open(path, options);
    if (!model) {
      ADD_FAILURE() << llvm::toString(model.takeError());
      return nullptr;
    }
    return std::move(*model);
  }
  std::string failure(llvm::StringRef path, OpenOptions options = {}) {
    auto model = EvalModel::open(path, options);
    return model ? "" : llvm::toString(model.takeError());
  }

  SmallString<128> folder;
  reference::Workers workers{2};
};

constexpr auto kSilent = [](size_t, size_t, llvm::ArrayRef<WindowResult>) {};

} // namespace

TEST_F(Evaluate, CutsCharactersIntoWindows) {
  Digits model;
  TextOptions options;
  // The first three characters are not ASCII, and two of them are two bytes long, one three.
  options.file = write("text", "\xc3\xa9\xc3\xa9\xe2\x82\xac"
                               "0123456789");
  options.skipChars = 4, options.chars = 7, options.window = 3;
  auto windows = cutText(model, options);
  ASSERT_TRUE(bool(windows));
  EXPECT_EQ(*windows, (std::vector<std::vector<int32_t>>{{1, 2, 3}, {4, 5, 6}}));
  options.begin = true, options.windows = 1;
  windows = cutText(model, options);
  ASSERT_TRUE(bool(windows));
  EXPECT_EQ(*windows, (std::vector<std::vector<int32_t>>{{9, 1, 2}}));
  model.begins = true;
  for (auto [asked, first] : {std::pair{std::optional<bool>(), 9}, {std::optional(false), 1}}) {
    options.begin = asked; // what the tokenizer does counts where nothing is asked for
    windows = cutText(model, options);
    ASSERT_TRUE(bool(windows));
    EXPECT_EQ(windows->front().front(), first);
  }
  options.windows = 3;
  windows = cutText(model, options);
  ASSERT_FALSE(bool(windows));
  EXPECT_NE(llvm::toString(windows.takeError()).find("expects 9 tokens of text"), std::string::npos);
  options.skipChars = 13;
  windows = cutText(model, options);
  EXPECT_NE(llvm::toString(windows.takeError()).find("expects more than 13 characters, but has 13"), std::string::npos);
}

TEST_F(Evaluate, ScoresWindows) {
  // After 0 the probabilities are 1/2, 1/4, 1/4; after 1 they are 1/3 each.
  auto model = open(write("a.mlir", bigram("[[0.6931, 0.0, 0.0], [0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]")));
  auto other = open(write("b.mlir", bigram("[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 9.0, 0.0]]")));
  ASSERT_TRUE(model && other);
  EXPECT_EQ(model->vocabulary(), 3);
  EXPECT_EQ(model->weightBytes(), 18u);
  const std::vector<std::vector<int32_t>> windows = {{0, 0, 1, 2}, {1, 0}};
  auto scores = scoreWindows(*model, other.get(), windows, workers, kSilent);
  ASSERT_TRUE(bool(scores));
  EXPECT_NEAR((*scores)[0].negativeLogLikelihood, (std::log(2.0) + std::log(4.0) + std::log(3.0)) / 3, 1e-3);
  EXPECT_NEAR((*scores)[1].negativeLogLikelihood, std::log(3.0), 1e-6);
  // Two rows after 0: KL(uniform ‖ (1/2, 1/4, 1/4)) = ln(1/3) + (ln 2 + ln 4 + ln 4) / 3; the third is equal.
  EXPECT_NEAR((*scores)[0].divergence, 2.0 / 3 * (std::log(1 / 3.0) + 5 * std::log(2.0) / 3), 1e-3);
  EXPECT_NEAR((*scores)[1].divergence, 0, 1e-9);
  EXPECT_EQ((*scores)[0].predicted, 3);
  EXPECT_EQ((*scores)[0].agreed, 3); // the first of equals is 0
}

TEST_F(Evaluate, Tokens) {
  const std::string path = write("a.mlir", bigram("[[1.0, 2.0, 3.0], [0.0, 5.0, 0.0], [9.0, 0.0, 0.0]]"));
  for (auto precision : {reference::Precision::F32, reference::Precision::F64}) {
    OpenOptions options;
    options.precision = precision;
    auto model = open(path, options);
    ASSERT_TRUE(model);
    auto last = evaluateTokens(*model, nullptr, {1, 2, 0}, LogitRows::Last, workers);
    ASSERT_TRUE(bool(last));
    EXPECT_EQ(last->argmax, (std::vector<int32_t>{1, 0, 2}));
    EXPECT_EQ(last->logits, (std::vector<std::vector<double>>{{1, 2, 3}}));
    EXPECT_EQ(evaluateTokens(*model, nullptr, {1, 2, 0}, LogitRows::First, workers)->logits,
              (std::vector<std::vector<double>>{{0, 5, 0}}));
    EXPECT_EQ(evaluateTokens(*model, nullptr, {1, 2, 0}, LogitRows::All, workers)->logits.size(), 3u);
    auto outside = evaluateTokens(*model, nullptr, {3}, LogitRows::All, workers);
    EXPECT_NE(llvm::toString(outside.takeError()).find("expects tokens from 0 to 2, but got 3"), std::string::npos);
  }
}

TEST_F(Evaluate, WeightsAreCountedOnceAndInTheirCodes) {
  auto model = open(write("w.mlir", R"(llm.source @m {path = "none.gguf", format = "gguf"}
  func.func @forward(%ids: tensor<?xi32>, %p: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x4xf32> {
    %w = llm.weight @m["e"] : tensor<4x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %again = llm.weight @m["e"] : tensor<4x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %x = llm.embedding %ids, %w : tensor<4x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<?x32xf32>
    %d = llm.dequantize %again : tensor<4x32x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>> -> tensor<4x32xf32>
    %g = llm.weight @m["g"] : tensor<32xf32>
    %n = llm.rms_norm %x gamma(%g : tensor<32xf32>) eps(1.0e-5) : tensor<?x32xf32>
    %y = llm.linear %n, %d : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })"));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->weightBytes(), 4u * 20 + 32 * 4);
}

TEST_F(Evaluate, SaysWhatIsWrong) {
  EXPECT_NE(failure(folder.str().str() + "/none.mlir").find("none.mlir"), std::string::npos);
  EXPECT_NE(failure(write("bad.mlir", "func.func @f(")).find("bad.mlir"), std::string::npos);
  EXPECT_NE(
      failure(write("f.mlir", "func.func @forward(%x: tensor<1xf32>) { return }")).find("expects a function @forward"),
      std::string::npos);
  OpenOptions options;
  options.function = "other";
  EXPECT_NE(failure(write("a.mlir", bigram("1.0")), options).find("expects a function @other"), std::string::npos);
  auto model = open(write("b.mlir", bigram("1.0")));
  ASSERT_TRUE(model);
  auto ids = model->tokenize("x");
  EXPECT_NE(llvm::toString(ids.takeError()).find("has no tokenizer; give --tokens"), std::string::npos);
  Digits ten;
  auto scores = scoreWindows(*model, &ten, {{0, 1}}, workers, kSilent);
  EXPECT_NE(llvm::toString(scores.takeError()).find("one vocabulary, but got 3 and 10"), std::string::npos);
}
