#include "runtime/Speculation/PackageDraft.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sprig {
namespace {

/// What is less likely is not worth a node on any device.
constexpr float kLeast = 0.02f;
/// Of a guess that the draft drew and does not name.
constexpr float kUnnamed = 0.01f;
/// Paths that grow on a level of EAGLE-2's trees, and packages for whose trees
/// there are more.
constexpr uint32_t kNarrow = 4, kWide = 8, kLarge = 32;
/// Levels of a tree at most: each is a step of the draft.
constexpr uint32_t kLevels = 6;

double secondsSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
      .count();
}

} // namespace

PackageDraft::PackageDraft(Session &used, const format::Draft &which,
                           Growth how)
    : session(used), draft(which), growth(how),
      largest(used.largestGuessTree(which)) {
  record.reserve(format::kMostNodes);
  if (!session.namesGuesses())
    growth = Growth::Chain;
  else if (growth != Growth::Chain && draft.repeats() && largest == 0)
    growth = Growth::Comb;
  clover.budget = session.largestTree() - 1;
}

uint32_t PackageDraft::worth(const StepTimes &times, uint32_t most,
                             double rate) {
  if (!draft.repeats())
    most = std::min(most, draft.count() + 1);
  if (growth == Growth::Clover || growth == Growth::Eagle)
    most = std::min(most, kLevels + 1);
  return record.worth(times, most, rate);
}

Status PackageDraft::propose(DraftTree &tree, uint32_t nodes) {
  record.begin(session.tokens().size());
  if (nodes < 2)
    return {};
  const auto began = std::chrono::steady_clock::now();
  const uint32_t guesses = std::min(nodes - 1, format::kMostNodes - 1);
  Result<uint32_t> levels = growth == Growth::Clover || growth == Growth::Eagle
                                ? proposeTree(tree, guesses)
                                : proposeChain(tree, guesses);
  if (!levels.ok())
    return levels.status();
  if (*levels == 0)
    return {};
  // The first time pipelines are made.
  if (warm)
    record.took(secondsSince(began) / double(*levels));
  warm = true;
  return {};
}

Result<uint32_t> PackageDraft::proposeChain(DraftTree &tree, uint32_t guesses) {
  std::array<uint32_t, format::kMostNodes> tokens;
  Result<uint32_t> made = session.guess(draft, guesses, tokens.data());
  if (!made.ok())
    return made;
  uint32_t node = 0;
  float joint = 1;
  for (uint32_t i = 0; i < *made && node != DraftTree::kNone; ++i) {
    GuessRow row;
    if (session.namesGuesses())
      if (Status status = session.guessRow(i, row); !status.ok())
        return status;
    float said = kUnnamed;
    for (uint32_t g = 0; g < row.count; ++g)
      if (row.tokens[g] == tokens[i])
        said = row.probabilities[g];
    // Drawn with the model's noise, a token is as likely as the two are of one
    // mind, however likely the draft calls it.
    const float agreed = float(record.agreement());
    const float likely =
        row.count == 0
            ? agreed
            : record.likely(said, temperature() > 0 ? agreed : said);
    record.add(tokens[i], row.count == 0 ? -1 : said);
    const uint32_t parent = node;
    node = tree.add(parent, tokens[i], likely);
    if (growth != Growth::Chain)
      for (uint32_t g = 0; g < row.count; ++g) {
        const float other = (1 - likely) * row.probabilities[g] /
                            std::max(1 - said, kUnnamed);
        if (row.tokens[g] != tokens[i] && joint * other >= kLeast)
          tree.add(parent, row.tokens[g], std::min(other, 1.0f));
      }
    joint *= likely;
  }
  return *made;
}

Result<uint32_t> PackageDraft::proposeTree(DraftTree &tree, uint32_t levels) {
  asked = onPath = placed = 0;
  if (largest == 0) {
    // All heads at once: what they say does not depend on the nodes.
    std::array<uint32_t, format::kMostNodes> tokens;
    Result<uint32_t> made = session.guess(draft, levels, tokens.data());
    if (!made.ok())
      return made;
    levels = *made;
  }
  Status status;
  if (growth == Growth::Clover) {
    clover.depth = levels;
    status = grower.clover(tree, *this, clover);
  } else {
    const uint32_t width =
        session.largestTree() >= kLarge ? kWide : kNarrow;
    status = grower.eagle(tree, *this, {width, levels});
  }
  if (!status.ok())
    return status;
  return asked;
}

Status PackageDraft::guesses(const DraftTree &tree,
                             std::span<const uint32_t> nodes,
                             std::span<GuessRow> out) {
  if (largest > 0) {
    Status status = Session::goesOn(draft) ? askOnward(tree, nodes, out)
                                           : askAtNodes(tree, nodes, out);
    if (!status.ok())
      return status;
  } else {
    if (Status status = session.guessRow(asked, out[0]); !status.ok())
      return status;
    std::fill(out.begin() + 1, out.end(), out[0]);
  }
  if (out[0].count > 0)
    ++asked;
  keepRecord(tree, nodes, out);
  for (GuessRow &row : out)
    correct(row);
  return {};
}

