#include "codegen/Package/PackageWriter.h"

#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/Passes.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Passes.h"
#include "lib/Quant/Layout.h"
#include "lib/Weights/GGUFWriter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/Format/Header.h"
#include "runtime/Format/Package_generated.h"
#include "runtime/Package/Commands.h"
#include "runtime/Package/Package.h"
#include "runtime/Package/WeightCheck.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;

namespace {

// Two linear weights of a GGUF file (one tiled, the other joined from both and
// sliced), a vector and an inline table.
constexpr const char *kPlan = R"mlir(
module attributes {plan.model = {architecture = "llama", name = "test", vocabulary = 7, context = 16}} {
  llm.source @model {path = "weights.gguf", format = "gguf"}
  plan.tensor @a layout "tiled<rows=8>" bytes 768 {
    %0 = llm.weight @model["a"] : tensor<9x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    plan.yield %0 : tensor<9x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
  }
  plan.tensor @joined layout "tiled<rows=8>" bytes 768 {
    %0 = llm.weight @model["a"] : tensor<9x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %1 = llm.weight @model["b"] : tensor<5x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %2 = llm.concat %0, %1 axis 0 : tensor<9x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>, tensor<5x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    %3 = llm.slice %2 3 to 12 axis 0 : tensor<14x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
    plan.yield %3 : tensor<9x64x!llm.q<u4, 32:f16+f16>, #llm.layout<gguf>>
  }
  plan.tensor @gamma layout "f32" bytes 256 {
    %0 = llm.weight @model["gamma"] : tensor<64xf16>
    plan.yield %0 : tensor<64xf16>
  }
  plan.tensor @table layout "f32" bytes 16 {
    %0 = llm.weight dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    plan.yield %0 : tensor<4xf32>
  }
  plan.target @lavapipe {
    plan.buffer control @control bytes 256
    plan.buffer history @history bytes 128
    plan.buffer kv @cache bytes 4096
    plan.kv_cache @kv in @cache at 0 bytes 4096
      {layers = 2 : i64, heads = 2 : i64, head_size = 16 : i64, capacity = 16 : i64, key_type = "f16", value_type = "f16",
       plane_offsets = array<i64: 0, 1024>, slot_bytes = array<i64: 64, 64>}
    plan.kernel @norm "rms_factor" {eps = 1.0e-5, width = 64}
    plan.program @sample_1 sample width 1 {
      %x = plan.scratch "x" bytes 256
      %a = plan.weight @a at 256 bytes 256
      %j = plan.weight @joined at 0 bytes 768
      %g = plan.weight @gamma at 0 bytes 256
      %t = plan.weight @table at 0 bytes 16
      %y = plan.scratch "y" bytes 256
      plan.dispatch @norm(in %a, out %x) groups [2, 1, 1] "first" {macs = 10 : i64, touched = 20 : i64}
      plan.dispatch @norm(in %x, out %y) groups [3, 1, 1] "second"
      plan.dispatch @norm(in %g, out %y) groups [1, 1, 1]
      plan.dispatch @norm(in %t, out %x) groups [1, 1, 1]
      plan.dispatch @norm(in %j, out %x) groups [1, 1, 1]
    }
  }
}
)mlir";

class PackageWriterTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(
        ::llvm::sys::fs::createUniqueDirectory("sprig-package", folder));
    DialectRegistry registry;
    registry.insert<LLMDialect, plan::PlanDialect>();
    registerKernelDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });

    GGUFWriter writer;
    for (auto [name, rows] : {std::pair("a", 9), {"b", 5}}) {
      std::vector<std::byte> bytes(size_t(rows) * 2 * 20);
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = std::byte(i * 7 + size_t(rows));
      weights[name] = bytes;
      writer.addTensor(name, quant::Format::Q4_1, {rows, 64}, bytes);
    }
    std::vector<float> gamma(64);
    for (size_t i = 0; i < gamma.size(); ++i)
      gamma[i] = float(i) * 0.5f;
    ASSERT_FALSE(writer.addTensor("gamma", quant::Format::F16, {64}, gamma));
    ASSERT_FALSE(writer.write(file("weights.gguf")));
  }
  void TearDown() override { ::llvm::sys::fs::remove_directories(folder); }

  std::string file(StringRef name) const { return (folder + "/" + name).str(); }

  OwningOpRef<ModuleOp> parse(std::string text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    PassManager manager(&context);
    OpPassManager &target = manager.nest<plan::TargetOp>();
    target.addPass(plan::createAssignMemoryPass());
    target.addPass(plan::createInsertBarriersPass());
    manager.addPass(plan::createPlaceWeightsPass());
    manager.addPass(createLowerKernelsPass());
    EXPECT_TRUE(module && succeeded(manager.run(*module))) << message;
    return module;
  }

  FailureOr<PackageSummary> write(ModuleOp module,
                                  const PackageExtras &extras = {}) {
    PackageOptions options;
    options.sourceFolder = std::string(folder);
    return writePackage(module, file("out.sprig"), extras, options);
  }

  /// Names in the folder beside the weights.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    std::error_code error;
    for (::llvm::sys::fs::directory_iterator it(folder, error), end;
         it != end && !error; it.increment(error))
      if (StringRef name = ::llvm::sys::path::filename(it->path());
          name != "weights.gguf")
        names.push_back(name.str());
    return names;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  ::llvm::SmallString<64> folder;
  std::map<std::string, std::vector<std::byte>> weights;
  std::string message;
};

/// The file in memory, taken apart.
struct ReadPackage {
  explicit ReadPackage(StringRef path)
      : buffer(std::move(*::llvm::MemoryBuffer::getFile(path))) {
    std::memcpy(&header, buffer->getBufferStart(), sizeof header);
    metadata = stored = bytes(header.metadataOffset, header.metadataBytes);
    if (header.metadataPlainBytes != header.metadataBytes) {
      EXPECT_FALSE(::llvm::errorToBool(::llvm::compression::zstd::decompress(
          metadata, unpacked, header.metadataPlainBytes)));
      metadata = unpacked;
    }
    weights = bytes(header.weightsOffset, header.weightsBytes);
    flatbuffers::Verifier verifier(metadata.data(), metadata.size());
    valid = format::VerifyPackageBuffer(verifier);
    package = format::GetPackage(metadata.data());
  }
  ArrayRef<uint8_t> bytes(uint64_t offset, uint64_t size) const {
    return {reinterpret_cast<const uint8_t *>(buffer->getBufferStart()) +
                offset,
            size_t(size)};
  }
  std::unique_ptr<::llvm::MemoryBuffer> buffer;
  format::Header header;
  ArrayRef<uint8_t> stored, metadata, weights; ///< metadata: unpacked
  SmallVector<uint8_t> unpacked;
  bool valid = false;
  const format::Package *package = nullptr;
};

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

