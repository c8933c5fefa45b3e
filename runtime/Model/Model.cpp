#include "runtime/Model/Model.h"
#include "runtime/Model/MemoryCheck.h"
#include "runtime/Support/Parallel.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

Result<std::shared_ptr<Model>> Model::open(const std::string &path,
                                           const ModelOptions &options) {
  Result<std::shared_ptr<const Package>> package = Package::open(path);
  if (!package.ok())
    return package.status();
  std::shared_ptr<Model> model(new Model);
  model->file = *package;
  model->words = std::make_unique<ModelText>(**package);
  Result<OpenedDevice> opened = openDevice(**package, options.choice);
  if (!opened.ok())
    return opened.status();
  model->gpu = opened->device;
  model->chosen = model->metadata().targets()->Get(opened->target);
  model->memory = MemoryPlan::of(*model->chosen);
  if (Status status = model->planMemory(options); !status.ok())
    return status.within(path);

  // Hashing runs beside the copy of the weights and the first pipelines.
  model->check = std::make_unique<WeightCheck>(
      *package, std::max(1u, usefulThreads() / 2));
  Result<std::shared_ptr<vulkan::PipelineCache>> cache =
      vulkan::PipelineCache::open(
          model->gpu,
          options.cacheFolder.value_or(vulkan::defaultCacheFolder()));
  if (!cache.ok())
    return cache.status();
  model->cache = *cache;
  model->made =
      std::make_unique<vulkan::Pipelines>(model->gpu, *cache, *model->chosen);
  model->ahead = std::make_unique<vulkan::PipelineWorker>(*model->made);
  Result<Weights> weights =
      loadWeights(model->gpu, **package, *model->chosen, options.weights);
  if (!weights.ok())
    return weights.status().within(path);
  model->weights = std::move(*weights);
  return model;
}

Model::~Model() {
  ahead.reset();
  // A cache that cannot be written costs time at the next start, nothing else.
  if (cache && made && made->created() != 0)
    (void)cache->save();
}

void Model::makeAhead(const std::vector<uint32_t> &kernels) {
  if (vulkan::PipelineWorker::pays(gpu->physical()))
    ahead->add(kernels);
}

Status Model::planMemory(const ModelOptions &options) {
  uint64_t there = vulkan::availableMemory(gpu->instance(), gpu->physical());
  if (options.memoryLimit != 0)
    there = std::min(there, options.memoryLimit);
  const bool inPlace = expectsInPlace(*gpu, options.weights);
  if (options.plan)
    options.plan(memory, there, inPlace, metadata().model()->context());
  const uint64_t copied = inPlace ? 0 : memory.weights;
  if (options.memoryLimit != 0)
    memoryLimit = options.memoryLimit - std::min(copied, options.memoryLimit);
  heldBySessions = std::make_shared<std::atomic<uint64_t>>(0);
  return checkMemory(target(), *metadata().model(),
                     {copied, there, gpu->physical().name});
}

Result<std::shared_ptr<void>> Model::admitSession() {
  const uint64_t bytes = memory.session();
  const uint64_t before = heldBySessions->fetch_add(bytes);
  std::shared_ptr<void> held(
      nullptr, [counter = heldBySessions, bytes](void *) {
        counter->fetch_sub(bytes);
      });
  const uint64_t there =
      std::min(vulkan::availableMemory(gpu->instance(), gpu->physical()),
               memoryLimit - std::min(memoryLimit, before));
  if (Status status = checkMemory(target(), *metadata().model(),
                                  {0, there, gpu->physical().name});
      !status.ok())
    return status.within("one more session");
  return held;
}

uint64_t Model::weightBytes() const {
  return weights.placement == WeightPlacement::InPlace
             ? memory.weights
             : weights.buffers.allocated();
}

void Model::addWeightBuffers(std::vector<VkBuffer> &buffers) const {
  for (size_t i = 0; i < weights.indices.size(); ++i)
    buffers[weights.indices[i]] = weights.buffers.handle(i);
}

Status Model::ready() {
  if (Status status = check->wait(); !status.ok())
    return status;
  return gpu->instance().messages().check();
}

const format::Program *findProgram(const format::Target &target,
                                   format::ProgramKind kind, uint32_t width,
                                   uint32_t guess) {
  for (const format::Program *program : *target.programs())
    if (program->kind() == kind && program->width() == width &&
        program->guess() == guess)
      return program;
  return nullptr;
}

const format::Draft *findDraft(const format::Package &package,
                               std::string_view name) {
  if (package.drafts())
    for (const format::Draft *draft : *package.drafts())
      if (draft->name()->string_view() == name)
        return draft;
  return nullptr;
}

std::vector<uint32_t> widthsOf(const format::Target &target,
                               format::ProgramKind kind) {
  std::vector<uint32_t> widths;
  for (const format::Program *program : *target.programs())
    if (program->kind() == kind)
      widths.push_back(program->width());
  std::sort(widths.begin(), widths.end());
  return widths;
}

} // namespace sprig