Status PackageDraft::askAtNodes(const DraftTree &tree,
                                std::span<const uint32_t> nodes,
                                std::span<GuessRow> out) {
  // The nodes, and those that lead to them.
  std::array<bool, DraftTree::kMost> needed{};
  for (uint32_t node : nodes)
    for (; node != DraftTree::kNone; node = tree.node(node).parent)
      needed[node] = true;
  const uint32_t most = std::min(largest, session.room());
  uint32_t count = 0;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!needed[i])
      continue;
    if (count == most)
      return {}; // too large to be asked at: it grows no further
    placeOf[i] = count;
    asks[count] = tree.node(i).token;
    parents[count] = i == 0 ? -1 : int32_t(placeOf[tree.node(i).parent]);
    ++count;
  }
  if (Status status =
          session.guessTree(draft, asks.data(), parents.data(), count);
      !status.ok())
    return status;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (Status status = session.guessRow(placeOf[nodes[i]], out[i]);
        !status.ok())
      return status;
  return {};
}

Status PackageDraft::askOnward(const DraftTree &tree,
                               std::span<const uint32_t> nodes,
                               std::span<GuessRow> out) {
  if (nodes[0] == 0)
    return session.guessNext(draft, 0, tree.node(0).token, out[0]);
  // The likeliest come first: where there is no room for more, they grow alone.
  const uint32_t most = std::min(largest, session.room() - 1);
  const uint32_t first = placed;
  for (uint32_t node : nodes) {
    if (placed == most)
      break;
    const uint32_t parent = tree.node(node).parent;
    placeOf[node] = placed;
    asks[placed] = tree.node(node).token;
    parents[placed++] = parent == 0 ? -1 : int32_t(placeOf[parent]);
  }
  if (placed == first)
    return {};
  if (Status status = session.guessTree(draft, asks.data(), parents.data(),
                                        placed);
      !status.ok())
    return status;
  for (uint32_t i = 0; first + i < placed; ++i)
    if (Status status = session.guessRow(first + i, out[i]); !status.ok())
      return status;
  return {};
}

void PackageDraft::keepRecord(const DraftTree &tree,
                              std::span<const uint32_t> nodes,
                              std::span<const GuessRow> rows) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const DraftTree::Node &node = tree.node(nodes[i]);
    const bool follows = nodes[i] == 0 ||
                         (node.parent == onPath && node.token == next &&
                          node.depth == record.size());
    if (!follows || rows[i].count == 0)
      continue;
    onPath = nodes[i];
    next = rows[i].tokens[0];
    record.add(next, rows[i].probabilities[0]);
    return;
  }
}

void PackageDraft::correct(GuessRow &row) const {
  if (row.count == 0)
    return;
  if (temperature() > 0 && temperature() != 1) {
    float sum = 0, named = 0;
    for (uint32_t g = 0; g < row.count; ++g) {
      named += row.probabilities[g];
      row.probabilities[g] =
          std::pow(row.probabilities[g], 1 / temperature());
      sum += row.probabilities[g];
    }
    // What it does not name keeps its share.
    for (uint32_t g = 0; g < row.count && sum > 0; ++g)
      row.probabilities[g] *= std::min(named, 1.0f) / sum;
  }
  const float said = row.probabilities[0];
  const float likely = record.likely(said, said);
  for (uint32_t g = 0; g < row.count; ++g)
    row.probabilities[g] =
        g == 0 ? likely
               : std::min(likely, (1 - likely) * row.probabilities[g] /
                                      std::max(1 - said, kUnnamed));
}

Status PackageDraft::draw(DrawnTree &tree, uint32_t levels,
                          uint32_t branches) {
  const std::vector<uint32_t> &known = session.tokens();
  record.begin(known.size());
  tree.reset(known.back());
  PlacedUniform uniform(session.sampled().seed, known.size());
  const auto began = std::chrono::steady_clock::now();
  levels = std::min(levels, session.room());
  if (!draft.repeats()) {
    std::array<uint32_t, format::kMostNodes> tokens;
    Result<uint32_t> made = session.guess(draft, levels, tokens.data());
    if (!made.ok())
      return made.status();
    levels = *made;
  }
  uint32_t level = 0;
  for (; level < levels; ++level) {
    GuessRow row;
    if (Status status =
            draft.repeats()
                ? session.guessNext(draft, level, tree.last(), row)
                : session.guessRow(level, row);
        !status.ok())
      return status;
    if (!tree.grow(row, temperature(), branches, uniform))
      break;
    record.add(tree.last(), tree.likely());
  }
  if (level > 0 && warm)
    record.took(secondsSince(began) / double(level));
  warm = true;
  return {};
}

} // namespace sprig
