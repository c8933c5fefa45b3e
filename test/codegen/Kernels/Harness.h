// Compiling and running kernels in tests.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_HARNESS_H
#define SPRIG_TEST_CODEGEN_KERNELS_HARNESS_H

#include "Device.h"
#include "codegen/Kernels/Registry.h"
#include "mlir/IR/MLIRContext.h"
#include <cstring>
#include <gtest/gtest.h>

namespace mlir::llm::test {

/// One context for all tests of a binary; diagnostics are collected instead of
/// printed.
MLIRContext *context();
/// The diagnostics since the last call, joined by newlines.
std::string takeDiagnostics();

const TargetProfile &profile(StringRef name);
/// The profile under which kernels run on the device of this process:
/// "lavapipe" there, "generic" elsewhere.
const TargetProfile &deviceProfile();

/// Compiles (once per key and target) or fails the test.
const CompiledKernel *compile(StringRef family, DictionaryAttr spec,
                              const TargetProfile &profile);

/// Runs a kernel on the device for `width` tokens. Fails the test on any error.
void run(const CompiledKernel &kernel, std::vector<Bytes> &buffers,
         uint32_t width);

template <typename T> Bytes toBytes(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <typename T> std::vector<T> fromBytes(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// A small generator whose numbers are the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2654435769u + 1) {}
  uint32_t bits();
  uint32_t below(uint32_t bound) {
    return uint32_t(uint64_t(bits()) * bound >> 32);
  }
  /// Uniform in [-1, 1).
  float number() { return float(int32_t(bits())) * 0x1p-31f; }
  std::vector<float> numbers(size_t count);
  template <typename T> const T &among(const std::vector<T> &choices) {
    return choices[below(choices.size())];
  }

private:
  uint64_t state;
};

#define SKIP_WITHOUT_DEVICE()                                                  \
  if (!::mlir::llm::test::device())                                            \
  GTEST_SKIP() << ::mlir::llm::test::deviceMissing()

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_HARNESS_H
