#include "tools/CompileDriver.h"

#include "codegen/Kernels/Registry.h"
#include "codegen/Lowering/Pipelines.h"
#include "dialects/LLM/LLM.h"
#include "dialects/Plan/Passes.h"
#include "lib/Import/Adapter.h"
#include "lib/Import/Import.h"
#include "lib/Import/LayerHead.h"
#include "lib/Import/ModuleTokenizer.h"
#include "lib/Weights/OutputFile.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tools/CalibrationText.h"
#include "tools/CompileFiles.h"
#include "tools/Goldens.h"
#include "tools/PrunePage.h"
#include "tools/VocabularyList.h"
#include "transforms/Pipelines.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <chrono>

namespace mlir::llm {
namespace {

/// Numbers of a weight that the reference decodes to f32 without being asked.
constexpr int64_t kMostGoldenElements = int64_t(1) << 28;

namespace path = llvm::sys::path;
namespace fs = llvm::sys::fs;

class Driver {
public:
  Driver(MLIRContext &context, const CompileOptions &options)
      : context(context), options(options) {}

  FailureOr<CompileReport> run() {
    // Found before minutes of work, not after.
    if (!outputFolder().empty() && !fs::is_directory(outputFolder()))
      return error() << "expects an existing folder for '" << options.output
                     << "', but there is no '" << outputFolder() << "'";
    const bool text = options.emit == Emit::LLM || options.emit == Emit::Plan;
    if (options.output == "-" && !text)
      return error() << "expects a file for the output, but got '-'; only IR "
                        "goes to the standard output";
    if (options.emit != Emit::Spirv && fs::is_directory(options.output))
      return error() << "expects a file for the output, but '" << options.output
                     << "' is a folder";
    if (failed(check(guardFiles(options, files))))
      return failure();
    bool done = succeeded(stage("import", [&] { return load(); })) &&
                succeeded(stage("passes", [&] { return transform(); }));
    if (done && options.emit == Emit::LLM)
      return finish(printModule(options.output, /*whole=*/true));
    if (options.emit == Emit::Package)
      done = done && succeeded(stage("self-test", [&] { return prepare(); }));
    done = done && succeeded(stage("plan", [&] { return makePlan(); }));
    if (done && options.emit == Emit::Plan)
      return finish(printModule(options.output, /*whole=*/true));
    done = done && succeeded(stage("kernels", [&] {
             return runPasses("builtin.module(plan-lower-kernels)", "spirv");
           }));
    if (done && options.emit == Emit::Spirv)
      return finish(writeKernels());
    done = done && succeeded(stage("package", [&] { return package(); }));
    return finish(success(done));
  }

  FailureOr<OwningOpRef<ModuleOp>> plan() {
    LogicalResult done = failure();
    if (succeeded(stage("import", [&] { return load(); })) &&
        succeeded(stage("passes", [&] { return transform(); })))
      done = stage("plan", [&] { return makePlan(); });
    show("");
    if (failed(done))
      return failure();
    return std::move(module);
  }

private:
  InFlightDiagnostic error() { return emitError(UnknownLoc::get(&context)); }
  LogicalResult check(llvm::Error failed) {
    return failed ? LogicalResult(error() << llvm::toString(std::move(failed)))
                  : success();
  }
  LogicalResult check(std::error_code code, StringRef file) {
    return code ? LogicalResult(error() << "cannot write '" << file
                                        << "': " << code.message())
                : success();
  }

  void show(StringRef text) {
    if (options.progress)
      llvm::errs() << "\r\033[K" << text;
  }

  template <typename Body> LogicalResult stage(StringRef name, Body body) {
    show(name);
    auto start = std::chrono::steady_clock::now();
    LogicalResult result = body();
    report.seconds[name.str()] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return result;
  }

  FailureOr<CompileReport> finish(LogicalResult result) {
    show("");
    if (failed(result))
      return failure();
    return std::move(report);
  }

  /// Folder that paths of sources are relative to, once the module is loaded.
  std::string outputFolder() const {
    return path::parent_path(options.output).str();
  }

  LogicalResult load();
  /// Opens the files of the module, and a place for new ones unless that would
  /// take the place of another file.
  LogicalResult openWeights();
  LogicalResult transform();
  LogicalResult makePlan();
  LogicalResult package();
  LogicalResult readTokenizer();
  /// What a package holds beside the plan.
  LogicalResult prepare();
  LogicalResult writeKernels();
  LogicalResult runPasses(StringRef pipeline, StringRef temp);
  /// Writes the module as text; paths of sources become relative to the file's
  /// folder. Unless `whole`, long constants are left out.
  LogicalResult printModule(StringRef file, bool whole);

