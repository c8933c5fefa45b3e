// Trees on a whole (tiny) model, in f64: each node's logits equal those of decoding its path token by token, and after
// acceptance the caches equal those of plain decoding.
#include "lib/Import/Import.h"
#include "lib/Reference/Math/Sample.h"
#include "test/lib/Reference/Evaluate.h"
#include "test/lib/Weights/TinyLlama.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

namespace {

std::vector<int32_t> range(int32_t begin, size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

struct Tree {
  std::vector<int32_t> tokens, parents, mask, depths;
  std::vector<int32_t> path(size_t node) const {
    std::vector<int32_t> nodes;
    for (int32_t i = int32_t(node); i >= 0; i = parents[size_t(i)])
      nodes.insert(nodes.begin(), i);
    return nodes;
  }
};

class Trees : public ::testing::Test {
protected:
  Trees() : handler(&context, [this](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; }) {}

  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("sprig-trees", folder));
    SmallString<128> path(folder);
    llvm::sys::path::append(path, "tiny.gguf");
    ASSERT_FALSE(bool(mlir::llm::testing::writeTinyLlama(path)));
    auto imported = importModel(&context, path);
    ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
    module = std::move(*imported);
    addVerify();
    addCompact();
    Options options;
    options.precision = Precision::F64;
    options.threads = 2;
    evaluator = Evaluator::create(*module, "", options);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// @verify: @forward with slots of its own, over trees.
  void addVerify() {
    auto forward = module->lookupSymbol<func::FuncOp>("forward");
    auto verify = cast<func::FuncOp>(forward->clone());
    verify.setSymName("verify");
    module->push_back(verify);
    OpBuilder builder(&context);
    auto ids = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
    auto masks = RankedTensorType::get({ShapedType::kDynamic, 2}, builder.getI32Type());
    auto scalar = RankedTensorType::get({1}, builder.getI32Type());
    Block &entry = verify.getBody().front();
    Value slots = entry.addArgument(ids, verify.getLoc());
    Value base = entry.addArgument(scalar, verify.getLoc());
    Value mask = entry.addArgument(masks, verify.getLoc());
    verify.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), verify.getResultTypes()));
    verify.walk([&](KVAppendOp append) { append.getSlotsMutable().assign(slots); });
    verify.walk([&](AttentionOp attention) {
      builder.setInsertionPoint(attention);
      auto tree = TreeAttentionOp::create(builder, attention.getLoc(), attention.getType(), attention.getQuery(),
                                          attention.getCache(), base, mask, attention.getPositions(),
                                          attention.getBias(), attention.getScaleAttr(), attention.getSoftcapAttr(),
                                          attention.getWindowAttr(), attention.getSinksAttr(), attention.getBlocksAttr(),
                                          attention.getFirstAttr());
      attention.replaceAllUsesWith(tree.getResult());
      attention.erase();
    });
  }

  void addCompact() {
    std::string body;
    auto caches = *module->getOps<KVCacheOp>().begin();
    std::string type;
    llvm::raw_string_ostream(type) << caches.getType();
    for (int64_t i = 0; i < caches.getCount(); ++i) {
      const std::string handle = "%kv" + std::to_string(i);
      body += "  " + handle + " = llm.kv @kv[" + std::to_string(i) + "] : " + type + "\n  llm.kv_compact " + handle +
              " base %b accepted %a count %n : " + type + ", tensor<?xi32>\n";
    }
    auto parsed = parseSourceString<ModuleOp>("llm.kv_cache @kv : " + std::to_string(caches.getCount()) + " x " + type +
                                                  "\nfunc.func @compact(%b: tensor<1xi32>, %a: tensor<?xi32>, %n: "
                                                  "tensor<1xi32>) {\n" +
                                                  body + "  return\n}",
                                              &context);
    ASSERT_TRUE(parsed) << messages;
    module->push_back(parsed->lookupSymbol("compact")->clone());
  }

  std::vector<double> run(StringRef function, ArrayRef<Tensor> inputs) {
    auto results = evaluator->run(function, inputs);
    EXPECT_TRUE(succeeded(results)) << messages;
    return failed(results) || results->empty() ? std::vector<double>() : results->front().toDoubles();
  }
  /// Appends tokens at positions `base` on; logits of the last.
  std::vector<double> decode(ArrayRef<int32_t> tokens, int32_t base) {
    return run("forward", {Tensor::ids(tokens), Tensor::ids(range(base, tokens.size())),
                           Tensor::ids({int32_t(tokens.size()) - 1})});
  }

  Tree grow(size_t nodes) {
    Tree tree;
    for (size_t i = 0; i < nodes; ++i) {
      tree.tokens.push_back(int32_t(random() % 288));
      // Children of late nodes are likelier: deep trees, with siblings.
      tree.parents.push_back(i == 0 ? -1 : int32_t(std::max(random() % i, random() % i)));
    }
    tree.mask.resize(2 * nodes), tree.depths.resize(nodes);
    treeMask(tree.parents, tree.mask, tree.depths);
    return tree;
  }
  std::vector<double> verify(const Tree &tree, int32_t base) {
    const size_t T = tree.tokens.size();
    std::vector<int32_t> positions = tree.depths;
    for (int32_t &position : positions)
      position += base;
    return run("verify", {Tensor::ids(tree.tokens), Tensor::ids(positions), Tensor::ids(range(0, T)),
                          Tensor::ids(range(base, T)), Tensor::ids({base}),
                          Tensor::of<int32_t>({int64_t(T), 2}, tree.mask)});
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string messages;
  ScopedDiagnosticHandler handler;
  SmallString<128> folder;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Evaluator> evaluator;
  std::mt19937 random{7};
  std::vector<int32_t> prompt = {5, 120, 7, 44, 9};
};

