#include "runtime/Session/Session.h"

#include "../Tiny/DeviceTest.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <xxhash.h>

using namespace sprig;
using namespace sprig::test;

namespace {

std::vector<char> bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeBytes(const std::string &path, const std::vector<char> &bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), std::streamsize(bytes.size()));
}

class SessionFileTest : public DeviceTest {
protected:
  void SetUp() override {
    DeviceTest::SetUp();
    path = ::testing::TempDir() + "sprig-" + std::to_string(getpid()) +
           ".session";
  }
  void TearDown() override {
    std::filesystem::remove(path);
    DeviceTest::TearDown();
  }
  std::string path, note;
};

TEST_F(SessionFileTest, GoesOnAsIfNothingHadHappened) {
  auto first = open("saved");
  ASSERT_TRUE(first);
  const std::vector<uint32_t> tokens = prompt(9);
  ASSERT_OK(first->start(tokens.data(), tokens.size(), 20));
  std::vector<uint32_t> made = take(*first, 5);
  ASSERT_OK(first->save(path, "a note"));

  // A session that held something else, and memory full of NaN before that.
  SessionOptions poisoned;
  poisoned.fill = kPoison;
  auto second = open("saved", {}, {}, poisoned);
  ASSERT_TRUE(second);
  const std::vector<uint32_t> other = {1, 2, 3};
  ASSERT_OK(second->append(other.data(), other.size()));
  ASSERT_OK(second->load(path, note));
  EXPECT_EQ(note, "a note");
  EXPECT_EQ(second->tokens(), first->tokens());
  EXPECT_EQ(second->cached(), first->cached());
  ASSERT_OK(second->start(nullptr, 0, 6));
  std::vector<uint32_t> more = take(*second, 6);
  made.insert(made.end(), more.begin(), more.end());
  EXPECT_EQ(made, tinyGenerate(tokens, 11, 50));
  // The first one goes on as well.
  ASSERT_OK(first->start(nullptr, 0, 6));
  EXPECT_EQ(take(*first, 6), more);
}

TEST_F(SessionFileTest, SavesNothingAndAFullContext) {
  auto session = open("extremes");
  ASSERT_TRUE(session);
  ASSERT_OK(session->save(path, ""));
  ASSERT_OK(session->load(path, note));
  EXPECT_TRUE(session->tokens().empty());
  const std::vector<uint32_t> tokens = prompt(64);
  ASSERT_OK(session->start(tokens.data(), tokens.size(), 5));
  take(*session, 1);
  ASSERT_OK(session->save(path, ""));
  ASSERT_OK(session->truncate(0));
  ASSERT_OK(session->load(path, note));
  EXPECT_EQ(session->tokens().size(), 65u);
  EXPECT_EQ(session->start(nullptr, 0, 1).code(), StatusCode::Context);
}

// A changed byte anywhere, or a file cut anywhere, is refused, and the session
// is as it was.
TEST_F(SessionFileTest, RefusesEveryChangedByteAndEveryCut) {
  auto session = open("damaged");
  ASSERT_TRUE(session);
  const std::vector<uint32_t> tokens = prompt(6);
  ASSERT_OK(session->append(tokens.data(), tokens.size()));
  ASSERT_OK(session->save(path, "note"));
  const std::vector<char> whole = bytesOf(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<char> changed = whole;
    changed[i] ^= char(1 << i % 8);
    writeBytes(path, changed);
    Status status = session->load(path, note);
    ASSERT_FALSE(status.ok()) << "byte " << i;
    ASSERT_NE(status.message().find(path), std::string::npos);
    changed = whole;
    changed.resize(i);
    writeBytes(path, changed);
    ASSERT_FALSE(session->load(path, note).ok()) << "cut at " << i;
  }
  EXPECT_EQ(session->tokens(), tokens);
  EXPECT_EQ(session->cached(), 6u);
}

// A stranger can make hashes that fit.
TEST_F(SessionFileTest, RefusesHostileNumbersThatHashRight) {
  auto session = open("hostile");
  ASSERT_TRUE(session);
  const std::vector<uint32_t> tokens = prompt(6);
  ASSERT_OK(session->append(tokens.data(), tokens.size()));
  ASSERT_OK(session->save(path, "note"));
  const std::vector<char> whole = bytesOf(path);
  using session_file::Header;
  auto refused = [&](auto &&change, const char *message) {
    std::vector<char> bytes = whole;
    Header head;
    std::memcpy(&head, bytes.data(), sizeof(head));
    change(head, bytes);
    head.bodyHash =
        XXH3_64bits(bytes.data() + sizeof(head), bytes.size() - sizeof(head));
    head.headerHash = XXH3_64bits(&head, offsetof(Header, headerHash));
    std::memcpy(bytes.data(), &head, sizeof(head));
    writeBytes(path, bytes);
    Status status = session->load(path, note);
    EXPECT_NE(status.message().find(message), std::string::npos)
        << status.message();
  };
  using Bytes = std::vector<char>;
  refused([](Header &head, Bytes &) { head.tokens = 0xffffffff; },
          "expects at most 64 tokens, but got 4294967295");
  refused([](Header &head, Bytes &) { head.cached = 7; },
          "expects at most 64 tokens, but got 6, of which 7 are cached");
  refused([](Header &head, Bytes &) { head.cached = 5; },
          "expects 20 bytes of keys and values, but got 24");
  refused([](Header &head, Bytes &) { head.noteBytes = ~0ull; },
          "expects a note of at most");
  refused([](Header &head, Bytes &) { head.noteBytes += 4; }, "bytes, but got");
  refused([](Header &head, Bytes &) { head.cacheBytes = ~0ull - 100; },
          "bytes of keys and values");
  refused([](Header &head, Bytes &) { head.version = 9; },
          "expects a session of version 1, but got 9");
  refused([](Header &head, Bytes &) { head.package ^= 1; },
          "expects a session of this package");
  refused([](Header &head, Bytes &) { head.target ^= 1; },
          "expects a session of target 'tiny'");
  refused([](Header &, Bytes &bytes) { bytes[sizeof(Header)] = 50; },
          "expects token ids below 50, but got 50");
  EXPECT_EQ(session->tokens(), tokens);
}

TEST_F(SessionFileTest, NamesFilesThatCannotBeReadOrWritten) {
  auto session = open("nowhere");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->load("/nowhere/a.session", note).code(),
            StatusCode::NotFound);
  Status status = session->save("/nowhere/a.session", "");
  EXPECT_EQ(status.code(), StatusCode::IoError);
  EXPECT_NE(status.message().find("/nowhere/a.session"), std::string::npos);
}

} // namespace
