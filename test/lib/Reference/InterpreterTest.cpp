// The machine around the ops: functions, weights of files, constants, observers, errors.
#include "lib/Reference/Interpreter.h"
#include "lib/Weights/GGUFWriter.h"
#include "test/lib/Reference/Evaluate.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

TEST(Interpreter, EveryOpOfTheDialectHasARule) {
  MLIRContext context;
  context.loadDialect<LLMDialect>();
  OpTable<float> table;
  addProductOps(table), addNormOps(table), addElementwiseOps(table), addExpertOps(table), addStateOps(table);
  addSpeculationOps(table), addWeightOps(table), addAssembleOps(table), addStructureOps(table);
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("llm")) {
    const StringRef op = name.getStringRef();
    // Symbols are looked up, and a yield is read by its layer.
    if (op == "llm.source" || op == "llm.tokenizer" || op == "llm.kv_cache" || op == "llm.yield")
      continue;
    EXPECT_TRUE(table.count(name.getTypeID())) << op.str();
  }
}

TEST(Interpreter, LayersSeeValuesFromOutsideAndPassHandles) {
  const std::string text = R"(
  llm.kv_cache @kv : 2 x !llm.kv<1x1, f32, f32, 8>
  func.func @f(%x: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %kv = llm.kv @kv[1] : !llm.kv<1x1, f32, f32, 8>
    %y = llm.layer 0 "decoder" (%h = %x : tensor<?x1x1xf32>) {
      %two = llm.scale %h by 2.0 : tensor<?x1x1xf32>
      llm.kv_append %kv, %h, %two at %p : !llm.kv<1x1, f32, f32, 8>, tensor<?x1x1xf32>, tensor<?x1x1xf32>
      %a = llm.attention %two, %kv at %p scale(0.0) : tensor<?x1x1xf32>, !llm.kv<1x1, f32, f32, 8>
      %z = llm.add %a, %two : tensor<?x1x1xf32>
      llm.yield %z : tensor<?x1x1xf32>
    }
    %s = llm.add %y, %x : tensor<?x1x1xf32>
    return %s : tensor<?x1x1xf32>
  })";
  // Attention takes the mean of what came so far: 2; (2 + 4) / 2 = 3.
  expectResult(text, {numbers({2, 1, 1}, {1, 2}), Tensor::ids({0, 1})}, {2, 1, 1}, {2 + 2 + 1, 3 + 4 + 2});
}

TEST(Interpreter, CallsShareTheState) {
  Program p(R"(
  llm.kv_cache @kv : 1 x !llm.kv<1x1, f32, f32, 8>
  func.func private @append(%x: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %kv = llm.kv @kv[0] : !llm.kv<1x1, f32, f32, 8>
    llm.kv_append %kv, %x, %x at %p : !llm.kv<1x1, f32, f32, 8>, tensor<?x1x1xf32>, tensor<?x1x1xf32>
    return %x : tensor<?x1x1xf32>
  }
  func.func @f(%x: tensor<?x1x1xf32>, %p: tensor<?xi32>) -> tensor<?x1x1xf32> {
    %y = func.call @append(%x, %p) : (tensor<?x1x1xf32>, tensor<?xi32>) -> tensor<?x1x1xf32>
    return %y : tensor<?x1x1xf32>
  })");
  p.run({numbers({1, 1, 1}, {3}), Tensor::ids({0})});
  auto content = p.evaluator->cache("kv", 0);
  ASSERT_TRUE(succeeded(content));
  EXPECT_EQ(content->keys, (std::vector<double>{3}));
}

TEST(Interpreter, IntegerSums) {
  Program p(R"(func.func @f(%d: tensor<2xi32>) -> tensor<2xi32> {
    %c = arith.constant dense<[10, 20]> : tensor<2xi32>
    %s = arith.addi %c, %d : tensor<2xi32>
    return %s : tensor<2xi32>
  })");
  const auto results = p.run({Tensor::ids({1, 2})});
  ASSERT_EQ(results.size(), 1u);
  expectInts(results[0], {11, 22});
}

TEST(Interpreter, AnUnknownOpIsNamed) {
  Program p(R"(func.func @f(%d: tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.muli %d, %d : tensor<?xi32>
    return %s : tensor<?xi32>
  })");
  EXPECT_NE(p.fail({Tensor::ids({1, 2})}).find("but got 'arith.muli'"), std::string::npos);
}

