// The files that the options of llm-compile name.
#ifndef SPRIG_TOOLS_COMPILEFILES_H
#define SPRIG_TOOLS_COMPILEFILES_H

#include "lib/Weights/OutputGuard.h"
#include "tools/CompileDriver.h"

namespace mlir::llm {

/// Tells the guard all that is read, files of passes included, and all that is written but new weights without
/// --weights-out, of which only the passes know whether there are any.
::llvm::Error guardFiles(const CompileOptions &options, OutputGuard &guard);

/// The file of new weights: --weights-out, or one beside -o, which is an error where it would take the place of another
/// file, or where IR goes to the standard output. What a package holds for a while gets a name that is free: a p.mlir that
/// reads p.safetensors becomes p.sprig.
::llvm::Expected<std::string> newWeightsFile(const CompileOptions &options, OutputGuard &guard);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_COMPILEFILES_H
