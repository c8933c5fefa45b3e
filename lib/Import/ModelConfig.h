// A decoder-only transformer as the importer understands it: every source (GGUF
// metadata, config.json) is read into this, and GraphBuilder turns it into IR.
// Nothing here knows where the numbers came from.
#ifndef SPRIG_LIB_IMPORT_MODELCONFIG_H
#define SPRIG_LIB_IMPORT_MODELCONFIG_H

#include "dialects/LLM/LLM.h"
#include "lib/Import/QuantisedMatrix.h"
#include "lib/Import/Rope.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm {

enum class NormKind { Rms, Layer };

/// A norm of queries and keys before they are rotated.
enum class QKNorm {
  None,
  Head, ///< over each head
  Row,  ///< over all heads of a token
};

/// What may differ from layer to layer.
struct LayerConfig {
  int64_t heads = 0;       ///< H; 0: the layer has no attention
  int64_t kvHeads = 0;     ///< G, divides H
  int64_t feedForward = 0; ///< F; 0: the layer has no feed-forward block
  int64_t window = 0;      ///< positions that attention sees; 0: all
  int64_t rope = 0;        ///< index into `ropes`; -1: nothing is rotated
  bool dense = false;      ///< no experts, though the model has some
};

struct ModelConfig {
  std::string name, architecture, license;
  int64_t context = 0;    ///< positions it was trained for
  int64_t width = 0;      ///< D
  int64_t vocabulary = 0; ///< V, padded rows included
  int64_t keySize = 0;    ///< E
  int64_t valueSize = 0;  ///< E of values

  /// Latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and
  /// values of all heads are made from so many numbers a token, and one rotated
  /// key is shared by the heads; 0: they are made from the layer's input.
  int64_t latent = 0;
  int64_t queryLatent = 0; ///< the same of queries, or 0
  int64_t rotated = 0;     ///< components of a key that turn; 0: a share of it
  double latentEpsilon = 0.0; ///< of the norms of latents

  // Norms: before each block, after it, or both; one before the head.
  NormKind norm = NormKind::Rms;
  double normEpsilon = 0.0;
  double normOffset = 0.0; ///< added to the gammas of the file
  bool normBefore = true, normAfter = false;
  QKNorm qkNorm = QKNorm::None;

  /// The products have a bias; without, they may have one.
  bool biasedQKV = false, biasedOutput = false, biasedFeedForward = false;

  double embeddingScale = 1.0; ///< on the embedded tokens
  double residualScale = 1.0;  ///< on what a block adds to the residual stream
  double logitScale = 1.0;     ///< on the logits
  double attentionScale = 0.0; ///< on the scores, never 0 once read
  double attentionSoftcap = 0.0; ///< on the scores; 0: none
  double logitSoftcap = 0.0;     ///< on the scaled logits; 0: none

  /// Whether embedding and head must be one (a head that is there and differs
  /// counts all the same), or must be two; without a value the file decides.
  std::optional<bool> tied;

  bool normalisedHead = false; ///< rows of the head are divided by their length

  bool learnedPositions = false; ///< a row for each position is embedded
  /// Scores fall with the distance, by a slope for each head (ALiBi).
  bool alibi = false;
  std::vector<RopeConfig> ropes;
  /// A rotated pair is (2i, 2i + 1), else (i, i + dims/2).
  bool interleavedPairs = false;

  ActivationKind activation = ActivationKind::Silu;
  bool gated = true; ///< `down(act(gate(x)) * up(x))`, else `down(act(up(x)))`

  /// X; 0: feed-forward blocks are dense. Each token goes to `expertsUsed`.
  int64_t experts = 0, expertsUsed = 0;
  ScoreKind expertScore = ScoreKind::Softmax;
  /// A number is added to the score of each when they are chosen, not to its
  /// weight.
  bool expertBias = false;
  bool normaliseExperts = false; ///< weights of the chosen add up to one
  double expertScale = 1.0;      ///< on these weights
  /// Only the best `expertTopGroups` of so many groups take part; 0: no groups.
  int64_t expertGroups = 0, expertTopGroups = 0;
  /// Groups compare by their one best expert, not by two.
  bool expertGroupsByBest = false;
  /// F of one more expert, which all tokens share; 0: none.
  int64_t sharedFeedForward = 0;
  bool sharedGate = false; ///< each token has a gate to it

  /// Layers beside the model that predict further tokens, and are left out.
  int64_t predictLayers = 0;

  CheckpointQuantisation quantisation; ///< of the products of layers

  std::vector<LayerConfig> layers;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELCONFIG_H
