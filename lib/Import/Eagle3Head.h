// EAGLE-3's head (arXiv 2503.01840): one decoder layer that reads the embedding
// of the next token beside what three layers of the model left, in one product,
// and guesses among the tokens that are frequent.
//
//     feature = F [low ; mid ; high] + f        of the model, once a token
//     x = [norm(e) ; norm'(feature)]            queries, keys and values read it
//     feature' = feature + O attention(x), and the feed-forward behind it
//     row = norm''(feature'), and the next guess starts from feature'
//
// The three are what layers 2, L / 2 and L - 3 of L read. Its file:
//
//     fc.weight, fc.bias or none            F
//     midlayer.{input_layernorm, hidden_norm, post_attention_layernorm}.weight
//     midlayer.{self_attn, mlp}.*           Llama's names; or layers.0.*
//     norm.weight, lm_head.weight           one row a token that it knows
//     d2t                                   of each row, token less row
#ifndef SPRIG_LIB_IMPORT_EAGLE3HEAD_H
#define SPRIG_LIB_IMPORT_EAGLE3HEAD_H

#include "lib/Import/LayerHead.h"

namespace mlir::llm {

struct Eagle3Head {
  LayerHead layer; ///< its projection is F; its last norm is in `rowNorm`
  NormWeights rowNorm;
  WeightRef table; ///< of its own, or none
  /// Of each of the model's tokens the row of the table, or -1; empty where the
  /// rows are the tokens.
  std::vector<int32_t> rowOf;
};

bool isEagle3Head(const WeightSource &source);

/// Errors name the file, and the key or tensor.
llvm::Expected<Eagle3Head> readEagle3Head(const WeightSource &source,
                                          llvm::StringRef configPath,
                                          int64_t width, int64_t vocabulary);

class Eagle3HeadBuilder final : public LayerHeadBuilder {
public:
  Eagle3HeadBuilder(ModuleOp module, Eagle3Head head, llvm::StringRef source)
      : LayerHeadBuilder(module, head.layer, source), eagle(std::move(head)) {}

  bool readsNormed() const override { return false; }
  FailureOr<SmallVector<int64_t>> inputsOf(int64_t layers) const override;
  Value fused(ArrayRef<Value> inputs) override;
  Guess first(Value id, Value token, Value feature) override;
  Value logits(Value row) override;

private:
  Value enter(Value id, Value token, Value feature) override;
  Heads buildHeads(const LayerConfig &layer, const LayerWeights &tensors,
                   Value x) override;

  const Eagle3Head eagle;
  Value tokenRow; ///< the first half of what the layer reads
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_EAGLE3HEAD_H
