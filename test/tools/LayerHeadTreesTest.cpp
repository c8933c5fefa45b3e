// Trees of heads with layers of their own: what is said at a node is what is
// said behind its path, and tokens, caches and the heap are those of plain
// decoding, by every rule.
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/runtime/Tiny/CountedAllocations.h"
#include "test/tools/SteadyLoop.h"
#include "test/tools/TreeRows.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;
using mlir::llm::testing::HeadCase;
using mlir::llm::testing::headCases;

size_t mlir::llm::testing::allocationsSoFar() { return allocations; }

namespace {

class LayerHeadTreesTest : public mlir::llm::testing::SpeculationTest,
                           public ::testing::WithParamInterface<const char *> {
protected:
  void prepare(CompileOptions &options) override {
    for (const char *name : {"model", "head"})
      ASSERT_FALSE(::llvm::sys::fs::create_directories(file(name)));
    ::llvm::Error written = mlir::llm::testing::writeHeadCase(
        GetParam(), file("model"), file("head"));
    ASSERT_FALSE(bool(written)) << ::llvm::toString(std::move(written));
    const std::vector<HeadCase> cases = headCases();
    const bool apart =
        ::llvm::find_if(cases, [](const HeadCase &one) {
          return one.name == GetParam();
        })->apart;
    options.source = file("model");
    options.cacheBits = 32;
    options.widths = {1, 4, 16};
    options.passPipeline = "builtin.module(llm-attach-heads{file=" +
                           (apart ? file("head") : "mtp") +
                           "},llm-default-pipeline)";
  }

  const format::Draft &draft() {
    return *findDraft(session->model().metadata(), "heads");
  }

  // Parts of one test, since compiling takes longer than they do.
  void nodesSayWhatTheirPathsDo();
  void whatDoesNotFitIsNamed();
  void tokensAndCachesAreThoseOfPlainDecoding();
  void loopsAllocateNothing();

  /// An answer of which every step is a tree of the heads, likely or not.
  std::vector<uint32_t> byTreesAlone(Growth growth, uint64_t most,
                                     uint64_t &trees, uint64_t &accepted) {
    PackageDraft heads(*session, draft(), growth);
    DraftTree tree;
    DraftTree::Cut cut;
    EXPECT_TRUE(session->truncate(0).ok());
    EXPECT_TRUE(
        session->start(prompt.data(), prompt.size(), most, /*held=*/true).ok());
    std::vector<uint32_t> tokens;
    while (tokens.size() < most) {
      if (session->waiting() == 0) {
        tree.reset(session->tokens().back(), 4);
        EXPECT_TRUE(heads.propose(tree, 5).ok());
        tree.rank();
        tree.cut(std::min(16u, tree.size()), cut);
        EXPECT_GT(cut.count, 4u);
        auto taken = session->stepTree(cut.tokens.data(), cut.parents.data(),
                                       cut.count);
        EXPECT_TRUE(taken.ok()) << taken.status().message();
        ++trees;
        accepted += *taken - 1;
      }
      auto token = session->next();
      if (!token.ok())
        break;
      tokens.push_back(*token);
    }
    return tokens;
  }
  std::string saved() {
    EXPECT_TRUE(session->save(file("saved"), "").ok());
    auto bytes = ::llvm::MemoryBuffer::getFile(file("saved"));
    return bytes ? (*bytes)->getBuffer().str() : std::string();
  }
};

void LayerHeadTreesTest::nodesSayWhatTheirPathsDo() {
  EXPECT_EQ(session->largestGuessTree(draft()), 16u);
  ASSERT_TRUE(session->start(prompt.data(), prompt.size(), 1).ok());
  ASSERT_TRUE(session->next().ok());
  mlir::llm::testing::expectRowsOfPaths(*session, draft());
  mlir::llm::testing::expectBushes(*session, draft());
}

void LayerHeadTreesTest::whatDoesNotFitIsNamed() {
  const uint32_t tokens[] = {1, 2};
  const int32_t cycle[] = {-1, 1};
  EXPECT_NE(session->guessTree(draft(), tokens, cycle, 2)
                .message()
                .find("parent of node 1 to come before it, but got 1"),
            std::string::npos);
  ASSERT_TRUE(session->truncate(0).ok());
  const std::vector<uint32_t> full(session->capacity() - 2, 1);
  ASSERT_TRUE(session->start(full.data(), full.size(), 1).ok());
  ASSERT_TRUE(session->next().ok());
  const int32_t roots[] = {-1, -1};
  EXPECT_EQ(session->guessTree(draft(), tokens, roots, 2).code(),
            StatusCode::Context);
  GuessRow row;
  EXPECT_TRUE(session->guessNext(draft(), 0, session->tokens().back(), row).ok());
  EXPECT_TRUE(session->guessTree(draft(), tokens, roots, 1).ok());
}

void LayerHeadTreesTest::tokensAndCachesAreThoseOfPlainDecoding() {
  Sampling greedy, sampled;
  sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
  GenerationOptions options;
  options.most = 20;
  uint64_t trees = 0, accepted = 0;
  for (const Sampling &sampling : {greedy, sampled}) {
    ASSERT_TRUE(session->setSampling(sampling).ok());
    const Answer plain = generate(options, nullptr);
    const std::string bytes = saved();
    for (Growth growth : {Growth::Clover, Growth::Eagle}) {
      EXPECT_EQ(byTreesAlone(growth, options.most, trees, accepted),
                plain.tokens)
          << "by rule " << int(growth) << " at " << sampling.temperature;
      EXPECT_TRUE(saved() == bytes)
          << "by rule " << int(growth) << " at " << sampling.temperature;
      SpeculationOptions with;
      with.drafts = {"ngram", "heads"};
      with.growth = growth;
      auto speculator = std::move(*Speculator::create(*session, with));
      EXPECT_EQ(generate(options, speculator.get()), plain)
          << "by rule " << int(growth) << " at " << sampling.temperature;
      accepted += speculator->counts().accepted;
      EXPECT_TRUE(saved() == bytes)
          << "by rule " << int(growth) << " at " << sampling.temperature;
    }
  }
  // Some guesses were right, of the heads or beside theirs.
  EXPECT_GT(trees, 0u);
  EXPECT_GT(accepted, 0u);
}

void LayerHeadTreesTest::loopsAllocateNothing() {
  // The others have the same loop, and are hardly ever likely enough.
  if (GetParam() != std::string("eagle"))
    return;
  open(/*validated=*/false, /*poisoned=*/false);
  if (IsSkipped() || HasFatalFailure())
    return;
  SpeculationOptions options;
  options.drafts = {"heads"};
  for (Growth growth : {Growth::Comb, Growth::Clover, Growth::Eagle}) {
    options.growth = growth;
    mlir::llm::testing::expectSteadyLoop(*session, prompt, options);
  }
  options.growth = Growth::Comb;
  options.drawn = true;
  mlir::llm::testing::expectSteadyLoop(*session, prompt, options);
}

TEST_P(LayerHeadTreesTest, TreesGrowByTheHeads) {
  nodesSayWhatTheirPathsDo();
  whatDoesNotFitIsNamed();
  tokensAndCachesAreThoseOfPlainDecoding();
  loopsAllocateNothing();
}

INSTANTIATE_TEST_SUITE_P(
    Heads, LayerHeadTreesTest,
    ::testing::Values("eagle", "eagle3", "clover", "mtp-deepseek-v3"),
    [](const ::testing::TestParamInfo<const char *> &info) {
      std::string name = info.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

} // namespace
