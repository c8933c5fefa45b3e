// Heads with a layer and a cache of their own: EAGLE, and the layers of MiMo and
// DeepSeek-V3 that predict further tokens. The reference evaluator against
// logits that their formulas gave, the device against the evaluator, and answers
// against those of plain decoding.
#include "lib/Import/Import.h"
#include "lib/Reference/Evaluator.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/tools/SpeculationTest.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;
using mlir::llm::testing::DeviceModelTest;
using mlir::llm::reference::Evaluator;
using mlir::llm::reference::Tensor;
using mlir::llm::testing::HeadCase;
using mlir::llm::testing::headCases;

namespace mlir::llm::testing {
void PrintTo(const HeadCase &one, std::ostream *os) { *os << one.name; }
} // namespace mlir::llm::testing

namespace {

/// The passes that give the model of a case its heads.
std::string attachPass(const HeadCase &one, const std::string &head) {
  return "llm-attach-heads{file=" + (one.apart ? head : "mtp") + "}";
}

/// What the model leaves behind its last layer, as its own function takes it up.
class Leftovers final : public reference::Observer {
public:
  bool wants(Operation *op) override { return isa<PreviousRowsOp>(op); }
  LogicalResult visit(Operation *, ArrayRef<Tensor> operands,
                      ArrayRef<Tensor>) override {
    last = operands[0];
    return success();
  }
  /// The row of the last token.
  Tensor row() const {
    const std::vector<float> numbers = last.toFloats();
    const size_t width = size_t(last.width());
    return Tensor::of<float>({1, int64_t(width)},
                             ArrayRef(numbers).take_back(width));
  }

private:
  Tensor last;
};

/// A model with heads in the reference evaluator.
class HeadReference {
public:
  HeadReference(DialectRegistry &registry, const std::string &model,
                const std::string &passes)
      : context(registry) {
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { said += diagnostic.str() + "\n"; });
    auto imported = importModel(&context, model);
    if (!imported) {
      ADD_FAILURE() << ::llvm::toString(imported.takeError());
      return;
    }
    module = std::move(*imported);
    auto store = std::make_shared<WeightStore>("");
    WeightStore::attach(&context, store);
    PassManager manager(&context);
    if (failed(parsePassPipeline(passes, manager)) ||
        failed(manager.run(*module))) {
      ADD_FAILURE() << said;
      return;
    }
    evaluator = Evaluator::create(*module, store, {});
    evaluator->setObserver(&left);
  }

  std::vector<float> step(ArrayRef<int32_t> tokens, int32_t from) {
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), from);
    const int32_t last = int32_t(tokens.size()) - 1;
    auto results = evaluator->run("forward",
                                  {Tensor::ids(tokens), Tensor::ids(positions),
                                   Tensor::ids({last})});
    EXPECT_TRUE(succeeded(results)) << said;
    return succeeded(results) ? (*results)[0].toFloats() : std::vector<float>();
  }
  /// The logits of a guess behind `token`, which is at `position`.
  std::vector<float> guess(unsigned number, int32_t token, int32_t position) {
    if (number == 0)
      state = left.row();
    auto results = evaluator->run(
        number == 0 ? "guess_heads_0" : "guess_heads_1",
        {Tensor::ids({token}), Tensor::ids({position}), Tensor::ids({0}), state});
    EXPECT_TRUE(succeeded(results)) << said;
    if (failed(results))
      return {};
    state = (*results)[1];
    return (*results)[0].toFloats();
  }

  MLIRContext context;
  std::string said;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Evaluator> evaluator;
  Leftovers left;
  Tensor state;
};

class LayerHeadsTest : public mlir::llm::testing::SpeculationTest,
                       public ::testing::WithParamInterface<HeadCase> {
protected:
  void prepare(CompileOptions &options) override {
    writeModel();
    options.source = file("model");
    options.cacheBits = 32;
    options.widths = {1, 4}; // few pipelines: there are many packages
    options.treeNodes = 4;
    options.passPipeline =
        "builtin.module(" + passes() + ",llm-default-pipeline)";
  }
  void writeModel() {
    for (const char *name : {"model", "head"})
      ASSERT_FALSE(::llvm::sys::fs::create_directories(file(name)));
    ::llvm::Error written = mlir::llm::testing::writeHeadCase(
        GetParam().name, file("model"), file("head"));
    ASSERT_FALSE(bool(written)) << ::llvm::toString(std::move(written));
  }
  std::string passes() const { return attachPass(GetParam(), file("head")); }

  const format::Draft &draft() {
    return *findDraft(session->model().metadata(), "heads");
  }
};

