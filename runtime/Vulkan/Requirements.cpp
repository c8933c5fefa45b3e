#include "runtime/Vulkan/Requirements.h"
#include "runtime/Package/Names.h"
#include "runtime/Package/Texels.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig::vulkan {
namespace {

/// Collects what is missing; every limit is said once.
class Shortages {
public:
  void need(uint64_t wanted, uint64_t there, std::string_view what) {
    if (wanted > there)
      add(concat(wanted, " ", what, " (it has ", there, ")"));
  }
  void add(std::string text) {
    if (std::find(list.begin(), list.end(), text) == list.end())
      list.push_back(std::move(text));
  }
  std::vector<std::string> take() { return std::move(list); }

private:
  std::vector<std::string> list;
};

std::string versionName(uint32_t version) {
  return concat("Vulkan ", VK_API_VERSION_MAJOR(version), ".",
                VK_API_VERSION_MINOR(version));
}

/// A device that lets kernels choose has every power of two in its range.
bool hasSubgroup(uint32_t size, const PhysicalDevice &device) {
  if (size == 0)
    return true;
  if (device.subgroupSizeControl)
    return size >= device.minSubgroup && size <= device.maxSubgroup;
  return device.subgroup.subgroupSize == size;
}

void checkSubgroup(uint32_t size, const PhysicalDevice &device,
                   Shortages &lacks) {
  if (!hasSubgroup(size, device))
    lacks.add(concat("subgroups of ", size, " (it has ", device.minSubgroup,
                     device.minSubgroup == device.maxSubgroup
                         ? std::string()
                         : concat(" to ", device.maxSubgroup),
                     ")"));
}

void checkKernels(const format::Target &target, const PhysicalDevice &device,
                  Shortages &lacks) {
  const VkPhysicalDeviceLimits &limits = device.limits();
  for (const format::Kernel *kernel : *target.kernels()) {
    const uint32_t size[] = {kernel->workgroup_x(), kernel->workgroup_y(),
                             kernel->workgroup_z()};
    for (int i = 0; i < 3; ++i)
      lacks.need(size[i], limits.maxComputeWorkGroupSize[i],
                 "invocations in one direction of a workgroup");
    lacks.need(uint64_t(size[0]) * size[1] * size[2],
               limits.maxComputeWorkGroupInvocations,
               "invocations in a workgroup");
    checkSubgroup(kernel->subgroup_size(), device, lacks);
    uint32_t views = 0;
    for (uint32_t i = 0; i < kernel->bindings(); ++i)
      views += texelFormat(*kernel, i) != 0;
    lacks.need(views,
               std::min(limits.maxPerStageDescriptorStorageImages,
                        limits.maxDescriptorSetStorageImages),
               "texel views in one kernel");
  }
}

void checkDispatches(const format::Target &target, const PhysicalDevice &device,
                     Shortages &lacks) {
  const uint32_t *most = device.limits().maxComputeWorkGroupCount;
  for (const format::Command *command : *target.commands()) {
    const format::Dispatch *dispatch = command->dispatch();
    if (!dispatch)
      continue;
    lacks.need(dispatch->base_x() + dispatch->groups_x(), most[0], "workgroups in x");
    lacks.need(dispatch->base_y() + dispatch->groups_y(), most[1], "workgroups in y");
    lacks.need(dispatch->base_z() + dispatch->groups_z(), most[2], "workgroups in z");
  }
}

} // namespace

std::vector<std::string> missing(const format::Target &target,
                                 const PhysicalDevice &device) {
  Shortages lacks;
  const format::Requirements &needs = *target.requirements();
  const VkPhysicalDeviceLimits &limits = device.limits();
  if (needs.vulkan_version() > device.version)
    lacks.add(concat(versionName(needs.vulkan_version()), " (it has ",
                     versionName(device.version), ")"));
  if (needs.features())
    for (format::Feature feature : *needs.features())
      if (!device.supports(feature))
        lacks.add(nameOf(feature));
  checkSubgroup(needs.subgroup_size(), device, lacks);
  lacks.need(needs.workgroup_invocations(),
             limits.maxComputeWorkGroupInvocations,
             "invocations in a workgroup");
  lacks.need(needs.shared_bytes(), limits.maxComputeSharedMemorySize,
             "bytes of shared memory");
  lacks.need(needs.storage_range(), limits.maxStorageBufferRange,
             "bytes in one storage binding");
  lacks.need(needs.uniform_range(), limits.maxUniformBufferRange,
             "bytes in one uniform binding");
  lacks.need(needs.texel_elements(), limits.maxTexelBufferElements,
             "elements in one texel view");
  lacks.need(needs.storage_buffers(),
             std::min(limits.maxPerStageDescriptorStorageBuffers,
                      limits.maxDescriptorSetStorageBuffers),
             "storage buffers in one kernel");
  lacks.need(needs.push_constant_bytes(), limits.maxPushConstantsSize,
             "bytes of push constants");
  uint64_t largest = 0;
  for (const format::Buffer *buffer : *target.buffers())
    largest = std::max(largest, buffer->bytes());
  lacks.need(largest, device.maxAllocation, "bytes in one allocation");
  checkKernels(target, device, lacks);
  checkDispatches(target, device, lacks);
  return lacks.take();
}

Result<uint32_t> chooseTarget(const format::Package &package,
                              const PhysicalDevice &device,
                              const std::string &wanted) {
  std::string why;
  uint32_t best = UINT32_MAX;
  int bestRank = 3;
  for (uint32_t i = 0; i < package.targets()->size(); ++i) {
    const format::Target &target = *package.targets()->Get(i);
    std::string name = target.name()->str();
    if (!wanted.empty() && name != wanted)
      continue;
    std::vector<std::string> lacks = missing(target, device);
    if (!lacks.empty()) {
      why += concat("; target '", name, "' needs ");
      for (size_t j = 0; j < lacks.size(); ++j)
        why += concat(j ? ", " : "", lacks[j]);
      continue;
    }
    // 0: tuned for this driver, 1: for none in particular, 2: for others.
    const auto *drivers = target.drivers();
    int rank = !drivers || drivers->size() == 0 ? 1 : 2;
    if (drivers && std::find(drivers->begin(), drivers->end(),
                             uint32_t(device.driverId)) != drivers->end())
      rank = 0;
    if (rank < bestRank) {
      best = i;
      bestRank = rank;
    }
  }
  if (best != UINT32_MAX)
    return best;
  if (why.empty()) {
    std::string names;
    for (const format::Target *target : *package.targets())
      names += concat(names.empty() ? "" : ", ", target->name()->string_view());
    return Status(StatusCode::NotFound,
                  concat("expects one of the package's targets (", names,
                         "), but got '", wanted, "'"));
  }
  return Status(StatusCode::Unsupported,
                concat("no target of the package fits the device '",
                       device.name, "'", why,
                       "; compile with another --target (generic needs the "
                       "least)"));
}

} // namespace sprig::vulkan
