#include "tools/Inspect/Summary.h"

#include "runtime/Format/SpirvCodec.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Package/Commands.h"
#include "runtime/Package/Names.h"

#include <algorithm>
#include <set>

namespace sprig::tools {
namespace {

using format::ProgramKind;

/// The program that stands for a width.
const format::Program *programOf(const format::Target &target, uint32_t width) {
  const format::Program *found = nullptr;
  for (const format::Program *program : *target.programs())
    if (program->width() == width &&
        (!found || program->kind() == ProgramKind::sample))
      found = program;
  return found;
}

/// A lookup binds its whole table but touches a row of it, which the
/// dispatch's own count knows.
uint64_t weightBytesRead(const format::Dispatch &dispatch,
                         const format::Target &target) {
  uint64_t bound = 0;
  for (const format::Binding *binding : *dispatch.bindings())
    if (target.buffers()->Get(binding->buffer())->kind() ==
        format::BufferKind::weights)
      bound += binding->bytes();
  return dispatch.bytes() ? std::min(bound, dispatch.bytes()) : bound;
}

std::vector<std::string> requirementsOf(const format::Requirements &needs) {
  std::vector<std::string> list;
  uint32_t version = needs.vulkan_version();
  list.push_back("Vulkan " + std::to_string(version >> 22 & 0x7f) + "." +
                 std::to_string(version >> 12 & 0x3ff));
  auto add = [&](uint64_t value, const char *what) {
    if (value)
      list.push_back(std::to_string(value) + " " + what);
  };
  add(needs.subgroup_size(), "lanes a subgroup");
  add(needs.workgroup_invocations(), "invocations a workgroup");
  add(needs.shared_bytes(), "bytes of shared memory");
  add(needs.storage_range(), "bytes a storage binding");
  add(needs.uniform_range(), "bytes a uniform binding");
  add(needs.texel_elements(), "elements a texel view");
  add(needs.storage_buffers(), "bindings a kernel");
  add(needs.push_constant_bytes(), "bytes of push constants");
  if (needs.features())
    for (format::Feature feature : *needs.features())
      list.push_back(nameOf(feature));
  return list;
}

/// The opening of Pride and Prejudice (Jane Austen, 1813).
constexpr char kPage[] =
    "It is a truth universally acknowledged, that a single man in possession "
    "of a good fortune, must be in want of a wife. However little known the "
    "feelings or views of such a man may be on his first entering a "
    "neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families, that he is considered as the rightful property of "
    "some one or other of their daughters. \"My dear Mr. Bennet,\" said his "
    "lady to him one day, \"have you heard that Netherfield Park is let at "
    "last?\" Mr. Bennet replied that he had not. \"But it is,\" returned she; "
    "\"for Mrs. Long has just been here, and she told me all about it.\"";

} // namespace

TargetSummary summarise(const format::Target &target,
                        const format::Model &model) {
  TargetSummary summary;
  summary.name = target.name()->str();
  summary.requirements = requirementsOf(*target.requirements());
  summary.memory = MemoryPlan::of(target);
  summary.kvBytesPerToken = summary.memory.kv / model.context();
  for (const format::Kernel *kernel : *target.kernels()) {
    KernelSummary one;
    one.name = kernel->name()->str();
    one.family = kernel->family()->str();
    one.key = kernel->key()->str();
    one.workgroup = std::to_string(kernel->workgroup_x()) + "x" +
                    std::to_string(kernel->workgroup_y()) + "x" +
                    std::to_string(kernel->workgroup_z());
    one.spirvBytes = format::spirvBytes(kernel->code()->size());
    summary.kernels.push_back(std::move(one));
  }
  std::set<uint32_t> widths;
  for (const format::Program *program : *target.programs())
    widths.insert(program->width());
  summary.widths.assign(widths.begin(), widths.end());
  for (uint32_t width : widths) {
    uint32_t &dispatches = summary.dispatches[width];
    uint32_t &barriers = summary.barriers[width];
    uint32_t &submissions = summary.submissions[width] = 1;
    for (const format::Command *command :
         commandsOf(target, *programOf(target, width))) {
      const format::Dispatch *dispatch = command->dispatch();
      if (!dispatch) {
        ++barriers;
        submissions += command->barrier()->submit();
        continue;
      }
      summary.estimatedSeconds[width] += 1e-9 * double(dispatch->time_ns());
      ++dispatches;
      ++summary.kernels[dispatch->kernel()].dispatches[width];
      if (width == 1)
        summary.bytesPerToken += weightBytesRead(*dispatch, target);
    }
  }
  for (const format::Program *program : *target.programs())
    for (const format::Command *command : commandsOf(target, *program))
      if (const format::Dispatch *dispatch = command->dispatch()) {
        KernelSummary &kernel = summary.kernels[dispatch->kernel()];
        kernel.longest =
            std::max(kernel.longest, 1e-9 * double(dispatch->time_ns()));
        if (kernel.dispatches.empty())
          ++kernel.elsewhere[nameOf(program->kind())][program->width()];
      }
  return summary;
}

double charactersPerToken(const Package &package) {
  ModelText text(package);
  Result<const Tokenizer *> tokenizer = text.tokenizer();
  if (!tokenizer.ok())
    return 0;
  Result<std::vector<uint32_t>> tokens = (*tokenizer)->encode(kPage);
  if (!tokens.ok() || tokens->empty())
    return 0;
  return double(sizeof(kPage) - 1) / double(tokens->size());
}

Reach reach(const TargetSummary &target, double gigabytesPerSecond,
            uint64_t depth, double charactersPerToken) {
  double bytes = double(target.bytesPerToken + depth * target.kvBytesPerToken);
  Reach result;
  result.tokens = bytes > 0 ? 1e9 * gigabytesPerSecond / bytes : 0;
  result.characters = result.tokens * charactersPerToken;
  return result;
}

} // namespace sprig::tools
