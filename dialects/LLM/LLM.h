// The llm dialect: include this to use its types, attributes and ops.
//
// Dimension names: T tokens in the step, S cached positions, D model width, H/G
// query/key-value heads, E head size, F feed-forward width, V vocabulary, L
// layers, B quantisation group, N/K rows and columns of a weight.
#ifndef SPRIG_DIALECTS_LLM_LLM_H
#define SPRIG_DIALECTS_LLM_LLM_H

#include "dialects/LLM/GGUFFormats.h"
#include "dialects/LLM/QuantSpec.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/LLM/LLMDialect.h.inc"
#include "dialects/LLM/LLMEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/LLM/LLMAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/LLM/LLMTypes.h.inc"

namespace mlir::llm {

/// The memory of all key-value caches: effects of append, compact, evict and
/// attention are on a handle to it.
struct KVResource : public SideEffects::Resource::Base<KVResource> {
  StringRef getName() final { return "llm.kv"; }
};

/// `tensor<Txi32>` or `tensor<Txf32>` for a tensor of T rows; `tensor<length x
/// i32>`; `tensor<Tx2xi32>`.
Type rowVector(Type rows, StringRef element);
Type i32Vector(MLIRContext *context, int64_t length);
Type maskType(Type rows);

/// True where a tensor type's element is `!llm.q`; the element if so.
bool isQuantized(Type tensor);
QuantizedType getQuantizedElement(Type tensor);

/// Elements of one row: the product of all dimensions but the first. Dynamic
/// where one of them is.
int64_t getRowWidth(Type tensor);

/// Codebooks that everyone knows, by name: no operand carries them.
bool isKnownCodebook(StringRef name);

} // namespace mlir::llm

#define GET_OP_CLASSES
#include "dialects/LLM/LLMOps.h.inc"

#endif // SPRIG_DIALECTS_LLM_LLM_H
