#include "runtime/Speculation/DynamicTree.h"

#include <algorithm>

namespace sprig {
namespace {

struct Candidate {
  uint32_t parent;
  Guess guess;
  float joint;
  size_t order = 0;
};

/// The likeliest `count`, those that came first among equals.
void keepLikeliest(std::vector<Candidate> &candidates, size_t count) {
  for (size_t i = 0; i < candidates.size(); ++i)
    candidates[i].order = i;
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.joint != b.joint ? a.joint > b.joint : a.order < b.order;
            });
  candidates.resize(std::min(candidates.size(), count));
}

/// Sums of floats may miss a bound that they are meant to reach.
constexpr float kRounding = 1e-6f;

} // namespace

Status growClover(DraftTree &tree, Guesser &guesser, const CloverRule &rule) {
  std::vector<uint32_t> frontier = {0};
  std::vector<float> joints = {1};
  std::vector<std::vector<Guess>> guesses;
  uint32_t left = rule.budget;
  for (size_t level = 0; left > 0 && !frontier.empty(); ++level) {
    if (Status status = guesser.guesses(tree, frontier, guesses); !status.ok())
      return status;
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < frontier.size() && i < guesses.size(); ++i) {
      float sum = 0;
      for (const Guess &guess : guesses[i]) {
        if (sum >= rule.topP - kRounding)
          break;
        sum += guess.probability;
        if (guess.probability >=
            rule.leastShare * guesses[i].front().probability)
          candidates.push_back(
              {frontier[i], guess, joints[i] * guess.probability});
      }
    }
    uint32_t most = left;
    if (level < rule.levels.size())
      most = std::min(most, rule.levels[level]);
    keepLikeliest(candidates, most);
    frontier.clear();
    joints.clear();
    for (const Candidate &each : candidates) {
      const uint32_t node =
          tree.add(each.parent, each.guess.token, each.guess.probability);
      if (node == DraftTree::kNone)
        continue;
      frontier.push_back(node);
      joints.push_back(each.joint);
      --left;
    }
  }
  return {};
}

Status growEagle(DraftTree &tree, Guesser &guesser, const EagleRule &rule) {
  std::vector<uint32_t> frontier = {0};
  std::vector<float> joints = {1};
  std::vector<std::vector<Guess>> guesses;
  for (uint32_t level = 0; level < rule.depth && !frontier.empty(); ++level) {
    if (Status status = guesser.guesses(tree, frontier, guesses); !status.ok())
      return status;
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < frontier.size() && i < guesses.size(); ++i)
      for (size_t g = 0; g < guesses[i].size() && g < rule.width; ++g) {
        const Guess &guess = guesses[i][g];
        const uint32_t node =
            tree.add(frontier[i], guess.token, guess.probability);
        if (node != DraftTree::kNone)
          candidates.push_back({node, guess, joints[i] * guess.probability});
      }
    keepLikeliest(candidates, rule.width);
    frontier.clear();
    joints.clear();
    for (const Candidate &each : candidates) {
      frontier.push_back(each.parent); // the node itself: it was added
      joints.push_back(each.joint);
    }
  }
  return {};
}

} // namespace sprig
