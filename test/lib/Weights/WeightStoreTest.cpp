#include "lib/Weights/WeightStore.h"
#include "lib/Weights/SafetensorsFile.h"
#include "lib/Weights/WeightSpill.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "test/lib/Weights/ExprTesting.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using sprig::quant::Format;

namespace {

class WeightStoreTest : public ExprTest {
protected:
  void SetUp() override {
    ExprTest::SetUp();
    GGUFWriter writer;
    llvm::cantFail(writer.addTensor("w", Format::F32, {2}, {1.0f, 2.0f}));
    llvm::cantFail(writer.write(path("m.gguf")));
  }

  /// The diagnostics of resolving `@m` as that source declares it.
  std::string sourceError(llvm::StringRef attributes) {
    module = parseSourceString<ModuleOp>(
        "llm.source @m {" + attributes.str() +
            "}\nfunc.func @f() {\n"
            "%w = llm.weight @m[\"w\"] : tensor<2xf32>\nreturn\n}\n",
        &context);
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    auto expr = openWeightExpr(last(), *store);
    EXPECT_EQ(succeeded(expr), message.empty());
    return message;
  }
};

TEST_F(WeightStoreTest, ChecksThatTheFileIsTheOneImported) {
  const std::string file = "path = \"m.gguf\", format = \"gguf\"";
  EXPECT_EQ(sourceError(file), "");
  auto opened = llvm::cantFail(openWeightSource(path("m.gguf")));
  const std::string bytes = std::to_string(opened->fileBytes());
  const std::string hash =
      llvm::utohexstr(opened->fingerprint(), /*LowerCase=*/true, 16);
  EXPECT_EQ(sourceError(file + ", bytes = " + bytes + " : i64, hash = \"" +
                        hash + "\""),
            "");
  EXPECT_MESSAGE(sourceError(file + ", bytes = 7 : i64"),
                 "expects a file of 7 bytes, but");
  EXPECT_MESSAGE(sourceError(file + ", hash = \"0000000000000001\""),
                 "it is not the file that was imported");
  EXPECT_MESSAGE(sourceError("path = \"none.gguf\", format = \"gguf\""),
                 "none.gguf': No such file");
  EXPECT_EQ(sourceError("path = \"" + path("m.gguf") + "\", format = \"gguf\""),
            "")
      << "absolute paths are taken as they are";
}

TEST_F(WeightStoreTest, AContextCarriesAStore) {
  MLIRContext other;
  EXPECT_EQ(WeightStore::of(&other), nullptr);
  auto shared = std::make_shared<WeightStore>("somewhere");
  WeightStore::attach(&other, shared);
  EXPECT_EQ(WeightStore::of(&other), shared.get());
  WeightStore::attach(&other, std::make_shared<WeightStore>("else"));
  EXPECT_EQ(WeightStore::of(&other)->folder(), "else");
}

TEST_F(WeightStoreTest, SourcesFollowTheirModule) {
  module = parseSourceString<ModuleOp>(
      "llm.source @a {path = \"x/m.gguf\", format = \"gguf\"}\n"
      "llm.source @b {path = \"/elsewhere/m.gguf\", format = \"gguf\"}\n"
      "llm.source @c\n",
      &context);
  rebaseSources(*module, "/models/in", "/models/out/deep");
  const auto pathOf = [&](llvm::StringRef name) {
    return module->lookupSymbol<SourceOp>(name).getPath();
  };
  EXPECT_EQ(pathOf("a"), "../../in/x/m.gguf");
  EXPECT_EQ(pathOf("b"), "/elsewhere/m.gguf");
  rebaseSources(*module, "/models/out/deep", "/models/in");
  EXPECT_EQ(pathOf("a"), "x/m.gguf");
}

class WeightSpillTest : public WeightStoreTest {
protected:
  void SetUp() override {
    WeightStoreTest::SetUp();
    parse("%w = llm.weight @m[\"w\"] : tensor<2xf32>");
    builder.emplace(last().getDefiningOp());
  }
  Value add(llvm::StringRef key, RankedTensorType type,
            const std::vector<std::byte> &bytes) {
    WeightSpill *spill = store->spill(last().getDefiningOp());
    auto value = spill->add(*builder, last().getLoc(), key, type, bytes);
    EXPECT_TRUE(succeeded(value));
    return *value;
  }
  std::vector<std::byte> read(Value value, WeightStore &from) {
    auto expr = openWeightExpr(value, from);
    EXPECT_TRUE(succeeded(expr));
    return bytes(**expr);
  }
  RankedTensorType floats(int64_t N, int64_t K) {
    return RankedTensorType::get({N, K}, Float32Type::get(&context));
  }

