// Drafts that are part of a package, on a generated model: a function that
// shares the model's weights and cache, and heads on its last hidden state.
#include "lib/Weights/SafetensorsWriter.h"
#include "runtime/sprig.h"
#include "test/tools/SpeculationTest.h"
#include "tools/Compression.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

constexpr int64_t kWidth = 64, kHeads = 3;

/// A safetensors file of tensors in f32.
class HeadsFile {
public:
  explicit HeadsFile(const std::string &path)
      : writer(cantFail(SafetensorsWriter::create(path))) {}

  void add(const std::string &key, std::vector<int64_t> shape, float scale) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::vector<float> numbers(static_cast<size_t>(count));
    std::normal_distribution<float> normal(0, 1);
    for (float &number : numbers)
      number = scale * normal(random);
    cantFail(writer->add(key, quant::Format::F32, shape,
                         std::as_bytes(std::span(numbers))));
  }
  void finish() { cantFail(writer->finish()); }

private:
  std::unique_ptr<SafetensorsWriter> writer;
  std::mt19937 random{7};
};

/// Heads as those of Medusa, without tables: `scale` 0 makes them say what the
/// model has just said.
void writeMedusa(const std::string &path, float scale, int64_t width = kWidth) {
  HeadsFile file(path);
  for (int i = 0; i < kHeads; ++i) {
    file.add(std::to_string(i) + ".0.linear.weight", {width, width}, scale);
    file.add(std::to_string(i) + ".0.linear.bias", {width}, scale);
  }
  file.finish();
}

void writeRidge(const std::string &path) {
  HeadsFile file(path);
  file.add("ridge.hidden.weight", {kWidth, kWidth}, 0.1f);
  file.add("ridge.embedding.weight", {kWidth, kWidth}, 2.0f);
  file.add("ridge.bias", {kWidth}, 0.1f);
  file.finish();
}

/// A package that is compiled with drafts.
class DraftsTest : public mlir::llm::testing::SpeculationTest {
protected:
  explicit DraftsTest(std::vector<std::string> drafts)
      : specs(std::move(drafts)) {}

  void prepare(CompileOptions &options) override {
    writeMedusa(file("zero.safetensors"), 0);
    writeMedusa(file("medusa.safetensors"), 0.3f);
    writeRidge(file("ridge.safetensors"));
    std::string passes;
    for (std::string spec : specs) {
      if (StringRef(spec).starts_with("heads:"))
        spec = "heads:" + file(spec.substr(6));
      passes += cantFail(draftPass(spec, /*hasText=*/false)) + ",";
    }
    options.passPipeline = "builtin.module(" + passes + "llm-default-pipeline)";
  }

  const format::Draft &draft(std::string_view name) {
    return *findDraft(session->model().metadata(), name);
  }

  /// What the draft says behind the prompt and `steps` tokens more, and the
  /// last of them.
  std::pair<std::vector<uint32_t>, uint32_t>
  guessesAfter(uint32_t steps, std::string_view name) {
    EXPECT_TRUE(session->truncate(0).ok());
    EXPECT_TRUE(session->start(prompt.data(), prompt.size(), steps + 1).ok());
    uint32_t last = 0;
    for (uint32_t i = 0; i <= steps; ++i) {
      auto token = session->next();
      EXPECT_TRUE(token.ok()) << token.status().message();
      last = *token;
    }
    std::vector<uint32_t> guesses(5);
    auto made = session->guess(draft(name), 5, guesses.data());
    EXPECT_TRUE(made.ok()) << made.status().message();
    guesses.resize(*made);
    return {guesses, last};
  }

  void tokensAreThoseOfPlainDecoding(
      const std::vector<std::vector<std::string>> &modes) {
    Sampling greedy, sampled;
    sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
    sampled.repeatPenalty = 1.1f, sampled.repeatLastN = 16;
    GenerationOptions options;
    options.most = 60;
    for (const Sampling &sampling : {greedy, sampled}) {
      ASSERT_TRUE(session->setSampling(sampling).ok());
      const Answer plain = generate(options, nullptr);
      for (const auto &drafts : modes) {
        SpeculationOptions with;
        with.drafts = drafts;
        auto made = Speculator::create(*session, with);
        ASSERT_TRUE(made.ok()) << made.status().message();
        EXPECT_EQ(generate(options, made->get()), plain)
            << drafts.back() << " at " << sampling.temperature;
        trees += (*made)->counts().trees;
        accepted += (*made)->counts().accepted;
        drafted += (*made)->counts().drafted;
      }
    }
  }

  std::vector<std::string> specs;
  uint64_t trees = 0, accepted = 0, drafted = 0;
};

/// The model with its weights in 8 bits, and random heads.
class SelfAndHeadsTest : public DraftsTest {
protected:
  SelfAndHeadsTest() : DraftsTest({"bits:8", "heads:medusa.safetensors"}) {}
};

TEST_F(SelfAndHeadsTest, TokensAreThoseOfPlainDecoding) {
  tokensAreThoseOfPlainDecoding(
      {{"self"}, {"heads"}, {"ngram", "self", "heads"}, {"auto"}});
  EXPECT_GT(trees, 0u);
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, drafted);
}

