#include "tools/Inspect/Report.h"

#include "runtime/Support/Strings.h"
#include "tools/Support/Html.h"

#include <cstdio>

namespace sprig::tools {

bool writeReport(const std::string &path, const std::string &name,
                 const TargetSummary &target, size_t targets,
                 const std::string &device,
                 const KernelStatistics &statistics) {
  HtmlReport page("Package " + name);
  page.paragraph(concat("Target ", target.name, " of ", targets,
                        "; a token reads ", humanBytes(target.bytesPerToken),
                        " of weights."));
  page.heading("Memory");
  const MemoryPlan &plan = target.memory;
  std::vector<HtmlReport::Bar> bars;
  for (auto [name, bytes] : {std::pair("weights", plan.weights),
                             {"KV cache", plan.kv},
                             {"activations", plan.scratch},
                             {"logits", plan.logits},
                             {"control", plan.control}})
    bars.push_back({name, double(bytes), humanBytes(bytes)});
  page.bars(bars);
  auto milliseconds = [](double seconds) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.3g ms", 1e3 * seconds);
    return std::string(number);
  };
  page.heading("Steps");
  page.paragraph("Times are estimates for a full context, by the rates of the "
                 "target's profile.");
  std::vector<std::vector<std::string>> steps = {
      {"width", "dispatches", "barriers", "submissions", "estimated"}};
  for (uint32_t width : target.widths) {
    auto count = [&](const std::map<uint32_t, uint32_t> &counts) {
      auto found = counts.find(width);
      return std::to_string(found == counts.end() ? 0 : found->second);
    };
    auto time = target.estimatedSeconds.find(width);
    steps.push_back({std::to_string(width), count(target.dispatches),
                     count(target.barriers), count(target.submissions),
                     time == target.estimatedSeconds.end()
                         ? ""
                         : milliseconds(time->second)});
  }
  page.table(steps);
  page.heading("Kernels");
  std::vector<std::string> head = {"name", "family", "SPIR-V bytes",
                                   "longest dispatch"};
  for (uint32_t width : target.widths)
    head.push_back("width " + std::to_string(width));
  std::vector<std::vector<std::string>> rows = {head};
  for (const KernelSummary &kernel : target.kernels) {
    std::vector<std::string> row = {kernel.name, kernel.family,
                                    std::to_string(kernel.spirvBytes),
                                    milliseconds(kernel.longest)};
    for (uint32_t width : target.widths) {
      auto found = kernel.dispatches.find(width);
      row.push_back(found == kernel.dispatches.end()
                        ? ""
                        : std::to_string(found->second));
    }
    rows.push_back(std::move(row));
  }
  page.table(rows);
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (i == 0)
      page.heading("What " + device + " makes of them");
    std::string line = target.kernels[i].name + ":";
    for (const vulkan::Statistic &one : statistics[i])
      line += concat(" ", one.name, " ", one.value, ";");
    page.paragraph(line);
  }
  return page.write(path);
}

} // namespace sprig::tools
