#include "PackageWriterFixture.h"
#include "runtime/Package/Package.h"
#include "runtime/Package/WeightCheck.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;
using mlir::llm::testing::kPlan;
using mlir::llm::testing::PackageWriterTest;
using mlir::llm::testing::ReadPackage;

namespace {

TEST_F(PackageWriterTest, HeaderAndHashesCoverTheFile) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  FailureOr<PackageSummary> summary = write(*module);
  ASSERT_TRUE(succeeded(summary)) << message;
  ReadPackage read(file("out.sprig"));
  EXPECT_EQ(std::memcmp(read.header.magic, format::kMagic, 8), 0);
  EXPECT_EQ(read.header.version, format::kVersion);
  EXPECT_EQ(read.header.requiredFeatures, 0u);
  EXPECT_EQ(read.header.metadataHash, ::llvm::xxh3_64bits(read.stored));
  EXPECT_EQ(
      read.header.headerHash,
      ::llvm::xxh3_64bits(read.bytes(0, offsetof(format::Header, headerHash))));
  EXPECT_EQ(read.header.weightsOffset % format::kPageBytes, 0u);
  EXPECT_EQ(read.header.weightsOffset + read.header.weightsBytes,
            read.buffer->getBufferSize());
  EXPECT_EQ(summary->packageBytes, read.buffer->getBufferSize());
  EXPECT_EQ(summary->kernels, 1u);
  EXPECT_EQ(summary->tensors, 4u);
  ASSERT_TRUE(read.valid);
  uint64_t end = 0;
  for (const format::Chunk *chunk : *read.package->chunks()) {
    EXPECT_EQ(chunk->offset(), end);
    EXPECT_EQ(chunk->hash(), ::llvm::xxh3_64bits(read.weights.slice(
                                 chunk->offset(), chunk->bytes())));
    end += chunk->bytes();
  }
  EXPECT_EQ(end, read.header.weightsBytes);
  EXPECT_EQ(leftovers(), std::vector<std::string>{"out.sprig"});
}

TEST_F(PackageWriterTest, TensorsAreLaidOutAsTheySay) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(succeeded(write(*module))) << message;
  ReadPackage read(file("out.sprig"));
  std::map<std::string, ArrayRef<uint8_t>> tensors;
  for (const format::Tensor *tensor : *read.package->tensors()) {
    EXPECT_EQ(tensor->offset() % format::kAlignment, 0u);
    tensors[tensor->name()->str()] =
        read.weights.slice(tensor->offset(), tensor->bytes());
  }
  ASSERT_EQ(tensors.size(), 4u);

  auto expectTiled = [&](const char *name, std::vector<std::byte> source) {
    quant::TensorLayout layout =
        quant::describe(quant::Format::Q4_1, 9, 64, {8});
    std::vector<std::byte> expected(layout.bytes);
    quant::relayout(layout, source.data(), expected.data());
    EXPECT_EQ(
        std::memcmp(tensors[name].data(), expected.data(), expected.size()), 0)
        << name;
  };
  expectTiled("a", weights["a"]);
  std::vector<std::byte> joined = weights["a"];
  joined.insert(joined.end(), weights["b"].begin(), weights["b"].end());
  expectTiled("joined", {joined.begin() + 3 * 40, joined.begin() + 12 * 40});

  auto number = [&](const char *name, size_t i) {
    float value;
    std::memcpy(&value, tensors[name].data() + i * 4, 4);
    return value;
  };
  EXPECT_EQ(number("gamma", 63), 31.5f);
  EXPECT_EQ(number("table", 2), 3.0f);
}

// The verifier of the runtime checks every index, size, offset and hash.
TEST_F(PackageWriterTest, TheRuntimeOpensIt) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  PackageExtras extras;
  ASSERT_TRUE(succeeded(write(*module, extras))) << message;
  auto package = Package::open(file("out.sprig"));
  ASSERT_TRUE(package.ok()) << package.status().message();
  Status weights = WeightCheck(*package, 2).wait();
  EXPECT_TRUE(weights.ok()) << weights.message();
}

TEST_F(PackageWriterTest, WritingTwiceGivesTheSameBytes) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(succeeded(write(*module))) << message;
  auto first = ReadPackage(file("out.sprig"));
  ASSERT_TRUE(succeeded(write(*module))) << message;
  auto second = ReadPackage(file("out.sprig"));
  EXPECT_EQ(first.buffer->getBuffer(), second.buffer->getBuffer());
}

TEST_F(PackageWriterTest, AMissingTensorIsNamedAndNothingIsWritten) {
  std::string text = kPlan;
  for (size_t at; (at = text.find("[\"b\"]")) != std::string::npos;)
    text.replace(at, 5, "[\"absent\"]");
  OwningOpRef<ModuleOp> module = parse(text);
  EXPECT_TRUE(failed(write(*module)));
  EXPECT_NE(message.find("absent"), std::string::npos) << message;
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(PackageWriterTest, ATypeThatIsNotTheFilesIsRefused) {
  std::string text = kPlan;
  for (size_t at; (at = text.find("tensor<64xf16>")) != std::string::npos;)
    text.replace(at, 14, "tensor<64xf32>");
  OwningOpRef<ModuleOp> module = parse(text);
  EXPECT_TRUE(failed(write(*module)));
  EXPECT_NE(message.find("expects 'gamma' to be 'tensor<64xf32>'"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("holds 64 of F16"), std::string::npos) << message;
}

TEST_F(PackageWriterTest, AnIncompletePlanIsRefused) {
  OwningOpRef<ModuleOp> unplaced = parseSourceString<ModuleOp>(kPlan, &context);
  EXPECT_TRUE(failed(write(*unplaced)));
  EXPECT_NE(message.find("run plan-place-weights"), std::string::npos)
      << message;
  message.clear();
  OwningOpRef<ModuleOp> empty =
      parseSourceString<ModuleOp>("module {}", &context);
  EXPECT_TRUE(failed(write(*empty)));
  EXPECT_NE(message.find("expects a plan with a target"), std::string::npos)
      << message;
  EXPECT_TRUE(leftovers().empty());
}

} // namespace
