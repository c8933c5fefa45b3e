#include "tools/CalibrationText.h"

#include "lib/Import/ModuleTokenizer.h"
#include "lib/Reference/Activations.h"
#include "runtime/Text/Tokenizer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;

LogicalResult mlir::llm::attachCalibration(ModuleOp module, std::shared_ptr<WeightStore> weights,
                                           const CalibrationText &text) {
  auto declarations = module.getOps<TokenizerOp>();
  if (declarations.empty())
    return module.emitError() << "expects a tokenizer to read '" << text.file << "', but the module names none";
  TokenizerOp declaration = *declarations.begin();
  FailureOr<std::optional<ModelTokenizer>> read = readTokenizer(declaration, *weights);
  if (failed(read))
    return failure();
  if (!*read)
    return declaration.emitOpError("expects a tokenizer in the file of @")
           << declaration.getSource() << ", but it has none";
  const sprig::TokenizerTables &tables = (*read)->tables;
  auto tokenizer = sprig::Tokenizer::create(tables.data());
  if (!tokenizer.ok())
    return declaration.emitOpError() << tokenizer.status().message();

  auto buffer = ::llvm::MemoryBuffer::getFile(text.file);
  if (!buffer)
    return module.emitError() << "cannot read '" << text.file << "': " << buffer.getError().message();
  const auto ids = tokenizer->encode(std::string_view((*buffer)->getBuffer()));
  if (!ids.ok())
    return module.emitError() << "'" << text.file << "': " << ids.status().message();
  reference::ActivationSettings settings;
  settings.tokens.assign(ids->begin(), ids->end());
  if (tables.addBos && tables.bos >= 0)
    settings.begin = tables.bos;
  settings.cacheFolder = text.cacheFolder;
  settings.progress = text.progress;
  // Each weight is read once for all windows, so what was decoded need not stay for long.
  settings.cacheBytes = uint64_t(512) << 20;
  ActivationSource::attach(module.getContext(), reference::makeActivationSource(std::move(weights), settings));
  return success();
}

std::string mlir::llm::defaultCalibrationCache() {
  ::llvm::SmallString<128> folder;
  if (!::llvm::sys::path::cache_directory(folder))
    return "";
  ::llvm::sys::path::append(folder, "sprig", "calibration");
  return folder.str().str();
}
