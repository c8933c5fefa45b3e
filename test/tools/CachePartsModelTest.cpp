// Caches of which one binding does not span a layer, on a generated model and a
// target whose bindings are tiny: the same bits as with one binding.
#include "test/lib/Weights/TinyLlama.h"
#include "test/tools/DeviceModelTest.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>
#include <fstream>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

constexpr int64_t kContext = 2048;

class CachePartsTest : public mlir::llm::testing::DeviceModelTest,
                       public ::testing::WithParamInterface<
                           std::tuple<const char *, const char *, int>> {
protected:
  /// A profile like `name` whose bindings span 64 KiB.
  std::string narrow(StringRef name) {
    auto text = ::llvm::MemoryBuffer::getFile(
        std::string(SPRIG_SOURCE_DIR) + "/codegen/Target/Profiles/" +
        name.str() + ".json");
    EXPECT_TRUE(bool(text));
    std::string json = (*text)->getBuffer().str();
    const size_t at = json.find("\"storage_range\": ");
    EXPECT_NE(at, std::string::npos);
    const size_t end = json.find(',', at);
    json.replace(at, end - at, "\"storage_range\": 65536");
    const size_t named = json.find("\"" + name.str() + "\"");
    EXPECT_NE(named, std::string::npos);
    json.replace(named, name.size() + 2, "\"narrow\"");
    std::ofstream(file("narrow.json")) << json;
    return file("narrow.json");
  }

  void compile(const std::string &target) {
    CompileOptions options = optionsFor(file("tiny.gguf"), target);
    options.passPipeline = "builtin.module(" +
                           std::string(std::get<1>(GetParam())) +
                           "llm-default-pipeline)";
    options.context = kContext;
    options.widths = {1, 2, 4, 8, 16, 32};
    options.treeNodes = std::get<2>(GetParam());
    DeviceModelTest::compile(options);
    if (!HasFatalFailure())
      open(/*validated=*/true, /*poisoned=*/true);
  }

  /// What follows one more token.
  uint32_t sample(uint32_t token) {
    EXPECT_TRUE(session->start(&token, 1, 1).ok());
    auto next = session->next();
    EXPECT_TRUE(next.ok()) << next.status().message();
    return next.ok() ? *next : 0;
  }

  /// Logits around the ends of parts, whichever way the tokens come, and of
  /// trees that lie across them.
  std::vector<float> run() {
    std::vector<float> all;
    std::mt19937 random(5);
    std::vector<uint32_t> tokens(1600);
    for (uint32_t &token : tokens)
      token = uint32_t(random() % 280);
    EXPECT_TRUE(session->truncate(0).ok());
    size_t at = 0;
    for (auto [until, piece] :
         {std::pair(760, 16), {776, 1}, {1530, 7}, {1546, 16}, {1560, 8}}) {
      // Only the first and the last steps give logits.
      const size_t quiet = size_t(until) > at + 64 ? size_t(until) - 32 : at;
      if (quiet > at) {
        EXPECT_TRUE(session->append(tokens.data() + at, quiet - at).ok());
        at = quiet;
      }
      while (at < size_t(until)) {
        const size_t count = std::min(size_t(piece), size_t(until) - at);
        std::vector<float> rows(count * vocabulary);
        Status status =
            session->evaluate(tokens.data() + at, count, rows.data());
        EXPECT_TRUE(status.ok()) << status.message();
        all.insert(all.end(), rows.begin(), rows.end());
        at += count;
      }
    }
    const auto most = uint32_t(std::get<2>(GetParam()));
    for (size_t base : {size_t(1536 - 3), size_t(765), size_t(760)}) {
      if (most == 0)
        break;
      EXPECT_TRUE(session->truncate(base).ok());
      const uint32_t first = sample(tokens[base]);
      std::vector<uint32_t> nodes(most, first), accepted(most);
      std::vector<int32_t> parents(most, -1);
      for (uint32_t i = 1; i < most; ++i) {
        nodes[i] = uint32_t(random() % 280);
        parents[i] = int32_t(random() % i);
      }
      std::vector<float> rows(most * vocabulary);
      auto taken = session->verify(nodes.data(), parents.data(), most,
                                   accepted.data(), rows.data());
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      all.insert(all.end(), rows.begin(), rows.end());
      // A path of what plain decoding says, behind wrong siblings, so that it
      // has to move.
      EXPECT_TRUE(session->truncate(base).ok());
      EXPECT_TRUE(session->start(&tokens[base], 1, 7).ok());
      std::vector<uint32_t> right;
      for (int i = 0; i < 7; ++i)
        right.push_back(*session->next());
      EXPECT_TRUE(session->truncate(base).ok());
      EXPECT_EQ(sample(tokens[base]), right[0]);
      std::vector<uint32_t> path{right[0]};
      std::vector<int32_t> above{-1};
      for (int i = 1; i < 6; ++i) {
        path.push_back((right[size_t(i)] + 1) % 280);
        path.push_back(right[size_t(i)]);
        above.insert(above.end(), 2, i == 1 ? 0 : 2 * i - 2);
      }
      taken = session->verify(path.data(), above.data(), uint32_t(path.size()),
                              accepted.data());
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      EXPECT_EQ(taken.ok() ? *taken : 0, 6u);
      EXPECT_EQ(accepted[5], right[6]);
      EXPECT_TRUE(session->start(nullptr, 0, 4).ok());
      for (int i = 0; i < 4; ++i)
        all.push_back(float(*session->next()));
      EXPECT_TRUE(session->stop().ok());
    }
    return all;
  }
};

