#include "lib/Import/CloverHead.h"
#include "lib/Import/Eagle3Head.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::llm;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static const ImportOptions &plainOptions() {
  static const ImportOptions options;
  return options;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Expected<CheckpointConfig>
mlir::llm::readHeadConfig(StringRef path, int64_t width, int64_t vocabulary,
                          llvm::ArrayRef<StringRef> others) {
  Expected<CheckpointConfig> read = readCheckpointConfig(path, others);
  if (!read)
    return read.takeError();
  for (auto [what, wanted, got] :
       {std::tuple("a hidden_size of ", width, read->config.width),
        {"a vocab_size of ", vocabulary, read->config.vocabulary}})
    if (wanted != got)
      return llvm::createStringError("'" + path + "' expects " + what +
                                     Twine(wanted) +
                                     ", as the model has, but got " +
                                     Twine(got));
  return read;
}

/// In front of names where the head was saved as a part of a model.
static StringRef eagleRoot(const WeightSource &source) {
  return source.find("model.fc.weight") ? "model." : "";
}

bool mlir::llm::isEagleHead(const WeightSource &source) {
  return source.find("fc.weight") || source.find("model.fc.weight");
}

Expected<LayerHead> mlir::llm::readEagleHead(const WeightSource &source,
                                             StringRef configPath,
                                             int64_t width,
                                             int64_t vocabulary) {
  // `bias` says whether fc has one; the file is believed.
  Expected<CheckpointConfig> read =
      readHeadConfig(configPath, width, vocabulary, {"bias"});
  if (!read)
    return read.takeError();
  LayerHead head;
  head.name = "eagle";
  head.config = std::move(read->config);
  ModelConfig &config = head.config;
  if (config.layers.size() != 1)
    return llvm::createStringError(
        "'" + configPath + "' num_hidden_layers expects 1, for an EAGLE head, "
        "but got " + Twine(config.layers.size()));
  if (config.learnedPositions)
    return llvm::createStringError(
        "'" + configPath + "' model_type expects a family whose layers know "
        "positions by themselves, but got '" + config.architecture + "'");
  TensorTable tensors(source);
  const StringRef root = eagleRoot(source);
  const std::string prefix = (root + "layers.0.").str();
  TensorNames names = *read->family->names;
  // Published heads do without the first norm.
  if (!tensors.has(prefix + names.beforeAttention + ".weight"))
    names.beforeAttention = "";
  head.weights.layers.push_back(
      findLayer(config, names, config.layers.front(), prefix, tensors));
  head.projection = {tensors.take(root + "fc.weight", {width, 2 * width})};
  head.bias = {tensors.takeOptionalVector(root + "fc.bias", width)};
  // Copies of the model's tables, which training left as they were.
  for (const char *name : {"embed_tokens.weight", "lm_head.weight"})
    tensors.takeOptional(root + name, {vocabulary, width});
  if (Error error = tensors.finish("EAGLE head"))
    return error;
  return head;
}

namespace {
/// What the families call the tensors around the layer.
struct PredictNames {
  StringRef tokenNorm, featureNorm, projection, finalNorm;
  bool tokenFirst;
  /// Copies of the model's tables.
  StringRef table = "", head = "";
};
} // namespace

static constexpr PredictNames kMimoPredict = {
    "token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm",
    /*tokenFirst=*/false};
static constexpr PredictNames kDeepseekPredict = {
    "enorm",  "hnorm", "eh_proj", "shared_head.norm",
    /*tokenFirst=*/true, "embed_tokens.weight", "shared_head.head.weight"};

Expected<LayerHead> mlir::llm::readPredictLayer(const WeightSource &source,
                                                StringRef configPath,
                                                int64_t width,
                                                int64_t vocabulary) {
  Expected<CheckpointConfig> read =
      readHeadConfig(configPath, width, vocabulary, {});
  if (!read)
    return read.takeError();
  const Family &family = *read->family;
  if (!family.predictLayers || read->config.predictLayers == 0)
    return llvm::createStringError(
        "'" + configPath +
        "' expects a model with layers that predict further tokens "
        "(num_nextn_predict_layers; MiMo, DeepSeek-V3), but this '" +
        read->config.architecture + "' has none");
  LayerHead head;
  head.name = "mtp";
  head.config = std::move(read->config);
  const TensorNames &names = *family.names;
  const bool bare = !source.find((names.root + names.embedding + ".weight").str());
  const std::string root = bare ? "" : names.root.str();
  const std::string prefix =
      (names.predictLayer.empty()
           ? root + names.layer + Twine(head.config.layers.size())
           : root + names.predictLayer + "0")
          .str() +
      ".";
  const PredictNames &around =
      names.predictLayer.empty() ? kDeepseekPredict : kMimoPredict;
  const LayerConfig layer = head.config.layers.back();
  head.config.layers.assign(1, layer);
  TensorTable tensors(source);
  const auto norm = [&](StringRef name) {
    return takeNorm(tensors, prefix + name, width);
  };
  head.tokenNorm = norm(around.tokenNorm);
  head.featureNorm = norm(around.featureNorm);
  head.finalNorm = norm(around.finalNorm);
  head.projection = {tensors.take(prefix + around.projection + ".weight",
                                  {width, 2 * width})};
  head.tokenFirst = around.tokenFirst;
  for (StringRef name : {around.table, around.head})
    if (!name.empty())
      tensors.takeOptional(prefix + name, {vocabulary, width});
  head.weights.layers.push_back(
      findLayer(head.config, names, layer, prefix, tensors));
  // The rest is the model's.
  for (const WeightTensor &tensor : source.tensors())
    if (!tensor.key.starts_with(prefix))
      tensors.ignore(tensor.key);
  if (Error error = tensors.finish(head.config.architecture))
    return error;
  return head;
}

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

