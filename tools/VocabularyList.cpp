#include "tools/VocabularyList.h"

#include "lib/Import/ModuleTokenizer.h"
#include "lib/Import/PruneTokenizer.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;

LogicalResult mlir::llm::keepTokensOf(ModuleOp module, StringRef file, WeightStore &weights) {
  auto tokenizers = module.getOps<TokenizerOp>();
  if (tokenizers.empty())
    return module.emitError() << "expects a tokenizer whose tokens could be kept, but the module names none";
  TokenizerOp declaration = *tokenizers.begin();
  if (declaration.getKeep())
    return declaration.emitOpError("has lost tokens before; start from the whole model");
  auto buffer = ::llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return module.emitError() << "cannot read '" << file << "': " << buffer.getError().message();
  std::vector<uint32_t> wanted;
  SmallVector<StringRef> words;
  ::llvm::SplitString((*buffer)->getBuffer(), words, ", \t\r\n");
  for (StringRef word : words) {
    uint32_t id;
    if (word.getAsInteger(10, id))
      return module.emitError() << "'" << file << "' expects token ids, but got '" << word.take_front(40)
                                << "'; llm-tokenize MODEL --file TEXT prints those of a text";
    wanted.push_back(id);
  }
  if (wanted.empty())
    return module.emitError() << "'" << file << "' expects token ids, but has none";
  FailureOr<std::optional<ModelTokenizer>> read = readTokenizer(declaration, weights);
  if (failed(read))
    return failure();
  if (!*read)
    return declaration.emitOpError("expects a vocabulary in the file of @") << declaration.getSource();
  auto keep = closeVocabulary((*read)->tables, wanted);
  if (!keep)
    return module.emitError() << "'" << file << "': " << ::llvm::toString(keep.takeError());
  declaration.setKeep(ArrayRef<int32_t>(*keep));
  return success();
}
