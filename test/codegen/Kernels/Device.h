// The simplest thing that runs a compute shader on a Vulkan device: the tests
// of the kernels use it, nothing else.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_DEVICE_H
#define SPRIG_TEST_CODEGEN_KERNELS_DEVICE_H

#include "codegen/Kernels/KernelInterface.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm::test {

/// Bytes of one binding; the same memory may be bound several times.
using Bytes = std::vector<uint8_t>;

class Device {
public:
  /// The first device of the first working driver, or null with the reason in
  /// `why`.
  static std::unique_ptr<Device> open(std::string &why);
  ~Device();

  /// Runs the kernel once for a step of `width` tokens; buffers are copied in
  /// and, where the kernel writes, out. Returns an empty string or what went
  /// wrong.
  std::string run(const KernelInterface &interface,
                  const std::vector<uint32_t> &spirv,
                  std::vector<Bytes> &buffers, uint32_t width);
  struct Seconds {
    double wall, processor; ///< of all threads of this process
  };
  /// Best times of a dispatch among `rounds` submissions of `dispatches` each.
  std::optional<Seconds> time(const KernelInterface &interface,
                              const std::vector<uint32_t> &spirv,
                              std::vector<Bytes> &buffers, uint32_t width,
                              unsigned dispatches, unsigned rounds);

  const std::string &name() const;
  uint32_t subgroupSize() const;
  bool lavapipe() const;
  /// VK_KHR_shader_integer_dot_product, switched on.
  bool dotProducts() const;

private:
  Device();
  struct State;
  std::unique_ptr<State> state;
};

/// The device of this process, or null; tests skip with `deviceMissing()`.
Device *device();
const std::string &deviceMissing();

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_DEVICE_H
