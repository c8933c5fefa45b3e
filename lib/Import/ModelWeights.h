// The tensors of a model by the part they play, looked up and checked before
// any IR is made, so that building the graph cannot fail half way.
#ifndef SPRIG_LIB_IMPORT_MODELWEIGHTS_H
#define SPRIG_LIB_IMPORT_MODELWEIGHTS_H

#include "lib/Import/ModelConfig.h"
#include "lib/Import/TensorNames.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

/// A tensor of the model, and what becomes of the one in the file: transposed,
/// cut, shifted, in this order.
struct WeightRef {
  const WeightTensor *tensor = nullptr; ///< or the codes of a quantised matrix
  /// Where the file splits the matrix `NxK`.
  std::optional<QuantisedMatrix> quantised = {};
  /// More of the same shape, stacked behind it along a new first dimension.
  llvm::SmallVector<const WeightTensor *, 0> others = {};
  /// The same where the file splits them: `quantised` of each.
  std::vector<QuantisedMatrix> otherQuantised = {};
  bool transposed = false;    ///< the file has `KxN`
  int64_t begin = 0, end = 0; ///< rows that are taken; all where both are 0
  /// Rows belong to so many heads, and `begin` and `end` count those of each;
  /// 0: they count all rows.
  int64_t heads = 0;
  int64_t lastFirst = 0; ///< so many last rows of each head go first
  /// The file has `HxKxN`, a turned matrix a head.
  bool turnedHeads = false;
  bool oneRow = false;        ///< the file has a vector, the only row
  double offset = 0.0;        ///< added to every number
  bool normalised = false;    ///< rows are divided by their length

  explicit operator bool() const { return tensor != nullptr; }
};

/// A product with a weight, `NxK`, and perhaps a bias, `N`.
struct LinearWeights {
  WeightRef weight, bias;
};

/// A norm's factors, and what it adds.
struct NormWeights {
  WeightRef gamma, beta;

  explicit operator bool() const { return bool(gamma); }
};

struct LayerWeights {
  NormWeights beforeAttention, afterAttention;
  LinearWeights q, k, v, o; ///< none where the layer has no attention
  WeightRef queryNorm, keyNorm;
  /// Latent attention: where q, k and v come from, and the key's rotated part.
  LinearWeights queryLatent, latent, rotatedKey;
  WeightRef queryLatentNorm, latentNorm;
  NormWeights beforeFeedForward, afterFeedForward;
  LinearWeights gate, up, down; ///< of all experts where there is a router
  LinearWeights router;
  WeightRef routerBias; ///< on the scores
  LinearWeights sharedGate, sharedUp, sharedDown, sharedRouter;
};

struct ModelWeights {
  WeightRef embedding, positions;
  NormWeights outputNorm;
  bool tied = false;                         ///< the head is the embedding
  LinearWeights output;                      ///< its weight is empty where tied
  const WeightTensor *ropeFactors = nullptr; ///< divisors of RoPE frequencies
  /// The same of LongRoPE, where the file has them as tensors.
  const WeightTensor *shortFactors = nullptr, *longFactors = nullptr;
  std::vector<LayerWeights> layers;
  /// Parts of the file that predict further tokens, by the names of their
  /// tensors, which nothing of the above needs.
  std::vector<std::string> leftOut;
};

/// Tensors of a source, handed out by key with a check of shape and type. The
/// first error sticks and is returned by `finish`; after it nothing that was
/// handed out may be used. Remembers what was taken: a tensor that nobody wants
/// is a part of the model that this importer does not know, and must not be
/// dropped silently.
class TensorTable {
public:
  explicit TensorTable(const WeightSource &source) : source(source) {}

  bool has(const llvm::Twine &key) const { return source.find(key.str()); }
  /// The tensor, which must be there with this shape.
  const WeightTensor *take(const llvm::Twine &key,
                           llvm::ArrayRef<int64_t> shape);
  /// The same, but null where the source has no such tensor.
  const WeightTensor *takeOptional(const llvm::Twine &key,
                                   llvm::ArrayRef<int64_t> shape);
  /// The same for a vector that is multiplied or added as it is, so of a float
  /// type.
  const WeightTensor *takeVector(const llvm::Twine &key, int64_t size);
  const WeightTensor *takeOptionalVector(const llvm::Twine &key, int64_t size);
  const WeightTensor *find(const llvm::Twine &key) const {
    return source.find(key.str());
  }
  /// A tensor that software of the time wrote and nobody reads.
  void ignore(const llvm::Twine &key);
  /// Leaves out all tensors that begin so; whether there are any.
  bool leaveOut(llvm::StringRef prefix);

  void fail(const llvm::Twine &message);
  /// The first error; or one that names the tensors nobody took.
  llvm::Error finish(llvm::StringRef architecture) const;

private:
  const WeightTensor *asFloats(const WeightTensor *tensor);

  const WeightSource &source;
  llvm::DenseSet<const WeightTensor *> taken;
  std::string failure;
};

/// A norm's factors, the vector `stem.weight`.
NormWeights takeNorm(TensorTable &tensors, const llvm::Twine &stem,
                     int64_t size);
/// A product's `stem.weight`, and `stem.bias` where there is one.
LinearWeights takeLinear(TensorTable &tensors, const llvm::Twine &stem,
                         int64_t rows, int64_t columns);

/// The parts of the matrix `NxK` at `stem`; nothing where the checkpoint is not
/// quantised, or this matrix is not.
std::optional<QuantisedMatrix> findQuantised(const CheckpointQuantisation &how,
                                             llvm::StringRef stem, int64_t N,
                                             int64_t K, TensorTable &tensors);

/// Those of one layer, which begin with `prefix`, such as "model.layers.61.".
LayerWeights findLayer(const ModelConfig &config, const TensorNames &names,
                       const LayerConfig &layer, const llvm::Twine &prefix,
                       TensorTable &tensors);

/// All tensors of a model under the names of its kind of file.
llvm::Expected<ModelWeights> findWeights(const ModelConfig &config,
                                         const TensorNames &names,
                                         const WeightSource &source);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELWEIGHTS_H
