#include "transforms/Speculation/LayerHeads.h"

#include "transforms/Quantize/Products.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kCache = "heads_kv";

/// config.json in the folder of a file.
static std::string configBeside(const WeightSource &file) {
  SmallString<256> path(::llvm::sys::path::parent_path(file.path()));
  ::llvm::sys::path::append(path, "config.json");
  return path.str().str();
}

/// Floats as the model's caches have them, of as many slots.
static KVType cacheLike(ModuleOp module, const LayerHeads &builder) {
  int64_t capacity = 0;
  Type element = Float16Type::get(module.getContext());
  for (auto cache : module.getOps<KVCacheOp>()) {
    capacity = std::max(capacity, cache.getCacheType().getCapacity());
    if (cache.getCacheType().getKeyType().isF32())
      element = cache.getCacheType().getKeyType();
  }
  return builder.cacheType(element, capacity);
}

/// What the head reads of a hidden state of the model.
static Value featureOf(const HeadSite &site, const LayerHeads &parts, HeadCopier &copier, Value hidden) {
  if (!parts.readsNormed())
    return hidden;
  copier.replace(site.hidden, hidden);
  return copier.copy(site.product().getInput());
}

/// The model's steps put the keys and values of each token's layer into its cache, from the hidden state of the token
/// before it: prompts, decode steps and trees alike, so that what is accepted is right and what is not is overwritten.
static void fillCache(const HeadSite &site, LayerHeads &parts, KVType type, ArrayRef<int64_t> inputs) {
  func::FuncOp forward = site.forward;
  OpBuilder builder(forward.getContext());
  builder.setInsertionPointAfterValue(site.hidden);
  const Location loc = forward.getLoc();
  Value positions = forward.getArgument(1);
  parts.start(builder.saveInsertionPoint(), positions, kCache, type);
  Value state = site.hidden;
  if (!inputs.empty()) {
    SmallVector<Value> read;
    auto layers = llvm::to_vector(forward.getOps<LayerOp>());
    for (int64_t layer : inputs)
      read.push_back(layers[size_t(layer)].getInputs()[0]);
    state = parts.fused(read);
  }
  Value handle = KVOp::create(builder, loc, type, kCache, parts.layerCount() - 1);
  Value before = PreviousRowsOp::create(builder, loc, state.getType(), state, handle, positions,
                                        /*parents=*/Value(), /*base=*/Value());
  HeadCopier copier(builder, site, forward);
  Value feature = featureOf(site, parts, copier, before);
  parts.fill(forward.getArgument(0), site.embedded, feature, handle);
}

/// The first guess reads what the model left, the others what the guess before them made.
static void addGuess(const HeadSite &site, LayerHeads &parts, KVType type, bool own) {
  const Type results[] = {site.logits.getType(), site.hidden.getType()};
  func::FuncOp function = beginGuess(site, own ? 1 : 0, parts.name(), /*repeats=*/true, own, results);
  Block *body = &function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  HeadCopier before(builder, site, function);
  Value id = function.getArgument(0), feature = function.getArgument(3);
  if (!own)
    feature = featureOf(site, parts, before, feature);
  Value token = before.copy(site.embedded);
  parts.start(builder.saveInsertionPoint(), function.getArgument(1), kCache, type);
  const LayerHeads::Guess guess = own ? parts.next(id, token, feature) : parts.first(id, token, feature);
  Value logits = parts.logits(guess.row);
  builder.setInsertionPointToEnd(body);
  if (!logits) {
    HeadCopier after(builder, site, function);
    after.replace(site.product().getInput(), guess.row);
    logits = after.copy(site.logits);
  }
  func::ReturnOp::create(builder, function.getLoc(), ValueRange{logits, guess.feature});
}

static LogicalResult attach(const HeadSite &site, LayerHeads &parts) {
  func::FuncOp forward = site.forward;
  auto module = forward->getParentOfType<ModuleOp>();
  if (module.lookupSymbol(kCache))
    return module.emitError() << "expects a model without a cache @" << kCache << ", but it has one";
  FailureOr<SmallVector<int64_t>> inputs =
      parts.inputsOf(std::distance(forward.getOps<LayerOp>().begin(), forward.getOps<LayerOp>().end()));
  if (failed(inputs))
    return failure();
  const KVType type = cacheLike(module, parts);
  OpBuilder builder(forward);
  KVCacheOp::create(builder, forward.getLoc(), kCache, parts.layerCount(), type);
  for (bool own : {false, true})
    addGuess(site, parts, type, own);
  fillCache(site, parts, type, *inputs);
  return success();
}

/// Reads the heads and attaches them.
static LogicalResult attach(const HeadSite &site, const WeightSource &file, StringRef symbol, bool ofModel) {
  auto module = site.forward->getParentOfType<ModuleOp>();
  const LayerHeadReader *reader = layerHeadReader();
  if (!reader)
    return module.emitError("expects a tool that reads heads with layers, but got one without");
  auto parts = reader->read(module, file, symbol, configBeside(file), ofModel, site.width(), site.vocabulary());
  if (!parts)
    return module.emitError() << ::llvm::toString(parts.takeError());
  return attach(site, **parts);
}

LogicalResult mlir::llm::attachLayerHeads(const HeadSite &site, const WeightSource &file, WeightStore &store) {
  auto module = site.forward->getParentOfType<ModuleOp>();
  return attach(site, file, declareSource(module, "heads", file, file.path(), store), /*ofModel=*/false);
}

LogicalResult mlir::llm::attachPredictLayer(const HeadSite &site, WeightStore &store) {
  auto module = site.forward->getParentOfType<ModuleOp>();
  constexpr StringLiteral kModel = "model";
  auto symbol = FlatSymbolRefAttr::get(module.getContext(), kModel);
  FailureOr<const WeightSource *> file = store.source(site.forward, symbol);
  if (failed(file))
    return failure();
  if ((*file)->formatName() != "safetensors" || !::llvm::sys::fs::exists(configBeside(**file)))
    return module.emitError() << "expects a model from a Hugging Face folder, whose layers that predict further tokens are "
                                 "taken for heads, but got '"
                              << (*file)->path() << "'";
  return attach(site, **file, kModel, /*ofModel=*/true);
}

void mlir::llm::removeHeadUpkeep(func::FuncOp function) {
  // What fed a cache may have been the only reader of another.
  for (bool erased = true; erased;) {
    erased = false;
    DenseSet<std::pair<Attribute, int64_t>> attended;
    const auto nameOf = [](Value handle) {
      auto op = handle.getDefiningOp<KVOp>();
      return std::pair<Attribute, int64_t>(op.getCacheAttr(), op.getIndex());
    };
    function.walk([&](AttentionOp attention) { attended.insert(nameOf(attention.getCache())); });
    SmallVector<KVAppendOp> unread;
    function.walk([&](KVAppendOp append) {
      if (!attended.contains(nameOf(append.getCache())))
        unread.push_back(append);
    });
    for (KVAppendOp append : unread) {
      const SmallVector<Value> read(append->getOperands());
      append.erase();
      for (Value value : read)
        eraseDead(value.getDefiningOp());
      erased = true;
    }
  }
  SmallVector<PreviousRowsOp> all;
  function.walk([&](PreviousRowsOp previous) { all.push_back(previous); });
  for (PreviousRowsOp previous : all) {
    if (!previous.getResult().use_empty())
      continue;
    Operation *handle = previous.getCache().getDefiningOp(), *state = previous.getInput().getDefiningOp();
    previous.erase();
    eraseDead(handle);
    eraseDead(state);
  }
}