LayerHeadBuilder::LayerHeadBuilder(ModuleOp module, LayerHead given,
                                   StringRef symbol)
    : LayerHeadHolder{std::move(given)},
      GraphBuilder(module, head.config, head.weights, plainOptions()) {
  source = symbol.str();
}

KVType LayerHeadBuilder::cacheType(Type element, int64_t capacity) const {
  const LayerConfig &layer = config.layers.front();
  return KVType::get(element.getContext(), layer.kvHeads, config.keySize,
                     config.valueSize, element, element, capacity, layer.window,
                     /*sinks=*/0);
}

void LayerHeadBuilder::start(OpBuilder::InsertPoint at, Value where,
                             StringRef cache, KVType type) {
  builder.restoreInsertionPoint(at);
  positions = where;
  caches.clear();
  for (int64_t layer = 0; layer < layerCount(); ++layer)
    caches.push_back({cache.str(), layer, type});
  rotations.clear();
  slopes = {};
  buildRotations();
  buildSlopes();
}

Value LayerHeadBuilder::enter(Value, Value token, Value feature) {
  if (head.tokenNorm)
    token = norm(token, head.tokenNorm);
  if (head.featureNorm)
    feature = norm(feature, head.featureNorm);
  if (!head.tokenFirst)
    std::swap(token, feature);
  return joined(head.projection, head.bias, {token, feature});
}

Value LayerHeadBuilder::joined(const WeightRef &matrix, const WeightRef &bias,
                               ArrayRef<Value> rows, ArrayRef<int64_t> shape) {
  // W [a ; b] = A a + B b
  const int64_t D = config.width;
  const RankedTensorType type =
      shape.empty() ? rowsType({D}) : rowsType(shape);
  Value whole = weight(matrix), sum;
  for (auto [i, row] : ::llvm::enumerate(rows)) {
    Value part = SliceOp::create(builder, loc, whole, int64_t(i) * D,
                                 int64_t(i + 1) * D, 1);
    Value first = i == 0 && bias ? weight(bias) : Value();
    sum = LinearOp::create(builder, loc, type, row, part, first, sum);
  }
  return sum;
}

Value LayerHeadBuilder::run(Value x) {
  for (size_t index = 0; index < config.layers.size(); ++index) {
    x = buildLayer(index, x);
    x.getDefiningOp()->walk([&](AttentionOp attention) {
      attention.setFirstAttr(builder.getI64IntegerAttr(1));
    });
  }
  return head.finalNorm ? norm(x, head.finalNorm) : x;
}

/// Erases what nobody reads, backwards from an operation.
static void eraseUnused(Operation *op) {
  if (!op || !isOpTriviallyDead(op))
    return;
  llvm::SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseUnused(operand.getDefiningOp());
}

void LayerHeadBuilder::fill(Value ids, Value tokens, Value features,
                            Value handle) {
  Value x = enter(ids, tokens, features);
  const size_t last = config.layers.size() - 1;
  // Not as layers: those of a function are the model's.
  for (size_t index = 0; index < last; ++index) {
    x = buildAttention(index, x);
    Operation *op = x.getDefiningOp();
    while (!isa<AttentionOp>(op))
      op = op->getPrevNode();
    cast<AttentionOp>(op).setFirstAttr(builder.getI64IntegerAttr(1));
    x = buildFeedForward(index, x);
  }
  const LayerConfig &layer = config.layers[last];
  const LayerWeights &tensors = weights.layers[last];
  if (tensors.beforeAttention)
    x = norm(x, tensors.beforeAttention);
  auto [q, k, v] = buildHeads(layer, tensors, x);
  eraseUnused(q.getDefiningOp());
  KVAppendOp::create(builder, loc, handle, rope(k, layer.rope), v, positions,
                     Value());
}

LayerHeadBuilder::Guess LayerHeadBuilder::first(Value id, Value token,
                                                Value feature) {
  Value left = run(enter(id, token, feature));
  return {left, left};
}

//===----------------------------------------------------------------------===//
// For passes
//===----------------------------------------------------------------------===//

static bool knows(const WeightSource &file) {
  return isCloverHead(file) || isEagle3Head(file) || isEagleHead(file);
}

static Expected<std::unique_ptr<LayerHeads>>
read(ModuleOp module, const WeightSource &file, StringRef symbol,
     StringRef config, bool ofModel, int64_t width, int64_t vocabulary) {
  if (!ofModel && isCloverHead(file)) {
    Expected<CloverHead> head = readCloverHead(file, config, width, vocabulary);
    if (!head)
      return head.takeError();
    return std::make_unique<CloverHeadBuilder>(module, std::move(*head), symbol);
  }
  if (!ofModel && isEagle3Head(file)) {
    Expected<Eagle3Head> head = readEagle3Head(file, config, width, vocabulary);
    if (!head)
      return head.takeError();
    return std::make_unique<Eagle3HeadBuilder>(module, std::move(*head), symbol);
  }
  Expected<LayerHead> head =
      ofModel ? readPredictLayer(file, config, width, vocabulary)
              : readEagleHead(file, config, width, vocabulary);
  if (!head)
    return head.takeError();
  return std::make_unique<LayerHeadBuilder>(module, std::move(*head), symbol);
}

void mlir::llm::registerLayerHeads() {
  static const LayerHeadReader reader{knows, read};
  setLayerHeadReader(reader);
}
