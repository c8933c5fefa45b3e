//===- Texels.h - the texel formats that kernels may ask for --------------===//
//
// Numbers are those of VkFormat. Every Vulkan device reads storage texel
// buffers of these formats, so nothing has to be asked of it but their length.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"

namespace sprig {

/// Bytes of an element: VK_FORMAT_R32_UINT, R32_SFLOAT, R32G32B32A32_UINT and
/// R32G32B32A32_SFLOAT; 0 for any other format.
inline uint32_t texelBytes(uint32_t format) {
  switch (format) {
  case 98:
  case 100:
    return 4;
  case 107:
  case 109:
    return 16;
  default:
    return 0;
  }
}

/// The format of a binding's view, 0 where it is a plain buffer.
inline uint32_t texelFormat(const format::Kernel &kernel, uint32_t binding) {
  const auto *formats = kernel.texel_formats();
  return formats && binding < formats->size() ? formats->Get(binding) : 0;
}

} // namespace sprig
