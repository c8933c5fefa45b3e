// Tiny llama models in GGUF form, made from a seed: the same bytes on every
// machine. Random weights, a real byte-level BPE vocabulary of 288 tokens, and
// all the metadata that a llama model carries.
#ifndef SPRIG_TEST_LIB_WEIGHTS_TINYLLAMA_H
#define SPRIG_TEST_LIB_WEIGHTS_TINYLLAMA_H

#include "lib/Quant/Format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm::testing {

/// Sizes by their letters: see CONTRIBUTING.md.
struct TinyLlamaOptions {
  uint64_t seed = 1;
  int64_t D = 64, H = 4, G = 2, E = 16, F = 96, L = 2;
  int64_t context = 512;
  double ropeBase = 10000, epsilon = 1e-5;

  bool separateOutput = false; ///< an output.weight of its own
  bool biases = false;         ///< on q, k, v and the attention's output
  bool ropeFactors = false;    ///< a rope_freqs.weight
  /// Rows of the embedding past the vocabulary's last token, of type "unused".
  int64_t paddingTokens = 0;

  sprig::quant::Format embedding = sprig::quant::Format::Q8_0;
  /// Formats of the matrices, taken in turn: one for all, or a mix.
  std::vector<sprig::quant::Format> matrices = {sprig::quant::Format::Q4_1};

  uint32_t version = 3;
  uint64_t alignment = 32;
};

/// Tokens of every tiny model: three control tokens (<|endoftext|>,
/// <|im_start|>, <|im_end|>: begin and end of turn are 1 and 2), 256 bytes, and
/// 29 merges.
inline constexpr int64_t kTinyVocabulary = 288;

/// Named options that tests and the command share: "default", "head-dim"
/// (E != D/H), "biases", "output", "q8_0", "q4_0", "f16", "f32", "mixed",
/// "k-quants", "rope-factors", "odd-groups" (H = 9, G = 3), "padded".
/// `tinyLlamaVariant` also knows "small-heads" (floats, and a key-value head and
/// its query heads are 16 columns of the output product), and two that take a
/// gigabyte of memory, "8b-q4_k" and "8b-q8_0".
llvm::ArrayRef<llvm::StringLiteral> tinyLlamaVariants();
std::optional<TinyLlamaOptions> tinyLlamaVariant(llvm::StringRef name);

/// Errors: the file cannot be written, or a row is not whole blocks.
llvm::Error writeTinyLlama(llvm::StringRef path,
                           const TinyLlamaOptions &options = {});

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_WEIGHTS_TINYLLAMA_H
