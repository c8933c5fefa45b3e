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

  bool learnedPositions = false; ///< a row for each position is embedded
  std::vector<RopeConfig> ropes;
  /// A rotated pair is (2i, 2i + 1), else (i, i + dims/2).
  bool interleavedPairs = false;

  ActivationKind activation = ActivationKind::Silu;
  bool gated = true; ///< `down(act(gate(x)) * up(x))`, else `down(act(up(x)))`

  /// X; 0: feed-forward blocks are dense. Each token goes to `expertsUsed`.
  int64_t experts = 0, expertsUsed = 0;
  bool normaliseExperts = false; ///< weights of the chosen add up to one
  /// F of one more expert, which all tokens share, each by a gate; 0: none.
  int64_t sharedFeedForward = 0;

  CheckpointQuantisation quantisation; ///< of the products of layers

  std::vector<LayerConfig> layers;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELCONFIG_H
