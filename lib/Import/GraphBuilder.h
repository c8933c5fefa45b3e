// The one builder of graphs: from a model's configuration and its tensors to a
// module of the llm dialect.
#ifndef SPRIG_LIB_IMPORT_GRAPHBUILDER_H
#define SPRIG_LIB_IMPORT_GRAPHBUILDER_H

#include "lib/Import/Import.h"
#include "lib/Import/ModelConfig.h"
#include "lib/Import/ModelWeights.h"

namespace mlir::llm {

/// Builds `@forward` of a decoder-only transformer:
///
///     embedding, then L layers of (attention, residual; feed-forward,
///     residual) with norms before or after the blocks, then the wanted rows,
///     norm and head
///
/// with the symbols it needs. A family differs from another only by what
/// `config` and `weights` say.
class GraphBuilder {
public:
  GraphBuilder(ModuleOp module, const ModelConfig &config,
               const ModelWeights &weights, const ImportOptions &options);
  virtual ~GraphBuilder() = default;

  /// `llm.source @model`, `llm.tokenizer @tokenizer`, the `llm.model`
  /// dictionary, caches, and `@forward`. Cannot fail: shapes were checked when
  /// the weights were found.
  void build(const WeightSource &source);

protected:
  void buildSymbols(const WeightSource &source);
  void buildForward();
  Value buildLayer(size_t index, Value hidden);
  Value buildAttention(size_t index, Value hidden);
  /// Queries, keys and values of a token's heads, before they are rotated.
  struct Heads {
    Value q, k, v;
  };
  virtual Heads buildHeads(const LayerConfig &layer,
                           const LayerWeights &tensors, Value x);
  /// The same from latents.
  Heads buildLatentHeads(const LayerConfig &layer, const LayerWeights &tensors,
                         Value x);
  Value buildFeedForward(size_t index, Value hidden);
  Value buildExperts(const LayerWeights &tensors, int64_t F, Value x);
  /// `mixed` and what the expert adds that all tokens share; with a gate, times
  /// the token's.
  Value addSharedExpert(const LayerWeights &tensors, Value x, Value mixed);
  Value embed(Value ids, Value table, double scale);

  /// A weight as it lies in the file, and what the reference says of it.
  Value weight(const WeightRef &ref, Value order = {});
  /// A tensor of the file.
  Value stored(const WeightTensor &tensor);
  /// The rows of each head that `ref` takes, in its order.
  Value headRows(Value matrix, const WeightRef &ref);
  Value scalesOfRows(const QuantisedMatrix &matrix);
  /// A matrix that the file splits; with `order` its columns in that order.
  Value assembled(const QuantisedMatrix &matrix, Value order);
  /// The order of columns in which the groups of a matrix lie one after
  /// another; null where they do.
  Value columnOrder(const QuantisedMatrix &matrix);
  /// Whether groups of any of the matrices are mixed.
  static bool hasMixedGroups(const WeightRef &ref);
  /// A matrix whose columns are ordered, with its columns as the model has
  /// them.
  Value reordered(Value weight, Value order);
  Value dequantised(Value weight);
  /// The numbers of a matrix whose input cannot be put in the order of its
  /// groups, as that of experts, which have an order each.
  Value inModelOrder(const QuantisedMatrix &matrix);
  /// `x` rounded as the checkpoint wants it: what a token has shares a scale,
  /// or with `apart` what it has for each of its experts.
  Value roundedInput(Value x, const WeightRef &ref, bool apart = false);
  /// What a product reads: the weight, or its dequantised numbers where the
  /// options want that explicit.
  Value matrix(Value stored);
  Value norm(Value x, const NormWeights &norm);
  /// A norm of each head, or of all together; the model's epsilon unless one is
  /// given.
  Value headNorm(Value x, const WeightRef &gamma,
                 std::optional<double> epsilon = std::nullopt);
  /// `residual` may be null; the result is `TxN`, or `TxHxE` where `shape` has
  /// two sizes.
  Value linear(Value x, const LinearWeights &weights, ArrayRef<int64_t> shape,
               Value residual = {});
  /// What a block adds to the residual stream: the product, then perhaps a norm
  /// and a factor.
  Value closeBlock(Value x, const LinearWeights &weights,
                   const NormWeights &after, Value residual);
  /// The sum of the two; `y` is normed and scaled first.
  Value addBlock(Value y, const NormWeights &after, Value residual);
  void buildRotations();
  void buildSlopes();
  Value rope(Value x, int64_t index);
  Value scaled(Value x, double factor);
  RankedTensorType rowsType(ArrayRef<int64_t> row);
  FloatAttr number(double value, bool wanted = true);

  /// The symbol of the file that weights are in.
  std::string source = "model";

  ModuleOp module;
  const ModelConfig &config;
  const ModelWeights &weights;
  const ImportOptions &options;
  OpBuilder builder;
  Location loc;
  Value ids, positions, rows;
  Value slopes; ///< of ALiBi, or null
  /// Of each of the model's rotations.
  struct Rotation {
    Value frequencies; ///< null where a base says it all
    RopeAngles angles;
  };
  std::vector<Rotation> rotations;
  /// For each layer the cache it uses; equal layers share a symbol.
  struct CacheSlot {
    std::string symbol;
    int64_t index = 0;
    KVType type;
  };
  std::vector<CacheSlot> caches;
  bool saidMixed = false; ///< a warning is said once
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_GRAPHBUILDER_H