TEST_F(PackageWriterTest, ProgramsAndKernelsAreWhole) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  PackageExtras extras;
  extras.tokenizer.emplace();
  extras.tokenizer->pre = "smollm";
  extras.tokenizer->tokenOffsets = {0, 1};
  extras.tokenizer->tokenBytes = {'a'};
  extras.tokenizer->tokenTypes = {1};
  extras.tokenizer->bos = 0;
  extras.chatTemplate = "{{ messages }}";
  extras.goldens.push_back({{1, 2}, {3, 4}, {0.5f, 1.5f}});
  ASSERT_TRUE(succeeded(write(*module, extras))) << message;
  ReadPackage read(file("out.sprig"));
  ASSERT_TRUE(read.valid);
  EXPECT_EQ(read.package->model()->vocabulary(), 7u);
  EXPECT_EQ(read.package->model()->context(), 16u);
  EXPECT_EQ(read.package->model()->architecture()->str(), "llama");
  EXPECT_EQ(read.package->tokenizer()->pre()->str(), "smollm");
  EXPECT_EQ(read.package->tokenizer()->unknown(), -1);
  EXPECT_EQ(read.package->chat_template()->str(), "{{ messages }}");
  EXPECT_EQ(read.package->goldens()->Get(0)->margin()->Get(1), 1.5f);

  ASSERT_EQ(read.package->targets()->size(), 1u);
  const format::Target &target = *read.package->targets()->Get(0);
  ASSERT_TRUE(target.drivers());
  ASSERT_EQ(target.kernels()->size(), 1u);
  const format::Kernel &kernel = *target.kernels()->Get(0);
  EXPECT_EQ(kernel.spirv()->Get(0), 0x07230203u);
  EXPECT_EQ(kernel.bindings(), 2u);
  EXPECT_EQ(kernel.workgroup_x(), 8u);
  EXPECT_EQ(kernel.subgroup_size(), 8u);
  const format::Requirements &needs = *target.requirements();
  EXPECT_EQ(needs.subgroup_size(), 8u);
  EXPECT_EQ(needs.storage_range(), 768u);
  EXPECT_EQ(needs.storage_buffers(), 2u);
  EXPECT_EQ(needs.features()->size(), 2u);
  ASSERT_EQ(target.kv_caches()->size(), 1u);
  EXPECT_EQ(target.kv_caches()->Get(0)->head_size(), 16u);

  const format::Program &program = *target.programs()->Get(0);
  EXPECT_EQ(program.kind(), format::ProgramKind::sample);
  auto command = commandsOf(target, program).begin();
  const format::Dispatch *first = (*command)->dispatch();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->label()->str(), "first");
  EXPECT_EQ(first->groups_x(), 2u);
  EXPECT_EQ(first->macs(), 10u);
  // A weight: its buffer, and the offset of the tensor in it.
  const format::Binding &weight = *first->bindings()->Get(0);
  EXPECT_EQ(target.buffers()->Get(weight.buffer())->kind(),
            format::BufferKind::weights);
  EXPECT_EQ(weight.offset(), 256u);
  EXPECT_EQ(weight.access(), 1u);
  EXPECT_EQ(target.buffers()->Get(first->bindings()->Get(1)->buffer())->kind(),
            format::BufferKind::scratch);
  EXPECT_TRUE((*++command)->barrier());
}

TEST_F(PackageWriterTest, EqualCommandsAreStoredOnce) {
  std::string text = kPlan;
  const size_t begin = text.find("plan.program"), end = text.find("    }\n  }\n}");
  std::string again = text.substr(begin, end + 6 - begin);
  again.replace(again.find("@sample_1 sample width 1"), 24,
                "@append_2 append width 2");
  again.replace(again.find("[3, 1, 1]"), 9, "[4, 1, 1]");
  text.insert(end + 6, again);
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(succeeded(write(*module))) << message;
  ReadPackage read(file("out.sprig"));
  ASSERT_TRUE(read.valid);
  const format::Target &target = *read.package->targets()->Get(0);
  ASSERT_EQ(target.programs()->size(), 2u);
  const auto &first = *target.programs()->Get(0)->commands(),
             &second = *target.programs()->Get(1)->commands();
  ASSERT_EQ(first.size(), second.size());
  // Numbers follow their first uses: the new one is the last.
  uint32_t next = 0, others = 0;
  for (const uint32_t number : first) {
    EXPECT_LE(number, next);
    next = std::max(next, number + 1);
  }
  for (uint32_t i = 0; i < first.size(); ++i)
    if (first.Get(i) != second.Get(i)) {
      EXPECT_EQ(second.Get(i), next);
      // It binds the same.
      EXPECT_EQ(target.commands()->Get(next)->dispatch()->bindings(),
                target.commands()->Get(first.Get(i))->dispatch()->bindings());
      ++others;
    }
  EXPECT_EQ(others, 1u);
  EXPECT_EQ(target.commands()->size(), next + 1);
  // Five dispatches, and barriers of one kind between them.
  EXPECT_EQ(next, 6u);
  EXPECT_GT(first.size(), 6u);
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
