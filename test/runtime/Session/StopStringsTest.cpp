#include "runtime/Session/StopStrings.h"

#include <gtest/gtest.h>

using namespace sprig;

namespace {

std::string feed(StopStrings &stops, const std::string &text, size_t piece) {
  std::string shown;
  for (size_t at = 0; at < text.size(); at += piece)
    shown += stops.push(text.substr(at, piece));
  return shown + stops.finish();
}

TEST(StopStrings, CutsWhereTheFirstBegins) {
  for (size_t piece = 1; piece < 8; ++piece) {
    StopStrings stops({"END", "ND", ""});
    EXPECT_EQ(feed(stops, "the EN END is near", piece), "the EN ");
    EXPECT_TRUE(stops.stopped());
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeOne) {
  StopStrings stops({"\n\nUser:"});
  EXPECT_EQ(stops.push("hello\n"), "hello");
  EXPECT_EQ(stops.push("x\n\n"), "\nx");
  EXPECT_EQ(stops.push("Use"), "");
  EXPECT_EQ(stops.push("d"), "\n\nUsed");
  EXPECT_EQ(stops.push("\n\nUs"), "");
  EXPECT_EQ(stops.finish(), "\n\nUs");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, FindsOneThatOverlapsItself) {
  for (size_t piece = 1; piece < 6; ++piece) {
    StopStrings stops({"aab"});
    EXPECT_EQ(feed(stops, "caaab", piece), "ca");
  }
}

TEST(StopStrings, NoneStopsNothing) {
  StopStrings stops({});
  EXPECT_EQ(feed(stops, "anything", 3), "anything");
  EXPECT_FALSE(stops.stopped());
}

} // namespace
