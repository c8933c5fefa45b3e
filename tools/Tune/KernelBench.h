// Runs the kernels of one product on a device and times them against each
// other: a package of one kernel, in the runtime's own hands.
#ifndef SPRIG_TOOLS_TUNE_KERNELBENCH_H
#define SPRIG_TOOLS_TUNE_KERNELBENCH_H

#include "codegen/Kernels/Registry.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace sprig::vulkan {
class Device;
struct PhysicalDevice;
} // namespace sprig::vulkan

namespace mlir::llm {

/// The device that is tuned for.
class TuneDevice {
public:
  /// `wanted`: an index or a part of a name; empty: the most capable. Refuses a
  /// device that lacks what the profile lists.
  static llvm::Expected<TuneDevice> open(const std::string &wanted,
                                         const TargetProfile &profile);
  /// "llvmpipe (LLVM 15.0.6, 256 bits), llvmpipe Mesa 22.3.6 (LLVM 15.0.6)".
  std::string name() const;
  /// The driver computes on the processor: then processor seconds count, which
  /// other work on the machine hardly touches.
  bool onProcessor() const;
  std::shared_ptr<sprig::vulkan::Device> handle() const { return device; }

private:
  std::shared_ptr<sprig::vulkan::Device> device;
};

/// A kernel on the device, bound to the buffers of a KernelBench.
class LoadedKernel {
public:
  virtual ~LoadedKernel() = default;
  /// Seconds of one dispatch, measured over several. Nothing where it failed.
  virtual std::optional<double> time() = 0;
  /// What the kernel wrote, by the last run.
  virtual std::vector<float> output() = 0;
};

/// Inputs for the kernels of one product and token tile. Weights lie there
/// several times, so that a run of dispatches does not find them in a cache
/// that a step would not find them in.
class KernelBench {
public:
  static llvm::Expected<std::unique_ptr<KernelBench>>
  create(const TuneDevice &device, const KernelInterface &interface);
  virtual ~KernelBench() = default;
  /// Any kernel with the roles and sizes of the interface.
  virtual llvm::Expected<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) = 0;
};

} // namespace mlir::llm

#endif // SPRIG_TOOLS_TUNE_KERNELBENCH_H
