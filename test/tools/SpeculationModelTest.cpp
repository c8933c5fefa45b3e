// Drafts on a generated model: the tokens are those of plain decoding, whatever
// is guessed, however the answer ends.
#include "runtime/sprig.h"
#include "test/runtime/Tiny/CountedAllocations.h"
#include "test/tools/SteadyLoop.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

size_t mlir::llm::testing::allocationsSoFar() { return allocations; }

namespace {

using SpeculationModelTest = mlir::llm::testing::SpeculationTest;

TEST_F(SpeculationModelTest, TokensAreThoseOfPlainDecoding) {
  Sampling greedy, all, nucleus, penalised;
  all.temperature = 0.7f, all.seed = 3;
  nucleus.temperature = 0.6f, nucleus.topP = 0.8f, nucleus.topK = 12;
  nucleus.minP = 0.05f;
  penalised.temperature = 0.5f, penalised.repeatPenalty = 1.1f;
  penalised.repeatLastN = 16, penalised.seed = 9;
  GenerationOptions options;
  options.most = 60;
  uint64_t trees = 0, accepted = 0;
  for (const Sampling &sampling : {greedy, all, nucleus, penalised}) {
    ASSERT_TRUE(session->setSampling(sampling).ok());
    const Answer plain = generate(options, nullptr);
    ASSERT_EQ(plain.tokens.size(), 60u);
    for (const char *name : {"ngram", "self", "auto"})
      for (bool chain : {false, true}) {
        auto with = speculator(name, chain);
        EXPECT_EQ(generate(options, with.get()), plain)
            << name << (chain ? " in chains" : "") << " at temperature "
            << sampling.temperature;
        EXPECT_EQ(with->counts().tokens, 60u);
        EXPECT_LE(with->counts().steps, 60u);
        trees += with->counts().trees;
        accepted += with->counts().accepted;
      }
  }
  EXPECT_GT(trees, 0u);
  EXPECT_GT(accepted, 0u);
}

TEST_F(SpeculationModelTest, AModelGuessesForAnother) {
  // The model itself is always right, greedy or sampled; another one mostly
  // wrong. The tokens are the same.
  auto open = [&](const std::string &name, StringRef variant) {
    EXPECT_FALSE(::llvm::errorToBool(mlir::llm::testing::writeTinyLlama(
        file("draft.gguf"),
        *mlir::llm::testing::tinyLlamaVariant(variant))));
    CompileOptions options = optionsFor(file("draft.gguf"), "lavapipe");
    options.output = file(name);
    options.context = 100; // less than the model's
    options.widths = {1, 16};
    compile(options);
    ModelOptions model;
    model.cacheFolder = "";
    auto opened = Model::open(file(name), model);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? *opened : nullptr;
  };
  auto same = open("same.sprig", "default"), other = open("other.sprig", "q8_0"),
       foreign = open("foreign.sprig", "padded");
  ASSERT_TRUE(same && other && foreign);
  SpeculationOptions options;
  options.drafts = {"model"};
  options.model = foreign;
  auto refused = Speculator::create(*session, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("foreign.sprig: expects a draft with "
                                            "the vocabulary of the model"),
            std::string::npos)
      << refused.status().message();
  options.model = nullptr;
  EXPECT_FALSE(Speculator::create(*session, options).ok());

  GenerationOptions generation;
  generation.most = 80; // past the draft's context
  for (float temperature : {0.0f, 0.8f}) {
    Sampling sampling;
    sampling.temperature = temperature;
    sampling.topP = 0.9f;
    ASSERT_TRUE(session->setSampling(sampling).ok());
    const Answer plain = generate(generation, nullptr);
    const std::pair<const char *, std::shared_ptr<Model>> cases[] = {
        {"model", same}, {"model", other}, {"ngram", same}, {"auto", same}};
    for (const auto &[name, draft] : cases) {
      options.drafts = {name};
      if (options.drafts[0] == "ngram")
        options.drafts.push_back("model");
      options.model = draft;
      auto with = Speculator::create(*session, options);
      ASSERT_TRUE(with.ok()) << with.status().message();
      EXPECT_EQ(generate(generation, with->get()), plain)
          << name << " at temperature " << temperature;
      const SpeculationCounts &counts = (*with)->counts();
      if (&draft == &cases[0].second) {
        EXPECT_EQ(counts.accepted, counts.drafted);
        EXPECT_LT(counts.steps, 60u);
      }
    }
  }
}

TEST_F(SpeculationModelTest, TheCacheIsThatOfPlainDecoding) {
  // Byte for byte, as far as it is alive; a saved session holds just that.
  GenerationOptions options;
  options.most = 50;
  auto saved = [&](const std::string &name, Speculator *with) {
    generate(options, with);
    Status status = session->save(file(name), "");
    EXPECT_TRUE(status.ok()) << status.message();
    auto bytes = ::llvm::MemoryBuffer::getFile(file(name));
    return bytes ? (*bytes)->getBuffer().str() : std::string();
  };
  const std::string plain = saved("plain.session", nullptr);
  auto with = speculator("ngram");
  EXPECT_FALSE(plain.empty());
  EXPECT_TRUE(saved("trees.session", with.get()) == plain);
  EXPECT_LT(with->counts().accepted, with->counts().drafted); // some were wrong
  // What trees left behind the live part is never read: a session in which it
  // is NaN goes on alike.
  prompt = session->tokens();
  options.most = 20;
  const Answer next = goOn(options, with.get());
  with.reset();
  open(/*validated=*/false, /*poisoned=*/true);
  std::string note;
  ASSERT_TRUE(session->load(file("trees.session"), note).ok());
  EXPECT_EQ(goOn(options, speculator("ngram").get()), next);
}

TEST_F(SpeculationModelTest, AnswersEndWherePlainOnesDo) {
  auto with = speculator("ngram");
  // Every number of tokens: inside of trees, too.
  for (uint64_t most : {1u, 2u, 3u, 5u, 8u, 13u, 21u}) {
    GenerationOptions options;
    options.most = most;
    const Answer plain = generate(options, nullptr);
    const Answer got = generate(options, with.get());
    EXPECT_EQ(got, plain) << most << " tokens";
    EXPECT_EQ(session->tokens().size(), prompt.size() + most);
    // And both go on from there alike.
    GenerationOptions more;
    more.most = 4;
    prompt = session->tokens();
    const Answer next = goOn(more, with.get());
    EXPECT_EQ(generate(more, nullptr), next) << "after " << most;
    prompt.resize(30);
  }
  // The context.
  GenerationOptions endless;
  endless.most = 1000;
  const Answer plain = generate(endless, nullptr);
  EXPECT_EQ(plain.finish, Finish::Context);
  EXPECT_EQ(generate(endless, with.get()), plain);
  EXPECT_EQ(generate(endless, speculator("auto").get()), plain);
}

TEST_F(SpeculationModelTest, EndTokensAndStopStringsCutInsideOfTrees) {
  auto tokenizer = session->model().text().tokenizer();
  if (!tokenizer.ok())
    GTEST_SKIP() << tokenizer.status().message();
  auto with = speculator("ngram");
  GenerationOptions options;
  options.most = 60;
  const Answer whole = generate(options, nullptr, *tokenizer);
  EXPECT_EQ(generate(options, with.get(), *tokenizer), whole);
  // Each part of the text ends it once.
  for (size_t at = 0; at + 2 < whole.text.size(); at += 5) {
    GenerationOptions stopped = options;
    stopped.stops = {whole.text.substr(at, 2)};
    const Answer plain = generate(stopped, nullptr, *tokenizer);
    EXPECT_EQ(generate(stopped, with.get(), *tokenizer), plain)
        << "at '" << stopped.stops[0] << "'";
  }
  // With ends ignored there are more tokens, or as many.
  options.ignoreEnd = true;
  const Answer more = generate(options, nullptr, *tokenizer);
  EXPECT_EQ(generate(options, with.get(), *tokenizer), more);
}

TEST_F(SpeculationModelTest, TheLoopAllocatesNothingAndReadsLittle) {
  // Validation layers allocate on the thread that calls them.
  open(/*validated=*/false, /*poisoned=*/false);
  if (IsSkipped() || HasFatalFailure())
    return;
  const struct {
    const char *name;
    Growth growth;
    bool drawn;
  } cases[] = {{"ngram", Growth::Comb, false},
               {"self", Growth::Comb, false},
               {"self", Growth::Clover, false},
               {"self", Growth::Eagle, false},
               {"self", Growth::Comb, true}};
  for (const auto &[name, growth, drawn] : cases) {
    SpeculationOptions options;
    options.drafts = {name};
    options.growth = growth;
    options.drawn = drawn;
    mlir::llm::testing::expectSteadyLoop(*session, prompt, options);
  }
}

TEST_F(SpeculationModelTest, WhatDoesNotFitIsNamed) {
  auto message = [&](std::vector<std::string> drafts, uint32_t nodes) {
    SpeculationOptions options;
    options.drafts = std::move(drafts);
    options.nodes = nodes;
    auto made = Speculator::create(*session, options);
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(message({"oracle"}, 0).find("'oracle'"), std::string::npos);
  EXPECT_NE(message({}, 0).find("name of a draft"), std::string::npos);
  EXPECT_NE(message({"ngram"}, 17).find("2 to 16 nodes"), std::string::npos);
  EXPECT_NE(message({"ngram"}, 1).find("but got 1"), std::string::npos);
  EXPECT_EQ(message({"ngram"}, 2), "");

  // Nodes that would lie behind the last slot are refused, and the last slot is
  // used.
  std::vector<uint32_t> tokens(session->capacity() - 3, 1);
  ASSERT_TRUE(session->start(tokens.data(), tokens.size(), 1).ok());
  auto last = session->next();
  ASSERT_TRUE(last.ok());
  std::vector<uint32_t> nodes(4, *last), accepted(4);
  std::vector<int32_t> star = {-1, 0, 0, 0};
  auto refused =
      session->verify(nodes.data(), star.data(), 4, accepted.data());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::Context);
  EXPECT_TRUE(session->verify(nodes.data(), star.data(), 3, accepted.data()).ok());
}

TEST_F(SpeculationModelTest, TheCInterfaceSpeculates) {
  GenerationOptions plain;
  plain.most = 90;
  const std::vector<uint32_t> expected = generate(plain, nullptr).tokens;
  const mlir::llm::testing::HeldSession opened(package());
  ASSERT_NE(opened.session, nullptr);
  sprig_session *held = opened.session;
  EXPECT_EQ(sprig_session_largest_tree(held), 16u);
  sprig_speculation speculation;
  sprig_speculation_init(&speculation);
  speculation.drafts = "ngram,oracle";
  EXPECT_EQ(sprig_session_set_speculation(held, &speculation),
            SPRIG_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sprig_last_error()).find("'oracle'"), std::string::npos);
  speculation.drafts = "ngram";
  ASSERT_EQ(sprig_session_set_speculation(held, &speculation), SPRIG_OK);
  std::vector<uint32_t> tokens;
  auto keep = [](void *user, uint32_t token, const char *, size_t) {
    if (token != UINT32_MAX)
      static_cast<std::vector<uint32_t> *>(user)->push_back(token);
    return 0;
  };
  sprig_generate_options options;
  sprig_generate_options_init(&options);
  options.max_tokens = 90;
  options.ignore_end = 1;
  ASSERT_EQ(sprig_generate(held, prompt.data(), prompt.size(), &options, keep,
                           &tokens, nullptr),
            SPRIG_OK)
      << sprig_last_error();
  EXPECT_EQ(tokens, expected);
  sprig_speculation_counts counts{};
  counts.struct_bytes = sizeof(counts);
  ASSERT_EQ(sprig_session_get_speculation(held, &counts), SPRIG_OK);
  EXPECT_EQ(counts.tokens, 90u);
  EXPECT_LT(counts.steps, 90u);

