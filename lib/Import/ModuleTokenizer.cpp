#include "lib/Import/ModuleTokenizer.h"

#include "lib/Import/PruneTokenizer.h"

namespace mlir::llm {

FailureOr<std::optional<ModelTokenizer>> readTokenizer(TokenizerOp declaration,
                                                       WeightStore &files) {
  FailureOr<const WeightSource *> source =
      files.source(declaration, declaration.getSourceAttr());
  if (failed(source))
    return failure();
  llvm::Expected<std::optional<ModelTokenizer>> read =
      readModelTokenizer(**source);
  if (!read)
    return declaration.emitOpError() << llvm::toString(read.takeError());
  const auto model =
      declaration->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
          "llm.model");
  const auto rows =
      model ? model.getAs<IntegerAttr>("vocabulary") : IntegerAttr();
  if (*read && rows && !declaration.getKeep() &&
      int64_t((*read)->tables.tokenTypes.size()) > rows.getInt())
    return declaration.emitOpError("expects a tokenizer of at most the ")
           << rows.getInt() << " tokens that the model has rows for, but got "
           << (*read)->tables.tokenTypes.size();
  if (*read && declaration.getKeep()) {
    auto fewer = pruneTokenizer((*read)->tables, *declaration.getKeep());
    if (!fewer)
      return declaration.emitOpError() << llvm::toString(fewer.takeError());
    (*read)->tables = std::move(*fewer);
  }
  return std::move(*read);
}

} // namespace mlir::llm
