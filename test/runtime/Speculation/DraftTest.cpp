// Trees of guesses, the draft that looks back, and the costs of steps.
#include "runtime/Speculation/ChainRecord.h"
#include "runtime/Speculation/NgramDraft.h"
#include "runtime/Speculation/StepTimes.h"

#include <gtest/gtest.h>
#include <random>

using namespace sprig;

namespace {

TEST(DraftTreeTest, EqualGuessesAreOneNode) {
  DraftTree tree;
  tree.reset(5, 8);
  uint32_t a = tree.add(0, 7, 0.5f);
  EXPECT_EQ(tree.add(0, 7, 0.25f), a);
  EXPECT_EQ(tree.add(0, 7, 0.75f), a);
  uint32_t b = tree.add(a, 7, 0.5f);
  EXPECT_NE(a, b);
  tree.rank();
  EXPECT_EQ(tree.size(), 3u);
  EXPECT_EQ(tree.node(b).joint, 0.375f);
  EXPECT_EQ(tree.expected(3), 1 + 0.75f + 0.375f);
}

TEST(DraftTreeTest, NoNodeIsDeeperThanAsked) {
  DraftTree tree;
  tree.reset(5, 1);
  uint32_t a = tree.add(0, 1, 1);
  EXPECT_EQ(tree.add(a, 2, 1), DraftTree::kNone);
  tree.reset(5, 0);
  EXPECT_EQ(tree.add(0, 1, 1), DraftTree::kNone);
}

TEST(DraftTreeTest, TheLikeliestComeFirst) {
  DraftTree tree;
  tree.reset(5, 8);
  uint32_t small = tree.add(0, 1, 0.3f), large = tree.add(0, 2, 0.6f);
  tree.add(small, 3, 0.9f);
  uint32_t deep = tree.add(large, 4, 0.5f);
  tree.add(deep, 5, 0.1f);
  tree.rank();
  DraftTree::Cut cut;
  tree.cut(5, cut);
  // 2 and what follows it, then 1 and what follows that; not the 0.03 one.
  EXPECT_EQ(cut.count, 5u);
  EXPECT_EQ(std::vector(cut.tokens.begin(), cut.tokens.begin() + 5),
            (std::vector<uint32_t>{5, 2, 4, 1, 3}));
  EXPECT_EQ(std::vector(cut.parents.begin(), cut.parents.begin() + 5),
            (std::vector<int32_t>{-1, 0, 1, 0, 3}));
  tree.keepChain();
  EXPECT_EQ(tree.size(), 4u);
  tree.cut(64, cut);
  EXPECT_EQ(std::vector(cut.tokens.begin(), cut.tokens.begin() + 4),
            (std::vector<uint32_t>{5, 2, 4, 5}));
}

TEST(DraftTreeTest, AnyCutIsATree) {
  std::mt19937 random(8);
  for (int round = 0; round < 50; ++round) {
    DraftTree tree;
    tree.reset(0, 20);
    for (int i = 0; i < 300; ++i)
      tree.add(random() % tree.size(), random() % 9,
               float(random() % 11) / 10); // 0 and 1 among them
    tree.rank();
    for (uint32_t nodes : {1u, 2u, 17u, 64u}) {
      DraftTree::Cut cut;
      tree.cut(nodes, cut);
      ASSERT_EQ(cut.count, std::min(nodes, tree.size()));
      EXPECT_EQ(cut.parents[0], -1);
      for (uint32_t i = 1; i < cut.count; ++i) {
        EXPECT_GE(cut.parents[i], 0);
        EXPECT_LT(cut.parents[i], int32_t(i));
      }
    }
  }
}

/// The tokens of the likeliest path that the draft proposes.
std::vector<uint32_t> bestPath(NgramDraft &draft,
                               const std::vector<uint32_t> &text,
                               uint32_t nodes) {
  DraftTree tree;
  tree.reset(text.back(), nodes - 1);
  EXPECT_TRUE(draft.propose(tree, nodes).ok());
  tree.keepChain();
  std::vector<uint32_t> path;
  for (uint32_t i = 1; i < tree.size(); ++i)
    path.push_back(tree.node(i).token);
  return path;
}

TEST(NgramDraftTest, GoesOnAsBefore) {
  NgramDraft draft;
  std::vector<uint32_t> text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
  ASSERT_TRUE(draft.follow(text, false).ok());
  std::vector<uint32_t> path = bestPath(draft, text, 5);
  ASSERT_GE(path.size(), 2u);
  EXPECT_EQ(path[0], 4u);
  EXPECT_EQ(path[1], 5u);
  // Nothing repeats: nothing to say.
  std::vector<uint32_t> fresh = {11, 12, 13};
  ASSERT_TRUE(draft.follow(fresh, false).ok());
  EXPECT_TRUE(bestPath(draft, fresh, 5).empty());
}

TEST(NgramDraftTest, BranchesWhereTextDid) {
  NgramDraft draft;
  std::vector<uint32_t> text = {1, 2, 3, 5, 1, 2, 4, 6, 1, 2, 3, 7, 1, 2};
  ASSERT_TRUE(draft.follow(text, false).ok());
  DraftTree tree;
  tree.reset(2, 4);
  ASSERT_TRUE(draft.propose(tree, 8).ok());
  float three = 0, four = 0;
  for (uint32_t i = 1; i < tree.size(); ++i)
    if (tree.node(i).parent == 0) {
      EXPECT_TRUE(tree.node(i).token == 3 || tree.node(i).token == 4);
      (tree.node(i).token == 3 ? three : four) = tree.node(i).probability;
    }
  EXPECT_GT(three, four);
  EXPECT_GT(four, 0.f);
}

TEST(NgramDraftTest, LearnsWhetherCopyingPays) {
  NgramDraft copying, changing;
  std::vector<uint32_t> copy, change;
  std::mt19937 random(4);
  for (uint32_t i = 0; i < 200; ++i) {
    copy.push_back(i % 20);
    // Pairs come back, but never what followed them.
    change.push_back(i % 3 < 2 ? i % 3 : 100 + i);
    ASSERT_TRUE(copying.follow(copy, true).ok());
    ASSERT_TRUE(changing.follow(change, true).ok());
  }
  EXPECT_GT(copying.confidence(20, false), 0.95f);
  EXPECT_LT(changing.confidence(2, false), 0.1f);
}

TEST(ChainRecordTest, LearnsHowLikelyAGuessIsThatWasCalledSoLikely) {
  ChainRecord record;
  record.reserve(8);
  EXPECT_FLOAT_EQ(record.likely(0.9f, 0.9f), 0.9f);
  std::vector<uint32_t> tokens = {1};
  for (uint32_t i = 0; i < 60; ++i) {
    // Called unlikely and right, then called likely and wrong.
    record.begin(tokens.size());
    record.add(5, 0.3f);
    record.add(6, 0.9f);
    for (uint32_t token : {5u, 7u}) {
      tokens.push_back(token);
      record.follow(tokens, true);
    }
  }
  EXPECT_GT(record.likely(0.3f, 0.3f), 0.85f);
  EXPECT_LT(record.likely(0.9f, 0.9f), 0.15f);
  EXPECT_FLOAT_EQ(record.likely(0.6f, 0.6f), 0.6f); // none was called so
  EXPECT_NEAR(record.agreement(), 0.5, 0.1);
}

TEST(StepTimesTest, EstimatesWhatWasNotMeasured) {
  StepTimes times({2, 4, 8, 16});
  EXPECT_FALSE(times.known());
  // The first step is no measure.
  times.plain(0.050);
  for (int i = 0; i < 3; ++i)
    times.plain(0.010);
  EXPECT_TRUE(times.known());
  EXPECT_EQ(times.plain(), 0.010);
  EXPECT_EQ(times.reach(), 4u);
  const double hopeful = times.cost(8);
  EXPECT_GT(hopeful, 1);
  EXPECT_LT(hopeful, 3);
  for (int i = 0; i < 3; ++i)
    times.tree(4, 0.022), times.tree(16, 0.070);
  EXPECT_EQ(times.reach(), 32u);
  EXPECT_DOUBLE_EQ(times.cost(3), 2.2); // by the program of width 4
  EXPECT_DOUBLE_EQ(times.cost(16), 7.0);
  EXPECT_NEAR(times.cost(8), 2.2 + 4.8 * 4 / 12, 1e-9);
  EXPECT_NEAR(times.cost(2), 1 + 1.2 / 3, 1e-9);
  // A width that was measured once in a bad moment is tried again some time.
  for (int i = 0; i < 2000; ++i)
    times.plain(0.010);
  EXPECT_LT(times.cost(16), 2.0);
  EXPECT_GE(times.cost(16), 1.0);
}

} // namespace
