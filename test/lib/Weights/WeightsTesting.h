// What the tests of weight files share: a scratch folder and raw bytes.
#ifndef SPRIG_TEST_LIB_WEIGHTS_WEIGHTSTESTING_H
#define SPRIG_TEST_LIB_WEIGHTS_WEIGHTSTESTING_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace mlir::llm::testing {

/// A folder of this test case, removed with it.
class Scratch : public ::testing::Test {
protected:
  void SetUp() override {
    const auto *info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             ("sprig-" + std::string(info->test_suite_name()) + "-" +
              info->name() + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const {
    return (folder / name).string();
  }
  std::string write(const std::string &name, const void *data, size_t size) {
    std::ofstream(path(name), std::ios::binary)
        .write(static_cast<const char *>(data), std::streamsize(size));
    return path(name);
  }
  std::string write(const std::string &name,
                    const std::vector<std::byte> &bytes) {
    return write(name, bytes.data(), bytes.size());
  }
  std::string write(const std::string &name, llvm::StringRef text) {
    return write(name, text.data(), text.size());
  }
  /// Names of all files in the folder.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    return names;
  }

  std::filesystem::path folder;
};

/// The message of a failed result, or "" (which no test expects).
template <typename T> std::string messageOf(llvm::Expected<T> result) {
  if (result)
    return "";
  return llvm::toString(result.takeError());
}

/// Little-endian bytes of anything, joined.
class Bytes {
public:
  template <typename T> Bytes &number(T value) {
    return raw(&value, sizeof(T));
  }
  Bytes &text(llvm::StringRef value) { return raw(value.data(), value.size()); }
  /// A string of a GGUF file.
  Bytes &string(llvm::StringRef value) {
    return number<uint64_t>(value.size()).text(value);
  }
  Bytes &zeros(size_t count) {
    bytes.resize(bytes.size() + count);
    return *this;
  }
  Bytes &raw(const void *data, size_t size) {
    const auto *first = static_cast<const std::byte *>(data);
    bytes.insert(bytes.end(), first, first + size);
    return *this;
  }
  operator const std::vector<std::byte> &() const { return bytes; }

  std::vector<std::byte> bytes;
};

#define EXPECT_MESSAGE(expression, part)                                       \
  EXPECT_NE((expression).find(part), std::string::npos)                        \
      << "the message is: " << (expression)

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_WEIGHTS_WEIGHTSTESTING_H
