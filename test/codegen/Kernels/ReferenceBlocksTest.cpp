// Blocks of all 26 types of GGUF files, made and decoded by other software: what a device multiplies with them.
#include "LinearProblem.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::llm::test {
namespace {

TEST(ReferenceBlocks, ProductsAgreeWithTheirNumbers) {
  SKIP_WITHOUT_DEVICE();
  auto file = ::llvm::MemoryBuffer::getFile(SPRIG_SHARED_DIR "/reference/blocks.json");
  if (!file)
    GTEST_SKIP() << "reference/blocks.json is not at hand";
  auto blocks = ::llvm::json::parse((*file)->getBuffer());
  ASSERT_TRUE(bool(blocks));
  ASSERT_EQ(blocks->getAsObject()->size(), 26u);
  for (const auto &[name, value] : *blocks->getAsObject()) {
    SCOPED_TRACE(name.str());
    const ::llvm::json::Object &entry = *value.getAsObject();
    std::vector<char> raw;
    ASSERT_FALSE(::llvm::errorToBool(::llvm::decodeBase64(*entry.getString("raw_base64"), raw)));
    std::vector<double> numbers;
    for (const ::llvm::json::Value &number : *entry.getArray("values"))
      numbers.push_back(*number.getAsNumber());
    LinearSpec spec;
    spec.format = *quant::formatOfName(name.str());
    spec.k = 256, spec.n = int64_t(numbers.size()) / spec.k;
    Problem problem(spec, 1, 29);
    const auto *bytes = reinterpret_cast<const std::byte *>(raw.data());
    problem.hold({bytes, bytes + raw.size()});
    const std::vector<float> y = problem.runOn(profile(deviceProfile().name), spec, 0, 1);
    ASSERT_EQ(y.size(), size_t(spec.n));
    std::vector<double> right(y.size(), 0);
    double largest = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      right[i / size_t(spec.k)] += numbers[i] * double(problem.input()[i % size_t(spec.k)]);
    for (double sum : right)
      largest = std::max(largest, std::fabs(sum));
    for (size_t n = 0; n < y.size(); ++n)
      EXPECT_NEAR(y[n], right[n], 1e-4 * largest) << "row " << n;
  }
}

} // namespace
} // namespace mlir::llm::test
