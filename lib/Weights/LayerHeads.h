// Heads that guess with layers of their own, as passes see them: who reads their
// files makes the operations, for only lib/Import knows models; a tool says so
// once (registerLayerHeads of lib/Import).
#ifndef SPRIG_LIB_WEIGHTS_LAYERHEADS_H
#define SPRIG_LIB_WEIGHTS_LAYERHEADS_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightSource.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// From the next token and from what the model, or the guess before, left, one
/// makes the same for the next position. The layers have caches of their own;
/// what the model says of a token fills them, so the entry for a slot is of that
/// slot's token and of the feature before it. Slot 0 has no such feature, and is
/// never attended to.
class LayerHeads {
public:
  virtual ~LayerHeads() = default;

  /// "eagle", "eagle3", "clover" or "mtp", for descriptions.
  virtual StringRef name() const = 0;
  virtual int64_t layerCount() const = 0;
  /// The type of each layer's cache; numbers are of `element`.
  virtual KVType cacheType(Type element, int64_t capacity) const = 0;
  /// Whether features are read behind the model's last norm, or before it.
  virtual bool readsNormed() const = 0;
  /// Where the model's part is made of what some of its `layers` layers read:
  /// which; none where it is what the last leaves. Emits an error where the
  /// model has not enough.
  virtual FailureOr<SmallVector<int64_t>> inputsOf(int64_t layers) const {
    (void)layers;
    return SmallVector<int64_t>();
  }
  /// That part, of theirs.
  virtual Value fused(ArrayRef<Value> inputs) { return inputs.front(); }

  /// What follows is made there, for tokens at `positions`.
  virtual void start(OpBuilder::InsertPoint at, Value positions,
                     StringRef cache, KVType type) = 0;
  /// What fills the caches of the layers, from ids, from what the model's first
  /// layer reads of them, and from the features before them: of the last layer
  /// keys and values alone, by `handle`.
  virtual void fill(Value ids, Value tokens, Value features, Value handle) = 0;

  struct Guess {
    Value row;     ///< the output table reads it
    Value feature; ///< the next guess reads it
  };
  /// A guess from what the model left, and one from what the guess before it
  /// left.
  virtual Guess first(Value id, Value token, Value feature) = 0;
  virtual Guess next(Value id, Value token, Value feature) = 0;
  /// The logits of a row by a table of the heads' own; null: by the model's.
  virtual Value logits(Value row) {
    (void)row;
    return {};
  }
};

struct LayerHeadReader {
  /// Whether the file has heads of a kind that is known.
  bool (*knows)(const WeightSource &file);
  /// The heads in `file`, declared as `symbol`, with a config.json, for a model
  /// of this width and vocabulary. `ofModel`: the file is the model's checkpoint,
  /// whose layers that predict further tokens are meant. Errors name the file,
  /// and the key or tensor. The file has to outlive the heads.
  llvm::Expected<std::unique_ptr<LayerHeads>> (*read)(
      ModuleOp module, const WeightSource &file, StringRef symbol,
      StringRef config, bool ofModel, int64_t width, int64_t vocabulary);
};

/// Null: no tool registered one.
const LayerHeadReader *layerHeadReader();
void setLayerHeadReader(const LayerHeadReader &reader);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_LAYERHEADS_H
