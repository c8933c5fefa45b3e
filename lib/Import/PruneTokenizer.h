// A tokenizer of fewer tokens, for models whose vocabulary was pruned.
#ifndef SPRIG_LIB_IMPORT_PRUNETOKENIZER_H
#define SPRIG_LIB_IMPORT_PRUNETOKENIZER_H

#include "runtime/Text/TokenizerData.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

/// The ids that have to stay so that text made of `wanted` tokens is read as it was, ascending: those, whatever they are
/// merged from, a token for every byte, control and user-defined tokens, and the unknown and padding token. Errors: an
/// id outside the vocabulary.
::llvm::Expected<std::vector<int32_t>> closeVocabulary(const sprig::TokenizerTables &tables,
                                                       ::llvm::ArrayRef<uint32_t> wanted);

/// The tables with these tokens alone, which get new ids in this order, and the merges that lie among them. Errors: an
/// id outside the vocabulary, or a token that the tables name by its part and that is not kept.
::llvm::Expected<sprig::TokenizerTables> pruneTokenizer(const sprig::TokenizerTables &tables,
                                                        ::llvm::ArrayRef<int32_t> keep);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_PRUNETOKENIZER_H