TEST(Interpreter, ChecksInputs) {
  Program p(R"(func.func @f(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
    return %x : tensor<2x?xf32>
  })");
  EXPECT_NE(p.fail({}).find("expects 1 inputs, but got 0"), std::string::npos);
  EXPECT_NE(p.fail({Tensor::ids({1})}).find("got shape [1] of integers"), std::string::npos);
  EXPECT_NE(p.fail({numbers({1, 2}, {1, 2})}).find("got shape [1, 2] of floats"), std::string::npos);
  EXPECT_NE(p.fail({}, "g").find("expects a function @g"), std::string::npos);
  p.run({numbers({2, 1}, {1, 2})});
}

TEST(Interpreter, RunTimeSources) {
  Program p(R"(llm.source @adapter
  func.func @f(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
    %w = llm.weight @adapter["a"] : tensor<1x2xf32>
    %s = llm.weight dense<[10.0, 1.0]> : tensor<2xf32>
    %v = llm.scale_axis %w, %s axis 1 : tensor<1x2xf32>, tensor<2xf32>
    %y = llm.linear %x, %v : tensor<?x2xf32>, tensor<1x2xf32> -> tensor<?x1xf32>
    return %y : tensor<?x1xf32>
  })");
  const auto x = numbers({1, 2}, {1, 1});
  EXPECT_NE(p.fail({x}).find("expects a value for \"a\" of the run-time source @adapter"), std::string::npos);
  p.evaluator->setWeight("adapter", "a", numbers({1, 2}, {1, 2}));
  expectNear(p.run({x})[0], {12}, 0);
  p.evaluator->setWeight("adapter", "a", numbers({1, 2}, {3, 4})); // expressions over it are made anew
  expectNear(p.run({x})[0], {34}, 0);
  p.evaluator->setWeight("adapter", "a", numbers({2}, {3, 4}));
  EXPECT_NE(p.fail({x}).find("another was set at run time"), std::string::npos);
}

namespace {
/// A folder with a small GGUF file, gone afterwards.
class Files : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-reference", folder));
    GGUFWriter writer;
    std::vector<float> matrix(4 * 32);
    for (size_t i = 0; i < matrix.size(); ++i)
      matrix[i] = float(int(i % 16) - 8); // exact in Q4_0 of scale 1
    ASSERT_FALSE(bool(writer.addTensor("w", sprig::quant::Format::Q4_0, {4, 32}, matrix)));
    ASSERT_FALSE(bool(writer.addTensor("f", sprig::quant::Format::F16, {2, 2}, llvm::ArrayRef<float>{1, 2, 3, 4.5})));
    ASSERT_FALSE(bool(writer.addTensor("v", sprig::quant::Format::F32, {3}, llvm::ArrayRef<float>{1, 2, 3})));
    SmallString<128> path(folder);
    llvm::sys::path::append(path, "small.gguf");
    ASSERT_FALSE(bool(writer.write(path)));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string withSource(const std::string &body) {
    return "llm.source @m {path = \"small.gguf\", format = \"gguf\"}\n" + body;
  }
  SmallString<128> folder;
};
} // namespace

TEST_F(Files, WeightsAreDecoded) {
  for (Precision precision : {Precision::F32, Precision::F64}) {
    Options options;
    options.precision = precision;
    Program p(
        withSource(
            R"(func.func @f() -> (tensor<4x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>, tensor<2x2xf16>, tensor<3xf32>) {
      %w = llm.weight @m["w"] : tensor<4x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
      %f = llm.weight @m["f"] : tensor<2x2xf16>
      %v = llm.weight @m["v"] : tensor<3xf32>
      return %w, %f, %v : tensor<4x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>, tensor<2x2xf16>, tensor<3xf32>
    })"),
        options, folder);
    const auto results = p.run({});
    ASSERT_EQ(results.size(), 3u);
    std::vector<double> expected(4 * 32);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = int(i % 16) - 8;
    expectNear(results[0], expected, 0);
    expectNear(results[1], {1, 2, 3, 4.5}, 0);
    expectNear(results[2], {1, 2, 3}, 0);
  }
}

TEST_F(Files, AnEmbeddingReadsOnlyItsRows) {
  Program p(withSource(R"(func.func @f(%ids: tensor<?xi32>) -> tensor<?x2xf32> {
    %f = llm.weight @m["f"] : tensor<2x2xf16>
    %y = llm.embedding %ids, %f : tensor<2x2xf16> -> tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  })"),
            {}, folder);
  expectNear(p.run({Tensor::ids({1, 0, 5})})[0], {3, 4.5, 1, 2, 3, 4.5}, 0);
  auto *interpreter = static_cast<Interpreter<float> *>(p.evaluator.get());
  EXPECT_EQ(interpreter->weights.cachedBytes(), 0u);
}

