#include "runtime/Speculation/SuffixAutomaton.h"

#include <algorithm>

namespace sprig {
namespace {

/// Contexts that a token is counted for.
constexpr unsigned kCounted = 16;
constexpr size_t kFewestSlots = 64;

} // namespace

uint64_t SuffixAutomaton::hash(uint32_t state, uint32_t token) {
  uint64_t key = uint64_t(state) << 32 | token;
  key ^= key >> 31;
  key *= 0x9e3779b97f4a7c15u;
  return key ^ key >> 29;
}

void SuffixAutomaton::clear() {
  states.clear();
  edges.clear();
  owners.clear();
  std::fill(table.begin(), table.end(), 0);
  if (table.empty())
    table.resize(kFewestSlots);
  states.push_back({0, kNone, kNone});
  last = 0;
}

void SuffixAutomaton::reserve(size_t tokens) {
  // At most 2n states and 3n edges (ibid.).
  states.reserve(2 * tokens + 2);
  edges.reserve(3 * tokens + 2);
  owners.reserve(3 * tokens + 2);
  size_t slots = kFewestSlots;
  while (slots < 6 * tokens)
    slots *= 2;
  if (slots > table.size())
    rehash(slots);
}

void SuffixAutomaton::rehash(size_t slots) {
  table.assign(slots, 0);
  for (uint32_t i = 0; i < edges.size(); ++i)
    place(i, owners[i]);
}

void SuffixAutomaton::place(uint32_t edgeOf, uint32_t state) {
  const size_t mask = table.size() - 1;
  size_t at = hash(state, edges[edgeOf].token) & mask;
  while (table[at] != 0)
    at = (at + 1) & mask;
  table[at] = edgeOf + 1;
}

uint32_t SuffixAutomaton::find(uint32_t state, uint32_t token) const {
  const size_t mask = table.size() - 1;
  for (size_t at = hash(state, token) & mask; table[at] != 0;
       at = (at + 1) & mask) {
    uint32_t edge = table[at] - 1;
    if (owners[edge] == state && edges[edge].token == token)
      return edge;
  }
  return kNone;
}

uint32_t SuffixAutomaton::next(uint32_t state, uint32_t token) const {
  uint32_t edge = find(state, token);
  return edge == kNone ? kNone : edges[edge].target;
}

void SuffixAutomaton::add(uint32_t state, uint32_t token, uint32_t target,
                          uint32_t count) {
  edges.push_back({token, target, states[state].first, count});
  owners.push_back(state);
  states[state].first = uint32_t(edges.size()) - 1;
  if (2 * edges.size() > table.size())
    rehash(2 * table.size());
  else
    place(uint32_t(edges.size()) - 1, state);
}

void SuffixAutomaton::append(uint32_t token) {
  const uint32_t made = uint32_t(states.size());
  states.push_back({states[last].length + 1, 0, kNone});
  uint32_t from = last, edge = kNone;
  last = made;
  for (; from != kNone; from = states[from].link) {
    edge = find(from, token);
    if (edge != kNone)
      break;
    add(from, token, made, 1);
  }
  if (from == kNone)
    return; // the token is new: its link is the root
  // The contexts that saw the token before, from the longest on.
  unsigned counted = 0;
  for (uint32_t state = from; state != kNone && counted < kCounted;
       state = states[state].link, ++counted)
    ++edges[find(state, token)].count;
  const uint32_t target = edges[edge].target;
  if (states[target].length == states[from].length + 1) {
    states[made].link = target;
    return;
  }
  // `target` also holds longer parts, which did not end here: split.
  const uint32_t clone = uint32_t(states.size());
  states.push_back({states[from].length + 1, states[target].link, kNone});
  for (uint32_t e = states[target].first; e != kNone; e = edges[e].next)
    add(clone, edges[e].token, edges[e].target, edges[e].count);
  for (; from != kNone; from = states[from].link) {
    edge = find(from, token);
    if (edge == kNone || edges[edge].target != target)
      break;
    edges[edge].target = clone;
  }
  states[target].link = states[made].link = clone;
}

} // namespace sprig
