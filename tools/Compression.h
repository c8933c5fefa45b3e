// The short forms of llm-compile for passes that make a model smaller: presets, --quantize and --prune.
#ifndef SPRIG_TOOLS_COMPRESSION_H
#define SPRIG_TOOLS_COMPRESSION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::llm {

struct Preset {
  const char *name;
  const char *quantize; ///< what --quantize would say, or empty
  const char *description;
};

::llvm::ArrayRef<Preset> presets();
/// Null for unknown names.
const Preset *findPreset(::llvm::StringRef name);

/// The passes behind `w:4,group:64,method:gptq,a:8,kv:8,smooth:yes`, comma-separated and without the default pipeline. The default of
/// `method` is gptq where there is a calibration text, else mse. Errors name the key and the value.
::llvm::Expected<std::string> quantizePasses(::llvm::StringRef spec, bool hasText);

/// What `--kv=8,attention:8` asks for.
struct Caches {
  int64_t bits = 16;
  std::string pass; ///< that quantises them; empty with 16 and 32 bits
};
::llvm::Expected<Caches> cachesOf(::llvm::StringRef spec);

/// Whether what `--quantize` says writes weights in few bits.
bool quantisesWeights(::llvm::StringRef spec);
/// Whether what `--prune` says is a pattern, which is stored without its zeros.
bool packsWeights(::llvm::StringRef prune);

/// The bits of caches that it says, 16 where it says none.
int64_t cacheBitsIn(::llvm::StringRef quantize);

/// Whether what `--draft` says has weights in few bits.
bool draftsInBits(::llvm::StringRef draft);

/// What else is asked for beside a `--prune`.
struct PruneContext {
  bool hasText;     ///< there is a calibration text
  bool isQuantised; ///< weights are quantised after it
  bool isPacked;    ///< or so, or by a pattern, or those of a draft are
  bool isGrouped;   ///< they are quantised, or those of a draft, of which rows have to be whole units
  int64_t cacheBits = 16; ///< of what caches hold after it
};

/// The pass behind `layers:4`, `ffn:0.2,score:wanda,recover:no`, `bytes:0.75` or `2:4:sparsegpt`. Sparsity is by magnitude
/// where there is no calibration text and no score is named, and leaves floats where weights are quantised after it.
/// Channels and heads go in units that can be packed where they will be. Errors name the key and the value.
::llvm::Expected<std::string> prunePass(::llvm::StringRef spec, const PruneContext &context);

/// The pass behind `skip:8`, `skip:auto`, `skip:3+7-9`, `ffn:0.5`, `bits:3` (and several of them together) or
/// `heads:FILE`. Errors name the key and the value.
::llvm::Expected<std::string> draftPass(::llvm::StringRef spec, bool hasText);

/// A whole pipeline: `passes` (perhaps none), then what every model gets.
std::string pipelineOf(::llvm::StringRef passes);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_COMPRESSION_H
