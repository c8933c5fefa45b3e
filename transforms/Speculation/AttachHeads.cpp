// llm-attach-heads: see Passes.td.
#include "lib/Weights/WeightStore.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Speculation/LayerHeads.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace mlir::llm {
#define GEN_PASS_DEF_ATTACHHEADSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// More guesses than a tree has nodes are of no use.
static constexpr unsigned kMostHeads = 63;

namespace {

struct AttachHeadsPass final : llm::impl::AttachHeadsPassBase<AttachHeadsPass> {
  using AttachHeadsPassBase::AttachHeadsPassBase;

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult run(ModuleOp module) {
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || !forward.getBody().hasOneBlock())
      return module.emitError("expects a function @forward to attach heads to, but got none");
    if (module.lookupSymbol("guess_heads_0"))
      return module.emitError("expects a model without heads to attach some to, but it has them");
    FailureOr<HeadSite> site = HeadSite::of(forward);
    WeightStore *store = weightStoreOf(module);
    if (failed(site) || !store)
      return failure();
    if (file == "mtp")
      return attachPredictLayer(*site, *store);
    if (failed(open(module)))
      return failure();
    if (const LayerHeadReader *reader = layerHeadReader(); reader && reader->knows(*weights))
      return attachLayerHeads(*site, *weights, *store);
    symbol = declareSource(module, "heads", *weights, weights->path(), *store);
    StringRef prefix = weights->find("medusa_head.0.0.linear.weight") ? "medusa_head." : "";
    if (weights->find("ridge.hidden.weight"))
      return addRidge(*site);
    if (weights->find((prefix + "0.0.linear.weight").str()))
      return addMedusa(*site, prefix);
    return module.emitError() << "'" << file
                              << "' expects heads called 0.0.linear.weight (Medusa) or ridge.hidden.weight "
                                 "(llm-fit-heads), fc.weight (EAGLE) or clover_norm.weight (Clover), but has none of them";
  }

  LogicalResult open(ModuleOp module) {
    std::string path = file;
    if (::llvm::sys::fs::is_directory(file)) {
      path += "/model.safetensors";
      if (::llvm::sys::fs::exists(path + ".index.json"))
        path += ".index.json";
    }
    auto opened = openWeightSource(path);
    if (!opened)
      return module.emitError() << ::llvm::toString(opened.takeError());
    weights = std::move(*opened);
    return success();
  }

  /// The tensor of that key and shape as a weight; an error where it is not there or is another.
  FailureOr<Value> weight(OpBuilder &builder, const Twine &key, ArrayRef<int64_t> shape) {
    ModuleOp module = getOperation();
    const WeightTensor *tensor = weights->find(key.str());
    if (!tensor)
      return emitError(module.getLoc()) << "'" << file << "' expects a tensor '" << key << "', but has none", failure();
    if (ArrayRef<int64_t>(tensor->shape) != shape) {
      auto error = emitError(module.getLoc()) << "'" << file << "' expects '" << key << "' to be ";
      llvm::interleave(shape, error, "x");
      error << ", for a model of this width and vocabulary, but it is ";
      llvm::interleave(tensor->shape, error, "x");
      return failure();
    }
    Type element;
    switch (tensor->format) {
    case sprig::quant::Format::F32:
      element = builder.getF32Type();
      break;
    case sprig::quant::Format::F16:
      element = builder.getF16Type();
      break;
    case sprig::quant::Format::BF16:
      element = builder.getBF16Type();
      break;
    default:
      return emitError(module.getLoc()) << "'" << file << "' expects '" << key << "' in f32, f16 or bf16, but got "
                                        << sprig::quant::info(tensor->format).name,
             failure();
    }
    return Value(WeightOp::create(builder, module.getLoc(), RankedTensorType::get(tensor->shape, element), symbol,
                                  tensor->key));
  }

  LogicalResult addMedusa(const HeadSite &site, StringRef prefix) {
    unsigned heads = 0, blocks = 0;
    auto key = [&](unsigned head, unsigned block, StringRef rest) {
      return (prefix + Twine(head) + "." + Twine(block) + "." + rest).str();
    };
    while (heads < kMostHeads && weights->find(key(heads, 0, "linear.weight")))
      ++heads;
    while (weights->find(key(0, blocks, "linear.weight")))
      ++blocks;
    const std::string description = "medusa:" + std::to_string(heads);
    const int64_t D = site.width();
    for (unsigned i = 0; i < heads; ++i) {
      auto function = beginGuess(site, i, description, /*repeats=*/false, /*own=*/false, site.logits.getType());
      OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
      const Location loc = function.getLoc();
      HeadCopier copier(builder, site, function);
      copier.replace(site.hidden, function.getArgument(3));
      Value x = copier.copy(site.product().getInput());
      for (unsigned j = 0; j < blocks; ++j) {
        FailureOr<Value> w = weight(builder, key(i, j, "linear.weight"), {D, D});
        FailureOr<Value> b = failed(w) ? w : weight(builder, key(i, j, "linear.bias"), {D});
        if (failed(b))
          return failure();
        Value y = LinearOp::create(builder, loc, x.getType(), x, *w, *b);
        y = ActivationOp::create(builder, loc, y.getType(), ActivationKind::Silu, y);
        x = AddOp::create(builder, loc, x.getType(), x, y);
      }
      copier.replace(site.product().getInput(), x);
      if (const std::string table = key(i, blocks, "weight"); weights->find(table)) {
        FailureOr<Value> w = weight(builder, table, {site.vocabulary(), D});
        if (failed(w))
          return failure();
        copier.replace(site.product().getWeight(), *w);
      }
      func::ReturnOp::create(builder, loc, copier.copy(site.logits));
    }
    return success();
  }

  LogicalResult addRidge(const HeadSite &site) {
    const int64_t D = site.width();
    // The first guess starts from what the model left, the others from the guess before them.
    for (unsigned i : {0u, 1u}) {
      const Type results[] = {site.logits.getType(), site.hidden.getType()};
      auto function = beginGuess(site, i, "ridge", /*repeats=*/true, /*own=*/i > 0, results);
      OpBuilder builder = OpBuilder::atBlockEnd(&function.getBody().front());
      const Location loc = function.getLoc();
      FailureOr<Value> fromHidden = weight(builder, "ridge.hidden.weight", {D, D}),
                       fromEmbedding = weight(builder, "ridge.embedding.weight", {D, D}),
                       bias = weight(builder, "ridge.bias", {D});
      if (failed(fromHidden) || failed(fromEmbedding) || failed(bias))
        return failure();
      HeadCopier before(builder, site, function);
      before.replace(site.hidden, function.getArgument(3));
      Value normed = before.copy(site.product().getInput()), token = before.copy(site.embedded);
      Value part = LinearOp::create(builder, loc, results[1], normed, *fromHidden, *bias);
      Value next = LinearOp::create(builder, loc, results[1], token, *fromEmbedding, Value(), part);
      HeadCopier after(builder, site, function);
      after.replace(site.hidden, next);
      func::ReturnOp::create(builder, loc, ValueRange{after.copy(site.logits), next});
    }
    return success();
  }

  std::shared_ptr<WeightSource> weights; // passes are copied
  std::string symbol;
};

} // namespace
