//===- Statistics.h - what the driver's compiler made of a kernel
//--------------===//
#pragma once

#include "runtime/Vulkan/Pipelines.h"

namespace sprig::vulkan {

struct Statistic {
  std::string name;
  double value = 0;
};

/// The driver's own statistics of a pipeline made on a device opened with
/// `statistics` (VK_KHR_pipeline_executable_properties). Empty where the
/// driver keeps none.
std::vector<Statistic> statisticsOf(const Device &device, VkPipeline pipeline);

} // namespace sprig::vulkan
