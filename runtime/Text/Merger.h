//===- Merger.h - the merge loop of BPE and SentencePiece ----------------===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace sprig {

/// A piece of a word: bytes [begin, begin + length), and the token that it is.
struct Symbol {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t begin = 0, length = 0; // length 0: merged into the one before
  uint32_t previous = kNone, next = kNone;
  uint32_t token = kNone;
};

/// A pair that may become one token. The smallest key goes first, then the
/// leftmost.
struct Merge {
  double key = 0;
  uint32_t left = 0, length = 0, token = 0;
  bool
  operator<(const Merge &other) const { // std heaps keep the largest on top
    return key != other.key ? key > other.key : left > other.left;
  }
};

/// Memory of one call, kept between words.
struct MergeScratch {
  std::vector<Symbol> symbols;
  std::vector<Merge> heap;
};

/// Merges neighbours until `propose(left, right)` (an optional Merge; key and
/// token filled) knows no more. O(n log n): a merge adds at most two proposals,
/// and one that no longer holds is dropped when it comes up: its parts have
/// grown or are gone, so their lengths no longer add up.
template <class Propose>
void mergeSymbols(MergeScratch &scratch, Propose &&propose) {
  std::vector<Symbol> &symbols = scratch.symbols;
  std::vector<Merge> &heap = scratch.heap;
  heap.clear();
  const auto consider = [&](uint32_t left) {
    const Symbol &a = symbols[left], &b = symbols[a.next];
    if (std::optional<Merge> merge = propose(a, b)) {
      merge->left = left;
      merge->length = a.length + b.length;
      heap.push_back(*merge);
      return true;
    }
    return false;
  };
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i)
    consider(i);
  std::make_heap(heap.begin(), heap.end());

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Merge merge = heap.back();
    heap.pop_back();
    Symbol &left = symbols[merge.left];
    if (left.length == 0 || left.next == Symbol::kNone ||
        left.length + symbols[left.next].length != merge.length)
      continue;
    Symbol &right = symbols[left.next];
    left.length = merge.length;
    left.token = merge.token;
    left.next = right.next;
    right.length = 0;
    if (left.next != Symbol::kNone) {
      symbols[left.next].previous = merge.left;
      if (consider(merge.left))
        std::push_heap(heap.begin(), heap.end());
    }
    if (left.previous != Symbol::kNone && consider(left.previous))
      std::push_heap(heap.begin(), heap.end());
  }
}

} // namespace sprig
