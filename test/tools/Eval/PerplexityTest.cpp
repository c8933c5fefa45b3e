// Perplexity of the models with real weights against shared/reference/perplexity.json (Hugging Face transformers, f32).
#include "tools/Eval/Evaluate.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;

/// `most`: windows that are compared, for the time it takes.
static void expectPerplexity(const char *name, const std::string &file, const char *fetch, bool bos, size_t most) {
  const std::string model = SPRIG_BINARY_DIR "/models/" + file;
  const std::string shared = SPRIG_SHARED_DIR;
  if (!llvm::sys::fs::exists(model))
    GTEST_SKIP() << "needs " << model << ": run " << fetch;
  auto buffer = llvm::MemoryBuffer::getFile(shared + "/reference/perplexity.json");
  if (!buffer)
    GTEST_SKIP() << "needs " << shared << "/reference";
  auto expected = llvm::json::parse((*buffer)->getBuffer());
  ASSERT_TRUE(bool(expected));
  const llvm::json::Array *windows = expected->getAsObject()->getObject(name)->getArray("window_nll");

  auto opened = EvalModel::open(model, {});
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  TextOptions text;
  text.file = shared + "/text/persuasion.txt";
  text.skipChars = 2000, text.chars = 38000, text.windows = int64_t(std::min(most, windows->size())), text.begin = bos;
  auto tokens = cutText(**opened, text);
  ASSERT_TRUE(bool(tokens)) << llvm::toString(tokens.takeError());
  reference::Workers workers;
  auto scores = scoreWindows(**opened, nullptr, *tokens, workers, [](size_t, size_t, auto) {});
  ASSERT_TRUE(bool(scores)) << llvm::toString(scores.takeError());
  ASSERT_EQ(scores->size(), size_t(text.windows));
  for (size_t i = 0; i < scores->size(); ++i)
    EXPECT_NEAR((*scores)[i].negativeLogLikelihood, *(*windows)[i].getAsNumber(), 0.0005) << "window " << i;
}

TEST(Perplexity, SmolLM2AgreesWithTransformers) {
  expectPerplexity("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "tools/fetch-model.sh", false, 4);
}

TEST(Perplexity, Gemma3AgreesWithTransformers) {
  expectPerplexity("gemma3", "gemma-3-270m-q4_k_m.gguf", "tools/fetch-model.sh gemma3-270m", true, 2);
}
