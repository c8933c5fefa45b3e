// The tokenizer of the tiny models.
#ifndef SPRIG_TEST_LIB_WEIGHTS_TINYVOCABULARY_H
#define SPRIG_TEST_LIB_WEIGHTS_TINYVOCABULARY_H

#include "lib/Weights/GGUFWriter.h"

namespace mlir::llm::testing {

/// Adds the `tokenizer.*` metadata: byte-level BPE in the manner of GPT-2, with
/// the `smollm` pre-tokenizer, a chat template and `padding` unused tokens.
void addTinyVocabulary(GGUFWriter &writer, size_t padding);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_WEIGHTS_TINYVOCABULARY_H