  // Trees of the caller's own: what is wrong with one is said, and nothing
  // changes.
  ASSERT_EQ(sprig_session_truncate(held, 0), SPRIG_OK);
  ASSERT_EQ(sprig_session_start(held, prompt.data(), prompt.size(), 1), SPRIG_OK);
  uint32_t last = 0;
  ASSERT_EQ(sprig_session_next(held, &last), SPRIG_OK);
  auto verify = [&](std::vector<uint32_t> nodes, std::vector<int32_t> parents) {
    std::vector<uint32_t> accepted(nodes.size() + 1);
    size_t count = 0;
    sprig_code code = sprig_session_verify(held, nodes.data(), parents.data(),
                                           nodes.size(), accepted.data(),
                                           &count, nullptr);
    EXPECT_EQ(sprig_session_length(held), prompt.size() + 1 + count);
    return code == SPRIG_OK ? std::to_string(count)
                            : std::string(sprig_last_error());
  };
  EXPECT_NE(verify({last, 1, 2}, {-1, 2, 1}).find("parent of node 1"),
            std::string::npos); // a cycle
  EXPECT_NE(verify({last, 1}, {-1, 7}).find("parent of node 1"),
            std::string::npos);
  EXPECT_NE(verify({last, 1}, {-1, -2}).find("parent of node 1"),
            std::string::npos);
  EXPECT_NE(verify({last, 1u << 20}, {-1, 0}).find("node 1 is 1048576"),
            std::string::npos);
  EXPECT_NE(verify(std::vector<uint32_t>(17, last), std::vector<int32_t>(17, 0))
                .find("1 to 16 nodes"),
            std::string::npos);
  EXPECT_EQ(verify({last, expected[1], expected[2]}, {-1, 0, 1}), "3");
}

} // namespace
