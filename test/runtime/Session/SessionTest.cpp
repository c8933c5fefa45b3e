#include "runtime/Session/Session.h"

#include "../Tiny/DeviceTest.h"

#include <atomic>

using namespace sprig;
using namespace sprig::test;

namespace {

class SessionTest : public DeviceTest {};

TEST_F(SessionTest, GeneratesForEveryPromptLength) {
  auto session = open("every-length");
  ASSERT_TRUE(session);
  for (size_t length = 1; length <= 40; ++length) {
    ASSERT_OK(session->truncate(0));
    std::vector<uint32_t> tokens = prompt(length);
    ASSERT_OK(session->start(tokens.data(), tokens.size(), 6));
    EXPECT_EQ(take(*session, 6), tinyGenerate(tokens, 6, 50)) << length;
    EXPECT_EQ(session->next().status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(session->tokens().size(), length + 6);
    EXPECT_EQ(session->cached(), length + 5);
  }
}

TEST_F(SessionTest, GivesTheSameOneStepAtATimeOrAhead) {
  for (uint32_t ahead : {1u, 2u, 4u}) {
    SessionOptions options;
    options.ahead = ahead;
    auto session = open("ahead", {}, {}, options);
    ASSERT_TRUE(session);
    std::vector<uint32_t> tokens = prompt(5);
    ASSERT_OK(session->start(tokens.data(), tokens.size(), 30));
    EXPECT_EQ(take(*session, 30), tinyGenerate(tokens, 30, 50));
  }
}

std::atomic<uint32_t> submissions, partsOfGrids;
vulkan::DeviceFunctions real;

void countSubmissions(vulkan::DeviceFunctions &functions) {
  real = functions;
  functions.QueueSubmit = [](auto... arguments) {
    ++submissions;
    return real.QueueSubmit(arguments...);
  };
  functions.CmdDispatchBase = [](auto... arguments) {
    ++partsOfGrids;
    real.CmdDispatchBase(arguments...);
  };
}

TEST_F(SessionTest, StepsOfSeveralSubmissions) {
  for (bool parts : {false, true}) {
    TinyOptions tiny;
    tiny.parts = parts;
    submissions = partsOfGrids = 0;
    ModelOptions options = modelOptions();
    options.choice.intercept = countSubmissions;
    options.weights = WeightPlacement::InPlace;
    auto opened = Model::open(tinyPackage("parts", tiny), options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    auto session = Session::create(*opened, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<uint32_t> tokens = prompt(20);
    ASSERT_OK((*session)->start(tokens.data(), tokens.size(), 9));
    EXPECT_EQ(take(**session, 9), tinyGenerate(tokens, 9, 50));
    // 16 tokens, 4 tokens, and eight steps of one.
    EXPECT_EQ(submissions, parts ? 12u : 10u);
    EXPECT_EQ(partsOfGrids, parts ? 2u : 0u);
    Result<std::vector<double>> times =
        (*session)->measure(format::ProgramKind::append, 16, 30, true);
    ASSERT_TRUE(times.ok()) << times.status().message();
    EXPECT_EQ(times->size(), parts ? 3u : 2u);
    EXPECT_TRUE(std::is_sorted(times->begin(), times->end()));
  }
}

// No pipeline before a program needs it, and the next tokens are under way when
// one is given out, so that making text of it costs the device nothing.
TEST_F(SessionTest, NothingIsMadeBeforeItIsNeeded) {
  submissions = partsOfGrids = 0;
  ModelOptions options = modelOptions();
  options.choice.intercept = countSubmissions;
  options.weights = WeightPlacement::InPlace;
  auto opened = Model::open(tinyPackage("needed"), options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  auto session = Session::create(*opened, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  vulkan::Pipelines &pipelines = (*opened)->pipelines();
  EXPECT_EQ(pipelines.created(), 0u);
  std::vector<uint32_t> tokens = prompt(4);
  ASSERT_OK((*session)->append(tokens.data(), tokens.size()));
  EXPECT_EQ(pipelines.created(), 1u); // remember
  ASSERT_OK((*session)->start(tokens.data(), tokens.size(), 9));
  EXPECT_EQ(pipelines.created(), 4u); // and counts, logits, sample
  // The append, the prompt, and two steps behind it: three under way.
  EXPECT_EQ(submissions, 4u);
  for (uint32_t taken = 1; taken <= 6; ++taken) {
    take(**session, 1);
    EXPECT_EQ(submissions, 4 + taken);
  }
  take(**session, 3);
  EXPECT_EQ(submissions, 10u); // the budget: nothing is computed in vain
  EXPECT_EQ(pipelines.created(), 4u);
}

// Weights are 3 bytes short of a page more, a session 2,180 bytes with a cache
// of 256: four bytes a token.
TEST_F(SessionTest, TooLittleMemoryIsToldBeforeAnyIsTaken) {
  ModelOptions options = modelOptions();
  options.weights = WeightPlacement::Staged;
  MemoryPlan plan;
  uint64_t available = 0;
  options.plan = [&](const MemoryPlan &told, uint64_t free, bool, uint32_t) {
    plan = told;
    available = free;
  };
  const std::string path = tinyPackage("memory");
  ASSERT_TRUE(Model::open(path, options).ok());
  const uint64_t needed = plan.total();
  ASSERT_GT(available, needed);

  // Just enough; what is taken is what was planned, but for alignment.
  options.memoryLimit = needed;
  auto opened = Model::open(path, options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(available, needed);
  {
    auto session = Session::create(*opened, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_GE((*session)->deviceBytes(), plan.session());
    EXPECT_LE((*session)->deviceBytes(), plan.session() + 5 * 4096);
    // Not enough for another one, until this one goes.
    auto second = Session::create(*opened, {});
    EXPECT_EQ(second.status().code(), StatusCode::OutOfMemory);
    EXPECT_NE(second.status().message().find("one more session"),
              std::string::npos);
  }
  EXPECT_TRUE(Session::create(*opened, {}).ok());

  // Ten tokens fewer.
  options.memoryLimit = needed - 4 * 10;
  Status status = Model::open(path, options).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_NE(status.message().find("40 bytes too few; what would fit: a context "
                                  "of 54 tokens (llm-compile --context=54)"),
            std::string::npos)
      << status.message();
  // The numbers of the cache have 32 bits here.
  options.memoryLimit = needed - 256 + 160;
  status = Model::open(path, options).status();
  EXPECT_NE(status.message().find("a context of 40 tokens (llm-compile "
                                  "--context=40)"),
            std::string::npos)
      << status.message();
  options.memoryLimit = needed - 256;
  status = Model::open(path, options).status();
  EXPECT_NE(status.message().find("not even a context of one token would fit"),
            std::string::npos)
      << status.message();
}

TEST_F(SessionTest, GoesOnAfterAStopAndAfterMoreTokens) {
  auto session = open("goes-on");
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = prompt(5);
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 20));
  std::vector<uint32_t> made = take(*session, 4);
  ASSERT_OK(session->stop());
  ASSERT_OK(session->start(nullptr, 0, 3));
  std::vector<uint32_t> more = take(*session, 3);
  made.insert(made.end(), more.begin(), more.end());
  EXPECT_EQ(made, tinyGenerate(tokens, 7, 50));

  std::vector<uint32_t> all = session->tokens();
  std::vector<uint32_t> turn = {9, 8, 7};
  all.insert(all.end(), turn.begin(), turn.end());
  ASSERT_OK(session->start(turn.data(), turn.size(), 2));
  EXPECT_EQ(take(*session, 2), tinyGenerate(all, 2, 50));
}

TEST_F(SessionTest, TruncatesAndMatches) {
  auto session = open("truncates");
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = prompt(20);
  ASSERT_OK(session->append(tokens.data(), tokens.size()));
  std::vector<uint32_t> other = tokens;
  other[12] = 49;
  EXPECT_EQ(session->match(other.data(), other.size()), 12u);
  ASSERT_OK(session->truncate(12));
  EXPECT_EQ(session->cached(), 12u);
  ASSERT_OK(session->start(other.data() + 12, 8, 3));
  EXPECT_EQ(take(*session, 3), tinyGenerate(other, 3, 50));
  EXPECT_EQ(session->truncate(1000).code(), StatusCode::InvalidArgument);
}

TEST_F(SessionTest, ReportsTheEndOfTheContext) {
  auto session = open("context");
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = prompt(60);
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 100));
  // Slots 60 … 64: the last one is sampled but has no slot to be fed from.
  EXPECT_EQ(take(*session, 5), tinyGenerate(tokens, 5, 50));
  Result<uint32_t> full = session->next();
  EXPECT_EQ(full.status().code(), StatusCode::Context);
  EXPECT_NE(full.status().message().find("64"), std::string::npos);
  EXPECT_EQ(session->start(nullptr, 0, 1).code(), StatusCode::Context);

  ASSERT_OK(session->truncate(0));
  tokens = prompt(65);
  Status status = session->start(tokens.data(), tokens.size(), 1);
  EXPECT_EQ(status.code(), StatusCode::Context);
  EXPECT_NE(status.message().find("at most 64 tokens"), std::string::npos);
  tokens.pop_back();
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 5));
  EXPECT_EQ(take(*session, 1), tinyGenerate(tokens, 1, 50));
  EXPECT_EQ(session->next().status().code(), StatusCode::Context);
}

TEST_F(SessionTest, EvaluatesEveryRow) {
  for (WeightPlacement placement :
       {WeightPlacement::InPlace, WeightPlacement::Staged}) {
    auto session = open("rows", {}, placement);
    ASSERT_TRUE(session);
    std::vector<uint32_t> tokens = prompt(11), so_far;
    std::vector<float> logits(50 * tokens.size());
    ASSERT_OK(session->evaluate(tokens.data(), tokens.size(), logits.data()));
    for (size_t row = 0; row < tokens.size(); ++row) {
      so_far.push_back(tokens[row]);
      for (uint32_t v = 0; v < 50; ++v)
        EXPECT_EQ(logits[50 * row + v], v == tinyNext(so_far, 50) ? 1 : 0);
    }
    std::vector<uint32_t> more = {1, 2, 3, 4, 5, 6};
    so_far.insert(so_far.end(), more.begin(), more.end());
    ASSERT_OK(session->evaluateLast(more.data(), more.size(), logits.data()));
    EXPECT_EQ(logits[tinyNext(so_far, 50)], 1);
    EXPECT_EQ(session->cached(), 17u);
  }
}

TEST_F(SessionTest, WeightsReachTheDeviceEveryWay) {
  for (WeightPlacement placement :
       {WeightPlacement::Auto, WeightPlacement::InPlace,
        WeightPlacement::Mapped, WeightPlacement::Staged}) {
    auto session = open("placement", {}, placement);
    ASSERT_TRUE(session) << nameOf(placement);
    if (placement != WeightPlacement::Auto) {
      EXPECT_EQ(session->model().weightPlacement(), placement);
    }
    std::vector<uint32_t> tokens = prompt(7);
    ASSERT_OK(session->start(tokens.data(), tokens.size(), 5));
    EXPECT_EQ(take(*session, 5), tinyGenerate(tokens, 5, 50));
  }
}

TEST_F(SessionTest, SessionsOfOneModelDoNotMeet) {
  auto first = open("shared");
  ASSERT_TRUE(first);
  Result<std::unique_ptr<Session>> second = Session::create(model, {});
  ASSERT_TRUE(second.ok());
  std::vector<uint32_t> one = prompt(9), two = {4, 4, 4};
  ASSERT_OK(first->start(one.data(), one.size(), 8));
  ASSERT_OK((*second)->start(two.data(), two.size(), 8));
  std::vector<uint32_t> a, b;
  for (int i = 0; i < 8; ++i) {
    a.push_back(take(*first, 1).at(0));
    b.push_back(take(**second, 1).at(0));
  }
  EXPECT_EQ(a, tinyGenerate(one, 8, 50));
  EXPECT_EQ(b, tinyGenerate(two, 8, 50));
}

TEST_F(SessionTest, RefusesWhatMakesNoSense) {
  auto session = open("refuses");
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = {1, 50};
  Status status = session->start(tokens.data(), 2, 1);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_NE(status.message().find("below 50"), std::string::npos);
  EXPECT_EQ(session->start(nullptr, 0, 1).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(session->start(tokens.data(), 1, 0).code(),
            StatusCode::InvalidArgument);
  Sampling sampling;
  sampling.temperature = -1;
  EXPECT_EQ(session->setSampling(sampling).code(), StatusCode::InvalidArgument);
  sampling.temperature = 1;
  sampling.topP = 0;
  EXPECT_EQ(session->setSampling(sampling).code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(session->tokens().empty());
}

TEST_F(SessionTest, DamagedWeightsStopTheFirstToken) {
  std::vector<uint8_t> bytes = packageBytes(tinyMetadata(), tinyWeights());
  bytes[bytes.size() - 2] ^= 1;
  Result<std::shared_ptr<Model>> opened =
      Model::open(writeFile("damaged", bytes), modelOptions());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Result<std::unique_ptr<Session>> session = Session::create(*opened, {});
  ASSERT_TRUE(session.ok());
  uint32_t token = 1;
  ASSERT_OK((*session)->start(&token, 1, 1));
  EXPECT_EQ((*session)->next().status().code(), StatusCode::Corrupt);
}

TEST_F(SessionTest, ProgramsThatOnlySampleTakeLongPrompts) {
  TinyOptions tiny;
  tiny.appendWidths = {};
  tiny.sampleWidths = {1, 3};
  tiny.logitsWidths = {};
  auto session = open("only-sample", tiny);
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = prompt(11);
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 9));
  EXPECT_EQ(take(*session, 9), tinyGenerate(tokens, 9, 50));
  float logits[50];
  EXPECT_EQ(session->evaluate(tokens.data(), 1, logits).code(),
            StatusCode::Unsupported);
}

TEST_F(SessionTest, MeasuresWithoutDisturbing) {
  auto session = open("measures");
  ASSERT_TRUE(session);
  std::vector<uint32_t> tokens = prompt(6);
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 2));
  take(*session, 2);
  Result<std::vector<double>> times =
      session->measure(format::ProgramKind::sample, 4, 30, true);
  ASSERT_TRUE(times.ok()) << times.status().message();
  ASSERT_EQ(times->size(), 5u); // start, remember, counts, logits, sample
  EXPECT_TRUE(std::is_sorted(times->begin(), times->end()));
  EXPECT_TRUE(
      session->measure(format::ProgramKind::append, 16, 20, false).ok());
  EXPECT_FALSE(
      session->measure(format::ProgramKind::append, 16, 60, false).ok());
  ASSERT_OK(session->start(nullptr, 0, 3));
  std::vector<uint32_t> expected = tinyGenerate(tokens, 5, 50);
  EXPECT_EQ(take(*session, 3),
            std::vector<uint32_t>(expected.begin() + 2, expected.end()));
}

} // namespace
