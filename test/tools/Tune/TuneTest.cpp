#include "tools/Tune/Products.h"
#include "tools/Tune/Search.h"
#include "tools/Tune/State.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace mlir::llm {
namespace {

/// Times that are known: a race of a function of the choices.
class KnownRace final : public ScheduleRace {
public:
  using Time = std::function<double(const ScheduleValues &)>;
  explicit KnownRace(Time time) : time(std::move(time)) {}
  bool legal(const ScheduleValues &choices) override {
    return choices.at("waves") != ScheduleValue(int64_t(32));
  }
  std::vector<double> race(const ScheduleValues &a, const ScheduleValues &b,
                           unsigned rounds) override {
    ++races;
    if (time(a) <= 0 || time(b) <= 0)
      return {};
    return std::vector<double>(rounds, time(b) / time(a));
  }
  Time time;
  unsigned races = 0;
};

int64_t number(const ScheduleValues &choices, const char *name) {
  return std::get<int64_t>(choices.at(name));
}

ScheduleAxis axis(std::initializer_list<int64_t> values) {
  return ScheduleAxis(values.begin(), values.end());
}

const ScheduleSpace kSpace = {{"rows", axis({1, 2, 4, 8})},
                              {"waves", axis({1, 2, 32})},
                              {"chains", axis({1, 2})}};
const ScheduleValues kStandard = {{"rows", int64_t(1)},
                                  {"waves", int64_t(1)},
                                  {"chains", int64_t(2)}};

bool changesBits(llvm::StringRef choice) { return choice == "chains"; }

std::optional<TileResult> search(KnownRace &race, ScheduleValues start) {
  return searchTile(kSpace, start, kStandard, changesBits, race, {});
}

TEST(Search, FindsTheBestOfTheClassAndLeavesItsBitsAlone) {
  KnownRace race([](const ScheduleValues &choices) {
    return 10.0 + std::abs(number(choices, "rows") - 4) -
           number(choices, "waves") - (number(choices, "chains") == 1 ? 5 : 0);
  });
  std::optional<TileResult> found = search(race, kStandard);
  ASSERT_TRUE(found);
  EXPECT_EQ(number(found->choices, "rows"), 4);
  EXPECT_EQ(number(found->choices, "waves"), 2); // 32 is not legal
  EXPECT_EQ(number(found->choices, "chains"), 2);
  EXPECT_DOUBLE_EQ(found->ratio, 8.0 / 12);
}

TEST(Search, KeepsTheDefaultUnlessSomethingIsClearlyFaster) {
  KnownRace noise([](const ScheduleValues &choices) {
    return number(choices, "rows") == 2 ? 0.99 : 1.0;
  });
  std::optional<TileResult> found = search(noise, kStandard);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choices, kStandard);
  EXPECT_EQ(found->ratio, 1);

  // In another class there is no default to keep.
  ScheduleValues other = kStandard;
  other["chains"] = int64_t(1);
  EXPECT_FALSE(search(noise, other));
}

TEST(Search, GoesOnWhereAKernelDoesNotRun) {
  KnownRace broken([](const ScheduleValues &choices) {
    return number(choices, "rows") == 2   ? 0.0
           : number(choices, "rows") == 4 ? 0.5
                                          : 1.0;
  });
  ScheduleValues start = kStandard;
  start["rows"] = int64_t(2);
  std::optional<TileResult> found = search(broken, start);
  ASSERT_TRUE(found);
  EXPECT_EQ(number(found->choices, "rows"), 4);
}

TEST(Search, FasterMeansNearlyEveryRound) {
  EXPECT_TRUE(faster({0.9, 0.9, 0.9, 0.9, 1.2}, 0.03));
  EXPECT_FALSE(faster({0.9, 0.9, 0.9, 1.1, 1.2}, 0.03));
  EXPECT_FALSE(faster({0.98, 0.98, 0.98}, 0.03));
  EXPECT_FALSE(faster({}, 0.03));
}

