// From a model file to IR.
#ifndef SPRIG_LIB_IMPORT_IMPORT_H
#define SPRIG_LIB_IMPORT_IMPORT_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::llm {

struct ImportOptions {
  /// The folder that the IR file will lie in ("" is the working folder): paths
  /// of sources are written relative to it.
  std::string folder;
  /// Slots of the key-value caches; 0 takes the trained context, but at most
  /// kDefaultCapacity. A longer context than the trained one is refused.
  int64_t capacity = 0;
  /// Bits of a key or value in the caches: 16 or 32 (floats).
  int64_t cacheBits = 16;
  /// Quantised weights of products pass through an `llm.dequantize` each
  /// (`llm-fuse-dequantize` removes them).
  bool explicitDequantize = false;
};

/// A context of 8,192 slots would cost more memory than the weights of a small
/// model; who wants it asks for it.
inline constexpr int64_t kDefaultCapacity = 2048;

/// The model in the GGUF file or the Hugging Face folder at `path`, as a
/// verified module:
///
///     llm.source @model, llm.tokenizer @tokenizer (where the file has one),
///     llm.kv_cache @kv, func.func @forward(%ids: tensor<?xi32>, %positions:
///     tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?xVxf32>
///
/// and a dictionary `llm.model` on the module: name, architecture, license
/// (where the file states one), context, width, layers, heads, kv_heads,
/// head_size, feed_forward, vocabulary (those of layer 0 where layers differ)
/// and parameters. Weights stay in the file. Loads the dialects it needs.
/// Errors name the file and the key or tensor.
llvm::Expected<OwningOpRef<ModuleOp>>
importModel(MLIRContext *context, llvm::StringRef path,
            const ImportOptions &options = {});

/// The same from a file that is open already.
llvm::Expected<OwningOpRef<ModuleOp>>
importModel(MLIRContext *context, const WeightSource &source,
            const ImportOptions &options = {});

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_IMPORT_H