TEST_F(SelfAndHeadsTest, TheCacheIsThatOfPlainDecoding) {
  GenerationOptions options;
  options.most = 40;
  auto saved = [&](const std::string &name, std::vector<std::string> drafts) {
    SpeculationOptions with;
    with.drafts = std::move(drafts);
    std::unique_ptr<Speculator> speculator;
    if (!with.drafts.empty())
      speculator = std::move(*Speculator::create(*session, with));
    generate(options, speculator.get());
    EXPECT_TRUE(session->save(file(name), "").ok());
    auto bytes = ::llvm::MemoryBuffer::getFile(file(name));
    return bytes ? (*bytes)->getBuffer().str() : std::string();
  };
  const std::string plain = saved("plain.session", {});
  EXPECT_TRUE(saved("self.session", {"self"}) == plain);
  EXPECT_TRUE(saved("mixed.session", {"ngram", "self", "heads"}) == plain);
}

TEST_F(SelfAndHeadsTest, GuessesEndWithTheContextAndAreNamed) {
  std::vector<uint32_t> tokens(session->capacity() - 2, 1), guesses(8);
  auto early = session->guess(draft("self"), 2, guesses.data());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.status().code(), StatusCode::InvalidArgument);
  ASSERT_TRUE(session->start(tokens.data(), tokens.size(), 1).ok());
  ASSERT_TRUE(session->next().ok());
  auto made = session->guess(draft("self"), 8, guesses.data());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(*made, 2u);
  EXPECT_TRUE(draft("self").repeats());
  EXPECT_EQ(draft("self").description()->str(), "bits:8");
  EXPECT_EQ(draft("heads").count(), uint32_t(kHeads));
  EXPECT_FALSE(draft("heads").repeats());
}

/// Heads that add nothing say again what the model has said: they read the
/// hidden state of the last token, however it came.
class ZeroHeadsTest : public DraftsTest {
protected:
  ZeroHeadsTest() : DraftsTest({"heads:zero.safetensors", "skip:1"}) {}
};

TEST_F(ZeroHeadsTest, HeadsReadTheLastHiddenState) {
  for (uint32_t steps : {0u, 1u, 6u}) {
    auto [guesses, last] = guessesAfter(steps, "heads");
    EXPECT_EQ(guesses, std::vector<uint32_t>(size_t(kHeads), last)) << steps;
  }
  // After trees of which none, some and all nodes are accepted.
  GenerationOptions options;
  options.most = 12;
  const std::vector<uint32_t> right = generate(options, nullptr).tokens;
  for (uint32_t good : {0u, 1u, 3u}) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->start(prompt.data(), prompt.size(), 12).ok());
    ASSERT_TRUE(session->hold(true).ok());
    while (session->waiting() > 1)
      ASSERT_TRUE(session->next().ok());
    ASSERT_TRUE(session->next().ok());
    const size_t at = session->tokens().size() - prompt.size();
    // A wrong sibling first, so that the right path is not the first rows.
    std::vector<uint32_t> nodes = {session->tokens().back(),
                                   (right[at] + 1) % 200, right[at],
                                   right[at + 1], right[at + 2]};
    std::vector<int32_t> parents = {-1, 0, 0, 2, 3};
    for (uint32_t i = 2 + good; i < nodes.size(); ++i)
      nodes[i] = (nodes[i] + 1) % 200;
    auto taken = session->stepTree(nodes.data(), parents.data(), 5);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_EQ(*taken, good + 1);
    uint32_t last = 0;
    while (session->waiting() > 0)
      last = *session->next();
    std::vector<uint32_t> guesses(kHeads, 0);
    ASSERT_TRUE(session->guess(draft("heads"), kHeads, guesses.data()).ok());
    EXPECT_EQ(guesses, std::vector<uint32_t>(size_t(kHeads), last)) << good;
    // Plain steps go on as if nobody had guessed.
    ASSERT_TRUE(session->hold(false).ok());
    for (size_t i = session->tokens().size() - prompt.size(); i < right.size();
         ++i)
      EXPECT_EQ(*session->next(), right[i]) << good << " at " << i;
  }
}

TEST_F(ZeroHeadsTest, ADraftWithoutALayerSharesAllWeights) {
  EXPECT_EQ(draft("self").description()->str().substr(0, 5), "skip:");
  // A weight that is there twice gets a number behind its name.
  for (const auto *tensor : *session->model().metadata().tensors())
    EXPECT_FALSE(StringRef(tensor->name()->str()).ends_with("_0"))
        << tensor->name()->str();
  tokensAreThoseOfPlainDecoding({{"self"}, {"self", "heads"}});
}

class RidgeTest : public DraftsTest {
protected:
  RidgeTest() : DraftsTest({"heads:ridge.safetensors"}) {}
};