  std::optional<OpBuilder> builder;
};

TEST_F(WeightSpillTest, NewWeightsAreReadableAtOnceAndLater) {
  store->setSpillPath("new.safetensors");
  const auto first = randomBytes(3 * 4 * 4, 1), second = randomBytes(360, 2);
  Value a = add("blk.0.ffn", floats(3, 4), first);
  auto type = cast<RankedTensorType>(parseType(
      "tensor<10x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>", &context));
  type = RankedTensorType::get({20, 32}, type.getElementType(),
                               type.getEncoding());
  Value b = add("blk.0.ffn", type, second);
  EXPECT_EQ(a.getDefiningOp<WeightOp>().getKey(), "blk.0.ffn");
  EXPECT_EQ(b.getDefiningOp<WeightOp>().getKey(), "blk.0.ffn.1")
      << "a key of its own";
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(read(a, *store), first);
  EXPECT_EQ(read(b, *store), second);
  EXPECT_FALSE(std::filesystem::exists(path("new.safetensors")));

  auto kept = openWeightExpr(b, *store);
  llvm::cantFail(store->finish());
  llvm::cantFail(store->finish());
  EXPECT_TRUE(std::filesystem::exists(path("new.safetensors")));
  EXPECT_EQ(bytes(**kept), second) << "views outlive the renaming";
  WeightStore later(folder.string());
  EXPECT_EQ(read(a, later), first);
  EXPECT_EQ(read(b, later), second);
  EXPECT_EQ((*openWeightExpr(b, later))->format(), Format::Q4_0);
}

/// A header that outgrows its room moves to a new file; open views stay.
TEST_F(WeightSpillTest, SurvivesTheGrowthOfTheHeader) {
  store->setSpillPath("new.safetensors");
  const auto data = randomBytes(8, 3);
  Value a = add("first", floats(1, 2), data);
  auto kept = openWeightExpr(a, *store);
  for (int i = 0; i < 1500; ++i)
    add("weight.number." + std::to_string(i), floats(0, 2), {});
  llvm::cantFail(store->finish());
  EXPECT_EQ(bytes(**kept), data);
  WeightStore later(folder.string());
  EXPECT_EQ(read(a, later), data);
}

TEST_F(WeightSpillTest, NothingIsLeftWithoutFinish) {
  store->setSpillPath("new.safetensors");
  add("a", floats(1, 2), randomBytes(8, 1));
  store.reset();
  EXPECT_EQ(files(), std::vector<std::string>{"m.gguf"});
}

TEST_F(WeightSpillTest, Refuses) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  EXPECT_EQ(store->spill(last().getDefiningOp()), nullptr);
  EXPECT_MESSAGE(message, "no file was named for them");
  store->setSpillPath("absent/new.safetensors");
  EXPECT_EQ(store->spill(last().getDefiningOp()), nullptr);
  EXPECT_MESSAGE(message, "cannot create");
  store->setSpillPath("new.safetensors");
  WeightSpill *spill = store->spill(last().getDefiningOp());
  ASSERT_TRUE(spill);
  EXPECT_TRUE(failed(spill->add(*builder, last().getLoc(), "a", floats(1, 2),
                                randomBytes(4, 1))));
  EXPECT_MESSAGE(message, "tensor 'a' expects 8 bytes, but got 4");
  auto type = cast<RankedTensorType>(parseType(
      "tensor<1x32x!llm.q<u4, 32:f16 zero u4>, #llm.layout<gptq>>", &context));
  EXPECT_TRUE(failed(
      spill->add(*builder, last().getLoc(), "b", type, randomBytes(4, 1))));
  EXPECT_MESSAGE(message, "stored in parts, for llm.assemble");
}

} // namespace
