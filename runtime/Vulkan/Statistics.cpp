#include "runtime/Vulkan/Statistics.h"

#include <cstring>

namespace sprig::vulkan {
namespace {

double valueOf(const VkPipelineExecutableStatisticKHR &statistic) {
  switch (statistic.format) {
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
    return statistic.value.b32 ? 1 : 0;
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
    return double(statistic.value.i64);
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
    return double(statistic.value.u64);
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
    return statistic.value.f64;
  default:
    return 0;
  }
}

} // namespace

std::vector<Statistic> statisticsOf(const Device &device, VkPipeline pipeline) {
  const DeviceFunctions &vk = device.functions();
  std::vector<Statistic> statistics;
  if (!device.statistics() || !vk.GetPipelineExecutableStatisticsKHR)
    return statistics;
  // A compute pipeline has one executable; asking for the first is enough.
  VkPipelineExecutableInfoKHR info{
      VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
  info.pipeline = pipeline;
  uint32_t count = 0;
  vk.GetPipelineExecutableStatisticsKHR(device.handle(), &info, &count,
                                        nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> found(
      count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  vk.GetPipelineExecutableStatisticsKHR(device.handle(), &info, &count,
                                        found.data());
  for (uint32_t i = 0; i < count && i < found.size(); ++i)
    if (!std::strstr(found[i].name, "ash")) // hashes say nothing to a person
      statistics.push_back({found[i].name, valueOf(found[i])});
  return statistics;
}

} // namespace sprig::vulkan
