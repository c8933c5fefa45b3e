// What files call the tensors of a model.
#ifndef SPRIG_LIB_IMPORT_TENSORNAMES_H
#define SPRIG_LIB_IMPORT_TENSORNAMES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::llm {

/// Names without their `.weight` or `.bias`; an empty one is a tensor that
/// files of this kind never have. From `attentionNorm` on they follow `layer`
/// and the number of the layer: `blk.7.attn_q`.
struct TensorNames {
  /// In front of all of them but the head; may be missing in a file.
  llvm::StringRef root = "";
  llvm::StringRef embedding, positions = "", outputNorm, head = "", layer;

  llvm::StringRef beforeAttention = "", afterAttention = "";
  llvm::StringRef beforeFeedForward = "", afterFeedForward = "";

  /// Queries, keys and values apart, or as rows of one tensor.
  llvm::StringRef query = "", key = "", value = "", packedQKV = "";
  llvm::StringRef output, queryNorm = "", keyNorm = "";

  /// Latents: that of queries, its norm, queries from it; that of keys and
  /// values with the rotated key behind it, its norm, and keys and values from
  /// it, as rows of one tensor, a head after the other, or apart.
  llvm::StringRef queryLatent = "", queryLatentNorm = "", latentQuery = "";
  llvm::StringRef latent = "", latentNorm = "", latentKeyValue = "";
  llvm::StringRef latentKey = "", latentValue = "";

  /// Gate and up apart, or as rows of one tensor.
  llvm::StringRef gate = "", up = "", packedGateUp = "", down = "";

  /// Experts: the product that routes, what is added to its scores (the whole
  /// name), and tensors of all experts (`XxNxK`), gate and up apart or as rows
  /// of one.
  llvm::StringRef router = "", routerBias = "", expertGate = "", expertUp = "";
  llvm::StringRef packedExpertGateUp = "", expertDown = "";
  /// What follows the name of a tensor of all experts: ".weight", or nothing.
  llvm::StringRef expertSuffix = ".weight";
  /// One tensor an expert: `oneExpert` N `.` and these.
  llvm::StringRef oneRouter = "", oneExpert = "";
  llvm::StringRef oneGate = "", oneUp = "", oneDown = "";

  /// The expert that all tokens share, and its gate's single row.
  llvm::StringRef sharedGate = "", sharedUp = "", sharedDown = "";
  llvm::StringRef sharedRouter = "";

  /// Layers that predict further tokens; empty: they are numbered on.
  llvm::StringRef predictLayer = "";

  /// Matrices of layers are stored `KxN`.
  bool transposed = false;
};

/// GGUF files of every family.
extern const TensorNames kGGUFNames;
/// Checkpoints in the manner of Llama; norms after the blocks change what the
/// one before the feed-forward block is called.
extern const TensorNames kLlamaNames, kSandwichNames, kGPT2Names, kMixtralNames,
    kQwenMoeNames, kBaichuanNames, kDeepseekNames, kMimoNames;

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_TENSORNAMES_H