TEST_F(Files, TheCacheKeepsWithinItsBudget) {
  const std::string text = withSource(R"(func.func @f(%x: tensor<?x32xf32>) -> tensor<?x4xf32> {
    %w = llm.weight @m["w"] : tensor<4x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>
    %d = llm.dequantize %w : tensor<4x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>> -> tensor<4x32xf32>
    %s = llm.slice %d 2 to 4 axis 0 : tensor<4x32xf32>
    %c = llm.concat %s, %s axis 0 : tensor<2x32xf32>, tensor<2x32xf32>
    %y = llm.linear %x, %c : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  })");
  const auto x = numbers({1, 32}, std::vector<double>(32, 1)); // a row sums to −16
  for (uint64_t budget : {uint64_t(0), uint64_t(600), uint64_t(1)}) {
    Options options;
    options.cacheBytes = budget;
    Program p(text, options, folder);
    for (int i = 0; i < 3; ++i)
      expectNear(p.run({x})[0], {-16, -16, -16, -16}, 0);
    auto *interpreter = static_cast<Interpreter<float> *>(p.evaluator.get());
    if (budget != 0)
      EXPECT_LE(interpreter->weights.cachedBytes(), budget);
    else
      EXPECT_GT(interpreter->weights.cachedBytes(), 600u);
  }
}

TEST_F(Files, ThePromiseOfTheTypeIsChecked) {
  struct Case {
    const char *key, *type, *message;
  };
  for (const Case &c : {Case{"f", "tensor<2x3xf16>", "holds 2x2 of F16"},
                        Case{"f", "tensor<2x2xf32>", "expects 'f' to be 'tensor<2x2xf32>', but"},
                        Case{"v", "tensor<3xi32>", "holds 3 of F32"}, Case{"none", "tensor<3xf32>", "none"}}) {
    const std::string type = c.type;
    Program p(withSource("func.func @f() -> " + type + " {\n  %w = llm.weight @m[\"" + c.key + "\"] : " + type +
                         "\n  return %w : " + type + "\n}"),
              {}, folder);
    EXPECT_NE(p.fail({}).find(c.message), std::string::npos) << p.messages;
  }
}

TEST(Interpreter, ASourceThatIsNotThere) {
  Program p(R"(llm.source @m {path = "absent.gguf", format = "gguf"}
  func.func @f() -> tensor<1xf32> {
    %w = llm.weight @m["w"] : tensor<1xf32>
    return %w : tensor<1xf32>
  })");
  EXPECT_NE(p.fail({}).find("absent.gguf"), std::string::npos);
}

namespace {
class Recorder final : public Observer {
public:
  bool wants(Operation *op) override { return isa<LinearOp, LayerOp>(op); }
  LogicalResult visit(Operation *op, ArrayRef<Tensor> operands, ArrayRef<Tensor> results) override {
    seen.push_back(op->getName().getStringRef().str());
    inputs.push_back(operands.front().toDoubles());
    outputs.push_back(results.front().toDoubles());
    weightsSeen += operands.size() > 1 && operands[1];
    return success();
  }
  std::vector<std::string> seen;
  std::vector<std::vector<double>> inputs, outputs;
  int weightsSeen = 0;
};
} // namespace

TEST(Interpreter, ObserversSeeLinearsAndLayers) {
  Program p(R"(func.func @f(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
    %w = llm.weight dense<3.0> : tensor<1x1xf32>
    %y = llm.layer 0 "decoder" (%h = %x : tensor<?x1xf32>) {
      %s = llm.scale %h by 2.0 : tensor<?x1xf32>
      %l = llm.linear %s, %w : tensor<?x1xf32>, tensor<1x1xf32> -> tensor<?x1xf32>
      llm.yield %l : tensor<?x1xf32>
    }
    return %y : tensor<?x1xf32>
  })");
  Recorder recorder;
  p.evaluator->setObserver(&recorder);
  p.run({numbers({2, 1}, {1, 5})});
  EXPECT_EQ(recorder.seen, (std::vector<std::string>{"llm.linear", "llm.layer"}));
  EXPECT_EQ(recorder.inputs, (std::vector<std::vector<double>>{{2, 10}, {1, 5}}));
  EXPECT_EQ(recorder.outputs, (std::vector<std::vector<double>>{{6, 30}, {6, 30}}));
  EXPECT_EQ(recorder.weightsSeen, 0);
}
