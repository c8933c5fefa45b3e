#include "runtime/Speculation/DynamicTree.h"

#include <algorithm>

namespace sprig {
namespace {

/// Sums of floats may miss a bound that they are meant to reach.
constexpr float kRounding = 1e-6f;

} // namespace

TreeGrower::TreeGrower() {
  frontier.reserve(kWidest);
  joints.reserve(kWidest);
  rows.resize(kWidest);
  candidates.reserve(kWidest * format::kGuesses);
}

void TreeGrower::begin() {
  frontier.assign(1, 0);
  joints.assign(1, 1.0f);
}

Status TreeGrower::ask(const DraftTree &tree, Guesser &guesser) {
  for (GuessRow &row : rows)
    row.count = 0;
  candidates.clear();
  return guesser.guesses(tree, frontier, {rows.data(), frontier.size()});
}

void TreeGrower::add(uint32_t parent, const GuessRow &row, uint32_t guess,
                     float joint) {
  const float probability = row.probabilities[guess];
  candidates.push_back({parent, row.tokens[guess], probability,
                        joint * probability, uint32_t(candidates.size())});
}

void TreeGrower::keepLikeliest(size_t count) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.joint != b.joint ? a.joint > b.joint : a.order < b.order;
            });
  candidates.resize(
      std::min({candidates.size(), count, size_t(kWidest)}));
}

Status TreeGrower::clover(DraftTree &tree, Guesser &guesser,
                          const CloverRule &rule) {
  begin();
  uint32_t left = rule.budget;
  for (uint32_t level = 0;
       level < rule.depth && left > 0 && !frontier.empty(); ++level) {
    if (Status status = ask(tree, guesser); !status.ok())
      return status;
    for (size_t i = 0; i < frontier.size(); ++i) {
      float sum = 0;
      for (uint32_t g = 0; g < rows[i].count; ++g) {
        if (sum >= rule.topP - kRounding)
          break;
        sum += rows[i].probabilities[g];
        if (rows[i].probabilities[g] >=
            rule.leastShare * rows[i].probabilities[0])
          add(frontier[i], rows[i], g, joints[i]);
      }
    }
    uint32_t most = left;
    if (level < rule.levels.size())
      most = std::min(most, rule.levels[level]);
    keepLikeliest(most);
    frontier.clear();
    joints.clear();
    for (const Candidate &each : candidates) {
      const uint32_t node =
          tree.add(each.parent, each.token, each.probability);
      if (node == DraftTree::kNone)
        continue;
      frontier.push_back(node);
      joints.push_back(each.joint);
      --left;
    }
  }
  return {};
}

Status TreeGrower::eagle(DraftTree &tree, Guesser &guesser,
                         const EagleRule &rule) {
  begin();
  for (uint32_t level = 0; level < rule.depth && !frontier.empty(); ++level) {
    if (Status status = ask(tree, guesser); !status.ok())
      return status;
    for (size_t i = 0; i < frontier.size(); ++i)
      for (uint32_t g = 0; g < rows[i].count && g < rule.width; ++g) {
        const uint32_t node = tree.add(frontier[i], rows[i].tokens[g],
                                       rows[i].probabilities[g]);
        if (node != DraftTree::kNone)
          add(node, rows[i], g, joints[i]);
      }
    keepLikeliest(rule.width);
    frontier.clear();
    joints.clear();
    for (const Candidate &each : candidates) {
      frontier.push_back(each.parent);
      joints.push_back(each.joint);
    }
  }
  return {};
}

} // namespace sprig
