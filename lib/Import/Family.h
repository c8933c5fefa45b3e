// The table of model families.
//
// Families share one configuration (ModelConfig), one list of tensors
// (ModelWeights) and one builder (GraphBuilder); what sets a family apart is a
// row here. What a file's metadata can say is not in the table: it is read for
// every family alike.
#ifndef SPRIG_LIB_IMPORT_FAMILY_H
#define SPRIG_LIB_IMPORT_FAMILY_H

#include "lib/Import/ModelConfig.h"
#include "lib/Import/TensorNames.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::llm {

struct Family {
  /// `general.architecture` of GGUF, and the prefix of its keys; empty where
  /// the family has no files of its own (mistral's say that they are llama).
  llvm::StringRef gguf = "";
  /// `model_type` of config.json.
  llvm::StringRef checkpoint = "";
  const TensorNames *names = &kLlamaNames; ///< of checkpoints

  ActivationKind activation = ActivationKind::Silu;
  bool gated = true;

  NormKind norm = NormKind::Rms;
  bool normBefore = true, normAfter = false;
  QKNorm qkNorm = QKNorm::None;
  /// Checkpoints store gammas less one (GGUF files do not).
  bool gammaLessOne = false;

  /// Which components of a head turn together. GGUF files of llama-like
  /// families hold the rows of Q and K in an order in which these lie side by
  /// side; checkpoints of few families do.
  bool interleavedInGGUF = false, interleavedInCheckpoint = false;
  /// Keys and values are made from a latent.
  bool latentAttention = false;
  bool learnedPositions = false;
  /// The base of a checkpoint that does not state it.
  double ropeBase = 10000.0;
  /// Layers with a window turn by this base; 0: all turn alike.
  double windowBase = 0.0;
  /// Every so many layers one is not rotated, unless the file lists them; 0:
  /// all are.
  int64_t unrotatedEvery = 0;
  /// Every so many layers one sees everything, whatever the window; 0: the
  /// window is that of all layers.
  int64_t fullEvery = 0;

  /// A window counts only where `use_sliding_window` says so, and from layer
  /// `max_window_layers` on.
  bool windowByFlag = false;

  /// Checkpoints may hold layers that predict further tokens.
  bool predictLayers = false;
  /// Queries, keys and values have biases, whether the file says so or not.
  bool biasedQKV = false;
  /// The embedding is multiplied by the square root of the width.
  bool scaledEmbedding = false;
  /// The model with so many layers scales its scores by the width's share of a
  /// head instead of the head size; GGUF files do not say so.
  int64_t layersThatScaleByWidth = 0;
  /// Whether checkpoints that do not say share embedding and head.
  bool tied = false;
  /// Whether checkpoints, or GGUF files, may say that there are experts.
  bool experts = false, expertsInGGUF = false;
  /// How experts are scored where the file does not say, and whether it gives
  /// each a number to be chosen by besides.
  ScoreKind expertScore = ScoreKind::Softmax;
  bool expertBias = false;
  /// Weights of the chosen add up to one where the file does not say.
  bool normaliseExperts = true;
  /// GGUF files do not say it.
  bool normaliseExpertsInGGUF = true;
};

llvm::ArrayRef<Family> families();

/// The row of a `general.architecture`, or null.
const Family *findFamily(llvm::StringRef gguf);
/// The row of a `model_type`, or null.
const Family *findCheckpointFamily(llvm::StringRef modelType);
/// Names that the importer knows, for messages.
std::string familyNames(llvm::StringRef Family::*name);

/// What the family says of the model.
void applyFamily(const Family &family, ModelConfig &config);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_FAMILY_H