TEST_P(CachePartsTest, BitsAreThoseOfOneBinding) {
  const std::string target = std::get<0>(GetParam());
  auto model = *mlir::llm::testing::tinyLlamaVariant("default");
  model.context = kContext;
  ASSERT_FALSE(::llvm::errorToBool(
      mlir::llm::testing::writeTinyLlama(file("tiny.gguf"), model)));
  compile(target);
  if (IsSkipped() || HasFatalFailure())
    return;
  const std::vector<float> whole = run();
  session.reset();
  compile(narrow(target));
  if (IsSkipped() || HasFatalFailure())
    return;
  // It takes three of them.
  uint64_t widest = 0;
  for (const auto *command : *session->model().target().commands())
    if (const auto *dispatch = command->dispatch())
      for (const auto *binding : *dispatch->bindings())
        widest = std::max(widest, uint64_t(binding->bytes()));
  EXPECT_LE(widest, 65536u);
  const auto *cache = session->model().target().kv_caches()->Get(0);
  EXPECT_GT(cache->bytes() / cache->layers(), 2 * 65536u);
  const std::vector<float> parts = run();
  ASSERT_EQ(parts.size(), whole.size());
  ASSERT_GT(parts.size(), 0u);
  for (size_t i = 0; i < whole.size(); ++i)
    ASSERT_EQ(std::memcmp(&parts[i], &whole[i], 4), 0)
        << "number " << i << " of " << whole.size() << ", " << vocabulary
        << " a row: " << parts[i] << " instead of " << whole[i];

  // A saved session goes on.
  const uint32_t token = 5;
  const size_t length = session->tokens().size();
  auto answer = [&] {
    EXPECT_TRUE(session->start(&token, 1, 8).ok());
    std::vector<uint32_t> tokens;
    for (int i = 0; i < 8; ++i)
      tokens.push_back(*session->next());
    return tokens;
  };
  const std::vector<uint32_t> right = answer();
  ASSERT_TRUE(session->truncate(length).ok());
  ASSERT_TRUE(session->save(file("a.session"), "").ok());
  ASSERT_TRUE(session->truncate(0).ok());
  std::string note;
  ASSERT_TRUE(session->load(file("a.session"), note).ok());
  EXPECT_EQ(answer(), right);
}

INSTANTIATE_TEST_SUITE_P(
    Caches, CachePartsTest,
    ::testing::Values(std::tuple("lavapipe", "", 16),
                      std::tuple("generic", "", 16),
                      std::tuple("lavapipe", "llm-quantize-kv{bits=8},", 16),
                      std::tuple("lavapipe", "llm-quantize-kv{attention=8},", 16)));

} // namespace
