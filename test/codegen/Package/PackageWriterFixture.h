// Writes a small plan as a package and reads that back.
#pragma once

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
#include "llvm/Support/Compression.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <gtest/gtest.h>

namespace mlir::llm::testing {

using namespace sprig;

// Two linear weights of a GGUF file (one tiled, the other joined from both and
// sliced), a vector and an inline table.
inline constexpr const char *kPlan = R"mlir(
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

class PackageWriterTest : public ::testing::Test {
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

} // namespace mlir::llm::testing
