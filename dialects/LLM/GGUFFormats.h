// The 26 tensor types of GGUF as element types of the llm dialect, one row
// each.
#ifndef SPRIG_DIALECTS_LLM_GGUFFORMATS_H
#define SPRIG_DIALECTS_LLM_GGUFFORMATS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::llm {

struct GGUFFormat {
  llvm::StringLiteral name; ///< as ggml spells it: "Q4_1"
  uint32_t typeId;          ///< ggml_type in a GGUF file
  unsigned blockElements; ///< elements of a stored block (NVFP4 stores 4 groups
                          ///< in one)
  unsigned blockBytes;
};

/// All formats, by type id.
llvm::ArrayRef<GGUFFormat> getGGUFFormats();

/// The row of `name`, of `typeId`, or of a tensor's element type; null when
/// GGUF has no such type. Distinct formats have distinct element types, so the
/// last is the inverse of getGGUFType.
const GGUFFormat *lookupGGUF(llvm::StringRef name);
const GGUFFormat *lookupGGUF(uint32_t typeId);
const GGUFFormat *lookupGGUF(Type elementType);

/// Element type of a format: f32, f16, bf16 or a `!llm.q`.
Type getGGUFType(MLIRContext *context, const GGUFFormat &format);
/// The same by name; a null type when the name is unknown.
Type getGGUFType(MLIRContext *context, llvm::StringRef name);

} // namespace mlir::llm

#endif // SPRIG_DIALECTS_LLM_GGUFFORMATS_H
