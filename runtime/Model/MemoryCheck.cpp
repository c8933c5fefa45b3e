#include "runtime/Model/MemoryCheck.h"
#include "runtime/Support/Strings.h"

namespace sprig {
namespace {

/// Bytes of the caches with numbers of so many bits, as llm-compile --kv makes
/// them: 8 bits have a scale of four bytes a head, 4 bits one for 32 numbers.
uint64_t cacheBytes(const format::Target &target, uint32_t bits) {
  uint64_t bytes = 0;
  for (const format::KvCache *cache : *target.kv_caches()) {
    const uint64_t head = cache->head_size();
    const uint64_t scales = bits == 8 ? 4 : bits == 4 ? (head + 31) / 32 * 4 : 0;
    bytes += 2 * uint64_t(cache->layers()) * cache->capacity() *
             cache->heads() * ((head * bits + 7) / 8 + scales);
  }
  return bytes;
}

/// What would fit, for the end of the message.
std::string whatFits(const format::Target &target, const format::Model &model,
                     const MemoryPlan &plan, uint64_t needed,
                     uint64_t available) {
  const uint64_t fixed = needed - plan.kv;
  std::string fits;
  if (plan.kv == 0)
    return fits;
  const uint64_t perToken = (plan.kv + model.context() - 1) / model.context();
  if (const uint64_t context =
          available > fixed ? (available - fixed) / perToken : 0)
    fits = concat("a context of ", context, " tokens (llm-compile --context=",
                  context, ")");
  for (uint32_t bits : {16u, 8u, 4u}) {
    const uint64_t bytes = cacheBytes(target, bits);
    if (bytes >= plan.kv || fixed + bytes > available)
      continue;
    fits += concat(fits.empty() ? "" : ", or ", "the whole context of ",
                   model.context(), " with a KV cache of ", bits,
                   " bits (llm-compile --kv=", bits, ", ", humanBytes(bytes),
                   ")");
    break;
  }
  if (fits.empty())
    return "; not even a context of one token would fit: compile with weights "
           "of fewer bits (--quantize) or narrower steps (--widths)";
  return "; what would fit: " + fits;
}

} // namespace

Status checkMemory(const format::Target &target, const format::Model &model,
                   const MemoryNeed &need) {
  const MemoryPlan plan = MemoryPlan::of(target);
  const uint64_t needed = need.weights + plan.session();
  if (needed <= need.available)
    return {};
  return {StatusCode::OutOfMemory,
          concat("expects ", humanBytes(needed), " of memory on '", need.device,
                 "' (weights ", humanBytes(need.weights), ", KV cache ",
                 humanBytes(plan.kv), ", other ",
                 humanBytes(plan.session() - plan.kv), "), but ",
                 humanBytes(need.available), " are free, ",
                 humanBytes(needed - need.available), " too few",
                 whatFits(target, model, plan, needed, need.available))};
}

} // namespace sprig
