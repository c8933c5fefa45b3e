// Activations of a function small enough to follow by hand.
#include "lib/Reference/Activations.h"
#include "test/lib/Reference/Evaluate.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

namespace {

/// Ids 0, 1, 2 are the rows (1, 0), (0, 2), (−3, 1). Layer 0 doubles, after two products that read its input; layer 1
/// has a product with a folded gamma (10, 1) on what layer 0 gives.
constexpr const char *kText = R"(
llm.kv_cache @kv : 1 x !llm.kv<1x2, f32, f32, 8>
func.func @forward(%ids: tensor<?xi32>, %p: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x2xf32> {
  %t = llm.weight dense<[[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]]> : tensor<3x2xf32>
  %x = llm.embedding %ids, %t : tensor<3x2xf32> -> tensor<?x2xf32>
  %y = llm.layer 0 "decoder" (%h = %x : tensor<?x2xf32>) {
    %w = llm.weight dense<[[2.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>
    %v = llm.weight dense<[[1.0, 1.0]]> : tensor<1x2xf32>
    %a = llm.linear %h, %w : tensor<?x2xf32>, tensor<2x2xf32> -> tensor<?x2xf32>
    %b = llm.linear %h, %v : tensor<?x2xf32>, tensor<1x2xf32> -> tensor<?x1xf32>
    llm.yield %a : tensor<?x2xf32>
  }
  %z = llm.layer 1 "decoder" (%h = %y : tensor<?x2xf32>) {
    %w = llm.weight dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>
    %g = llm.weight dense<[10.0, 1.0]> : tensor<2xf32>
    %a = llm.linear %h, %w gamma(%g : tensor<2xf32>) : tensor<?x2xf32>, tensor<2x2xf32> -> tensor<?x2xf32>
    %r = llm.reshape %w : tensor<2x2xf32> -> tensor<2x2xf32>
    llm.yield %a : tensor<?x2xf32>
  }
  %s = llm.select_rows %z, %rows : tensor<?x2xf32>, tensor<?xi32>
  return %s : tensor<?x2xf32>
})";

class Activations : public testing::Test {
protected:
  Activations() : program(kText) {
    settings.tokens = {0, 1, 2, 0};
    settings.progress = [this](int64_t, int64_t) { ++evaluated; };
    options.tokens = 4, options.window = 2;
  }
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-activations", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::shared_ptr<ActivationSource> source() {
    return makeActivationSource(std::make_shared<WeightStore>(""), settings);
  }
  func::FuncOp function() { return program.module->lookupSymbol<func::FuncOp>("forward"); }
  SmallVector<LayerOp> layers() { return llvm::to_vector(function().getOps<LayerOp>()); }

  Program program;
  ActivationSettings settings;
  CalibrationOptions options;
  int evaluated = 0;
  SmallString<128> folder;
};

/// Statistics by layer, copied.
struct Gathered {
  std::vector<Operation *> layers;
  std::vector<std::vector<InputStatistics>> inputs;

  LayerCallback callback() { return function; }
  std::function<FailureOr<LayerChange>(Operation *, const LayerStatistics &)> function =
      [this](Operation *layer, const LayerStatistics &statistics) -> FailureOr<LayerChange> {
    layers.push_back(layer);
    auto &list = inputs.emplace_back();
    for (const auto &[op, one] : statistics)
      list.push_back(*one);
    return LayerChange::None;
  };
};

void expectStatistics(const Gathered &got) {
  ASSERT_EQ(got.inputs.size(), 2u);
  ASSERT_EQ(got.inputs[0].size(), 2u);
  // Rows (1, 0), (0, 2), (−3, 1), (1, 0).
  for (const InputStatistics &one : got.inputs[0]) {
    EXPECT_EQ(one.rows, 4);
    EXPECT_EQ(one.width, 2);
    EXPECT_EQ(one.largest, (std::vector<float>{3, 2}));
    EXPECT_EQ(one.sums, (std::vector<double>{-1, 3}));
    EXPECT_EQ(one.magnitudes, (std::vector<double>{5, 3}));
    EXPECT_EQ(one.squares, (std::vector<double>{11, 5}));
    EXPECT_EQ(one.gram, (std::vector<float>{11, -3, -3, 5}));
  }
  // Doubled, and the first column by ten.
  ASSERT_EQ(got.inputs[1].size(), 1u);
  EXPECT_EQ(got.inputs[1][0].gram, (std::vector<float>{4400, -120, -120, 20}));
  EXPECT_EQ(got.inputs[1][0].largest, (std::vector<float>{60, 4}));
}

} // namespace

TEST_F(Activations, Statistics) {
  Gathered gathered;
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, gathered.callback()))) << program.messages;
  EXPECT_EQ(gathered.layers, (std::vector<Operation *>{layers()[0], layers()[1]}));
  expectStatistics(gathered);
  EXPECT_GT(evaluated, 0);
}

