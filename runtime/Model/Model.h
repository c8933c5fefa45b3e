//===- Model.h - a package on a device
//-----------------------------------------===//
#pragma once

#include "runtime/Model/ModelText.h"
#include "runtime/Model/OpenDevice.h"
#include "runtime/Model/Weights.h"
#include "runtime/Package/MemoryPlan.h"
#include "runtime/Package/WeightCheck.h"
#include "runtime/Vulkan/PipelineWorker.h"

#include <atomic>
#include <functional>
#include <optional>

namespace sprig {

struct ModelOptions {
  DeviceChoice choice;
  WeightPlacement weights = WeightPlacement::Auto;
  /// Folder of the pipeline cache; unset: the user's; empty: none.
  std::optional<std::string> cacheFolder;
  /// Bytes that the model and its sessions may take in all; 0: what the device
  /// has.
  uint64_t memoryLimit = 0;
  /// Told before memory is allocated; may be empty.
  std::function<void(const MemoryPlan &plan, uint64_t available, bool inPlace,
                     uint32_t context)>
      plan;
};

/// What sessions share: the verified package, the device, the weights on it and
/// the pipelines. Thread-safe after opening.
class Model {
public:
  static Result<std::shared_ptr<Model>> open(const std::string &path,
                                             const ModelOptions &options);
  /// Writes the pipeline cache where it grew.
  ~Model();
  Model(const Model &) = delete;

  const Package &package() const { return *file; }
  const format::Package &metadata() const { return file->metadata(); }
  const format::Target &target() const { return *chosen; }
  const std::shared_ptr<vulkan::Device> &device() const { return gpu; }
  vulkan::Pipelines &pipelines() { return *made; }
  ModelText &text() { return *words; }
  const MemoryPlan &plan() const { return memory; }
  WeightPlacement weightPlacement() const { return weights.placement; }
  /// Device memory that this model allocated (imported weights count, since
  /// they are what the device reads).
  uint64_t weightBytes() const;
  /// Fills in the weight buffers of a table with one entry a target buffer.
  void addWeightBuffers(std::vector<VkBuffer> &buffers) const;

  /// Memory for one more session, held while the result lives; OutOfMemory
  /// where there is too little.
  Result<std::shared_ptr<void>> admitSession();

  /// Waits for the hashes of the weights; has to succeed before a result is
  /// shown. Also reports messages of the validation layers.
  Status ready();
  /// Whether nothing was fed yet, and so no pipeline of a prompt is made.
  bool startsAnew() { return !fed.exchange(true); }
  /// Makes pipelines that are wanted soon, beside the steps that run, where the
  /// driver is one for which that pays.
  void makeAhead(const std::vector<uint32_t> &kernels);
  /// Which pipelines were made before.
  vulkan::PipelineCache &pipelineCache() { return *cache; }
  /// Writes the pipeline cache now.
  Status saveCache() { return cache->save(); }

private:
  Model() = default;
  Status planMemory(const ModelOptions &options);

  // Destroyed in reverse: pipelines before their cache, buffers before the
  // file they may be imported from.
  std::shared_ptr<const Package> file;
  std::unique_ptr<ModelText> words;
  const format::Target *chosen = nullptr;
  MemoryPlan memory;
  uint64_t memoryLimit = UINT64_MAX; ///< for sessions, after the weights
  std::shared_ptr<std::atomic<uint64_t>> heldBySessions;
  std::shared_ptr<vulkan::Device> gpu;
  std::unique_ptr<WeightCheck> check;
  std::shared_ptr<vulkan::PipelineCache> cache;
  std::atomic<bool> fed{false};
  std::unique_ptr<vulkan::Pipelines> made;
  std::unique_ptr<vulkan::PipelineWorker> ahead;
  Weights weights;
};

/// The program of a kind and width; null where the target has none.
const format::Program *findProgram(const format::Target &target,
                                   format::ProgramKind kind, uint32_t width,
                                   uint32_t guess = 0);

/// The draft of that name that is part of the package, or null.
const format::Draft *findDraft(const format::Package &package,
                               std::string_view name);

/// The widths that the target has programs of `kind` for, rising.
std::vector<uint32_t> widthsOf(const format::Target &target,
                               format::ProgramKind kind);

} // namespace sprig
