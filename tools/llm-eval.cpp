// llm-eval: perplexity, logits, and the distance of two models; on the CPU reference or on a device.
#include "tools/Eval/Evaluate.h"
#include "tools/Eval/KeptLogits.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>
#include <cmath>

using namespace mlir;
using namespace mlir::llm;

static constexpr const char *kExamples = R"(Examples:
  llm-eval model.gguf --text book.txt --skip-chars 2000 --chars 38000 --windows 4
  llm-eval model.mlir --tokens 504,3575,282 --logits last --json
  llm-eval quantised.mlir --text book.txt --windows 16 --against model.gguf
  llm-eval other.mlir --text book.txt --windows 16 --against model.gguf --against-cache logits
  llm-eval model.sprig --text book.txt --windows 4 --device lavapipe)";

namespace {

struct Arguments {
  std::string model, against, againstAdapter, againstCache, logits = "last", precision = "f32";
  TextOptions text;
  std::vector<int32_t> tokens;
  OpenOptions open;
  uint64_t cacheMegabytes = 0;
  bool json = false;
};

const std::map<std::string, LogitRows> kRows = {
    {"last", LogitRows::Last}, {"first", LogitRows::First}, {"all", LogitRows::All}};

/// JSON has no number for what is not finite.
llvm::json::Value number(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

class Run {
public:
  explicit Run(const Arguments &arguments) : arguments(arguments), workers(arguments.open.threads) {}

  llvm::Error run() {
    OpenOptions open = arguments.open;
    open.precision = arguments.precision == "f64" ? reference::Precision::F64 : reference::Precision::F32;
    open.cacheBytes = arguments.cacheMegabytes << 20;
    open.context = arguments.tokens.empty() ? arguments.text.window : int64_t(arguments.tokens.size());
    if (llvm::Error error = read(arguments.model, open, model))
      return error;
    open.adapter = arguments.againstAdapter;
    if (!arguments.against.empty())
      if (llvm::Error error = readAgainst(open))
        return error;
    summary["bytes"] = int64_t(model->weightBytes());
    return arguments.tokens.empty() ? text() : tokens();
  }

  llvm::json::Object summary;

private:
  static llvm::Error read(StringRef path, const OpenOptions &open, std::unique_ptr<EvalModel> &into) {
    auto opened = EvalModel::open(path, open);
    if (!opened)
      return opened.takeError();
    into = std::move(*opened);
    return llvm::Error::success();
  }

  llvm::Error readAgainst(const OpenOptions &open) {
    if (llvm::Error error = read(arguments.against, open, against))
      return error;
    if (arguments.againstCache.empty())
      return llvm::Error::success();
    auto kept = keepLogits(std::move(against), arguments.against, open, arguments.againstCache);
    if (!kept)
      return kept.takeError();
    against = std::move(*kept);
    return llvm::Error::success();
  }

  llvm::Error text() {
    auto windows = cutText(*model, arguments.text);
    if (!windows)
      return windows.takeError();
    const bool terminal = llvm::sys::Process::StandardErrIsDisplayed();
    auto progress = [&](size_t done, size_t all, ArrayRef<WindowResult> results) {
      if (terminal)
        llvm::errs() << "\rwindow " << done << " of " << all << ", perplexity " << llvm::format("%.3f", mean(results))
                     << (done == all ? "\n" : "");
    };
    auto results = scoreWindows(*model, against.get(), *windows, workers, progress);
    if (!results)
      return results.takeError();
    llvm::json::Array likelihoods, divergences;
    double divergence = 0;
    int64_t predicted = 0, agreed = 0;
    for (const WindowResult &window : *results) {
      likelihoods.push_back(number(window.negativeLogLikelihood));
      divergences.push_back(number(window.divergence));
      divergence += window.divergence / double(results->size());
      predicted += window.predicted, agreed += window.agreed;
    }
    summary["nll_windows"] = std::move(likelihoods);
    summary["perplexity"] = number(mean(*results));
    if (against) {
      summary["kl"] = number(divergence);
      summary["kl_windows"] = std::move(divergences);
      summary["top1_agreement"] = double(agreed) / double(predicted);
    }
    if (arguments.json)
      return llvm::Error::success();
    for (auto [i, window] : llvm::enumerate(*results))
      llvm::outs() << "window " << i << ": " << llvm::format("%.6f", window.negativeLogLikelihood) << " nats\n";
    llvm::outs() << "perplexity " << llvm::format("%.4f", mean(*results)) << '\n';
    printDistance(divergence, double(agreed) / double(predicted));
    return llvm::Error::success();
  }

  llvm::Error tokens() {
    auto result = evaluateTokens(*model, against.get(), arguments.tokens, kRows.at(arguments.logits), workers);
    if (!result)
      return result.takeError();
    const double agreement = double(result->agreed) / double(arguments.tokens.size());
    if (!arguments.json) {
      for (auto [token, next] : llvm::zip(arguments.tokens, result->argmax))
        llvm::outs() << token << " -> " << next << '\n';
      printDistance(result->divergence, agreement);
      return llvm::Error::success();
    }
    llvm::json::Array rows;
    for (const std::vector<double> &row : result->logits)
      rows.push_back(llvm::json::Array(llvm::map_range(row, number)));
    summary["logits"] = std::move(rows);
    summary["argmax"] = llvm::json::Array(result->argmax);
    if (against) {
      summary["kl"] = number(result->divergence);
      summary["kl_windows"] = llvm::json::Array{number(result->divergence)};
      summary["top1_agreement"] = agreement;
    }
    return llvm::Error::success();
  }

  void printDistance(double divergence, double agreement) const {
    if (against)
      llvm::outs() << "KL divergence " << llvm::format("%.6f", divergence) << " nats, top-1 agreement "
                   << llvm::format("%.2f", 100 * agreement) << " %\n";
  }

  /// The perplexity of equally long windows.
  static double mean(ArrayRef<WindowResult> results) {
    double sum = 0;
    for (const WindowResult &window : results)
      sum += window.negativeLogLikelihood;
    return std::exp(sum / double(results.size()));
  }

  const Arguments &arguments;
  reference::Workers workers;
  std::unique_ptr<EvalModel> model, against;
};

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Evaluates a model: perplexity over a text, logits of tokens, distance from another model.", "llm-eval");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-eval (Sprig) " SPRIG_VERSION);
  app.add_option("model", arguments.model, "A .sprig (on the device); IR, a .gguf or a Hugging Face folder (on the CPU reference)")
      ->required();
  auto *text = app.add_option("--text", arguments.text.file, "A text to measure perplexity on");
  app.add_option("--skip-chars", arguments.text.skipChars, "Characters to leave out at its beginning")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--chars", arguments.text.chars, "Characters to read after them (default: all)")
      ->check(CLI::PositiveNumber);
  app.add_option("--window", arguments.text.window, "Tokens of a window; windows do not see each other")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 24))
      ->capture_default_str();
  app.add_option("--windows", arguments.text.windows, "How many (default: as many as the text fills)")
      ->check(CLI::PositiveNumber);
  std::string begin = "auto";
  auto *bos = app.add_flag("--bos{yes}", begin,
               "Whether each window starts with the begin token and gives up its last token: yes, no, or as the tokenizer "
               "has it")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->default_str("auto");
  auto *tokens = app.add_option("--tokens", arguments.tokens, "Token ids, separated by commas")->delimiter(',');
  app.add_option("--logits", arguments.logits, "Which rows of logits to print with --json")
      ->check(CLI::IsMember({"last", "first", "all"}))
      ->capture_default_str();
  auto *against =
      app.add_option("--against", arguments.against, "Another model: adds KL(other || model) and top-1 agreement");
  app.add_option("--against-cache", arguments.againstCache,
                 "Folder for the logits of the other model, which further evaluations on the same text then find there "
                 "(4 bytes times tokens times vocabulary)")
      ->needs(against);
  app.add_option("--adapter", arguments.open.adapter, "One of the model's adapters (llm-compile --switch-adapter)");
  app.add_option("--against-adapter", arguments.againstAdapter, "One of the other model's");
  app.add_option("--precision", arguments.precision, "Of the CPU reference")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--threads", arguments.open.threads, "Of the CPU reference (default: one a core)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--cache", arguments.cacheMegabytes, "Megabytes of decoded weights to keep (default: all)");
  app.add_option("--function", arguments.open.function, "The function of the IR (default: @forward)");
  app.add_option("--device", arguments.open.device, "Index of a device or a part of its name, for a .sprig");
  app.add_option("--target", arguments.open.target, "A target of the package, for a .sprig");
  app.add_flag("--json", arguments.json, "One JSON object on the standard output");
  text->excludes(tokens);
  CLI11_PARSE(app, argc, argv);
  if (begin != "auto")
    arguments.text.begin = begin == "yes";
  if (bos->count() && tokens->count()) {
    llvm::errs() << "llm-eval: error: expects --bos with --text, but got --tokens; put the begin token in front of the "
                    "others\n";
    return 1;
  }

  if (text->count() == 0 && tokens->count() == 0) {
    llvm::errs() << "llm-eval: error: expects --text FILE or --tokens IDS, but got neither\n";
    return 1;
  }
  Run run(arguments);
  if (llvm::Error error = run.run()) {
    llvm::errs() << "llm-eval: error: " << llvm::toString(std::move(error)) << '\n';
    return 1;
  }
  if (arguments.json)
    llvm::outs() << llvm::json::Value(std::move(run.summary)) << '\n';
  return 0;
}
