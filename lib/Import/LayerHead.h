// Heads that guess with layers of their own, mostly one: from the next token and
// from what the model, or the guess before, left behind its last norm, a layer of
// the model's kind makes the same for the next position.
//
//     x = W [token ; feature] + b        (each normed first where there are norms)
//     feature' = norm(layer(x))          (without a norm in EAGLE)
#ifndef SPRIG_LIB_IMPORT_LAYERHEAD_H
#define SPRIG_LIB_IMPORT_LAYERHEAD_H

#include "lib/Import/CheckpointConfig.h"
#include "lib/Import/GraphBuilder.h"
#include "lib/Weights/LayerHeads.h"

namespace mlir::llm {

struct LayerHead {
  std::string name;
  ModelConfig config;
  ModelWeights weights; ///< of the layers
  NormWeights tokenNorm, featureNorm, finalNorm; ///< or none
  WeightRef projection, bias; ///< DxE and D, where E is 2 D
  bool tokenFirst = true;     ///< columns of the token lie before the others
};

/// The configuration of a head, which must be of a model as wide and with as
/// many tokens; `others`: keys of it alone.
llvm::Expected<CheckpointConfig>
readHeadConfig(llvm::StringRef path, int64_t width, int64_t vocabulary,
               llvm::ArrayRef<llvm::StringRef> others);

/// Whether the weights are those of an EAGLE head (arXiv 2401.15077).
bool isEagleHead(const WeightSource &source);

/// The EAGLE head in `source`, beside which config.json lies at `configPath`,
/// for a model of this width and vocabulary. Errors name the file, and the key
/// or tensor.
llvm::Expected<LayerHead> readEagleHead(const WeightSource &source,
                                        llvm::StringRef configPath,
                                        int64_t width, int64_t vocabulary);

/// The layer of a checkpoint that predicts the token after the next
/// (DeepSeek-V3, arXiv 2412.19437, section 2.2; MiMo, arXiv 2505.07608), the
/// first where there are several.
llvm::Expected<LayerHead> readPredictLayer(const WeightSource &source,
                                           llvm::StringRef configPath,
                                           int64_t width, int64_t vocabulary);

/// Lets passes read heads (lib/Weights/LayerHeads.h).
void registerLayerHeads();

/// What the builder below has before the graph builder that reads it.
struct LayerHeadHolder {
  LayerHead head;
};

/// Makes the parts of a head, each at the end of what was made before.
class LayerHeadBuilder : private LayerHeadHolder,
                         public LayerHeads,
                         protected GraphBuilder {
public:
  /// `source`: the symbol of the file.
  LayerHeadBuilder(ModuleOp module, LayerHead head, llvm::StringRef source);

  StringRef name() const override { return head.name; }
  int64_t layerCount() const override { return int64_t(config.layers.size()); }
  KVType cacheType(Type element, int64_t capacity) const override;
  bool readsNormed() const override { return true; }
  void start(OpBuilder::InsertPoint at, Value positions, StringRef cache,
             KVType type) override;
  void fill(Value ids, Value tokens, Value features, Value handle) override;
  Guess first(Value id, Value token, Value feature) override;
  Guess next(Value id, Value token, Value feature) override {
    return first(id, token, feature);
  }

protected:
  /// What the layers read.
  virtual Value enter(Value id, Value token, Value feature);
  /// The layers, with their appends and attention, and the norm behind them.
  Value run(Value x);
  /// A product with rows of the width, one after the other; a row of the result
  /// is `shape`, or the width.
  Value joined(const WeightRef &matrix, const WeightRef &bias,
               ArrayRef<Value> rows, ArrayRef<int64_t> shape = {});
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_LAYERHEAD_H
