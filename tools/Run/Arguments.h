// The command line of llm-run.
#ifndef SPRIG_TOOLS_RUN_ARGUMENTS_H
#define SPRIG_TOOLS_RUN_ARGUMENTS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sprig::tools {

struct Arguments {
  std::string model, prompt, file, device, target, weights = "auto", cache;
  std::string speculate = "off", draftModel, treeRule = "comb";
  std::string saveSession, loadSession;
  std::optional<std::string> adapter; ///< unset: none, or that of a saved text
  std::vector<uint32_t> tokens;
  std::vector<std::string> stops;
  uint64_t count = 128, topK = 0, seed = 0, lastN = 64, tree = 0, sinks = 4,
           window = 0;
  double temperature = 0, topP = 1, minP = 0, penalty = 1, memoryLimit = 0;
  bool chat = false, ignoreEnd = false, json = false, listDevices = false,
       noCache = false, selfTest = false, special = false, stats = false,
       poison = false, fragile = false, chain = false, draftSampling = false,
       endless = false;
};

/// False where the program ends with `exitCode`: help, or an error that was
/// printed.
bool parseArguments(int argc, char **argv, Arguments &args, int &exitCode);

} // namespace sprig::tools

#endif // SPRIG_TOOLS_RUN_ARGUMENTS_H
