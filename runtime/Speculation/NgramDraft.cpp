#include "runtime/Speculation/NgramDraft.h"

#include <algorithm>
#include <cstring>

namespace sprig {
namespace {

/// Before anything was seen: a context of one token says little, one of eight
/// is mostly a copy.
constexpr float kPrior[] = {0.10f, 0.25f, 0.40f, 0.55f,
                            0.70f, 0.85f, 0.93f, 0.97f};
/// Chances of contexts whose longer one was wrong, of what is above.
constexpr float kShorter = 0.3f;
constexpr float kPriorWeight = 4;
/// Of what was seen, a token later: about the last 50 count.
constexpr float kFade = 0.98f;
/// Contexts that are asked for one guess, and guesses of one context.
constexpr unsigned kContexts = 4, kGuesses = 4;
/// Guesses less likely than this are not worth a node on any device.
constexpr float kLeast = 0.02f;

} // namespace

NgramDraft::NgramDraft() {
  for (unsigned i = 0; i < kBuckets; ++i) {
    confidences[0][i] = {kPrior[i] * kPriorWeight, kPriorWeight};
    confidences[1][i] = {kShorter * kPrior[i] * kPriorWeight, kPriorWeight};
  }
}

unsigned NgramDraft::bucketOf(uint32_t length) {
  constexpr uint32_t kFrom[kBuckets] = {1, 2, 3, 4, 5, 7, 11, 17};
  unsigned bucket = kBuckets - 1;
  while (bucket > 0 && length < kFrom[bucket])
    --bucket;
  return bucket;
}

float NgramDraft::confidence(uint32_t length, bool shorter) const {
  const Confidence &known = confidences[shorter][bucketOf(length)];
  return known.right / known.seen;
}

void NgramDraft::reserve(size_t tokens) {
  seen.reserve(tokens);
  sequence.reserve(tokens);
}

void NgramDraft::learn(uint32_t token) {
  bool shorter = false;
  unsigned contexts = 0;
  for (uint32_t state = seen.match(); state != 0 && contexts < kContexts;
       state = seen.link(state), ++contexts) {
    Confidence &known = confidences[shorter][bucketOf(seen.length(state))];
    const bool right = seen.next(state, token) != SuffixAutomaton::kNone;
    known.right = known.right * kFade + (right ? 1 : 0);
    known.seen = known.seen * kFade + 1;
    if (right)
      return; // a shorter context is asked only where a longer one is wrong
    shorter = true;
  }
}

Status NgramDraft::follow(const std::vector<uint32_t> &tokens, bool) {
  const bool longer =
      tokens.size() >= sequence.size() &&
      (sequence.empty() ||
       std::memcmp(tokens.data(), sequence.data(), 4 * sequence.size()) == 0);
  if (!longer) {
    // Cut back, or another text: what was learned about contexts stays.
    seen.clear();
    sequence.clear();
  }
  // A prompt says as well how much its text repeats itself.
  for (size_t i = sequence.size(); i < tokens.size(); ++i) {
    learn(tokens[i]);
    seen.append(tokens[i]);
    sequence.push_back(tokens[i]);
  }
  return {};
}

/// Where a context goes with one more token: as long as possible.
NgramDraft::Place NgramDraft::after(Place place, uint32_t token) const {
  for (uint32_t state = place.state; state != SuffixAutomaton::kNone;
       state = seen.link(state)) {
    const uint32_t length = std::min(place.length, seen.length(state));
    if (uint32_t next = seen.next(state, token); next != SuffixAutomaton::kNone)
      return {next, length + 1};
  }
  return {0, 0};
}

void NgramDraft::expand(DraftTree &tree, uint32_t node, Place place) {
  float left = 1;
  unsigned contexts = 0;
  for (uint32_t state = place.state; state != 0 && contexts < kContexts;
       state = seen.link(state), ++contexts) {
    const uint32_t length = std::min(place.length, seen.length(state));
    const float share = left * confidence(length, contexts > 0);
    // The likeliest of what followed; later edges come first in the list, so
    // among equals the latest wins.
    const SuffixAutomaton::Edge *best[kGuesses] = {};
    float total = 0;
    for (uint32_t e = seen.firstEdge(state); e != SuffixAutomaton::kNone;
         e = seen.edge(e).next) {
      const SuffixAutomaton::Edge *edge = &seen.edge(e);
      total += float(edge->count);
      for (const SuffixAutomaton::Edge *&kept : best) {
        if (!kept || edge->count > kept->count)
          std::swap(kept, edge);
        if (!edge)
          break;
      }
    }
    for (const SuffixAutomaton::Edge *edge : best) {
      if (!edge)
        break;
      const float probability = share * float(edge->count) / total;
      if (joints[node] * probability < kLeast)
        break;
      const uint32_t before = tree.size();
      const uint32_t made = tree.add(node, edge->token, probability);
      if (made == DraftTree::kNone || (made < before && joints[made] > 0))
        continue; // no room, or a longer context has it
      places[made] = after(place, edge->token);
      joints[made] = joints[node] * probability;
    }
    left *= 1 - confidence(length, contexts > 0);
  }
}

Status NgramDraft::propose(DraftTree &tree, uint32_t nodes) {
  places[0] = {seen.match(), seen.length(seen.match())};
  joints[0] = 1;
  // Nodes of other drafts are not walked on.
  for (uint32_t i = 1; i < tree.size(); ++i)
    joints[i] = 0;
  // The likeliest open node grows next.
  std::array<bool, DraftTree::kMost> closed{};
  while (tree.size() < std::min(nodes, DraftTree::kMost)) {
    uint32_t best = DraftTree::kNone;
    for (uint32_t i = 0; i < tree.size(); ++i)
      if (!closed[i] && joints[i] >= kLeast &&
          (best == DraftTree::kNone || joints[i] > joints[best]))
        best = i;
    if (best == DraftTree::kNone)
      break;
    closed[best] = true;
    expand(tree, best, places[best]);
  }
  return {};
}

} // namespace sprig