  MLIRContext &context;
  const CompileOptions &options;
  OwningOpRef<ModuleOp> module;
  std::string folder; // that paths of sources are relative to
  std::shared_ptr<WeightStore> weights;
  OutputGuard files;
  std::string noPlace; // why new weights, if there are any, cannot be kept
  PackageExtras extras;
  CompileReport report;
};

LogicalResult Driver::load() {
  if (StringRef(options.source).ends_with(".mlir")) {
    module = parseSourceFile<ModuleOp>(options.source, &context);
    folder = path::parent_path(options.source).str();
    if (!module || !options.floatCaches)
      return success(bool(module));
    for (auto cache : module->getOps<KVCacheOp>())
      if (!isa<FloatType>(cache.getCacheType().getKeyType()))
        return cache.emitOpError("expects keys and values of floats for --kv=")
               << options.cacheBits << ", but @" << cache.getSymName() << " is "
               << cache.getCacheType()
               << "; start from IR that was made without --kv=8|4 and kv:";
    return success();
  }
  ImportOptions import;
  import.capacity = options.context;
  import.cacheBits = options.cacheBits;
  import.folder = folder = outputFolder();
  llvm::Expected<OwningOpRef<ModuleOp>> imported =
      importModel(&context, options.source, import);
  if (!imported)
    return check(imported.takeError());
  module = std::move(*imported);
  return success();
}

LogicalResult Driver::openWeights() {
  // Also what the IR reads its weights from.
  if (failed(check(files.readSources(*module, folder))))
    return failure();
  weights = std::make_shared<WeightStore>(folder);
  llvm::Expected<std::string> file = newWeightsFile(options, files);
  if (file)
    weights->setSpillPath(relativePath(*file, folder.empty() ? "." : folder));
  else
    noPlace = llvm::toString(file.takeError());
  WeightStore::attach(&context, weights);
  return success();
}

LogicalResult Driver::transform() {
  if (failed(openWeights()))
    return failure();
  if (!options.adapter.empty() &&
      failed(addAdapter(*module, options.adapter, options.adapterScale,
                        *weights)))
    return failure();
  if (!options.switchable.empty() &&
      failed(addSwitchableAdapters(*module, options.switchable, *weights)))
    return failure();
  if (!options.keepTokens.empty() &&
      failed(keepTokensOf(*module, options.keepTokens, *weights)))
    return failure();
  if (!options.calibrationText.empty()) {
    CalibrationText text{options.calibrationText, options.calibrationCache, {}};
    text.progress = [&](int64_t done, int64_t all) {
      show(("calibrating " + Twine(100 * done / std::max<int64_t>(all, 1)) +
            " %")
               .str());
    };
    if (failed(attachCalibration(*module, weights, text)))
      return failure();
  }
  auto pruned = std::make_shared<PruneReport>();
  if (!options.pruneReport.empty())
    PruneReport::attach(&context, pruned);
  if (failed(runPasses(options.passPipeline, "llm")))
    return weights->lackedPlace() && !noPlace.empty()
               ? LogicalResult(error() << "new weights: " << noPlace)
               : failure();
  if (!options.pruneReport.empty() &&
      failed(check(writePrunePage(*pruned, options.source, options.pruneReport))))
    return failure();
  // A package has the new weights in it, and needs no file of them.
  const bool keep = options.emit == Emit::LLM || options.emit == Emit::Plan ||
                    !options.weightsOut.empty();
  return keep ? check(weights->finish()) : success();
}

LogicalResult Driver::runPasses(StringRef pipeline, StringRef temp) {
  std::string message;
  llvm::raw_string_ostream os(message);
  FailureOr<OpPassManager> passes = parsePassPipeline(pipeline, os);
  if (failed(passes) || passes->getOpAnchorName() != "builtin.module")
    return error() << "expects a pass pipeline builtin.module(…), but got '"
                   << pipeline << "': " << message;
  PassManager manager(&context, passes->getOpAnchorName());
  static_cast<OpPassManager &>(manager) = std::move(*passes);
  if (failed(manager.run(*module)))
    return failure();
  if (options.saveTemps.empty())
    return success();
  if (failed(
          check(fs::create_directories(options.saveTemps), options.saveTemps)))
    return failure();
  llvm::SmallString<128> file(options.saveTemps);
  path::append(file, temp + ".mlir");
  return printModule(file, /*whole=*/true);
}

LogicalResult Driver::makePlan() {
  std::string pipeline = "builtin.module(";
  if (options.endless)
    pipeline +=
        "llm-make-evict{context=" + std::to_string(options.context) + "},";
  if (options.treeNodes > 0)
    pipeline += "llm-tree-verify{if-possible=true},";
  pipeline += "plan-pipeline{kernels=false context=" +
              std::to_string(options.context);
  if (options.treeNodes > 0)
    pipeline += " tree-nodes=" + std::to_string(options.treeNodes);
  if (options.largestBinding > 0)
    pipeline += " largest-binding=" + std::to_string(options.largestBinding);
  auto add = [&](StringRef name, const auto &list, auto text) {
    if (!list.empty()) {
      pipeline += (" " + name + "=").str();
      llvm::interleave(
          list, [&](const auto &item) { pipeline += text(item); },
          [&] { pipeline += ","; });
    }
  };
  add("targets", options.targets, [](const std::string &name) { return name; });
  add("widths", options.widths,
      [](int64_t width) { return std::to_string(width); });
  return runPasses(pipeline + "})", "plan");
}

LogicalResult Driver::printModule(StringRef file, bool whole) {
  rebaseSources(*module, folder, path::parent_path(file));
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  if (!whole)
    flags.elideLargeElementsAttrs();
  module->print(os, flags);
  os << "\n";
  rebaseSources(*module, path::parent_path(file), folder);
  return check(writeText(file, text));
}

LogicalResult Driver::writeKernels() {
  for (auto target : module->getOps<plan::TargetOp>()) {
    llvm::SmallString<128> directory(options.output);
    path::append(directory, target.getSymName());
    if (failed(check(fs::create_directories(directory), directory)))
      return failure();
    for (auto kernel : target.getOps<plan::KernelOp>()) {
      llvm::SmallString<128> file(directory);
      path::append(file, kernel.getSymName() + ".spv");
      std::vector<int32_t> words(kernel.getSpirv()->value_begin<int32_t>(),
                                 kernel.getSpirv()->value_end<int32_t>());
      auto output = OutputFile::create(file);
      if (!output)
        return check(output.takeError());
      if (failed(check((*output)->append(std::as_bytes(std::span(words))))) ||
          failed(check((*output)->commit())))
        return failure();
      ++report.package.kernels;
    }
  }
  return success();
}

/// The tokenizer lies in the file that `llm.tokenizer` names.
LogicalResult Driver::readTokenizer() {
  auto tokenizers = module->getOps<TokenizerOp>();
  if (tokenizers.empty())
    return success();
  TokenizerOp op = *tokenizers.begin();
  FailureOr<std::optional<ModelTokenizer>> read =
      llm::readTokenizer(op, *weights);
  if (failed(read))
    return failure();
  if (*read) {
    extras.tokenizer = std::move((*read)->tables);
    // Rows behind the last token pad the vocabulary: nothing may draw them.
    std::vector<uint8_t> types = extras.tokenizer->tokenTypes;
    while (!types.empty() && types.back() == uint8_t(sprig::TokenType::Unused))
      types.pop_back();
    if (auto known = (*module)->getAttrOfType<DictionaryAttr>("llm.model")) {
      NamedAttrList model(known);
      model.set("tokens", Builder(&context).getI64IntegerAttr(
                              int64_t(types.size())));
      (*module)->setAttr("llm.model", model.getDictionary(&context));
    }
    extras.chatTemplate = std::move((*read)->chatTemplate);
  }
  return success();
}

LogicalResult Driver::prepare() {
  if (failed(readTokenizer()))
    return failure();
  int64_t count = options.selfTestTokens.value_or(
      largestWeight(*module) > kMostGoldenElements ? 0 : 16);
  if (options.context > 0)
    count = std::min(count, options.context);
  return addGoldens(*module, weights, count, extras);
}

LogicalResult Driver::package() {
  PackageOptions write;
  write.weights = weights.get();
  write.progress = [&](double fraction) {
    show(("package " + Twine(int(fraction * 100)) + " %").str());
  };
  FailureOr<PackageSummary> written =
      writePackage(*module, options.output, extras, write);
  if (failed(written))
    return failure();
  report.package = *written;
  return success();
}

} // namespace

void registerCompiler(DialectRegistry &registry) {
  registerTransforms();
  registerLayerHeads();
  registerCodegen();
  plan::registerPlanPasses();
  registerTransformsPasses();
  registry.insert<LLMDialect, plan::PlanDialect, func::FuncDialect>();
  registerKernelDialects(registry);
}

FailureOr<CompileReport> compileModel(MLIRContext &context,
                                      const CompileOptions &options) {
  return Driver(context, options).run();
}

FailureOr<OwningOpRef<ModuleOp>> planModel(MLIRContext &context,
                                           CompileOptions options) {
  options.emit = Emit::Plan;
  options.output = "-"; // nothing is written
  return Driver(context, options).plan();
}

} // namespace mlir::llm
