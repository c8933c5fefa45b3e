//===- llm-inspect.cpp - shows what is in a package
//--------------------------------===//
#include "tools/Inspect/Report.h"

#include "runtime/Model/OpenDevice.h"
#include "runtime/Package/Names.h"
#include "runtime/Package/WeightCheck.h"
#include "runtime/Support/Strings.h"
#include "tools/Support/Json.h"
#include "tools/Support/Options.h"
#include "tools/Support/Process.h"

#include <algorithm>

using namespace sprig;
using namespace sprig::tools;

namespace {

struct Arguments {
  std::string model, device, target, html, cache;
  double bandwidth = 0;
  uint64_t depth = 0;
  bool json = false, stats = false, verify = false, pipelines = false;
};

int fail(const std::string &message) {
  std::fprintf(stderr, "llm-inspect: error: %s\n", message.c_str());
  return 1;
}

/// Characters a second: a calm reader and a fast one.
constexpr double kReaders[] = {50, 100};

/// Everything that the reports show.
struct Facts {
  std::shared_ptr<const Package> package;
  std::vector<TargetSummary> targets;
  size_t chosen = 0;   ///< the target shown in detail
  double perToken = 0; ///< characters
  std::string device;  ///< that made the statistics
  KernelStatistics statistics;
  uint32_t created = 0, cacheHits = 0; ///< pipelines
  double createSeconds = 0;

  const TargetSummary &target() const { return targets[chosen]; }
};

/// Creates every pipeline of the target that fits the device, for the driver's
/// statistics or for the pipeline cache: drivers keep no statistics of what
/// they take from a cache.
Status createPipelines(const Arguments &args, Facts &facts) {
  DeviceChoice choice;
  choice.device = args.device;
  choice.target = args.target;
  choice.statistics = args.stats;
  Result<OpenedDevice> opened = openDevice(*facts.package, choice);
  if (!opened.ok())
    return opened.status();
  facts.chosen = opened->target;
  facts.device = opened->device->physical().name;
  if (args.stats && !opened->device->statistics())
    return {
        StatusCode::Unsupported,
        concat("expects a driver with VK_KHR_pipeline_executable_properties,"
               " but '",
               facts.device, "' (", opened->device->physical().driver,
               ") has none")};
  const format::Target &target =
      *facts.package->metadata().targets()->Get(opened->target);
  std::string folder =
      args.cache.empty() ? vulkan::defaultCacheFolder() : args.cache;
  Result<std::shared_ptr<vulkan::PipelineCache>> cache =
      vulkan::PipelineCache::open(opened->device, args.stats ? "" : folder);
  if (!cache.ok())
    return cache.status();
  vulkan::Pipelines pipelines(opened->device, *cache, target);
  std::vector<uint32_t> all(target.kernels()->size());
  for (uint32_t i = 0; i < all.size(); ++i)
    all[i] = i;
  Stopwatch clock;
  if (Status status = pipelines.ensure(all); !status.ok())
    return status;
  facts.createSeconds = clock.seconds();
  facts.created = pipelines.created();
  facts.cacheHits = pipelines.cacheHits();
  for (uint32_t i = 0; args.stats && i < all.size(); ++i)
    facts.statistics.push_back(
        vulkan::statisticsOf(*opened->device, pipelines.pipeline(i)));
  return (*cache)->save();
}

std::string widthList(const std::map<uint32_t, uint32_t> &counts) {
  std::string text;
  for (auto [width, count] : counts)
    text += concat(text.empty() ? "" : ", ", count, " at ", width);
  return text;
}

/// Where a kernel is used, in words.
std::string uses(const KernelSummary &kernel) {
  std::string text = widthList(kernel.dispatches);
  for (const auto &[kind, counts] : kernel.elsewhere)
    text += concat(text.empty() ? "" : "; ", widthList(counts), " (", kind, ")");
  return text.empty() ? "none" : text;
}

std::string estimates(const TargetSummary &target) {
  std::string text;
  for (auto [width, seconds] : target.estimatedSeconds) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.3g ms", 1e3 * seconds);
    text += concat(text.empty() ? "" : ", ", number, " at ", width);
  }
  return text;
}

