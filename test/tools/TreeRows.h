// What a draft says at the nodes of a tree, however it is asked.
#ifndef SPRIG_TEST_TOOLS_TREEROWS_H
#define SPRIG_TEST_TOOLS_TREEROWS_H

#include "runtime/Speculation/PackageDraft.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace mlir::llm::testing {

struct GuessedTree {
  std::vector<uint32_t> tokens; ///< level by level; the first is the last token
  std::vector<int32_t> parents;
};

/// The row of each node, by one step of the draft or, where it goes on from what
/// its guesses left, by one a level.
inline std::vector<sprig::GuessRow> rowsAtNodes(sprig::Session &session,
                                                const sprig::format::Draft &draft,
                                                const GuessedTree &tree) {
  const size_t count = tree.tokens.size();
  std::vector<sprig::GuessRow> rows(count);
  auto ask = [&](size_t first, size_t end) {
    std::vector<int32_t> parents;
    for (size_t i = first; i < end; ++i)
      parents.push_back(tree.parents[i] - int32_t(first));
    if (first == 0)
      parents[0] = -1;
    sprig::Status status =
        session.guessTree(draft, tree.tokens.data() + first, parents.data(),
                          uint32_t(end - first));
    EXPECT_TRUE(status.ok()) << status.message();
    for (size_t i = first; i < end; ++i)
      EXPECT_TRUE(session.guessRow(uint32_t(i - first), rows[i]).ok());
  };
  if (!sprig::Session::goesOn(draft)) {
    ask(0, count);
    return rows;
  }
  EXPECT_TRUE(session.guessNext(draft, 0, tree.tokens[0], rows[0]).ok());
  std::vector<uint32_t> depths = {0};
  for (size_t i = 1; i < count; ++i)
    depths.push_back(depths[size_t(tree.parents[i])] + 1);
  for (size_t end = 1; end < count;) {
    for (const uint32_t depth = depths[end]; end < count && depths[end] == depth;)
      ++end;
    ask(1, end);
  }
  return rows;
}

inline bool equal(const sprig::GuessRow &a, const sprig::GuessRow &b) {
  return a.count == b.count && a.tokens == b.tokens &&
         a.probabilities == b.probabilities;
}

/// The rows of a tree, each of which is what the draft says behind the path that
/// leads there, bit by bit.
inline std::vector<sprig::GuessRow>
expectRowsOfPaths(sprig::Session &session, const sprig::format::Draft &draft,
                  const GuessedTree &tree) {
  const std::vector<sprig::GuessRow> rows = rowsAtNodes(session, draft, tree);
  for (size_t node = 0; node < rows.size(); ++node) {
    std::vector<size_t> path;
    for (int32_t at = int32_t(node); at >= 0; at = tree.parents[size_t(at)])
      path.insert(path.begin(), size_t(at));
    sprig::GuessRow row;
    for (uint32_t i = 0; i < path.size(); ++i)
      EXPECT_TRUE(
          session.guessNext(draft, i, tree.tokens[path[i]], row).ok());
    EXPECT_GT(row.probabilities[0], 0);
    EXPECT_TRUE(equal(rows[node], row)) << "node " << node;
  }
  return rows;
}

/// The same of some trees; and what is said at a node, another that does not lead
/// there leaves alone.
inline void expectRowsOfPaths(sprig::Session &session,
                              const sprig::format::Draft &draft) {
  const uint32_t root = session.tokens().back();
  std::mt19937 random(3);
  GuessedTree any = {{root}, {-1}};
  for (int32_t i = 1; i < 16; ++i) {
    // Level by level: parents do not fall.
    const int32_t least = std::max(any.parents.back(), 0);
    any.parents.push_back(least + int32_t(random() % uint32_t(i - least)) / 2);
    any.tokens.push_back(random() % 80);
  }
  expectRowsOfPaths(session, draft, any);
  // 0 ── 1 ── 3 ── 6; 0 ── 2 ── 4, 5: rows of wrong paths lie between.
  const GuessedTree tree = {{root, 11, 12, 13, 14, 15, 16},
                            {-1, 0, 0, 1, 2, 2, 3}};
  const std::vector<sprig::GuessRow> rows =
      expectRowsOfPaths(session, draft, tree);
  GuessedTree other = tree;
  other.tokens[2] = 9;
  const std::vector<sprig::GuessRow> changed =
      rowsAtNodes(session, draft, other);
  for (size_t node : {0, 1, 3, 6})
    EXPECT_TRUE(equal(rows[node], changed[node])) << "node " << node;
  EXPECT_FALSE(equal(rows[2], changed[2]));
}

/// A draft's trees are more than chains: by EAGLE-2's rule the nodes of the second
/// level follow different ones. Clover's takes those that are likely enough.
inline void expectBushes(sprig::Session &session,
                         const sprig::format::Draft &draft) {
  for (sprig::Growth growth : {sprig::Growth::Clover, sprig::Growth::Eagle}) {
    sprig::PackageDraft grown(session, draft, growth);
    sprig::DraftTree tree;
    tree.reset(session.tokens().back(), 8);
    ASSERT_TRUE(grown.propose(tree, 4).ok());
    std::set<uint32_t> parents;
    uint32_t deepest = 0;
    for (uint32_t i = 1; i < tree.size(); ++i) {
      deepest = std::max(deepest, tree.node(i).depth);
      if (tree.node(i).depth == 2)
        parents.insert(tree.node(i).parent);
    }
    const bool eagle = growth == sprig::Growth::Eagle;
    EXPECT_GE(parents.size(), eagle ? 2u : 1u);
    EXPECT_GE(deepest, eagle ? 3u : 2u);
  }
}

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_TOOLS_TREEROWS_H