/// The same without a device.
class LayerHeadsReferenceTest : public LayerHeadsTest {
  void SetUp() override { DeviceModelTest::SetUp(); }
};

TEST_P(LayerHeadsReferenceTest, LogitsAreThoseOfTheFormulas) {
  writeModel();
  const HeadCase &one = GetParam();
  HeadReference model(registry(), file("model"), passes());
  ASSERT_TRUE(model.evaluator);
  // In two pieces, so that the second reads what the first left.
  const ArrayRef<int32_t> prompt = ArrayRef(one.tokens).take_front(one.prompt);
  model.step(prompt.take_front(10), 0);
  model.step(prompt.drop_front(10), 10);
  for (auto [i, expected] : ::llvm::enumerate(one.logits)) {
    const size_t at = one.prompt + i;
    const std::vector<float> logits =
        model.guess(unsigned(i), one.tokens[at], int32_t(at));
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t token = 0; token < logits.size(); ++token)
      // Later guesses start from what rounded numbers made.
      ASSERT_NEAR(logits[token], expected[token], i == 0 ? 1e-4 : 5e-4)
          << "guess " << i << ", token " << token;
  }
  // What the guesses left in the cache is overwritten: the same again, behind a
  // step of one token.
  model.step(ArrayRef(one.tokens).slice(one.prompt, 1), int32_t(one.prompt));
  HeadReference other(registry(), file("model"), passes());
  other.step(ArrayRef(one.tokens).take_front(one.prompt + 1), 0);
  const std::vector<float> again =
      model.guess(0, one.tokens[one.prompt + 1], int32_t(one.prompt) + 1);
  const std::vector<float> fresh =
      other.guess(0, one.tokens[one.prompt + 1], int32_t(one.prompt) + 1);
  for (size_t token = 0; token < again.size(); ++token)
    EXPECT_NEAR(again[token], fresh[token], 1e-4) << token;
}

/// What takes longer, for one of each kind.
class LayerHeadsAnswersTest : public LayerHeadsTest {};

TEST_P(LayerHeadsTest, GuessesAreThoseOfTheReference) {
  HeadReference model(registry(), file("model"), passes());
  ASSERT_TRUE(model.evaluator);
  EXPECT_TRUE(draft().repeats());
  EXPECT_EQ(draft().count(), 2u);
  unsigned compared = 0;
  for (uint32_t steps : {0u, 5u}) {
    ASSERT_TRUE(session->truncate(0).ok());
    ASSERT_TRUE(session->start(prompt.data(), prompt.size(), steps + 1).ok());
    for (uint32_t i = 0; i <= steps; ++i)
      ASSERT_TRUE(session->next().ok());
    std::vector<uint32_t> guesses(5);
    auto made = session->guess(draft(), 5, guesses.data());
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_EQ(*made, 5u);
    const std::vector<uint32_t> &known = session->tokens();
    const std::vector<int32_t> seen(known.begin(), std::prev(known.end()));
    model.evaluator->resetState();
    model.step(seen, 0);
    int32_t token = int32_t(known.back());
    for (unsigned i = 0; i < 5; ++i) {
      std::vector<float> row = model.guess(i, token, int32_t(seen.size() + i));
      const auto best = std::max_element(row.begin(), row.end());
      const float top = *best;
      token = int32_t(best - row.begin());
      *best = -INFINITY;
      if (top - *std::max_element(row.begin(), row.end()) < 4e-3)
        break;
      EXPECT_EQ(guesses[i], uint32_t(token)) << "guess " << i << " after "
                                             << steps << " steps";
      ++compared;
    }
  }
  EXPECT_GT(compared, 5u);
}

