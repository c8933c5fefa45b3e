//===- Report.h - a page about a target of a package
//---------------------------------===//
#pragma once

#include "runtime/Vulkan/Statistics.h"
#include "tools/Inspect/Summary.h"

namespace sprig::tools {

/// Of each kernel of a target, as a driver gives them.
using KernelStatistics = std::vector<std::vector<vulkan::Statistic>>;

/// Writes the page of `target`, one of `targets` of the package `name`: memory,
/// steps, kernels and (where there are any) what `device` makes of them. False
/// where the file cannot be written.
bool writeReport(const std::string &path, const std::string &name,
                 const TargetSummary &target, size_t targets,
                 const std::string &device = {},
                 const KernelStatistics &statistics = {});

} // namespace sprig::tools
