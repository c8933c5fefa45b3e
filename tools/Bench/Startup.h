//===- Startup.h - how long until the first token
//-----------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace sprig::tools {

struct Startup {
  double cold = 0; ///< seconds; nothing is cached, the driver's caches are off
  double warm = 0; ///< a second start, with the pipeline cache of the first
};

/// Starts `command` (this program as a probe that prints a line once it has its
/// first token) with fresh caches and measures from before the start to that
/// line. False where a probe failed.
bool measureStartup(const std::vector<std::string> &command, Startup &startup);

} // namespace sprig::tools