TEST(Search, ClassesAreWholeOrOut) {
  EXPECT_EQ(classesOf(kSpace, kStandard, changesBits).size(), 2u);
  EXPECT_EQ(classesOf(kSpace, kStandard, changesBits)[0], kStandard);
  auto tile = [](double ratio) {
    return std::optional(TileResult{kStandard, ratio});
  };
  // Decoding counts for as much as the wider tiles together.
  EXPECT_EQ(bestClass({{tile(1), tile(1), tile(1)},
                       {tile(0.8), tile(1), tile(1)},
                       {tile(1), tile(0.8), tile(0.9)}}),
            1u);
  EXPECT_EQ(bestClass({{tile(1), tile(1)}, {tile(0.5), std::nullopt}}), 0u);
  EXPECT_EQ(bestClass({{tile(0.9)}, {tile(0.95)}}), 0u);
}

class StateFile : public testing::Test {
protected:
  void SetUp() override {
    file = std::string(SPRIG_BINARY_DIR) + "/tune-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    llvm::sys::fs::remove(file);
  }
  void TearDown() override { llvm::sys::fs::remove(file); }
  std::string errorOf(llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(file, error) << text;
    llvm::Expected<TuneState> state = TuneState::open(file, "card");
    return state ? "" : llvm::toString(state.takeError());
  }
  std::string file;
};

TEST_F(StateFile, GoesOnWhereItWas) {
  TuneState::Key key{"Q4_1:64x64", 2, kStandard}, other = key;
  other.start["chains"] = int64_t(1);
  {
    llvm::Expected<TuneState> state = TuneState::open(file, "card");
    ASSERT_TRUE(bool(state));
    EXPECT_EQ(state->size(), 0u);
    EXPECT_FALSE(bool(state->add(key, TileResult{kStandard, 0.5})));
    EXPECT_FALSE(bool(state->add(other, std::nullopt)));
  }
  llvm::Expected<TuneState> state = TuneState::open(file, "card");
  ASSERT_TRUE(bool(state));
  ASSERT_TRUE(state->find(key) && *state->find(key));
  EXPECT_EQ((*state->find(key))->ratio, 0.5);
  EXPECT_EQ((*state->find(key))->choices, kStandard);
  ASSERT_TRUE(state->find(other));
  EXPECT_FALSE(*state->find(other));
  key.tokens = 3;
  EXPECT_FALSE(state->find(key));
}

TEST_F(StateFile, RefusesWhatIsNone) {
  EXPECT_NE(errorOf("GGUF").find("is not JSON"), std::string::npos);
  EXPECT_NE(errorOf("\xff\xfe").find("expects UTF-8"), std::string::npos);
  EXPECT_NE(errorOf("[]").find("expects what llm-tune wrote"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"tuning_of": "other", "done": []})")
                .find("expects a tuning of 'card', but is one of 'other'"),
            std::string::npos);
  for (const char *entry :
       {"1", "{}", R"({"product": "a", "tokens": 1, "start": {"rows": []}})",
        R"({"product": "a", "tokens": 1, "start": {}, "choices": {},
            "ratio": 2})",
        R"({"product": "a", "tokens": 1, "start": {}, "choices": 1,
            "ratio": 1})"})
    EXPECT_NE(errorOf(std::string(R"({"tuning_of": "card", "done": [)") +
                      entry + "]}")
                  .find("expects entries with product"),
              std::string::npos)
        << entry;
  EXPECT_EQ(errorOf(R"({"tuning_of": "card", "done": []})"), "");
}

TEST(Products, AreSpelledAsTheyAreRead) {
  for (StringRef text : usualProducts()) {
    llvm::Expected<Product> product = parseProduct(text);
    ASSERT_TRUE(bool(product)) << llvm::toString(product.takeError());
    EXPECT_EQ(product->name(), text.str());
  }
  for (StringRef text : {"", "Q4_1", "Q4_1:64", "Q4_1:64x33", "Q9:64x64",
                         "Q4_1:0x64", "Q4_1:64x64:silu", "Q4_1:-8x64",
                         "Q4_1:99999999999x64"}) {
    llvm::Expected<Product> product = parseProduct(text);
    EXPECT_FALSE(bool(product)) << text.str();
    llvm::consumeError(product.takeError());
  }
}

} // namespace
} // namespace mlir::llm
