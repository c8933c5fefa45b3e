// What the host must know of a kernel: bindings, workgroup size, how many
// groups a step takes. All of it follows from the kernel's spec and the target
// profile; no IR is needed.
#ifndef SPRIG_CODEGEN_KERNELS_KERNELINTERFACE_H
#define SPRIG_CODEGEN_KERNELS_KERNELINTERFACE_H

#include "codegen/Target/TargetProfile.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::llm {

enum class Access : uint8_t { Read = 1, Write = 2, ReadWrite = 3 };

/// What a binding's bytes look like through a view of a storage texel buffer;
/// the numbers are those of VkFormat.
enum class TexelFormat : uint32_t {
  None = 0, ///< no view: a storage or uniform buffer
  R32Uint = 98,
  R32Sfloat = 100,
  Rgba32Uint = 107,
  Rgba32Sfloat = 109
};

/// Bytes of one element of a view.
unsigned texelBytes(TexelFormat format);

/// One buffer of descriptor set 0; its position in the list is its binding
/// number.
struct KernelBinding {
  std::string role; ///< what lies in it, e.g. "x", "weight.codes", "y"
  Access access = Access::Read;
  uint64_t bytes =
      0; ///< least bytes for one token, or in all where `perToken` is false
  bool perToken = false; ///< grows with the width of the step
  uint64_t shorter = 0;  ///< bytes that the last token's row may lack
  bool uniform = false;  ///< a uniform buffer instead of a storage buffer
  TexelFormat texel = TexelFormat::None; ///< read through a texel view

  /// What the target's limits allow the binding to span.
  uint64_t mostBytes(const TargetLimits &limits) const;
};

/// Workgroups along one dimension: `fixed`, or `fixed` for every started tile
/// of `tokensPerGroup` tokens.
struct GroupCount {
  uint32_t fixed = 1;
  uint32_t tokensPerGroup = 0;
  uint32_t forWidth(uint32_t width) const {
    return tokensPerGroup
               ? fixed * ((width + tokensPerGroup - 1) / tokensPerGroup)
               : fixed;
  }
};

struct KernelInterface {
  std::string name;   ///< unique for a key, short, a legal symbol:
                      ///< "linear_q4_1_576x1536_t1_6a09e667"
  std::string family; ///< as in the registry
  std::string key;    ///< equal keys on one target make equal kernels
  std::array<uint32_t, 3> workgroup = {1, 1, 1};
  std::vector<KernelBinding> bindings;
  std::array<GroupCount, 3> groups;
  /// Rows of activations that one group works on: per-token buffers hold a
  /// whole number of tiles, and rows past the step's width are computed like
  /// any other.
  uint32_t tokenTile = 1;
  uint32_t pushConstantBytes = 0;
  uint32_t sharedBytes = 0;
  uint32_t subgroupSize = 0; ///< the size that the code assumes, 0 = any

  std::array<uint32_t, 3> groupsFor(uint32_t width) const {
    return {groups[0].forWidth(width), groups[1].forWidth(width),
            groups[2].forWidth(width)};
  }
  uint32_t invocations() const {
    return workgroup[0] * workgroup[1] * workgroup[2];
  }
  /// The place of the binding with this role among the bindings.
  unsigned indexOf(llvm::StringRef role) const;
  /// `prefix` and eight digits of a hash of `key`.
  static std::string nameFor(const std::string &prefix, const std::string &key);
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_KERNELINTERFACE_H
