// Trees of draft tokens on a generated model, compiled and run on a device:
// each node's logits are those of decoding its path, bit for bit, and what is
// accepted is what plain decoding samples.
#include "test/lib/Weights/TinyLlama.h"
#include "test/tools/DeviceModelTest.h"
#include <cstring>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

struct Tree {
  std::vector<uint32_t> tokens;
  std::vector<int32_t> parents;

  void add(int32_t parent, uint32_t token) {
    parents.push_back(parent);
    tokens.push_back(token);
  }
  std::vector<uint32_t> path(size_t node) const {
    std::vector<uint32_t> list;
    for (int32_t i = int32_t(node); i >= 0; i = parents[size_t(i)])
      list.insert(list.begin(), tokens[size_t(i)]);
    return list;
  }
};

class TreeModelTest : public mlir::llm::testing::DeviceModelTest {
protected:
  /// Skips where there is no device.
  void compile(StringRef variant, StringRef target, StringRef caches = "") {
    ASSERT_FALSE(::llvm::errorToBool(mlir::llm::testing::writeTinyLlama(
        file("tiny.gguf"), *mlir::llm::testing::tinyLlamaVariant(variant))));
    CompileOptions options = optionsFor(file("tiny.gguf"), target.str());
    options.passPipeline =
        "builtin.module(" + caches.str() +
        "llm-default-pipeline,llm-tree-verify)";
    options.context = 512;
    options.widths = {1, 4, 16, 32, 64};
    DeviceModelTest::compile(options);
    if (!HasFatalFailure())
      open(/*validated=*/true, /*poisoned=*/true);
  }

  std::vector<uint32_t> someTokens(size_t count) {
    std::vector<uint32_t> tokens(count);
    for (uint32_t &token : tokens)
      token = uint32_t(random() % 280);
    return tokens;
  }

  /// Reads the prompt and samples `count` tokens.
  std::vector<uint32_t> decode(const std::vector<uint32_t> &prompt,
                               size_t count) {
    EXPECT_TRUE(session->truncate(0).ok());
    EXPECT_TRUE(session->start(prompt.data(), prompt.size(), count).ok());
    std::vector<uint32_t> sampled;
    for (size_t i = 0; i < count; ++i) {
      auto token = session->next();
      EXPECT_TRUE(token.ok()) << token.status().message();
      sampled.push_back(token.ok() ? *token : 0);
    }
    EXPECT_TRUE(session->stop().ok());
    return sampled;
  }

  /// All nodes of `tree`, behind `prompt` and its sampled token, against their
  /// paths; node 0's token is filled in.
  void checkNodes(const std::vector<uint32_t> &prompt, Tree tree) {
    uint32_t count = uint32_t(tree.tokens.size());
    tree.tokens[0] = decode(prompt, 1)[0];
    std::vector<float> logits(count * vocabulary), row;
    std::vector<uint32_t> accepted(count);
    auto taken = session->verify(tree.tokens.data(), tree.parents.data(), count,
                                 accepted.data(), logits.data());
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    for (size_t i = 0; i < count; ++i) {
      std::vector<uint32_t> path = tree.path(i);
      row.resize(path.size() * vocabulary);
      ASSERT_TRUE(session->truncate(prompt.size()).ok());
      ASSERT_TRUE(session->evaluate(path.data(), path.size(), row.data()).ok());
      ASSERT_EQ(std::memcmp(row.data() + row.size() - vocabulary,
                            logits.data() + i * vocabulary, vocabulary * 4),
                0)
          << "node " << i << " of " << count << " at depth " << path.size() - 1
          << " behind " << prompt.size() << " tokens";
    }
  }

  Tree grow(size_t nodes) {
    Tree tree;
    // Children of late nodes are likelier: deep trees, with siblings.
    for (size_t i = 0; i < nodes; ++i)
      tree.add(i == 0 ? -1 : int32_t(std::max(random() % i, random() % i)),
               uint32_t(random() % 280));
    return tree;
  }

  std::mt19937 random{11};
};

TEST_F(TreeModelTest, NodesEqualTheirPaths) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  for (size_t nodes : {1, 2, 3, 9, 31, 32, 33, 63, 64}) {
    SCOPED_TRACE(nodes);
    // The last one lies across the end of a split.
    checkNodes(someTokens(nodes == 64 ? 230 : 5 + random() % 40), grow(nodes));
    if (HasFatalFailure())
      return;
  }
  Tree star, chain;
  for (int32_t i = 0; i < 40; ++i) {
    star.add(i ? 0 : -1, uint32_t(random() % 280));
    chain.add(i - 1, uint32_t(random() % 280));
  }
  checkNodes(someTokens(7), star);
  checkNodes(someTokens(250), chain);
}

