// What a tool reads and what it will write, so that no output takes the place of an input or of another output.
#ifndef SPRIG_LIB_WEIGHTS_OUTPUTGUARD_H
#define SPRIG_LIB_WEIGHTS_OUTPUTGUARD_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::llm {

/// Files count as one where links lead both to the same place, whether it exists or not. `option` is what a user calls
/// the file; an empty path is none. Errors name both options, and leave the guard as it was.
class OutputGuard {
public:
  /// A file with what belongs to it: the other parts of a split GGUF, the shards of an index, what lies beside
  /// safetensors; or a folder with all of a checkpoint that is read.
  ::llvm::Error read(::llvm::StringRef option, ::llvm::StringRef path);
  /// What the module reads its weights from; relative paths are those of `folder`.
  ::llvm::Error readSources(ModuleOp module, ::llvm::StringRef folder);
  /// "-", the standard output, takes no file's place.
  ::llvm::Error write(::llvm::StringRef option, ::llvm::StringRef path);

private:
  struct File {
    std::string option, path, place; ///< as it was given, and where links lead
  };
  ::llvm::SmallVector<File> inputs, outputs;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_OUTPUTGUARD_H
