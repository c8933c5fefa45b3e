// Values of inline weights, for folders.
#ifndef SPRIG_DIALECTS_LLM_INLINEVALUES_H
#define SPRIG_DIALECTS_LLM_INLINEVALUES_H

#include "dialects/LLM/LLM.h"

namespace mlir::llm {

/// The attribute of an inline `llm.weight` that holds numbers, null otherwise
/// (a named weight, a blob of bytes, another op).
ElementsAttr getInlineValue(Value value);

/// True where every element of an inline float weight is `number`; 0 stands for
/// either zero.
bool isInlineSplat(Value value, double number);

/// True where an inline integer weight counts from 0 to its length.
bool isInlineIota(Value value);

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_INLINEVALUES_H
