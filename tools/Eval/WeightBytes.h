// What the weights of a function take where they are stored.
#ifndef SPRIG_TOOLS_EVAL_WEIGHTBYTES_H
#define SPRIG_TOOLS_EVAL_WEIGHTBYTES_H

#include "mlir/IR/Operation.h"

namespace mlir::llm {

/// Bits of all numbers that the ops in `function` read as weights, each once (a tied embedding counts once), rounded up
/// to bytes; of expressions over weights, those of the result. Scales count, padding does not.
uint64_t weightBytes(Operation *function);

} // namespace mlir::llm

#endif // SPRIG_TOOLS_EVAL_WEIGHTBYTES_H
