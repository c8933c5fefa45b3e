//===- SuffixAutomaton.h - every part of a sequence, and what followed it
//-------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sprig {

/// The suffix automaton of a growing sequence of tokens (Blumer et al. 1985):
/// a state is a set of parts that end at the same places, an edge what followed
/// them. Appending is constant time on average, and so is finding the longest
/// end of the sequence that occurred before: the link of the last state.
class SuffixAutomaton {
public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Edge {
    uint32_t token, target;
    uint32_t next;  ///< edge of the same state, or kNone
    uint32_t count; ///< times it was followed, see `append`
  };

  SuffixAutomaton() { clear(); }

  /// Room for `tokens` tokens: until there are more, `append` allocates nothing.
  void reserve(size_t tokens);
  void clear();
  /// Edges that existed are counted for the longest context that has them and
  /// some shorter ones; a bound keeps this constant time.
  void append(uint32_t token);

  /// The state of the longest end of the sequence that occurred before; the
  /// root where there is none.
  uint32_t match() const { return states[last].link == kNone ? 0 : states[last].link; }
  /// Tokens of the longest part in `state`.
  uint32_t length(uint32_t state) const { return states[state].length; }
  /// The state of the longest end of `state` that occurs elsewhere, too; kNone
  /// at the root.
  uint32_t link(uint32_t state) const { return states[state].link; }
  /// The state after `token`, or kNone.
  uint32_t next(uint32_t state, uint32_t token) const;
  /// Walks the edges of a state: edge(firstEdge(s)), then edge(e.next), …
  uint32_t firstEdge(uint32_t state) const { return states[state].first; }
  const Edge &edge(uint32_t index) const { return edges[index]; }

private:
  struct State {
    uint32_t length, link, first;
  };

  uint32_t find(uint32_t state, uint32_t token) const;
  void add(uint32_t state, uint32_t token, uint32_t target, uint32_t count);
  void place(uint32_t edgeOf, uint32_t state);
  void rehash(size_t slots);
  static uint64_t hash(uint32_t state, uint32_t token);

  std::vector<State> states;
  std::vector<Edge> edges;
  std::vector<uint32_t> owners; ///< state of each edge
  std::vector<uint32_t> table;  ///< open addressing: edge + 1, 0 = free
  uint32_t last = 0;
};

} // namespace sprig