void printBandwidth(const Arguments &args, const Facts &facts) {
  Reach can = reach(facts.target(), args.bandwidth, args.depth, facts.perToken);
  std::printf("at %g GB/s: a token reads %s, so %.1f tokens a second\n",
              args.bandwidth,
              humanBytes(facts.target().bytesPerToken +
                         args.depth * facts.target().kvBytesPerToken)
                  .c_str(),
              can.tokens);
  if (facts.perToken == 0)
    return;
  std::printf("  %.2f characters a token: %.0f characters a second\n",
              facts.perToken, can.characters);
  for (double reader : kReaders)
    std::printf("  %.1f times a reader of %g characters a second\n",
                can.characters / reader, reader);
}

void print(const Arguments &args, const Facts &facts) {
  const format::Package &metadata = facts.package->metadata();
  const format::Model &model = *metadata.model();
  auto word = [](const flatbuffers::String *text) {
    return text ? text->c_str() : "";
  };
  std::printf("%s: %s, made by %s\n", args.model.c_str(),
              humanBytes(facts.package->mapping().size()).c_str(),
              word(metadata.producer()));
  std::printf("model: %s (%s), %u layers, width %u, %u heads (%u kv) of %u, "
              "vocabulary %u, context %u; %llu parameters; licence: %s\n",
              word(model.name()), word(model.architecture()), model.layers(),
              model.width(), model.heads(), model.kv_heads(), model.head_size(),
              model.vocabulary(), model.context(),
              static_cast<unsigned long long>(model.parameters()),
              word(model.license()));
  std::printf("weights: %u tensors, %s in %u hashed pieces\n",
              metadata.tensors()->size(),
              humanBytes(facts.package->weightBytes()).c_str(),
              metadata.chunks()->size());
  if (const auto *adapters = metadata.adapters()) {
    std::string names;
    for (const flatbuffers::String *name : *adapters)
      names += (names.empty() ? "" : ", ") + name->str();
    std::printf("adapters: %s\n", names.c_str());
  }
  for (const TargetSummary &target : facts.targets) {
    std::printf("\ntarget %s\n", target.name.c_str());
    std::string needs;
    for (const std::string &one : target.requirements)
      needs += (needs.empty() ? "" : ", ") + one;
    std::printf("  needs: %s\n", needs.c_str());
    const MemoryPlan &plan = target.memory;
    std::printf(
        "  memory: %s (weights %s, KV cache %s, activations %s, logits "
        "%s, control %s)\n",
        humanBytes(plan.total()).c_str(), humanBytes(plan.weights).c_str(),
        humanBytes(plan.kv).c_str(), humanBytes(plan.scratch).c_str(),
        humanBytes(plan.logits).c_str(), humanBytes(plan.control).c_str());
    std::printf("  dispatches: %s\n", widthList(target.dispatches).c_str());
    std::printf("  barriers: %s\n", widthList(target.barriers).c_str());
    std::printf("  submissions: %s\n", widthList(target.submissions).c_str());
    std::printf("  estimated with a full context: %s\n",
                estimates(target).c_str());
    std::printf("  a token reads %s of weights and %s for each cached token\n",
                humanBytes(target.bytesPerToken).c_str(),
                humanBytes(target.kvBytesPerToken).c_str());
    std::printf("  kernels:\n");
    for (const KernelSummary &kernel : target.kernels)
      std::printf("    %-44s %7llu bytes, workgroup %s, dispatches: %s\n",
                  kernel.name.c_str(),
                  static_cast<unsigned long long>(kernel.spirvBytes),
                  kernel.workgroup.c_str(),
                  uses(kernel).c_str());
  }
  if (args.pipelines)
    std::printf("\npipelines of target %s on %s: %u created in %.2f s, %u of "
                "them from the cache\n",
                facts.target().name.c_str(), facts.device.c_str(),
                facts.created, facts.createSeconds, facts.cacheHits);
  if (!facts.statistics.empty()) {
    std::printf("\nwhat %s makes of the kernels of target %s\n",
                facts.device.c_str(), facts.target().name.c_str());
    for (size_t i = 0; i < facts.statistics.size(); ++i) {
      std::printf("  %s:", facts.target().kernels[i].name.c_str());
      for (const vulkan::Statistic &one : facts.statistics[i])
        std::printf(" %s %g;", one.name.c_str(), one.value);
      std::printf("\n");
    }
  }
  if (args.bandwidth > 0) {
    std::printf("\n");
    printBandwidth(args, facts);
  }
}

