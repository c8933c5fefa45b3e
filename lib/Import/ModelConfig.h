// A decoder-only transformer as the importer understands it: every source (GGUF metadata today) is read into this, and
// GraphBuilder turns it into IR. Nothing here knows where the numbers came from.
#ifndef SPRIG_LIB_IMPORT_MODELCONFIG_H
#define SPRIG_LIB_IMPORT_MODELCONFIG_H

#include "dialects/LLM/LLM.h"
#include "lib/Import/Rope.h"
#include <string>
#include <vector>

namespace mlir::llm {

/// What may differ from layer to layer.
struct LayerConfig {
  int64_t heads = 0;       ///< H; 0: the layer has no attention
  int64_t kvHeads = 0;     ///< G, divides H
  int64_t feedForward = 0; ///< F; 0: the layer has no feed-forward block
};

struct ModelConfig {
  std::string name, architecture, license;
  int64_t context = 0;    ///< positions it was trained for
  int64_t width = 0;      ///< D
  int64_t vocabulary = 0; ///< V, padded rows included
  int64_t keySize = 0;    ///< E
  int64_t valueSize = 0;  ///< E of values
  double normEpsilon = 0.0;
  double embeddingScale = 1.0; ///< on the embedded tokens
  double residualScale = 1.0;  ///< on what a block adds to the residual stream
  double logitScale = 1.0;     ///< on the logits
  double attentionScale = 0.0; ///< on the scores, never 0 once read
  int64_t window = 0;          ///< positions that attention sees; 0: all
  RopeConfig rope;
  bool interleavedPairs = false; ///< a rotated pair is (2i, 2i + 1), else (i, i + dims/2)
  ActivationKind activation = ActivationKind::Silu;
  std::vector<LayerConfig> layers;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_MODELCONFIG_H