TEST_F(TreeModelTest, TheFallbackKeepsItsBitsToo) {
  compile("odd-groups", "generic", "llm-quantize-kv,");
  if (IsSkipped() || HasFatalFailure())
    return;
  checkNodes(someTokens(11), grow(7));
}

TEST_F(TreeModelTest, AttentionOfIntegersKeepsItsBits) {
  compile("default", "lavapipe", "llm-quantize-kv{attention=8},");
  if (IsSkipped() || HasFatalFailure())
    return;
  checkNodes(someTokens(13), grow(9));
}

TEST_F(TreeModelTest, AcceptedIsWhatPlainDecodingSamples) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  Sampling greedy, sampled;
  sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
  sampled.repeatPenalty = 1.2f, sampled.repeatLastN = 32;
  for (const Sampling &sampling : {greedy, sampled}) {
    ASSERT_TRUE(session->setSampling(sampling).ok());
    std::vector<uint32_t> prompt = someTokens(238);
    constexpr size_t kTokens = 60;
    std::vector<uint32_t> plain = decode(prompt, kTokens);

    std::vector<uint32_t> got = decode(prompt, 1);
    size_t steps = 0;
    while (got.size() < kTokens) {
      // A chain of right guesses that ends somewhere, with wrong ones between.
      size_t right = random() % 6, at = 0;
      Tree tree;
      tree.add(-1, got.back());
      for (size_t i = 0; i < right && got.size() + i < kTokens; ++i) {
        uint32_t next = plain[got.size() + i];
        for (uint32_t wrong = random() % 3; wrong > 0; --wrong)
          tree.add(int32_t(at), (next + wrong) % 280);
        tree.add(int32_t(at), next);
        at = tree.tokens.size() - 1;
      }
      std::vector<uint32_t> accepted(tree.tokens.size());
      auto taken =
          session->verify(tree.tokens.data(), tree.parents.data(),
                          uint32_t(tree.tokens.size()), accepted.data());
      ASSERT_TRUE(taken.ok()) << taken.status().message();
      got.insert(got.end(), accepted.begin(), accepted.begin() + *taken);
      for (size_t i = 0; i < std::min(got.size(), kTokens); ++i)
        ASSERT_EQ(got[i], plain[i])
            << "token " << i << " step " << steps << ", " << tree.tokens.size()
            << " nodes, temperature " << sampling.temperature;
      ++steps;
    }
    EXPECT_LT(steps, kTokens / 2);
    // Plain decoding goes on from the keys and values that were accepted.
    constexpr size_t kMore = 3;
    ASSERT_TRUE(session->start(nullptr, 0, kMore).ok());
    for (size_t i = 0; i < kMore; ++i) {
      auto token = session->next();
      ASSERT_TRUE(token.ok()) << token.status().message();
      got.push_back(*token);
    }
    EXPECT_EQ(got, decode(prompt, got.size()));
  }
}

TEST_F(TreeModelTest, BadTreesAreRefused) {
  compile("default", "lavapipe");
  if (IsSkipped() || HasFatalFailure())
    return;
  uint32_t last = decode(someTokens(4), 1)[0];
  std::vector<uint32_t> accepted(80);
  auto message = [&](std::vector<uint32_t> tokens,
                     std::vector<int32_t> parents) {
    auto taken = session->verify(tokens.data(), parents.data(),
                                 uint32_t(tokens.size()), accepted.data());
    return taken.ok() ? std::string() : taken.status().message();
  };
  EXPECT_EQ(session->largestTree(), 64u);
  EXPECT_NE(message({last, 1}, {-1, 1}).find("parent of node 1"),
            std::string::npos);
  EXPECT_NE(message({last, 1}, {-1, -1}).find("parent of node 1"),
            std::string::npos);
  EXPECT_NE(message({last}, {0}).find("parent of node 0"), std::string::npos);
  EXPECT_NE(message({last + 1}, {-1}).find("node 0 to be the last token"),
            std::string::npos);
  EXPECT_NE(message({last, 100000}, {-1, 0}).find("node 1 is 100000"),
            std::string::npos);
  EXPECT_NE(
      message(std::vector<uint32_t>(65, last), std::vector<int32_t>(65, 0))
          .find("1 to 64 nodes"),
      std::string::npos);
  EXPECT_EQ(message({last, 1}, {-1, 0}), "");
}

} // namespace