void addCounts(Json &json, const char *name,
               const std::map<uint32_t, uint32_t> &counts) {
  json.key(name).open('{');
  for (auto [width, count] : counts)
    json.pair(std::to_string(width), count);
  json.close();
}

void addMemory(Json &json, const MemoryPlan &plan) {
  json.key("memory").open('{').pair("total_bytes", plan.total());
  json.pair("weight_bytes", plan.weights).pair("kv_bytes", plan.kv);
  json.pair("scratch_bytes", plan.scratch);
  json.pair("logits_bytes", plan.logits);
  json.pair("control_bytes", plan.control).close();
}

std::string jsonText(const Arguments &args, const Facts &facts) {
  const format::Package &metadata = facts.package->metadata();
  const TargetSummary &target = facts.target();
  Json json;
  json.open('{').pair("package_bytes", facts.package->mapping().size());
  json.key("targets").open('[');
  for (const TargetSummary &one : facts.targets) {
    json.open('{').pair("name", one.name).key("requirements").open('[');
    for (const std::string &need : one.requirements)
      json.value(need);
    json.close().pair("bytes_per_token", one.bytesPerToken);
    addMemory(json, one.memory);
    json.close();
  }
  json.close().key("tensors").open('[');
  for (const format::Tensor *tensor : *metadata.tensors()) {
    json.open('{').pair("name", tensor->name()->c_str());
    json.pair("type", tensor->type()->c_str());
    json.pair("layout", tensor->layout()->c_str());
    json.pair("bytes", tensor->bytes()).close();
  }
  json.close().key("adapters").open('[');
  if (const auto *adapters = facts.package->metadata().adapters())
    for (const flatbuffers::String *name : *adapters)
      json.value(name->c_str());
  json.close().pair("target", target.name).key("widths").open('[');
  for (uint32_t width : target.widths)
    json.value(width);
  json.close().key("kernels").open('[');
  for (size_t i = 0; i < target.kernels.size(); ++i) {
    const KernelSummary &kernel = target.kernels[i];
    json.open('{').pair("name", kernel.name).pair("family", kernel.family);
    json.pair("key", kernel.key).pair("spirv_bytes", kernel.spirvBytes);
    json.pair("workgroup", kernel.workgroup);
    addCounts(json, "dispatches", kernel.dispatches);
    json.pair("estimated_longest_ms", 1e3 * kernel.longest);
    if (!kernel.elsewhere.empty()) {
      json.key("other_programs").open('{');
      for (const auto &[kind, counts] : kernel.elsewhere)
        addCounts(json, kind.c_str(), counts);
      json.close();
    }
    if (i < facts.statistics.size()) {
      json.key("statistics").open('{');
      for (const vulkan::Statistic &one : facts.statistics[i])
        json.pair(one.name, one.value);
      json.close();
    }
    json.close();
  }
  json.close();
  addCounts(json, "dispatches", target.dispatches);
  addCounts(json, "barriers", target.barriers);
  addCounts(json, "submissions", target.submissions);
  json.key("estimated_ms").open('{');
  for (auto [width, seconds] : target.estimatedSeconds)
    json.pair(std::to_string(width), 1e3 * seconds);
  json.close();
  json.pair("bytes_per_token", target.bytesPerToken);
  json.pair("kv_bytes_per_cached_token", target.kvBytesPerToken);
  addMemory(json, target.memory);
  if (!facts.device.empty()) {
    json.key("pipelines").open('{').pair("device", facts.device);
    json.pair("created", facts.created).pair("cache_hits", facts.cacheHits);
    json.pair("seconds", facts.createSeconds).close();
  }
  if (args.bandwidth > 0) {
    Reach can = reach(target, args.bandwidth, args.depth, facts.perToken);
    json.key("bandwidth").open('{').pair("gb_per_s", args.bandwidth);
    json.pair("depth", args.depth).pair("tokens_per_s", can.tokens);
    json.pair("characters_per_token", facts.perToken);
    json.pair("characters_per_s", can.characters).key("readers").open('[');
    for (double reader : kReaders)
      json.open('{')
          .pair("characters_per_s", reader)
          .pair("times", can.characters / reader)
          .close();
    json.close().close();
  }
  json.close();
  return json.text();
}

