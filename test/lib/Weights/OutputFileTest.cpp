// A file appears whole or not at all, and what was there stays until then.
#include "lib/Weights/OutputFile.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <csignal>
#include <fstream>
#include <sys/resource.h>

using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

class OutputFileTest : public Scratch {
protected:
  std::string contents(const char *name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::span<const std::byte> bytesOf(llvm::StringRef text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
};

TEST_F(OutputFileTest, TheOldFileStaysUntilTheNewOneIsWhole) {
  write("out", llvm::StringRef("old"));
  auto file = OutputFile::create(path("out"));
  ASSERT_TRUE(bool(file));
  ASSERT_FALSE(bool((*file)->append(bytesOf("new"))));
  EXPECT_EQ(contents("out"), "old");
  ASSERT_FALSE(bool((*file)->commit()));
  EXPECT_EQ(contents("out"), "new");
  file->reset();
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(OutputFileTest, NothingIsLeftWithoutCommit) {
  write("out", llvm::StringRef("old"));
  for (const char *name : {"out", "other"}) {
    auto file = OutputFile::create(path(name));
    ASSERT_TRUE(bool(file));
    ASSERT_FALSE(bool((*file)->append(bytesOf("half"))));
  }
  EXPECT_EQ(contents("out"), "old");
  EXPECT_EQ(files().size(), 1u);
}

/// A disk that is full, or a limit on files.
TEST_F(OutputFileTest, AWriteThatFailsLeavesTheOldFile) {
  write("out", llvm::StringRef("old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  {
    auto file = OutputFile::create(path("out"));
    ASSERT_TRUE(bool(file));
    const std::vector<std::byte> bytes(8192);
    llvm::Error error = (*file)->append(bytes);
    if (!error)
      error = (*file)->commit();
    message = llvm::toString(std::move(error));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find(path("out")), std::string::npos) << message;
  EXPECT_EQ(contents("out"), "old");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(OutputFileTest, WhatIsNoFileIsRefused) {
  for (const std::string &place : {folder.string(), std::string("/dev/full"), path("no/such/folder")}) {
    auto file = OutputFile::create(place);
    EXPECT_FALSE(bool(file)) << place;
    llvm::consumeError(file.takeError());
  }
}

} // namespace