TEST_F(RidgeTest, EachGuessStartsFromTheOneBefore) {
  EXPECT_TRUE(draft("heads").repeats());
  EXPECT_EQ(draft("heads").count(), 2u);
  auto [guesses, last] = guessesAfter(3, "heads");
  ASSERT_EQ(guesses.size(), 5u);
  // The same again, and the first ones of a shorter chain.
  EXPECT_EQ(guessesAfter(3, "heads").first, guesses);
  EXPECT_GT(std::set<uint32_t>(guesses.begin(), guesses.end()).size(), 1u);
  tokensAreThoseOfPlainDecoding({{"heads"}, {"auto"}});
}

TEST_F(RidgeTest, WhatIsMissingIsNamed) {
  auto message = [&](std::string name) {
    SpeculationOptions options;
    options.drafts = {std::move(name)};
    auto made = Speculator::create(*session, options);
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(message("self").find("with the draft 'self'"), std::string::npos);
  EXPECT_EQ(message("heads"), "");
  // From C, too.
  const mlir::llm::testing::HeldSession opened(package());
  ASSERT_NE(opened.session, nullptr);
  sprig_session *held = opened.session;
  sprig_speculation speculation;
  sprig_speculation_init(&speculation);
  speculation.drafts = "self";
  EXPECT_EQ(sprig_session_set_speculation(held, &speculation),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sprig_last_error()).find("--draft=skip:auto"),
            std::string::npos);
  speculation.drafts = "ngram,heads";
  EXPECT_EQ(sprig_session_set_speculation(held, &speculation), SPRIG_OK)
      << sprig_last_error();
}

/// Compiling refuses what does not fit, by name.
class RefusedDraftsTest : public mlir::llm::testing::DeviceModelTest {
protected:
  std::string refusal(const std::string &passes) {
    EXPECT_FALSE(::llvm::errorToBool(mlir::llm::testing::writeTinyLlama(
        file("tiny.gguf"), *mlir::llm::testing::tinyLlamaVariant("default"))));
    CompileOptions options = optionsFor(file("tiny.gguf"), "generic");
    options.emit = Emit::LLM;
    options.output = file("out.mlir");
    options.passPipeline = "builtin.module(" + passes + ")";
    MLIRContext context(registry());
    std::string message;
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
    EXPECT_TRUE(failed(compileModel(context, options))) << passes;
    return message;
  }
  void expect(const std::string &passes, StringRef part) {
    const std::string message = refusal(passes);
    EXPECT_TRUE(StringRef(message).contains(part)) << passes << ": " << message;
  }
};

TEST_F(RefusedDraftsTest, HeadsThatDoNotFit) {
  writeMedusa(file("wide.safetensors"), 1, 72);
  expect("llm-attach-heads{file=" + file("wide.safetensors") + "}",
         "'0.0.linear.weight' to be 64x64");
  {
    HeadsFile other(file("other.safetensors"));
    other.add("norm.weight", {kWidth}, 1);
    other.finish();
  }
  expect("llm-attach-heads{file=" + file("other.safetensors") + "}",
         "(Medusa) or ridge.hidden.weight");
  {
    HeadsFile table(file("table.safetensors"));
    table.add("0.0.linear.weight", {kWidth, kWidth}, 1);
    table.add("0.0.linear.bias", {kWidth}, 1);
    table.add("0.1.weight", {100, kWidth}, 1);
    table.finish();
  }
  expect("llm-attach-heads{file=" + file("table.safetensors") + "}",
         "'0.1.weight' to be 288x64");
  {
    HeadsFile half(file("half.safetensors"));
    half.add("ridge.hidden.weight", {kWidth, kWidth}, 1);
    half.finish();
  }
  expect("llm-attach-heads{file=" + file("half.safetensors") + "}",
         "'ridge.embedding.weight', but has none");
  expect("llm-attach-heads{file=" + file("none.safetensors") + "}",
         "none.safetensors");
  writeMedusa(file("fused.safetensors"), 1);
  expect("llm-default-pipeline,llm-attach-heads{file=" +
             file("fused.safetensors") + "}",
         "before norms are fused");
}

TEST_F(RefusedDraftsTest, LayersAndPassesThatDoNotFit) {
  expect("llm-make-draft{skip=2}", "0 to 1 of its layers, but got 2");
  expect("llm-make-draft{layers=5}", "has no layer 5");
  expect("llm-make-draft{skip=1 layers=0}", "but got both");
  expect("llm-make-draft", "layers or passes");
  expect("llm-make-draft{skip=1},llm-make-draft{skip=1}", "but it has one");
  expect("llm-make-draft{passes=llm-no-such-pass}",
         "expects passes for the draft");
  expect("llm-make-draft{passes=llm-quantize-kv}",
         "leave the caches as they are");
  for (const char *spec : {"skip:0", "skip:", "skip:5-2", "ffn:1", "ffn:x",
                           "bits:1", "bits:9", "heads:", "trees:3",
                           "skip:1,skip:1", "bits:3,bits:3", "tokens:4", ""}) {
    auto made = draftPass(spec, false);
    EXPECT_FALSE(bool(made)) << spec;
    if (!made)
      EXPECT_TRUE(StringRef(::llvm::toString(made.takeError()))
                      .starts_with("--draft expects "))
          << spec;
  }
}

} // namespace
