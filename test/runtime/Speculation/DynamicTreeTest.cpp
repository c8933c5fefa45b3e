// The published rules on distributions written out by hand.
#include "runtime/Speculation/DynamicTree.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace sprig;

namespace {

using Path = std::vector<uint32_t>;

Path pathOf(const DraftTree &tree, uint32_t node) {
  Path path;
  for (; node != 0; node = tree.node(node).parent)
    path.insert(path.begin(), tree.node(node).token);
  return path;
}

struct Guess {
  uint32_t token;
  float probability;
};

class Table final : public Guesser {
public:
  explicit Table(std::map<Path, std::vector<Guess>> given)
      : rows(std::move(given)) {}
  Status guesses(const DraftTree &tree, std::span<const uint32_t> nodes,
                 std::span<GuessRow> out) override {
    ++steps;
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Guess &guess : rows[pathOf(tree, nodes[i])])
        out[i].add(guess.token, guess.probability);
    return {};
  }
  std::map<Path, std::vector<Guess>> rows;
  int steps = 0;
};

std::vector<Path> paths(const DraftTree &tree) {
  std::vector<Path> all;
  for (uint32_t i = 1; i < tree.size(); ++i)
    all.push_back(pathOf(tree, i));
  std::sort(all.begin(), all.end());
  return all;
}

enum : uint32_t { a = 10, b, c, d, e };

/// Level 1 {a .5, b .3, c .1, d .05, e .05}; level 2 joints .40 and .05 behind
/// a, .09 and .03 behind b.
Table worked() {
  return Table({{{}, {{a, 0.5f}, {b, 0.3f}, {c, 0.1f}, {d, 0.05f}, {e, 0.05f}}},
                {{a}, {{1, 0.8f}, {2, 0.1f}}},
                {{b}, {{1, 0.3f}, {2, 0.1f}}}});
}

TEST(DynamicTreeTest, CloverWorkedCase) {
  Table table = worked();
  DraftTree tree;
  tree.reset(0, 8);
  CloverRule rule;
  rule.budget = 4;
  ASSERT_TRUE(TreeGrower().clover(tree, table, rule).ok());
  // a and b reach 0.8; then a.1 (.40) and b.1 (.09) are the likeliest two.
  EXPECT_EQ(paths(tree), (std::vector<Path>{{a}, {a, 1}, {b}, {b, 1}}));
  tree.rank();
  EXPECT_NEAR(tree.expected(5), 1 + 0.5 + 0.3 + 0.4 + 0.09, 1e-6);
  EXPECT_EQ(table.steps, 2);
}

TEST(DynamicTreeTest, CloverBudgetsOfLevels) {
  Table table = worked();
  DraftTree tree;
  tree.reset(0, 8);
  CloverRule rule;
  rule.budget = 4;
  rule.levels = {1};
  ASSERT_TRUE(TreeGrower().clover(tree, table, rule).ok());
  EXPECT_EQ(paths(tree), (std::vector<Path>{{a}, {a, 1}}));
}

TEST(DynamicTreeTest, CloverDropsLessThanAQuarterOfTheFirst) {
  Table table({{{}, {{a, 0.6f}, {b, 0.14f}, {c, 0.13f}, {d, 0.13f}}}});
  DraftTree tree;
  tree.reset(0, 8);
  ASSERT_TRUE(TreeGrower().clover(tree, table, CloverRule()).ok());
  EXPECT_EQ(paths(tree), (std::vector<Path>{{a}}));
}

TEST(DynamicTreeTest, EagleExpandsAndReranks) {
  Table table({{{}, {{a, 0.6f}, {b, 0.3f}, {c, 0.1f}}},
               {{a}, {{1, 0.5f}, {2, 0.4f}, {3, 0.1f}}},
               {{b}, {{1, 0.9f}, {2, 0.05f}}},
               {{a, 1}, {{4, 0.5f}, {5, 0.5f}}},
               {{b, 1}, {{4, 0.2f}, {5, 0.1f}}}});
  DraftTree tree;
  tree.reset(0, 8);
  EagleRule rule;
  rule.width = 2;
  rule.depth = 3;
  ASSERT_TRUE(TreeGrower().eagle(tree, table, rule).ok());
  EXPECT_EQ(table.steps, 3);
  // Two by two on each level; {a,1} .30 and {b,1} .27 grow on, {a,2} .24 not.
  EXPECT_EQ(paths(tree),
            (std::vector<Path>{{a}, {a, 1}, {a, 1, 4}, {a, 1, 5}, {a, 2}, {b},
                               {b, 1}, {b, 1, 4}, {b, 1, 5}, {b, 2}}));
  // The best five: .6, .3 (b), .3 (a.1), .27, .24; equal ones shallow first.
  tree.rank();
  DraftTree::Cut cut;
  tree.cut(3, cut);
  EXPECT_EQ(Path(cut.tokens.begin(), cut.tokens.begin() + 3), (Path{0, a, b}));
  tree.cut(6, cut);
  EXPECT_EQ(Path(cut.tokens.begin(), cut.tokens.begin() + 6),
            (Path{0, a, 1, 2, b, 1}));
  EXPECT_EQ(std::vector<int32_t>(cut.parents.begin(), cut.parents.begin() + 6),
            (std::vector<int32_t>{-1, 0, 1, 1, 0, 4}));
}

TEST(DynamicTreeTest, AFailingDraftIsHeard) {
  struct Broken final : Guesser {
    Status guesses(const DraftTree &, std::span<const uint32_t>,
                   std::span<GuessRow>) override {
      return {StatusCode::DeviceError, "lost"};
    }
  } broken;
  DraftTree tree;
  tree.reset(0, 8);
  EXPECT_EQ(TreeGrower().clover(tree, broken, {}).message(), "lost");
  EXPECT_EQ(TreeGrower().eagle(tree, broken, {}).message(), "lost");
}

} // namespace
