//===- RecordedProgram.h - a program as a command buffer
//-----------------------===//
#pragma once

#include "runtime/Vulkan/CommandPool.h"
#include "runtime/Vulkan/Pipelines.h"

namespace sprig::vulkan {

/// A program of a package recorded once, with its descriptor sets, to be
/// submitted for every step. What is recorded around the program's own commands
/// is part of the format: see the head of Format/Package.fbs.
class RecordedProgram {
public:
  /// `buffers` has a VkBuffer for every buffer of the target. The pipelines of
  /// the program have to be there (Pipelines::ensure). With `timed`, a
  /// timestamp is taken around every command, and only one submission may be
  /// in flight.
  static Result<std::unique_ptr<RecordedProgram>>
  record(std::shared_ptr<CommandPool> pool, const Pipelines &pipelines,
         const format::Target &target, const format::Program &program,
         const std::vector<VkBuffer> &buffers, bool timed);
  ~RecordedProgram();
  RecordedProgram(const RecordedProgram &) = delete;

  /// One a submission, in order.
  const std::vector<VkCommandBuffer> &commands() const { return buffers; }

  /// After a timed run has finished: when each dispatch ended, in nanoseconds
  /// after the program began, in the order of the program's dispatches. The
  /// first entry is the program's start (0).
  Result<std::vector<double>> times() const;

private:
  RecordedProgram() = default;
  Status makeSets(const Pipelines &pipelines, const format::Target &target,
                  const format::Program &program,
                  const std::vector<VkBuffer> &buffers);
  Status makeView(VkBuffer buffer, const format::Binding &binding,
                  VkFormat format, const std::string &name);
  Status makeQueries(const format::Target &target,
                     const format::Program &program);
  /// Begins the next command buffer.
  Status begin(bool timed);
  void recordDispatch(const format::Dispatch &dispatch,
                      const Pipelines &pipelines, VkDescriptorSet set,
                      const std::vector<VkBuffer> &memory, VkPipeline &bound);

  std::shared_ptr<CommandPool> pool;
  std::vector<VkCommandBuffer> buffers;
  VkDescriptorPool setPool = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets; ///< one a dispatch
  std::vector<VkBufferView> views;   ///< of texel bindings
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t queryCount = 0;
};

} // namespace sprig::vulkan
