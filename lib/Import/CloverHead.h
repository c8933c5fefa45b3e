// Clover's head (arXiv 2405.00263, and Clover-2, arXiv 2408.00264): an augmenting
// block of decoder layers over what the model has said so far, and a regressive
// connection that takes each guessed token into the state that the next guess
// starts from.
//
//     s = norm(layers(attend(hidden, e)))     e: the token before the guess
//     row = norm(A s + a)                     the first guess
//     s' = attend'(s, e)                      and those behind it
//     row' = norm(B [s' ; e] + b)
//     attend(x, e) = x + cos(Q norm(x), K e) · V e    for each head
//
// Its file has these tensors, with config.json of the model beside it:
//
//     clover_embed_tokens.weight            e
//     clover_head_mlp_rnn.{input_layernorm.weight, q|k|v.{weight, bias}}  attend
//     layers.N.*                            Llama's names
//     clover_norm.weight                    behind the layers
//     clover_head_mlp_rnn2.*                attend'
//     clover_head_mlp.{weight, bias}        A
//     clover_head_mlp2.{weight, bias}       B
//     clover_head_norm.weight               before the model's output table
#ifndef SPRIG_LIB_IMPORT_CLOVERHEAD_H
#define SPRIG_LIB_IMPORT_CLOVERHEAD_H

#include "lib/Import/LayerHead.h"

namespace mlir::llm {

struct CloverHead {
  LayerHead layers; ///< the augmenting block behind `attend`, with its norm
  struct Attend {
    NormWeights norm;
    LinearWeights q, k, v;
  };
  Attend enter, next;
  LinearWeights first, others; ///< A, B
  NormWeights rowNorm;
  WeightRef table; ///< of e
};

bool isCloverHead(const WeightSource &source);

/// Errors name the file, and the key or tensor.
llvm::Expected<CloverHead> readCloverHead(const WeightSource &source,
                                          llvm::StringRef configPath,
                                          int64_t width, int64_t vocabulary);

class CloverHeadBuilder final : public LayerHeadBuilder {
public:
  CloverHeadBuilder(ModuleOp module, CloverHead head, llvm::StringRef source)
      : LayerHeadBuilder(module, head.layers, source), clover(std::move(head)) {
  }

  bool readsNormed() const override { return false; }
  Guess first(Value id, Value token, Value feature) override;
  Guess next(Value id, Value token, Value feature) override;

private:
  Value enter(Value id, Value token, Value feature) override;
  Value embedded(Value id);
  Value attend(const CloverHead::Attend &block, Value x, Value e);

  const CloverHead clover;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CLOVERHEAD_H
