// llm-compile: a model to a package for one or more targets. What it does is a
// pipeline of llm-opt with a name.
#include "codegen/Target/TargetProfile.h"
#include "tools/CalibrationText.h"
#include "tools/CompileDriver.h"
#include "tools/Compression.h"
#include "tools/Inspect/Report.h"
#include "llvm/Support/FileSystem.h"
#include <CLI/CLI.hpp>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace mlir;
using namespace mlir::llm;

namespace {

/// Needs nothing that Vulkan 1.1 does not promise.
constexpr const char *kFallback = "generic";

constexpr const char *kExamples = R"(
Examples:
  llm-compile SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2.sprig --target=lavapipe,generic
  llm-compile model.mlir --emit=plan -o plan.mlir --context=4096 --widths=1,8
  llm-compile model.gguf -o model.sprig --save-temps=ir --json
  llm-compile model.gguf -o model.sprig --preset=w4a16 --calibrate=book.txt
  llm-compile model.gguf -o model.sprig --kv=8 --context=8192
  llm-compile model.gguf -o model.sprig --kv=8,attention:8
  llm-compile model.gguf -o w3.mlir --emit=llm --quantize=w:3,group:64,method:mse
  llm-compile model.gguf -o wide.sprig --tree=64
  llm-compile model.gguf -o endless.sprig --endless
  llm-compile model.gguf -o fast.sprig --draft=skip:auto --calibrate=book.txt
  llm-compile MiMo-7B/ -o fast.sprig --draft=heads:mtp
  llm-compile model.gguf -o tuned.sprig --adapter=my-lora
  llm-compile model.gguf -o both.sprig --switch-adapter=chat=a --switch-adapter=code=b
  llm-compile model.gguf -o small.sprig --prune=layers:4 --prune=ffn:0.2 --calibrate=book.txt
  llm-compile model.gguf -o sparse.sprig --prune=2:4:sparsegpt,w:4,group:64 --calibrate=book.txt
)";

/// Every profile of the library, the most demanding first and the fallback
/// last: the order in which the runtime tries them. Those that do not promise
/// equal bits at every width are only there where they are asked for.
std::vector<std::string> allTargets(bool unequalToo) {
  std::vector<std::pair<int, std::string>> order;
  for (const std::string &name : listProfiles())
    if (auto profile = findProfile(name)) {
      if (unequalToo || profile->bitEqualWidths)
        order.emplace_back(-llvm::popcount(profile->features), name);
    } else {
      llvm::consumeError(profile.takeError());
    }
  llvm::sort(order);
  std::vector<std::string> names;
  for (auto &[features, name] : order)
    names.push_back(name);
  return names;
}

void listTargets() {
  for (const std::string &name : allTargets(/*unequalToo=*/true))
    if (auto profile = findProfile(name))
      std::cout << std::left << std::setw(12) << name << profile->description
                << "\n";
    else
      llvm::consumeError(profile.takeError());
}

/// `error: …`, with the place in a file where there is one.
LogicalResult printDiagnostic(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return success();
  if (auto at = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    std::cerr << at.getFilename().str() << ":" << at.getLine() << ":"
              << at.getColumn() << ": ";
  std::cerr << (diagnostic.getSeverity() == DiagnosticSeverity::Error
                    ? "error: "
                    : "warning: ")
            << diagnostic.str() << "\n";
  return success();
}

void printReport(const CompileReport &report) {
  nlohmann::ordered_json json;
  for (const char *stage :
       {"import", "passes", "self-test", "plan", "kernels", "package"})
    if (auto it = report.seconds.find(stage); it != report.seconds.end())
      json["seconds"][stage] = it->second;
  json["package_bytes"] = report.package.packageBytes;
  json["kernels"] = report.package.kernels;
  std::cout << json.dump(2) << "\n";
}

/// The page about the first target of the package; the error is printed.
bool writeHtml(const std::string &path, const std::string &package) {
  auto opened = sprig::Package::open(package);
  if (!opened.ok()) {
    std::cerr << "error: " << opened.status().message() << "\n";
    return false;
  }
  const auto &metadata = (*opened)->metadata();
  const auto target = sprig::tools::summarise(*metadata.targets()->Get(0),
                                              *metadata.model());
  if (sprig::tools::writeReport(path, package, target,
                                metadata.targets()->size()))
    return true;
  std::cerr << "error: cannot write the report '" << path << "'\n";
  return false;
}

} // namespace