int run(const Arguments &args) {
  Facts facts;
  Result<std::shared_ptr<const Package>> package = Package::open(args.model);
  if (!package.ok())
    return fail(package.status().message());
  facts.package = *package;
  if (args.verify)
    if (Status status = WeightCheck(*package, 0).wait(); !status.ok())
      return fail(status.message());
  const format::Package &metadata = (*package)->metadata();
  bool known = args.target.empty();
  for (const format::Target *target : *metadata.targets()) {
    if (target->name()->string_view() == args.target) {
      facts.chosen = facts.targets.size();
      known = true;
    }
    facts.targets.push_back(summarise(*target, *metadata.model()));
  }
  if (!known)
    return fail(concat(args.model,
                       ": expects one of the package's targets, "
                       "but got '",
                       args.target, "'"));
  if (args.depth > metadata.model()->context())
    return fail(concat("option --depth expects at most ",
                       metadata.model()->context(),
                       " tokens (the context), but got ", args.depth));
  if (args.bandwidth > 0)
    facts.perToken = charactersPerToken(**package);
  if (args.stats || args.pipelines)
    if (Status status = createPipelines(args, facts); !status.ok())
      return fail(status.message());
  if (args.json)
    std::puts(jsonText(args, facts).c_str());
  else
    print(args, facts);
  if (!args.html.empty() &&
      !writeReport(args.html, args.model, facts.target(), facts.targets.size(),
                   facts.device, facts.statistics))
    return fail(args.html + ": cannot write the report");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Arguments args;
  Options options(
      "llm-inspect",
      "Shows the contents, memory plan and kernels of a compiled model.",
      "llm-inspect model.sprig\n"
      "llm-inspect model.sprig --bandwidth=70\n"
      "RADV_FORCE_FAMILY=navi21 llm-inspect model.sprig --stats "
      "--target=rdna3");
  options.positional("MODEL", args.model, "A .sprig package");
  options.text("--target", args.target, "NAME",
               "The target shown in detail (the first)");
  options.real("--bandwidth", args.bandwidth, "GB/S",
               "What a memory of this bandwidth could reach");
  options.number("--depth", args.depth, "N",
                 "Cached tokens that --bandwidth counts (0)");
  options.flag("--stats", args.stats,
               "What the driver's compiler makes of each kernel");
  options.flag("--pipelines", args.pipelines,
               "Creates all pipelines and says how many the cache had");
  options.text("--cache", args.cache, "FOLDER", "Of the pipeline cache");
  options.text("--device", args.device, "NAME|INDEX",
               "The device for --stats and --pipelines");
  options.flag("--verify", args.verify, "Also hashes the weights");
  options.text("--html", args.html, "FILE", "Writes a report");
  options.flag("--json", args.json, "Prints one JSON object");
  int exitCode = 0;
  if (!options.parse(argc, argv, exitCode))
    return exitCode;
  if (args.model.empty())
    return fail("expects a .sprig package (see llm-inspect --help)");
  if (!(args.bandwidth >= 0 && args.bandwidth <= 1e6))
    return fail("option --bandwidth expects 0 to 1000000 GB/s");
  return flushed("llm-inspect", run(args));
}