void expectClose(ArrayRef<double> got, ArrayRef<double> expected, const std::string &what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-9) << what << ", element " << i;
}

} // namespace

TEST_F(Trees, EachNodeEqualsItsPath) {
  const int32_t base = int32_t(prompt.size());
  for (size_t nodes : {1, 2, 9, 31, 32, 33, 63, 64}) {
    SCOPED_TRACE(std::to_string(nodes) + " nodes");
    const Tree tree = grow(nodes);
    evaluator->resetState();
    decode(prompt, 0);
    const std::vector<double> logits = verify(tree, base);
    ASSERT_FALSE(logits.empty());
    const size_t V = logits.size() / nodes;
    // The last node of each depth and a few more stand for the rest.
    for (size_t node = nodes > 9 ? nodes % 5 : 0; node < nodes; node += nodes > 9 ? 6 : 1) {
      evaluator->resetState();
      decode(prompt, 0);
      std::vector<double> last;
      int32_t position = base;
      for (int32_t step : tree.path(node))
        last = decode({tree.tokens[size_t(step)]}, position++);
      expectClose(ArrayRef(logits).slice(node * V, V), last, "node " + std::to_string(node));
    }
  }
}

TEST_F(Trees, ASiblingIsNotSeen) {
  Tree tree = grow(20);
  const int32_t base = int32_t(prompt.size());
  decode(prompt, 0);
  const std::vector<double> before = verify(tree, base);
  tree.tokens[7] = (tree.tokens[7] + 1) % 288;
  evaluator->truncateState(base);
  const std::vector<double> after = verify(tree, base);
  const size_t V = before.size() / 20;
  for (size_t node = 0; node < 20; ++node) {
    const bool descends = llvm::is_contained(tree.path(node), 7);
    const bool same = std::equal(before.begin() + ptrdiff_t(node * V), before.begin() + ptrdiff_t((node + 1) * V),
                                 after.begin() + ptrdiff_t(node * V));
    EXPECT_EQ(same, !descends) << "node " << node;
  }
}

TEST_F(Trees, CachesAfterAcceptanceEqualPlainDecoding) {
  const Tree tree = grow(24);
  const int32_t base = int32_t(prompt.size());
  const std::vector<int32_t> path = tree.path(23);
  decode(prompt, 0);
  verify(tree, base);
  std::vector<int32_t> accepted = path;
  accepted.resize(24, -1);
  ASSERT_TRUE(succeeded(evaluator->run(
      "compact", {Tensor::ids({base}), Tensor::ids(accepted), Tensor::ids({int32_t(path.size())})})))
      << messages;
  auto got = evaluator->cache("kv", 1);
  ASSERT_TRUE(succeeded(got));
  // The next token sees the right keys.
  const std::vector<double> next = decode({11}, base + int32_t(path.size()));

  evaluator->resetState();
  std::vector<int32_t> plain = prompt;
  for (int32_t node : path)
    plain.push_back(tree.tokens[size_t(node)]);
  decode(plain, 0);
  auto expected = evaluator->cache("kv", 1);
  ASSERT_TRUE(succeeded(expected));
  EXPECT_EQ(got->positions, expected->positions);
  expectClose(got->keys, expected->keys, "keys");
  expectClose(got->values, expected->values, "values");
  expectClose(next, decode({11}, base + int32_t(path.size())), "the next token's logits");
}