TEST_F(Activations, SharedInputsShareAnEntry) {
  auto check = [&](Operation *layer, const LayerStatistics &statistics) -> FailureOr<LayerChange> {
    if (layer == layers()[0])
      EXPECT_EQ(statistics.front().second, statistics.back().second);
    return LayerChange::None;
  };
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, check)));
}

TEST_F(Activations, WithoutGramAndForChosenProducts) {
  StatisticsRequest request;
  request.gram = false;
  request.wants = [&](Operation *op) { return op->getParentOp() == layers()[1]; };
  Gathered gathered;
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, request, gathered.callback())));
  ASSERT_EQ(gathered.layers.size(), 1u);
  EXPECT_TRUE(gathered.inputs[0][0].gram.empty());
  EXPECT_EQ(gathered.inputs[0][0].rows, 4);
}

TEST_F(Activations, TheSecondRunReadsTheCache) {
  settings.cacheFolder = folder.str().str();
  Gathered first, second;
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, first.callback())));
  evaluated = 0;
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, second.callback())));
  EXPECT_EQ(evaluated, 0);
  expectStatistics(second);
  // Another text is another run.
  settings.tokens.back() = 1;
  Gathered third;
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, third.callback())));
  EXPECT_GT(evaluated, 0);
}

TEST_F(Activations, AnInterruptedRunGoesOn) {
  settings.cacheFolder = folder.str().str();
  auto stop = [&](Operation *layer, const LayerStatistics &) -> FailureOr<LayerChange> {
    return layer == layers()[0] ? FailureOr<LayerChange>(failure()) : LayerChange::None;
  };
  ASSERT_TRUE(failed(source()->statistics(function(), options, {}, stop)));
  // The first layer's statistics come from disk, and the callback may change the layer without a trace in the rest.
  Gathered gathered;
  auto change = [&](Operation *layer, const LayerStatistics &statistics) -> FailureOr<LayerChange> {
    if (layer == layers()[0])
      for (WeightOp weight : layers()[0].getOps<WeightOp>())
        weight->setAttr("value", DenseElementsAttr::get(cast<ShapedType>(weight.getType()), 0.0f));
    return gathered.function(layer, statistics);
  };
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, change)));
  expectStatistics(gathered);
}

TEST_F(Activations, AReplayedLayerIsSeenChanged) {
  StatisticsRequest request;
  request.replay = true;
  Gathered gathered;
  auto change = [&](Operation *layer, const LayerStatistics &statistics) -> FailureOr<LayerChange> {
    if (failed(gathered.function(layer, statistics)))
      return failure();
    if (layer != layers()[0])
      return LayerChange::None;
    // Layer 0 now gives its input back.
    layers()[0].getYield()->setOperand(0, layers()[0].getBodyBlock()->getArgument(0));
    return LayerChange::Rewritten;
  };
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, request, change))) << program.messages;
  EXPECT_EQ(gathered.inputs[1][0].gram, (std::vector<float>{1100, -30, -30, 5}));
}

TEST_F(Activations, ABeginTokenHeadsEachWindow) {
  settings.begin = 2;
  options.tokens = 3;
  Gathered gathered; // windows (2, 0), (2, 1), (2, 2)
  ASSERT_TRUE(succeeded(source()->statistics(function(), options, {}, gathered.callback())));
  EXPECT_EQ(gathered.inputs[0][0].rows, 6);
  EXPECT_EQ(gathered.inputs[0][0].sums, (std::vector<double>{-11, 6}));
}

TEST_F(Activations, AShortTextIsRefused) {
  options.tokens = 5;
  Gathered gathered;
  EXPECT_TRUE(failed(source()->statistics(function(), options, {}, gathered.callback())));
  EXPECT_NE(program.messages.find("wants 5 tokens of calibration text, but the text has 4"), std::string::npos);
}

namespace {
class Recorder final : public ActivationVisitor {
public:
  bool wants(Operation *op) override { return isa<LayerOp>(op); }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input,
                      const ActivationRows &output) override {
    order += std::to_string(cast<LayerOp>(op).getIndex()) + "/" + std::to_string(window) + " ";
    firstOut.push_back(output.row(0)[0]);
    EXPECT_EQ(input.rows, 2);
    EXPECT_EQ(input.width, 2);
    return success();
  }
  FailureOr<LayerChange> passed(Operation *op) override {
    if (isa<LayerOp>(op))
      order += "| ";
    return LayerChange::None;
  }
  std::string order;
  std::vector<float> firstOut;
};
} // namespace

TEST_F(Activations, VisitorsSeeLayerByLayer) {
  Recorder recorder;
  ASSERT_TRUE(succeeded(source()->visit(function(), options, recorder))) << program.messages;
  EXPECT_EQ(recorder.order, "0/0 0/1 | 1/0 1/1 | ");
  EXPECT_EQ(recorder.firstOut, (std::vector<float>{2, -6, 20, -60}));
}
