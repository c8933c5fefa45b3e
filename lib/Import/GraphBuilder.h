// The one builder of graphs: from a model's configuration and its tensors to a module of the llm dialect.
#ifndef SPRIG_LIB_IMPORT_GRAPHBUILDER_H
#define SPRIG_LIB_IMPORT_GRAPHBUILDER_H

#include "lib/Import/Import.h"
#include "lib/Import/ModelConfig.h"
#include "lib/Import/ModelWeights.h"

namespace mlir::llm {

/// Builds `@forward` of a decoder-only transformer:
///
///     embedding, then L layers of (norm, attention, residual; norm, feed-forward, residual),
///     then the wanted rows, norm and head
///
/// with the symbols it needs. A family differs from another only by what `config` and `weights` say.
class GraphBuilder {
public:
  GraphBuilder(ModuleOp module, const ModelConfig &config, const ModelWeights &weights, const ImportOptions &options);

  /// `llm.source @model`, `llm.tokenizer @tokenizer`, the `llm.model` dictionary, caches, and `@forward`. Cannot fail:
  /// shapes were checked when the weights were found.
  void build(const WeightSource &source);

private:
  void buildSymbols(const WeightSource &source);
  void buildForward();
  Value buildLayer(size_t index, Value hidden);
  Value buildAttention(size_t index, Value hidden);
  Value buildFeedForward(size_t index, Value hidden);

  /// A weight as it lies in the file.
  Value weight(const WeightTensor &tensor);
  /// What a product reads: the weight, or its dequantised numbers where the options want that explicit.
  Value matrix(Value stored);
  Value norm(Value x, const WeightTensor &gamma);
  /// `residual` may be null; the result is `TxN`, or `TxHxE` where `shape` has two sizes.
  Value linear(Value x, const LinearWeights &weights, ArrayRef<int64_t> shape, Value residual = {});
  /// What a block adds to the residual stream.
  Value closeBlock(Value x, const LinearWeights &weights, Value residual);
  Value rope(Value x);
  Value scaled(Value x, double factor);
  RankedTensorType rowsType(ArrayRef<int64_t> row);

  static constexpr StringLiteral kSource = "model";

  ModuleOp module;
  const ModelConfig &config;
  const ModelWeights &weights;
  const ImportOptions &options;
  OpBuilder builder;
  Location loc;
  Value ids, positions, rows;
  Value frequencies; ///< null where a base says it all
  RopeAngles angles;
  /// For each layer the cache it uses; equal layers share a symbol.
  struct CacheSlot {
    std::string symbol;
    int64_t index = 0;
    KVType type;
  };
  std::vector<CacheSlot> caches;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_GRAPHBUILDER_H
