#include "lib/Import/ModuleTokenizer.h"

namespace mlir::llm {

FailureOr<std::optional<GGUFTokenizer>>
readTokenizer(TokenizerOp declaration, WeightStore &files) {
  FailureOr<const WeightSource *> source =
      files.source(declaration, declaration.getSourceAttr());
  if (failed(source))
    return failure();
  auto *gguf = dynamic_cast<const GGUFFile *>(*source);
  if (!gguf)
    return declaration.emitOpError(
               "expects a tokenizer in a GGUF file, but got ")
           << (*source)->path();
  llvm::Expected<std::optional<GGUFTokenizer>> read = readGGUFTokenizer(*gguf);
  if (!read)
    return declaration.emitOpError() << llvm::toString(read.takeError());
  return std::move(*read);
}

} // namespace mlir::llm