TEST_P(LayerHeadsAnswersTest, TokensAndCachesAreThoseOfPlainDecoding) {
  Sampling greedy, sampled;
  sampled.temperature = 0.8f, sampled.topP = 0.9f, sampled.seed = 5;
  GenerationOptions options;
  options.most = 16;
  uint64_t trees = 0;
  for (const Sampling &sampling : {greedy, sampled}) {
    ASSERT_TRUE(session->setSampling(sampling).ok());
    Answer plain;
    std::string saved;
    for (std::vector<std::string> drafts :
         {std::vector<std::string>{}, {"heads"}, {"ngram", "heads"}}) {
      SpeculationOptions with;
      with.drafts = drafts;
      std::unique_ptr<Speculator> speculator;
      if (!drafts.empty())
        speculator = std::move(*Speculator::create(*session, with));
      const Answer answer = generate(options, speculator.get());
      ASSERT_TRUE(session->save(file("saved"), "").ok());
      auto bytes = ::llvm::MemoryBuffer::getFile(file("saved"));
      ASSERT_TRUE(bool(bytes));
      if (drafts.empty()) {
        plain = answer;
        saved = (*bytes)->getBuffer().str();
        continue;
      }
      EXPECT_EQ(answer, plain) << drafts.back();
      // The cache of the heads is saved with the model's.
      EXPECT_TRUE((*bytes)->getBuffer() == saved) << drafts.back();
      trees += speculator->counts().trees;
    }
  }
  EXPECT_GT(trees, 0u);
}

/// A sequence that is cut back and goes on leaves what one of one piece does.
TEST_P(LayerHeadsAnswersTest, TheCacheOutlivesCuts) {
  auto guesses = [&] {
    std::vector<uint32_t> made(4);
    EXPECT_TRUE(session->guess(draft(), 4, made.data()).ok());
    return made;
  };
  auto start = [&](size_t from, size_t count) {
    ASSERT_TRUE(session->start(prompt.data() + from, count, 1).ok());
    ASSERT_TRUE(session->next().ok());
  };
  start(0, prompt.size());
  const std::vector<uint32_t> whole = guesses();
  ASSERT_TRUE(session->truncate(0).ok());
  ASSERT_TRUE(session->start(prompt.data(), 12, 9).ok());
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(session->next().ok());
  ASSERT_TRUE(session->truncate(9).ok());
  start(9, prompt.size() - 9);
  EXPECT_EQ(guesses(), whole);
}

/// A checkpoint that announces a layer that it does not have.
class LostLayerTest : public DeviceModelTest {};

TEST_F(LostLayerTest, IsNamed) {
  ASSERT_FALSE(::llvm::sys::fs::create_directories(file("model")));
  ASSERT_FALSE(::llvm::errorToBool(
      mlir::llm::testing::writeVariant("deepseek-v3", file("model"))));
  auto config = ::llvm::MemoryBuffer::getFile(file("model/config.json"));
  ASSERT_TRUE(bool(config));
  std::string text = (*config)->getBuffer().str();
  const std::string none = "\"num_nextn_predict_layers\":0";
  const size_t at = text.find(none);
  ASSERT_NE(at, std::string::npos);
  text[at + none.size() - 1] = '1';
  std::error_code failed;
  {
    ::llvm::raw_fd_ostream out(file("model/config.json"), failed);
    out << text;
  }
  CompileOptions options = optionsFor(file("model"), "lavapipe");
  options.passPipeline = "builtin.module(llm-attach-heads{file=mtp})";
  MLIRContext context(registry());
  std::string message;
  context.getDiagEngine().registerHandler(
      [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
  EXPECT_TRUE(mlir::failed(compileModel(context, options)));
  EXPECT_NE(message.find("expects a tensor 'model.layers.3.enorm.weight' of "
                         "shape 64, but got none"),
            std::string::npos)
      << message;
  EXPECT_FALSE(::llvm::sys::fs::exists(package()));
}

std::string nameOf(const ::testing::TestParamInfo<HeadCase> &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Heads, LayerHeadsReferenceTest,
                         ::testing::ValuesIn(headCases()), nameOf);
INSTANTIATE_TEST_SUITE_P(Heads, LayerHeadsTest,
                         ::testing::ValuesIn(headCases()), nameOf);
std::vector<HeadCase> oneOfEachKind() {
  std::vector<HeadCase> cases = headCases();
  std::erase_if(cases, [](const HeadCase &one) {
    return one.name != "eagle" && one.name != "clover-two-layers" &&
           one.name != "mtp-deepseek-v3";
  });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Heads, LayerHeadsAnswersTest,
                         ::testing::ValuesIn(oneOfEachKind()), nameOf);

} // namespace
