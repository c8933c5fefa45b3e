#include "runtime/Format/Guesses.h"
#include "runtime/Package/Names.h"
#include "runtime/Package/Ranges.h"
#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <set>

namespace sprig {
namespace {

using format::BufferKind;

/// No real device holds more; keeps every sum of sizes far from wrapping.
constexpr uint64_t kMostBytes = uint64_t(1) << 48;
constexpr uint32_t kWidest = 4096;

template <class... Parts> Status corrupt(const Parts &...parts) {
  return {StatusCode::Corrupt, concat(parts...)};
}

Status verifyBuffer(const format::Buffer &buffer, uint64_t weightBytes) {
  if (buffer.kind() > BufferKind::MAX)
    return corrupt("expects a known kind, but got ", int(buffer.kind()));
  if (buffer.bytes() == 0 || buffer.bytes() > kMostBytes)
    return corrupt("expects 1 to ", kMostBytes, " bytes, but got ",
                   buffer.bytes());
  if (buffer.kind() == BufferKind::weights &&
      (!aligned(buffer.file_offset(), format::kPageBytes) ||
       !rangeInside(buffer.file_offset(), buffer.bytes(), weightBytes)))
    return corrupt("expects pages of the weight section of ", weightBytes,
                   " bytes, but got ", buffer.bytes(), " bytes at ",
                   buffer.file_offset());
  return {};
}

/// There is one control block and one history, and they and the logits are as
/// large as the programs need.
Status verifySpecialBuffers(const format::Target &target,
                            const format::Model &model) {
  uint64_t widest = 0, rows = 1;
  uint64_t controlBytes = 4 * uint64_t(format::ControlWords);
  for (const format::Program *program : *target.programs()) {
    widest = std::max<uint64_t>(widest, program->width());
    if (program->kind() == format::ProgramKind::logits ||
        program->kind() == format::ProgramKind::verify ||
        program->kind() == format::ProgramKind::draft)
      rows = std::max<uint64_t>(rows, program->width());
    // What a draft says of a tree is all that it leaves.
    if (program->kind() == format::ProgramKind::draft && program->width() > 1)
      controlBytes = format::kGuessOffset + format::kGuessBytes;
  }
  const struct {
    BufferKind kind;
    uint64_t least;
    bool needed;
  } kinds[] = {{BufferKind::control, controlBytes, true},
               {BufferKind::history, 4 * (model.context() + widest), true},
               {BufferKind::logits, 4 * rows * model.vocabulary(), false}};
  for (const auto &expected : kinds) {
    const format::Buffer *found = nullptr;
    for (const format::Buffer *buffer : *target.buffers()) {
      if (buffer->kind() != expected.kind)
        continue;
      if (found)
        return corrupt("expects one ", nameOf(expected.kind),
                       " buffer, but got several");
      found = buffer;
    }
    if (!found && expected.needed)
      return corrupt("expects a ", nameOf(expected.kind),
                     " buffer, but got none");
    if (found && found->bytes() < expected.least)
      return corrupt("expects a ", nameOf(expected.kind),
                     " buffer of at least ", expected.least, " bytes, but got ",
                     found->bytes());
  }
  return {};
}

Status verifyRequirements(const format::Requirements &requirements) {
  if (requirements.features())
    for (format::Feature feature : *requirements.features())
      if (feature > format::Feature::MAX)
        return corrupt("expects known features, but got number ", int(feature));
  uint32_t size = requirements.subgroup_size();
  if (size > 128 || (size & (size - 1)) != 0)
    return corrupt("expects a subgroup size of 0 or a power of two up to 128, "
                   "but got ",
                   size);
  if (requirements.offset_alignment() > format::kAlignment)
    return corrupt("expects an offset alignment of at most ",
                   format::kAlignment, ", but got ",
                   requirements.offset_alignment());
  return {};
}

Status verifyKvCache(const format::KvCache &cache,
                     const format::Target &target, uint32_t context) {
  if (cache.buffer() >= target.buffers()->size())
    return corrupt("expects a buffer below ", target.buffers()->size(),
                   ", but got ", cache.buffer());
  const format::Buffer &buffer = *target.buffers()->Get(cache.buffer());
  if (buffer.kind() != BufferKind::kv ||
      !rangeInside(cache.offset(), cache.bytes(), buffer.bytes()))
    return corrupt("expects a range of a kv buffer, but got ", cache.bytes(),
                   " bytes at ", cache.offset(), " of '",
                   buffer.name()->string_view(), "', a ", nameOf(buffer.kind()),
                   " buffer of ", buffer.bytes());
  // Sessions are saved by these numbers.
  if (cache.layers() == 0 || cache.bytes() % cache.layers() != 0)
    return corrupt("expects bytes that are a multiple of the layers, but got ",
                   cache.bytes(), " for ", cache.layers());
  if (cache.capacity() < context)
    return corrupt("expects slots for a context of ", context, ", but got ",
                   cache.capacity());
  for (const format::KvPlane *plane : *cache.planes())
    if (!rangeInside(plane->offset(),
                     uint64_t(cache.capacity()) * plane->slot_bytes(),
                     cache.bytes() / cache.layers()))
      return corrupt("expects planes inside the ",
                     cache.bytes() / cache.layers(),
                     " bytes of a layer, but got ", cache.capacity(),
                     " slots of ", plane->slot_bytes(), " bytes at ",
                     plane->offset());
  return {};
}

Status verifyPrograms(const format::Target &target) {
  std::set<std::array<uint32_t, 3>> seen;
  for (const format::Program *program : *target.programs()) {
    if (program->kind() > format::ProgramKind::MAX)
      return corrupt("expects programs of a known kind, but got ",
                     int(program->kind()));
    std::string where = concat("program ", nameOf(*program));
    if (program->width() == 0 || program->width() > kWidest)
      return corrupt(where, ": expects a width of 1 to ", kWidest);
    const bool guesses = program->kind() == format::ProgramKind::draft;
    if ((program->kind() == format::ProgramKind::verify || guesses) &&
        program->width() > format::kMostNodes)
      return corrupt(where, ": expects trees of at most ", format::kMostNodes,
                     " nodes");
    if (!guesses && program->guess() != 0)
      return corrupt(where, ": expects the number of a guess for drafts alone");
    if (program->kind() == format::ProgramKind::evict && program->width() != 1)
      return corrupt(where, ": expects width 1 for what makes room");
    if (!seen.insert({uint32_t(program->kind()), program->width(),
                      program->guess()})
             .second)
      return corrupt(where, ": expects each kind and width once");
    if (Status status = verifyProgram(*program, target); !status.ok())
      return status.within(where);
  }
  if (!seen.count({uint32_t(format::ProgramKind::sample), 1, 0}))
    return corrupt("expects a sample program of width 1, but got none");
  return {};
}

} // namespace

Status verifyTarget(const format::Target &target, const format::Model &model,
                    uint64_t weightBytes) {
  if (Status status = verifyRequirements(*target.requirements()); !status.ok())
    return status.within("requirements");
  for (const format::Buffer *buffer : *target.buffers())
    if (Status status = verifyBuffer(*buffer, weightBytes); !status.ok())
      return status.within(
          concat("buffer '", buffer->name()->string_view(), "'"));
  for (const format::Kernel *kernel : *target.kernels())
    if (Status status = verifyKernel(*kernel, *target.requirements());
        !status.ok())
      return status.within(
          concat("kernel '", kernel->name()->string_view(), "'"));
  uint32_t index = 0;
  for (const format::Command *command : *target.commands()) {
    if (Status status = verifyCommand(*command, target); !status.ok())
      return status.within(concat("command ", index));
    ++index;
  }
  if (Status status = verifyPrograms(target); !status.ok())
    return status;
  for (const format::KvCache *cache : *target.kv_caches())
    if (Status status = verifyKvCache(*cache, target, model.context()); !status.ok())
      return status.within(
          concat("kv cache '", cache->name()->string_view(), "'"));
  return verifySpecialBuffers(target, model);
}

} // namespace sprig
