#include "runtime/Package/Spirv.h"
#include "runtime/Format/SpirvCodec.h"
#include "runtime/Package/Names.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sprig {
namespace {

using format::Feature;

// Numbers of the SPIR-V specification, sections 3.32 (instructions), 3.6
// (execution modes) and 3.20 (decorations).
enum : uint32_t {
  kMagicNumber = 0x07230203,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpDecorate = 71,
  kModelGLCompute = 5,
  kModeLocalSize = 17,
  kDecorationBinding = 33,
  kDecorationDescriptorSet = 34,
};

/// Capability → the feature a target has to require for it.
constexpr struct {
  uint32_t capability;
  Feature feature;
} kCapabilities[] = {
    {9, Feature::shader_float16},
    {10, Feature::shader_float64},
    {11, Feature::shader_int64},
    {22, Feature::shader_int16},
    {39, Feature::shader_int8},
    {61, Feature::subgroup_basic},
    {62, Feature::subgroup_vote},
    {63, Feature::subgroup_arithmetic},
    {64, Feature::subgroup_ballot},
    {65, Feature::subgroup_shuffle},
    {66, Feature::subgroup_shuffle_relative},
    {67, Feature::subgroup_clustered},
    {4433, Feature::storage_16bit},
    {4434, Feature::uniform_16bit},
    {4448, Feature::storage_8bit},
    {4449, Feature::uniform_8bit},
    {5345, Feature::vulkan_memory_model},
    {6016, Feature::integer_dot_product},
    {6017, Feature::integer_dot_product},
    {6018, Feature::integer_dot_product},
    {6019, Feature::integer_dot_product},
    {6022, Feature::cooperative_matrix},
};

template <class... Parts> Status corrupt(const Parts &...parts) {
  return {StatusCode::Corrupt, concat(parts...)};
}

/// The highest SPIR-V version that a Vulkan version takes (Vulkan
/// specification, appendix "Vulkan Environment for SPIR-V").
uint32_t highestSpirv(uint32_t vulkan) {
  uint32_t minor = vulkan >> 12 & 0x3ff, major = vulkan >> 22 & 0x7f;
  if (major > 1 || minor >= 3)
    return 0x10600;
  return minor == 2 ? 0x10500 : 0x10300;
}

bool needs(const format::Requirements &requirements, Feature feature) {
  const auto *features = requirements.features();
  return features && std::any_of(features->begin(), features->end(),
                                 [&](auto f) { return Feature(f) == feature; });
}

Status checkCapability(uint32_t capability,
                       const format::Requirements &requirements) {
  // Matrix, Shader; SampledBuffer, ImageBuffer: part of Vulkan
  if (capability <= 1 || capability == 46 || capability == 47)
    return {};
  for (const auto &known : kCapabilities) {
    if (known.capability != capability)
      continue;
    if (needs(requirements, known.feature))
      return {};
    return corrupt("expects capabilities that the target requires, but got ",
                   capability, ", which needs ", nameOf(known.feature));
  }
  return corrupt("expects capabilities that this runtime knows, but got ",
                 capability);
}

/// One walk over the instructions before the first function.
class Walk {
public:
  Walk(const format::Kernel &kernel, const format::Requirements &requirements)
      : kernel(kernel), requirements(requirements) {}

  Status take(uint32_t opcode, const uint32_t *words, uint32_t count) {
    if (opcode == kOpCapability && count >= 2)
      return checkCapability(words[1], requirements);
    if (opcode == kOpEntryPoint && count >= 4)
      return takeEntry(words, count);
    if (opcode == kOpExecutionMode && count >= 6 && words[2] == kModeLocalSize)
      return takeSize(words);
    if (opcode == kOpDecorate && count >= 4) {
      if (words[2] == kDecorationBinding && words[3] >= kernel.bindings())
        return corrupt("expects bindings below ", kernel.bindings(),
                       ", but got ", words[3]);
      if (words[2] == kDecorationDescriptorSet && words[3] != 0)
        return corrupt("expects descriptor set 0, but got ", words[3]);
    }
    return {};
  }

  Status finish() const {
    if (!entry)
      return corrupt("expects a compute entry point '",
                     kernel.entry()->string_view(), "', but got none");
    if (!sized)
      return corrupt("expects a LocalSize for the entry point, but got none");
    return {};
  }

private:
  Status takeEntry(const uint32_t *words, uint32_t count) {
    const char *name = reinterpret_cast<const char *>(words + 3);
    size_t length = strnlen(name, 4 * (count - 3));
    if (length < 4 * (count - 3) && words[1] == kModelGLCompute &&
        std::string_view(name, length) == kernel.entry()->string_view())
      entry = words[2];
    return {};
  }

  Status takeSize(const uint32_t *words) {
    if (words[1] != entry)
      return {};
    sized = true;
    if (words[3] == kernel.workgroup_x() && words[4] == kernel.workgroup_y() &&
        words[5] == kernel.workgroup_z())
      return {};
    return corrupt("expects a workgroup of ", kernel.workgroup_x(), " x ",
                   kernel.workgroup_y(), " x ", kernel.workgroup_z(),
                   ", but got ", words[3], " x ", words[4], " x ", words[5]);
  }

  const format::Kernel &kernel;
  const format::Requirements &requirements;
  uint32_t entry = 0; ///< id of the entry point's function
  bool sized = false;
};

} // namespace

Status checkSpirv(const format::Kernel &kernel,
                  const format::Requirements &requirements) {
  const std::optional<std::vector<uint32_t>> decoded =
      format::decodeSpirv({kernel.code()->data(), kernel.code()->size()});
  if (!decoded)
    return corrupt("expects a module as Format/SpirvCodec.h encodes it, but "
                   "got ",
                   kernel.code()->size(), " other bytes");
  const uint32_t *words = decoded->data();
  const uint32_t total = uint32_t(decoded->size());
  if (total < 5 || words[0] != kMagicNumber)
    return corrupt("expects a module (magic 0x07230203), but got ", total,
                   " words that do not start so");
  uint32_t highest = highestSpirv(requirements.vulkan_version());
  if (words[1] > highest || words[1] < 0x10000)
    return corrupt("expects version 1.0 to 1.", highest >> 8 & 0xff,
                   " (the target's Vulkan), but got ", words[1] >> 16, ".",
                   words[1] >> 8 & 0xff);
  if (words[3] == 0 || words[3] > 1u << 22)
    return corrupt("expects an id bound of 1 to 4194304, but got ", words[3]);
  Walk walk(kernel, requirements);
  bool before = true; // the first function ends what Walk looks at
  uint32_t last = 0;
  for (uint32_t at = 5; at < total;) {
    uint32_t count = words[at] >> 16, opcode = words[at] & 0xffff;
    if (count == 0 || count > total - at)
      return corrupt("expects whole instructions, but the one at word ", at,
                     " claims ", count, " of the ", total - at, " words left");
    before = before && opcode != kOpFunction;
    if (before)
      if (Status status = walk.take(opcode, words + at, count); !status.ok())
        return status;
    at += count;
    last = opcode;
  }
  if (last != kOpFunctionEnd)
    return corrupt("expects a module that ends with a function, but it was cut "
                   "short");
  return walk.finish();
}

} // namespace sprig
