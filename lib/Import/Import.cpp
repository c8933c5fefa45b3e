#include "lib/Import/Import.h"

#include "lib/Import/Checkpoint.h"
#include "lib/Import/CheckpointConfig.h"
#include "lib/Import/GGUFConfig.h"
#include "lib/Import/GraphBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Things a configuration does not say, but an import depends on.
static Error checkFile(const GGUFFile &file, const ModelConfig &config) {
  const auto error = [&](const Twine &message) {
    return llvm::createStringError("'" + file.path() + "' " + message);
  };
  if (const GGUFValue *tokens = file.metadata().find("tokenizer.ggml.tokens");
      tokens && int64_t(tokens->count) > config.vocabulary)
    return error("tokenizer.ggml.tokens expects at most the " +
                 Twine(config.vocabulary) + " rows of the embedding, but got " +
                 Twine(tokens->count));
  return Error::success();
}

/// The module of a model that has been read.
static Expected<OwningOpRef<ModuleOp>>
build(MLIRContext *context, const ModelConfig &config, const TensorNames &names,
      const WeightSource &source, const ImportOptions &options) {
  if (options.capacity < 0 || options.capacity > config.context)
    return llvm::createStringError(
        "'" + source.path() + "' expects a context of 1 to " +
        Twine(config.context) + ", but got " + Twine(options.capacity));
  ModelWeights weights;
  if (Error error = findWeights(config, names, source).moveInto(weights))
    return error;

  for (const std::string &name : weights.leftOut)
    emitWarning(UnknownLoc::get(context))
        << "'" << source.path() << "' holds '" << name
        << "', a layer that predicts further tokens; it is left out, and what "
           "the model says of the next token is whole without it "
           "(--draft=heads:mtp has it guess)";

  context->loadDialect<LLMDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  GraphBuilder(*module, config, weights, options).build(source);
  // The verifier is the second pair of eyes on the shapes: what it finds is a
  // fault of the importer, told as an error.
  std::string findings;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    findings += (findings.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  if (failed(verify(*module)))
    return llvm::createStringError(
        "'" + source.path() +
        "' expects to give valid IR, but got: " + findings);
  return module;
}

Expected<OwningOpRef<ModuleOp>>
mlir::llm::importModel(MLIRContext *context, const WeightSource &source,
                       const ImportOptions &options) {
  const auto *file = dynamic_cast<const GGUFFile *>(&source);
  if (!file)
    return llvm::createStringError(
        "'" + source.path() + "' expects a GGUF file, but got a " +
        source.formatName() +
        " file, which says nothing about the model's structure; give the "
        "folder that holds it and config.json");
  ModelConfig config;
  if (Error error = readGGUFConfig(*file).moveInto(config))
    return error;
  if (Error error = checkFile(*file, config))
    return error;
  return build(context, config, kGGUFNames, source, options);
}

static Expected<OwningOpRef<ModuleOp>>
importCheckpoint(MLIRContext *context, StringRef folder,
                 const ImportOptions &options) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, "config.json");
  Expected<CheckpointConfig> read = readCheckpointConfig(path);
  if (!read)
    return read.takeError();
  Expected<std::unique_ptr<WeightSource>> source =
      openCheckpointWeights(folder);
  if (!source)
    return source.takeError();
  if (read->castAsAWhole && !(*source)->tensors().empty() &&
      (*source)->tensors().front().format == sprig::quant::Format::BF16)
    for (RopeConfig &rope : read->config.ropes)
      rope.roundToBF16 = true;
  return build(context, read->config, *read->family->names, **source, options);
}

Expected<OwningOpRef<ModuleOp>>
mlir::llm::importModel(MLIRContext *context, StringRef path,
                       const ImportOptions &options) {
  if (llvm::sys::fs::is_directory(path))
    return importCheckpoint(context, path, options);
  Expected<std::unique_ptr<WeightSource>> source = openWeightSource(path);
  if (!source)
    return source.takeError();
  return importModel(context, **source, options);
}
