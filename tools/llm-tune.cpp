// llm-tune: measures schedules of a model's products on a device, and writes a
// target profile that llm-compile takes.
#include "lib/Weights/OutputFile.h"
#include "lib/Weights/OutputGuard.h"
#include "tools/CompileDriver.h"
#include "tools/Compression.h"
#include "tools/Support/Process.h"
#include "tools/Tune/Tuner.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"
#include <CLI/CLI.hpp>

using namespace mlir;
using namespace mlir::llm;

namespace {

constexpr const char *kExamples = R"(
Examples:
  llm-tune SmolLM2-135M-Instruct.Q4_1.gguf --target=lavapipe -o tuned.json
  llm-compile SmolLM2-135M-Instruct.Q4_1.gguf --target=tuned.json -o tuned.sprig
  llm-tune --product=Q4_K:4096x14336 --tiles=1,4 --target=nvidia --minutes=5 -o mine.json
A run that was stopped goes on where it was, when it is started the same way again.
)";

struct Arguments {
  CompileOptions compile;
  std::string target, device, output, state, name;
  std::vector<std::string> products;
  TuneOptions tune;
  bool json = false;
};

int fail(const std::string &message) {
  ::llvm::errs() << "error: " << message << "\n";
  return 1;
}
int fail(::llvm::Error error) { return fail(toString(std::move(error))); }

::llvm::Expected<std::vector<Product>> choose(const Arguments &args,
                                              MLIRContext &context) {
  std::vector<Product> products;
  for (const std::string &text : args.products) {
    auto product = parseProduct(text);
    if (!product)
      return product.takeError();
    products.push_back(std::move(*product));
  }
  if (!args.compile.source.empty()) {
    FailureOr<OwningOpRef<ModuleOp>> plan = planModel(context, args.compile);
    if (failed(plan))
      return ::llvm::createStringError("'" + args.compile.source +
                                       "' cannot be tuned");
    std::vector<Product> found = productsOf(**plan);
    products.insert(products.end(), found.begin(), found.end());
  }
  if (products.empty())
    for (StringRef text : usualProducts())
      products.push_back(cantFail(parseProduct(text)));
  return products;
}

::llvm::json::Object toJson(const TunedTile &tile, const Product &product) {
  return ::llvm::json::Object{
      {"product", product.name()},
      {"tokens", tile.tokens},
      {"time_of_default", tile.result.ratio},
      {"change", describeChange(tile.standard, tile.result.choices)}};
}

::llvm::Error guardFiles(const Arguments &args) {
  OutputGuard files;
  if (::llvm::Error error = files.read("--target", args.target))
    return error;
  if (::llvm::Error error = files.read("MODEL", args.compile.source))
    return error;
  if (::llvm::Error error = files.write("--state", args.state))
    return error;
  return files.write("the output", args.output);
}

