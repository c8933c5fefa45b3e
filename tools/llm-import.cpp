// llm-import: a model file to IR of the llm dialect. Weights stay where they are.
#include "lib/Import/Import.h"
#include "lib/Weights/OutputFile.h"
#include "lib/Weights/OutputGuard.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

using namespace mlir;

static constexpr const char *kExamples = R"(Examples:
  llm-import model.gguf -o model.mlir         the weights stay in model.gguf
  llm-import folder/ -o model.mlir            a Hugging Face checkpoint
  llm-import model.gguf | llm-opt --llm-default-pipeline
  llm-import model.gguf --context 8192 -o -   longer key-value caches)";

namespace {
struct Arguments {
  std::string source, output = "-";
  llm::ImportOptions options;
  bool json = false;
};
} // namespace

static llvm::Error import(const Arguments &arguments) {
  const auto started = std::chrono::steady_clock::now();
  llm::OutputGuard files;
  if (llvm::Error error = files.read("SOURCE", arguments.source))
    return error;
  if (llvm::Error error = files.write("-o", arguments.output))
    return error;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  // Errors come back as such; what is left out is only said.
  ScopedDiagnosticHandler warnings(&context, [](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      std::cerr << "warning: " << diagnostic.str() << "\n";
  });
  llvm::Expected<OwningOpRef<ModuleOp>> module = llm::importModel(&context, arguments.source, arguments.options);
  if (!module)
    return module.takeError();
  if (llvm::Error error = files.readSources(**module, arguments.options.folder))
    return error;
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  stream << '\n';
  if (llvm::Error error = llm::writeText(arguments.output, text))
    return error;
  if (!arguments.json)
    return llvm::Error::success();

  llvm::json::Object summary{{"output", arguments.output}, {"bytes", int64_t(text.size())}};
  for (NamedAttribute entry : (**module)->getAttrOfType<DictionaryAttr>("llm.model")) {
    if (auto number = dyn_cast<IntegerAttr>(entry.getValue()))
      summary[entry.getName().getValue()] = number.getInt();
    else if (auto string = dyn_cast<StringAttr>(entry.getValue()))
      summary[entry.getName().getValue()] = string.getValue();
  }
  summary["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  llvm::outs() << llvm::json::Value(std::move(summary)) << '\n';
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Imports a model as IR of the llm dialect; its weights stay where they are.", "llm-import");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-import (Sprig) " SPRIG_VERSION);
  app.add_option("source", arguments.source, "A .gguf file, or a folder with config.json and safetensors")->required();
  app.add_option("-o,--output", arguments.output, "Where the IR goes; - is the standard output")->capture_default_str();
  app.add_option("--context", arguments.options.capacity,
                 "Positions that the key-value caches hold (default: as trained, at most " +
                     std::to_string(llm::kDefaultCapacity) + ")")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  app.add_flag("--explicit-dequantize", arguments.options.explicitDequantize,
               "Dequantise weights by ops of their own, which llm-fuse-dequantize removes");
  app.add_flag("--json", arguments.json, "Describe the model on the standard output; needs -o FILE");
  CLI11_PARSE(app, argc, argv);

  if (arguments.json && arguments.output == "-") {
    llvm::errs() << "llm-import: error: --json expects -o FILE, but got the standard output for the IR as well\n";
    return 1;
  }
  if (arguments.output != "-")
    arguments.options.folder = llvm::sys::path::parent_path(arguments.output).str();
  if (llvm::Error error = import(arguments)) {
    llvm::errs() << "llm-import: error: " << llvm::toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
