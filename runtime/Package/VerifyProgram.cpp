#include "runtime/Package/Commands.h"
#include "runtime/Package/Grid.h"
#include "runtime/Package/Names.h"
#include "runtime/Package/Ranges.h"
#include "runtime/Package/Texels.h"
#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

namespace sprig {
namespace {

using format::BufferKind;

template <class... Parts> Status corrupt(const Parts &...parts) {
  return {StatusCode::Corrupt, concat(parts...)};
}

/// What every reference to a part of a buffer has to obey.
Status verifySpan(const format::Binding &binding,
                  const format::Target &target) {
  if (binding.buffer() >= target.buffers()->size())
    return corrupt("expects a buffer below ", target.buffers()->size(),
                   ", but got ", binding.buffer());
  const format::Buffer &buffer = *target.buffers()->Get(binding.buffer());
  if (!aligned(binding.offset()))
    return corrupt("expects an offset that is a multiple of ",
                   format::kAlignment, ", but got ", binding.offset());
  if (binding.bytes() == 0 ||
      !rangeInside(binding.offset(), binding.bytes(), buffer.bytes()))
    return corrupt("expects a range of buffer '", buffer.name()->string_view(),
                   "' of ", buffer.bytes(), " bytes, but got ", binding.bytes(),
                   " bytes at ", binding.offset());
  if (binding.access() < 1 || binding.access() > 3)
    return corrupt("expects access 1 (read), 2 (write) or 3 (both), but got ",
                   binding.access());
  if (buffer.kind() == BufferKind::weights && binding.access() != 1)
    return corrupt("expects weights to be read only, but access is ",
                   binding.access());
  return {};
}

Status verifyBinding(const format::Binding &binding,
                     const format::Kernel &kernel, uint32_t index,
                     const format::Target &target) {
  if (Status status = verifySpan(binding, target); !status.ok())
    return status;
  const format::Requirements &requirements = *target.requirements();
  if (uint32_t element = texelBytes(texelFormat(kernel, index))) {
    if (binding.bytes() % element != 0 ||
        binding.bytes() / element > requirements.texel_elements())
      return corrupt("expects whole texels of ", element, " bytes, at most ",
                     requirements.texel_elements(),
                     " (the target's texel elements), but got ",
                     binding.bytes(), " bytes");
    return {};
  }
  bool uniform = kernel.uniform_bindings() >> index & 1;
  uint64_t most =
      uniform ? requirements.uniform_range() : requirements.storage_range();
  if (binding.bytes() > most)
    return corrupt("expects at most ", most, " bytes (the target's ",
                   uniform ? "uniform" : "storage", " range), but got ",
                   binding.bytes());
  if (uniform && binding.access() != 1)
    return corrupt("expects a uniform binding to be read only, but access is ",
                   binding.access());
  return {};
}

Status verifyDispatch(const format::Dispatch &dispatch,
                      const format::Target &target) {
  if (dispatch.kernel() >= target.kernels()->size())
    return corrupt("expects a kernel below ", target.kernels()->size(),
                   ", but got ", dispatch.kernel());
  const format::Kernel &kernel = *target.kernels()->Get(dispatch.kernel());
  if (dispatch.bindings()->size() != kernel.bindings())
    return corrupt("expects ", kernel.bindings(), " bindings for kernel '",
                   kernel.name()->string_view(), "', but got ",
                   dispatch.bindings()->size());
  if (!alignedStructs(*dispatch.bindings()) ||
      (dispatch.indirect() && !alignedStructs(*dispatch.indirect())))
    return corrupt("expects vectors of bindings at multiples of 8 bytes");
  for (uint32_t i = 0; i < kernel.bindings(); ++i) {
    Status status =
        verifyBinding(*dispatch.bindings()->Get(i), kernel, i, target);
    if (!status.ok())
      return status.within(concat("binding ", i));
  }
  uint32_t constants =
      dispatch.push_constants() ? dispatch.push_constants()->size() : 0;
  if (constants != kernel.push_constant_bytes())
    return corrupt("expects ", kernel.push_constant_bytes(),
                   " bytes of push constants, but got ", constants);
  if (dispatch.groups_x() == 0 || dispatch.groups_y() == 0 ||
      dispatch.groups_z() == 0)
    return corrupt("expects at least one group in each direction, but got ",
                   dispatch.groups_x(), " x ", dispatch.groups_y(), " x ",
                   dispatch.groups_z());
  const uint32_t grid[3][2] = {{dispatch.base_x(), dispatch.groups_x()},
                               {dispatch.base_y(), dispatch.groups_y()},
                               {dispatch.base_z(), dispatch.groups_z()}};
  for (auto [base, groups] : grid)
    if (base > UINT32_MAX - groups)
      return corrupt("expects a grid of at most ", UINT32_MAX,
                     " groups in each direction, but got ", groups, " from ",
                     base);
  if (!dispatch.indirect() || dispatch.indirect()->size() == 0)
    return {};
  if (hasBase(dispatch))
    return corrupt("expects either a base or an indirect argument, but got "
                   "both");
  if (dispatch.indirect()->size() != 1)
    return corrupt("expects at most one indirect argument, but got ",
                   dispatch.indirect()->size());
  const format::Binding &indirect = *dispatch.indirect()->Get(0);
  if (Status status = verifySpan(indirect, target); !status.ok())
    return status.within("indirect");
  BufferKind kind = target.buffers()->Get(indirect.buffer())->kind();
  if (indirect.bytes() < 12 || kind == BufferKind::weights)
    return corrupt("indirect: expects 12 bytes of a buffer that kernels write, "
                   "but got ",
                   indirect.bytes(), " bytes of a ", nameOf(kind), " buffer");
  return {};
}

} // namespace

Status verifyCommand(const format::Command &command,
                     const format::Target &target) {
  const format::Dispatch *dispatch = command.dispatch();
  if (!dispatch == !command.barrier())
    return corrupt("expects either a dispatch or a barrier");
  if (dispatch) {
    const uint32_t labels = target.labels() ? target.labels()->size() : 0;
    if (dispatch->label() > labels)
      return corrupt("expects a label of 0 to ", labels, ", but got ",
                     dispatch->label());
    Status status = verifyDispatch(*dispatch, target);
    return status.ok()
               ? status
               : status.within(concat("dispatch '", labelOf(target, *dispatch),
                                      "'"));
  }
  if (command.barrier()->kind() > format::BarrierKind::MAX)
    return corrupt("expects a known kind of barrier, but got ",
                   int(command.barrier()->kind()));
  return {};
}

Status verifyProgram(const format::Program &program,
                     const format::Target &target) {
  const uint32_t known = target.commands()->size();
  for (uint32_t i = 0; i < program.commands()->size(); ++i)
    if (program.commands()->Get(i) >= known)
      return corrupt("command ", i, ": expects a number below the target's ",
                     known, " commands, but got ", program.commands()->Get(i));
  return {};
}

} // namespace sprig