int main(int argc, char **argv) {
  CompileOptions options;
  std::string preset = "as-is", emit = "package", quantize, kv = "16";
  std::vector<std::string> prune, drafts, switchable;
  options.calibrationCache = defaultCalibrationCache();
  // As wide as the logits of a self-test: larger trees would need more memory.
  options.treeNodes = 16;
  bool wantTargets = false, wantPresets = false, json = false;
  bool noFallback = false, keepAdapter = false;
  CLI::App app("Compiles a model for Vulkan devices.", "llm-compile");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-compile " SPRIG_VERSION);
  app.add_option("SOURCE", options.source,
                 "a .gguf file, a Hugging Face folder, or IR in a .mlir file");
  app.add_option("-o,--output", options.output,
                 "the package (or the file of --emit=llm|plan, - for the standard "
                 "output, or the folder of --emit=spirv)");
  app.add_option("--target", options.targets,
                 "profiles, by name or JSON file, from special to general")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("all");
  app.add_flag("--no-fallback", noFallback,
               "leave out the target 'generic', which runs on any Vulkan 1.1 "
               "device, unless --target names it");
  app.add_flag("--list-targets", wantTargets, "print the profiles there are");
  auto *presetOption =
      app.add_option("--preset", preset, "named pass pipeline")
          ->capture_default_str();
  app.add_flag("--list-presets", wantPresets,
               "print the presets and the pipelines behind them");
  auto *quantizeOption = app.add_option(
      "--quantize", quantize,
      "numbers of layers in fewer bits: w:BITS,group:N|channel,"
      "method:rtn|mse|gptq|awq|codebook,symmetric:yes|no,head:yes|no,tokens:N,window:N,"
      "order:yes|no,replay:yes|no; mix:BITS chooses for each weight, BITS on "
      "average (reads --calibrate); of caches kv:8|4 (and attention:8, as --kv); of activations a:8,"
      "a-group:N|channel (numbers of a token with a scale); "
      "against outliers smooth:yes, rotate:yes, outliers:MAGNITUDE (columns "
      "above it in f16)");
  app.add_option("--prune", prune,
                 "what goes, before anything is quantised: layers:N, ffn:RATIO, "
                 "heads:RATIO, kv-heads:RATIO, merge-kv:HEADS (that stay), "
                 "head-dim:RATIO, width:RATIO or rank:RATIO, then "
                 "score:influence|wanda|magnitude|random,"
                 "recover:yes|no,tokens:N; bytes:SHARE, kv-bytes:SHARE or "
                 "milliseconds:N,target:NAME, what costs least until so much "
                 "is left; 2:4 or 4:8 of the numbers, as "
                 "2:4:magnitude|wanda|sparsegpt, or sparse:RATIO, then "
                 "w:4|8,group:N; mask:FILE, what masks in JSON call zero; or "
                 "vocabulary:FILE, a file of the token ids that stay; "
                 "repeatable, in order")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--prune-report", options.pruneReport,
                 "HTML page of what went from each layer, and what it cost")
      ->type_name("FILE");
  auto *pipelineOption =
      app.add_option("--pass-pipeline", options.passPipeline,
                     "passes between import and lowering, instead of a preset");
  presetOption->excludes(quantizeOption);
  pipelineOption->excludes(presetOption)->excludes(quantizeOption);
  app.add_option("--adapter", options.adapter,
                 "folder of a LoRA adapter (PEFT); becomes part of the weights")
      ->check(CLI::ExistingDirectory);
  app.add_option("--adapter-scale", options.adapterScale,
                 "how much of it, 1 being as it was trained")
      ->capture_default_str();
  app.add_flag("--keep-adapter", keepAdapter,
               "leave it beside the weights, which keep their bytes");
  app.add_option("--switch-adapter", switchable,
                 "an adapter that sessions can switch to by NAME (llm-run "
                 "--adapter), beside the weights; may be given again")
      ->type_name("NAME=FOLDER")
      ->allow_extra_args(false);
  app.add_option("--calibrate", options.calibrationText,
                 "a text for methods that look at activations")
      ->check(CLI::ExistingFile);
  app.add_option("--calibration-cache", options.calibrationCache,
                 "folder for what is gathered from it; 'none' keeps nothing")
      ->default_str(options.calibrationCache);
  app.add_option("--weights-out", options.weightsOut,
                 "safetensors file for new weights (default: beside IR, under "
                 "its name; a package needs none)");
  app.add_option(
         "--kv", kv,
         "Bits of each number in the key-value caches: 16; 8 or 4 for longer "
         "contexts in the same memory; or 32 for logits closer to those of f32 "
         "(16 and 32: of a model that is imported). 8,attention:8: attention "
         "multiplies integers, too")
      ->type_name("4|8|16|32[,attention:8]")
      ->capture_default_str();
  app.add_option("--context", options.context,
                 "slots of the key-value caches (default: as imported)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24));
  app.add_option("--widths", options.widths,
                 "tokens of a step to make programs for (default: the "
                 "target's, up to 64)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096));
  app.add_option("--tree", options.treeNodes,
                 "nodes of the largest tree of draft tokens that the package "
                 "can verify in one step (llm-run --speculate); 0: no trees")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_flag("--endless", options.endless,
               "a program that makes room when the context is full, so that "
               "'llm-run --endless' generates on");
  app.add_option("--draft", drafts,
                 "what guesses ahead, as part of the package (llm-run "
                 "--speculate): of the model itself, sharing its weights and "
                 "cache, skip:N|auto|LAYERS (layers that are left out, as 8 or "
                 "3+7-9), ffn:SHARE (channels that go) or bits:N, or several "
                 "with commas; or heads:FILE, a safetensors file of heads, or "
                 "its folder (Medusa, EAGLE, or of llm-fit-heads), or "
                 "heads:mtp, the model's own layer that predicts the token "
                 "after the next; repeatable")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  app.add_option("--self-test", options.selfTestTokens,
                 "tokens that the CPU reference evaluates, so that "
                 "'llm-run --self-test' can check a device; 0: none (default "
                 "16, or none "
                 "for models with a weight of 2^28 numbers and more)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--emit", emit, "where to stop")
      ->check(CLI::IsMember({"llm", "plan", "spirv", "package"}));
  app.add_option("--save-temps", options.saveTemps,
                 "folder for the IR after each stage");
  app.add_option("--report", options.report,
                 "page about the package: memory, steps with estimated times, "
                 "kernels")
      ->type_name("FILE.html");
  app.add_flag("--json", json,
               "print seconds by stage, package_bytes and kernels");
  CLI11_PARSE(app, argc, argv);

  if (wantTargets)
    return listTargets(), 0;
  if (wantPresets) {
    for (const Preset &each : presets()) {
      std::string passes;
      if (StringRef(each.quantize).size())
        passes = cantFail(quantizePasses(each.quantize, /*hasText=*/false));
      std::cout << each.name << "  " << pipelineOf(passes) << "  "
                << each.description << "\n";
    }
    std::cout << "With --calibrate the method is gptq, unless --quantize names "
                 "one.\n";
    return 0;
  }
  auto usage = [](const std::string &message) {
    std::cerr << "error: " << message
              << "\nRun with --help for more information.\n";
    return 1;
  };
  auto caches = cachesOf(kv);
  if (!caches)
    return usage(toString(caches.takeError()));
  options.cacheBits = caches->bits;
  options.floatCaches = app.count("--kv") > 0 && caches->bits >= 16;
  if (json && options.output == "-")
    return usage("expects -o FILE with --json, but got the standard output for "
                 "both");
  if (options.source.empty() || options.output.empty())
    return usage(options.source.empty() ? "expects a SOURCE, but got none"
                                        : "expects -o FILE, but got none");
  const Preset *chosen = findPreset(preset);
  if (!chosen)
    return usage("expects a preset of --list-presets, but got '" + preset +
                 "'");
  for (const std::string &text : switchable) {
    const auto [name, adapter] = StringRef(text).split('=');
    if (name.empty() || !::llvm::sys::fs::is_directory(adapter))
      return usage("expects NAME=FOLDER of an adapter in --switch-adapter, but "
                   "got '" + text + "'");
    options.switchable.push_back(
        {name.str(), adapter.str(), options.adapterScale});
  }
  if (options.passPipeline.empty()) {
    std::string passes;
    auto add = [&](const std::string &more) {
      passes += (passes.empty() ? "" : ",") + more;
    };
    if (!options.adapter.empty() && !keepAdapter)
      add("llm-fold-adapters");
    if (quantize.empty())
      quantize = chosen->quantize;
    const bool quantises = quantisesWeights(quantize);
    const bool grouped = quantises || llvm::any_of(drafts, draftsInBits);
    const PruneContext beside{!options.calibrationText.empty(), quantises,
                              grouped || llvm::any_of(prune, packsWeights), grouped,
                              std::min(options.cacheBits, cacheBitsIn(quantize))};
    for (const std::string &spec : prune) {
      if (StringRef(spec).starts_with("vocabulary:")) {
        options.keepTokens = spec.substr(spec.find(':') + 1);
        add("llm-prune-vocabulary");
        continue;
      }
      auto made = prunePass(spec, beside);
      if (!made)
        return usage(toString(made.takeError()));
      add(*made);
    }
    if (!quantize.empty()) {
      auto made = quantizePasses(quantize, !options.calibrationText.empty());
      if (!made)
        return usage(toString(made.takeError()));
      add(*made);
    }
    if (options.cacheBits < 16) {
      if (StringRef(passes).contains("llm-quantize-kv"))
        return usage("expects the bits of caches once, but got --kv and kv: of "
                     "--quantize");
      add(caches->pass);
    }
    for (const std::string &spec : drafts) {
      auto made = draftPass(spec, !options.calibrationText.empty());
      if (!made)
        return usage(toString(made.takeError()));
      add(*made);
    }
    options.passPipeline = pipelineOf(passes);
  } else if (!drafts.empty()) {
    return usage("expects a preset with --draft, but got --pass-pipeline; put "
                 "llm-make-draft or llm-attach-heads into the pipeline");
  } else if (options.cacheBits < 16) {
    return usage("expects --kv=16 or 32 with --pass-pipeline, but got " +
                 std::to_string(options.cacheBits) +
                 "; put llm-quantize-kv into the pipeline");
  }
  options.cacheBits = std::max<int64_t>(options.cacheBits, 16); // to import
  if (options.calibrationCache == "none")
    options.calibrationCache.clear();
  if (options.targets.empty())
    options.targets = allTargets(/*unequalToo=*/false);
  else if (!noFallback && !llvm::is_contained(options.targets, kFallback))
    options.targets.push_back(kFallback);
  // Before any work: a wrong name is found at once.
  for (const std::string &name : options.targets)
    if (auto profile = findProfile(name); !profile)
      return usage(toString(profile.takeError()));
  if (!options.report.empty() && emit != "package")
    return usage("expects a package for --report, but got --emit=" + emit);
  options.emit = emit == "llm"     ? Emit::LLM
                 : emit == "plan"  ? Emit::Plan
                 : emit == "spirv" ? Emit::Spirv
                                   : Emit::Package;
  options.progress = isatty(STDERR_FILENO);

  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry);
  context.getDiagEngine().registerHandler(printDiagnostic);
  FailureOr<CompileReport> report = compileModel(context, options);
  if (failed(report))
    return 1;
  if (!options.report.empty() && !writeHtml(options.report, options.output))
    return 1;
  if (json)
    printReport(*report);
  return 0;
}
