// The tokenizer of a package.
#ifndef SPRIG_CODEGEN_PACKAGE_TOKENIZERWRITER_H
#define SPRIG_CODEGEN_PACKAGE_TOKENIZERWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/Format/Package_generated.h"
#include "runtime/Text/TokenizerData.h"

namespace mlir::llm {

/// With a text and the tokens that it has today, for a runtime to try. A token
/// that is too long for the format is an error on `module`.
FailureOr<flatbuffers::Offset<sprig::format::Tokenizer>>
writeTokenizer(flatbuffers::FlatBufferBuilder &builder,
               const sprig::TokenizerTables &tables, ModuleOp module);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_TOKENIZERWRITER_H
