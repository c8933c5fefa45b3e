// Custom pieces of the textual form, used by the generated parsers and
// printers.
#ifndef SPRIG_DIALECTS_LLM_ASSEMBLY_H
#define SPRIG_DIALECTS_LLM_ASSEMBLY_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::llm {

/// An f32 in the fewest digits that read back as the same number: `0.125`,
/// `1.0e-05`.
ParseResult parseFloat(OpAsmParser &parser, FloatAttr &value);
void printFloat(OpAsmPrinter &printer, Operation *op, FloatAttr value);

/// `-> type`, left out where the result has the type of the input.
ParseResult parseResultType(OpAsmParser &parser, Type input, Type &result);
void printResultType(OpAsmPrinter &printer, Operation *op, Type input,
                     Type result);

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_ASSEMBLY_H
