#include "runtime/Speculation/SuffixAutomaton.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using sprig::SuffixAutomaton;

namespace {

/// Tokens of the longest end of `text` that also ends earlier.
uint32_t longestRepeated(const std::vector<uint32_t> &text) {
  size_t best = 0;
  for (size_t end = 1; end < text.size(); ++end) {
    size_t length = 0;
    while (length < end &&
           text[end - 1 - length] == text[text.size() - 1 - length])
      ++length;
    best = std::max(best, length);
  }
  return uint32_t(best);
}

/// What followed the last `length` tokens where they occurred before.
std::map<uint32_t, uint32_t> followers(const std::vector<uint32_t> &text,
                                       size_t length) {
  std::map<uint32_t, uint32_t> found;
  for (size_t end = length; end < text.size(); ++end)
    if (std::equal(text.end() - long(length), text.end(),
                   text.begin() + long(end - length)))
      ++found[text[end]];
  return found;
}

TEST(SuffixAutomatonTest, SaysWhatFollowedTheLongestRepeatedEnd) {
  std::mt19937 random(3);
  for (uint32_t alphabet : {1u, 2u, 3u, 20u}) {
    SuffixAutomaton automaton;
    automaton.reserve(200);
    std::vector<uint32_t> text;
    for (int i = 0; i < 200; ++i) {
      text.push_back(random() % alphabet);
      automaton.append(text.back());
      uint32_t length = automaton.length(automaton.match());
      ASSERT_EQ(length, longestRepeated(text)) << i << " of " << alphabet;
      std::map<uint32_t, uint32_t> expected = followers(text, length), got;
      for (uint32_t e = automaton.firstEdge(automaton.match());
           e != SuffixAutomaton::kNone && length > 0;
           e = automaton.edge(e).next)
        got[automaton.edge(e).token] = 1;
      if (length == 0)
        continue;
      ASSERT_EQ(got.size(), expected.size());
      for (auto [token, count] : expected)
        ASSERT_EQ(got.count(token), 1u);
    }
  }
}

TEST(SuffixAutomatonTest, CountsWhatFollowedMoreOften) {
  SuffixAutomaton automaton;
  for (uint32_t token : {1, 2, 1, 3, 1, 3, 1, 3, 1, 2, 1})
    automaton.append(token);
  uint32_t one = automaton.next(0, 1);
  ASSERT_NE(one, SuffixAutomaton::kNone);
  std::map<uint32_t, uint32_t> counts;
  for (uint32_t e = automaton.firstEdge(one); e != SuffixAutomaton::kNone;
       e = automaton.edge(e).next)
    counts[automaton.edge(e).token] = automaton.edge(e).count;
  EXPECT_EQ(counts, (std::map<uint32_t, uint32_t>{{2, 2}, {3, 3}}));
}

TEST(SuffixAutomatonTest, ClearedIsNew) {
  SuffixAutomaton automaton;
  for (uint32_t token : {1, 2, 1, 2})
    automaton.append(token);
  automaton.clear();
  EXPECT_EQ(automaton.match(), 0u);
  EXPECT_EQ(automaton.next(0, 1), SuffixAutomaton::kNone);
  automaton.append(1);
  EXPECT_EQ(automaton.match(), 0u);
}

} // namespace
