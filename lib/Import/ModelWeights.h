// The tensors of a model by the part they play, looked up and checked before any IR is made, so that building the
// graph cannot fail half way.
#ifndef SPRIG_LIB_IMPORT_MODELWEIGHTS_H
#define SPRIG_LIB_IMPORT_MODELWEIGHTS_H

#include "lib/Import/ModelConfig.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

/// A product with a weight, `NxK`, and perhaps a bias, `N`.
struct LinearWeights {
  const WeightTensor *weight = nullptr;
  const WeightTensor *bias = nullptr;
};

struct LayerWeights {
  const WeightTensor *attentionNorm = nullptr; ///< null where the layer has no attention
  LinearWeights q, k, v, o;
  const WeightTensor *feedForwardNorm = nullptr; ///< null where the layer has no feed-forward block
  LinearWeights gate, up, down;
};

struct ModelWeights {
  const WeightTensor *embedding = nullptr;
  const WeightTensor *outputNorm = nullptr;
  LinearWeights output;                     ///< its weight is the embedding's where the two are tied
  const WeightTensor *ropeFactors = nullptr; ///< divisors of the RoPE frequencies
  std::vector<LayerWeights> layers;
};

/// Tensors of a source, handed out by key with a check of shape and type. The first error sticks and is returned by
/// `finish`; after it nothing that was handed out may be used. Remembers what was taken: a tensor that nobody wants is a
/// part of the model that this importer does not know, and must not be dropped silently.
class TensorTable {
public:
  explicit TensorTable(const WeightSource &source) : source(source) {}

  /// The tensor, which must be there with this shape.
  const WeightTensor *take(const llvm::Twine &key, llvm::ArrayRef<int64_t> shape);
  /// The same, but null where the source has no such tensor.
  const WeightTensor *takeOptional(const llvm::Twine &key, llvm::ArrayRef<int64_t> shape);
  /// The same for a vector that is multiplied or added as it is, so of a float type.
  const WeightTensor *takeVector(const llvm::Twine &key, int64_t size);
  const WeightTensor *takeOptionalVector(const llvm::Twine &key, int64_t size);
  /// `stem.weight`, `rows x columns`, and `stem.bias` where there is one.
  LinearWeights takeLinear(const llvm::Twine &stem, int64_t rows, int64_t columns);
  /// A tensor that software of the time wrote and nobody reads.
  void ignore(const llvm::Twine &key);

  /// The first error; or one that names the tensors nobody took.
  llvm::Error finish(llvm::StringRef architecture) const;

private:
  void fail(const llvm::Twine &message);
  const WeightTensor *asFloats(const WeightTensor *tensor);

  const WeightSource &source;
  llvm::DenseSet<const WeightTensor *> taken;
  std::string failure;
};

/// All tensors of a model in a GGUF file, under the names that GGUF gives them.
llvm::Expected<ModelWeights> findGGUFWeights(const ModelConfig &config, const WeightSource &source);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELWEIGHTS_H