int run(Arguments &args, MLIRContext &context) {
  auto profile = findProfile(args.target);
  if (!profile)
    return fail(profile.takeError());
  if (!profile->spaces.count(LinearSpec::kFamily))
    return fail("target '" + args.target + "' expects 'spaces' with a family "
                "'linear' in its profile, but has none");
  for (int64_t tile : args.tune.tiles)
    if (!::llvm::is_contained(profile->tokenTiles, tile))
      return fail("expects --tiles among the token_tiles of target '" +
                  profile->name + "', but got " + std::to_string(tile));
  if (auto error = guardFiles(args))
    return fail(std::move(error));
  auto device = TuneDevice::open(args.device, *profile);
  if (!device)
    return fail(device.takeError());
  auto state = TuneState::open(
      args.state, device->name() + " / " +
                      std::to_string(::llvm::xxh3_64bits(printProfile(*profile))));
  if (!state)
    return fail(state.takeError());
  args.compile.targets = {args.target};
  auto products = choose(args, context);
  if (!products)
    return fail(products.takeError());

  sprig::tools::Progress progress;
  size_t number = 0;
  args.tune.progress = [&](const std::string &what) {
    progress.show("product " + std::to_string(number + 1) + " of " +
                  std::to_string(products->size()) + ": " + what);
  };
  const size_t before = state->size();
  Tuner tuner(context, *profile, *device, *state, args.tune);
  std::vector<TunedProduct> tuned;
  ::llvm::json::Array report;
  for (const Product &product : *products) {
    auto result = tuner.tune(product);
    progress.clear();
    if (!result)
      return fail(result.takeError());
    if (tuner.outOfTime())
      break; // what was found of this product is kept for the next run
    ++number;
    for (const TunedTile &tile : result->tiles) {
      report.push_back(toJson(tile, product));
      if (!args.json)
        ::llvm::outs() << ::llvm::format(
            "%-28s tokens %2d  %5.1f %% of the default's time: %s\n",
            product.name().c_str(), int(tile.tokens),
            100 * tile.result.ratio,
            describeChange(tile.standard, tile.result.choices).c_str());
    }
    ::llvm::outs().flush();
    tuned.push_back(std::move(*result));
  }
  TargetProfile made = tunedProfile(
      *profile, tuned,
      args.name.empty() ? profile->name + "-tuned" : args.name,
      device->name());
  const std::string text = printProfile(made);
  if (auto again = parseProfile(text, args.output); !again)
    return fail(again.takeError());
  if (auto error = writeText(args.output, text))
    return fail("cannot write '" + args.output +
                "': " + toString(std::move(error)));
  if (tuner.outOfTime())
    ::llvm::errs() << "the time is over: what was not measured keeps the "
                      "default; the same command goes on\n";
  if (args.json)
    ::llvm::outs() << ::llvm::formatv(
        "{0:2}\n",
        ::llvm::json::Value(::llvm::json::Object{
            {"device", device->name()},
            {"profile", args.output},
            {"searches", int64_t(state->size())},
            {"searches_before", int64_t(before)},
            {"finished", !tuner.outOfTime()},
            {"timed_by", device->onProcessor() ? "processor" : "device"},
            {"tiles", std::move(report)}}));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Arguments args;
  unsigned rounds = args.tune.search.rounds, passes = args.tune.search.passes;
  CLI::App app("Measures how a model's matrix products are best computed on "
               "the present device, and writes a target profile for "
               "llm-compile. What is not clearly faster stays as it was.",
               "llm-tune");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-tune " SPRIG_VERSION);
  app.add_option("MODEL", args.compile.source,
                 "whose products are tuned: a .gguf file, a Hugging Face "
                 "folder, or IR; without it and --product some usual shapes");
  app.add_option("-o,--output", args.output, "the profile, a .json file")
      ->required();
  app.add_option("--target", args.target,
                 "the profile to begin with, by name or JSON file")
      ->required();
  app.add_option("--product", args.products,
                 "FORMAT:NxK or FORMAT:NxK:gated; repeatable")
      ->allow_extra_args(false);
  app.add_option("--tiles", args.tune.tiles,
                 "token tiles to tune, of those of the target; the order of "
                 "additions stays that of the others (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--device", args.device,
                 "an index or a part of a name (default: the most capable)");
  app.add_option("--state", args.state,
                 "file of what was measured so far (default: beside the "
                 "output, with .tuning at its end)");
  app.add_option("--minutes", args.tune.minutes,
                 "stop after so long; started again, it goes on")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds,
                 "of the last race against the default, in each of which both "
                 "run twice")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--passes", passes,
                 "over all choices, each from the best so far")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--name", args.name,
                 "of the new target (default: the old one's and '-tuned')");
  app.add_flag("--json", args.json, "print the result as one JSON object");
  CLI11_PARSE(app, argc, argv);
  args.tune.search.rounds = rounds;
  args.tune.search.passes = passes;
  if (!StringRef(args.output).ends_with(".json"))
    return fail("expects a file that ends in .json for -o, as llm-compile "
                "does, but got '" + args.output + "'");
  if (args.state.empty())
    args.state = args.output + ".tuning";
  args.compile.passPipeline = pipelineOf("");

  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry);
  loadKernelDialects(context);
  return sprig::tools::flushed("llm-tune", run(args, context));
}
