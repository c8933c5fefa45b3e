// llm-fit-heads: draft heads for a model in closed form, from the hidden states on a text.
#include "lib/Import/Import.h"
#include "lib/Weights/OutputGuard.h"
#include "lib/Weights/SafetensorsWriter.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/Parser/Parser.h"
#include "tools/CalibrationText.h"
#include "tools/CompileDriver.h"
#include "transforms/Speculation/FitRidge.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

using namespace mlir;

static constexpr const char *kExamples = R"(Examples:
  llm-fit-heads model.gguf --text book.txt -o heads.safetensors
  llm-fit-heads model.gguf --text book.txt --tokens 16384 -o heads.safetensors --json
  llm-compile model.gguf --draft=heads:heads.safetensors -o model.sprig
  llm-run model.sprig -p "Once upon a time" --speculate=heads)";

namespace {

struct Arguments {
  std::string source, output, text;
  llm::RidgeOptions options{{4096, 256}, 0.01};
  bool json = false;
};

llvm::Error write(const llm::RidgeHeads &heads, const std::string &path) {
  auto writer = llm::SafetensorsWriter::create(path);
  if (!writer)
    return writer.takeError();
  const int64_t D = heads.width;
  const struct {
    const char *key;
    const std::vector<float> &numbers;
    SmallVector<int64_t> shape;
  } tensors[] = {{"ridge.hidden.weight", heads.hidden, {D, D}},
                 {"ridge.embedding.weight", heads.embedding, {D, D}},
                 {"ridge.bias", heads.bias, {D}}};
  for (const auto &tensor : tensors)
    if (llvm::Error error = (*writer)->add(tensor.key, sprig::quant::Format::F32, tensor.shape,
                                           std::as_bytes(std::span(tensor.numbers))))
      return error;
  return (*writer)->finish();
}

LogicalResult fit(const Arguments &arguments, MLIRContext &context) {
  const auto check = [&](llvm::Error error) {
    return error ? LogicalResult(emitError(UnknownLoc::get(&context)) << llvm::toString(std::move(error))) : success();
  };
  llm::OutputGuard files;
  if (failed(check(files.read("MODEL", arguments.source))) || failed(check(files.read("--text", arguments.text))) ||
      failed(check(files.write("-o", arguments.output))))
    return failure();
  OwningOpRef<ModuleOp> module;
  std::string folder;
  if (StringRef(arguments.source).ends_with(".mlir")) {
    folder = llvm::sys::path::parent_path(arguments.source).str();
    module = parseSourceFile<ModuleOp>(arguments.source, &context);
    if (!module)
      return failure();
  } else {
    auto imported = llm::importModel(&context, arguments.source, {});
    if (!imported)
      return check(imported.takeError());
    module = std::move(*imported);
  }
  if (failed(check(files.readSources(*module, folder))))
    return failure();
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return module->emitError("expects a function @forward, but got none");
  auto weights = std::make_shared<llm::WeightStore>(folder);
  if (failed(llm::attachCalibration(*module, weights, {arguments.text, "", {}})))
    return failure();
  FailureOr<llm::RidgeHeads> heads = llm::fitRidge(forward, arguments.options);
  if (failed(heads) || failed(check(write(*heads, arguments.output))))
    return failure();
  if (arguments.json)
    llvm::outs() << llvm::json::Value(llvm::json::Object{{"width", heads->width},
                                                         {"pairs", heads->pairs},
                                                         {"held", heads->held},
                                                         {"explained", heads->explained}})
                 << '\n';
  return success();
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Fits heads that guess the next hidden state of a model, by least squares over a text.",
               "llm-fit-heads");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-fit-heads (Sprig) " SPRIG_VERSION);
  app.add_option("MODEL", arguments.source, "A .gguf file, a Hugging Face folder, or IR in a .mlir file")->required();
  app.add_option("-o,--output", arguments.output, "The safetensors file")->required();
  app.add_option("--text", arguments.text, "What the model reads")->required()->check(CLI::ExistingFile);
  app.add_option("--tokens", arguments.options.text.tokens, "Of the text")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 24))
      ->capture_default_str();
  app.add_option("--window", arguments.options.text.window, "Tokens of the text that see each other")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--damping", arguments.options.damping, "Of the fit, as a share of the inputs' second moments")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--json", arguments.json,
               "Print width, pairs fitted and held back, and the share of the variance explained of the latter");
  CLI11_PARSE(app, argc, argv);

  DialectRegistry registry;
  llm::registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      llvm::errs() << "llm-fit-heads: error: " << diagnostic.str() << '\n';
    return success();
  });
  return failed(fit(arguments, context)) ? 1 : 0;
}
