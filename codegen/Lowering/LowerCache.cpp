// Dispatches on caches that one binding spans, or several.
#include "codegen/Lowering/ProgramLowering.h"

namespace mlir::llm {

SmallVector<Operand, 2> ProgramLowering::cacheOperands(const CachePlan &cache,
                                                       int64_t part) {
  uint64_t skipped = 0, bytes = cache.sideBytes;
  if (cache.parts) {
    const int64_t first = part * cache.parts.part,
                  slots = targetLowering.capacity();
    skipped = uint64_t(first) * cache.slotBytes;
    bytes = uint64_t(std::min(cache.parts.spanned(slots), slots - first)) *
            cache.slotBytes;
  }
  return {{"keys", bufferView(cache.buffer, cache.keys + skipped, bytes), 0},
          {"values", bufferView(cache.buffer, cache.values + skipped, bytes),
           0}};
}

LogicalResult ProgramLowering::dispatchOnCache(
    Operation *op, StringRef family, DictionaryAttr spec,
    const CachePlan &cache, SmallVector<Operand> operands, int64_t rowCount,
    StringRef what, Value counts, ContextWork context, int64_t groupsOfAPart) {
  if (!cache.parts)
    return dispatch(op, family, spec, operands, rowCount, what, 0, counts,
                    context);
  FailureOr<const KernelInterface *> kernel =
      targetLowering.kernel(family, spec, op);
  if (failed(kernel))
    return failure();
  const auto all = int64_t((*kernel)->groupsFor(uint32_t(rowCount))[2]);
  const int64_t parts = cache.parts.count(targetLowering.capacity());
  if (cache.scaleBytes)
    operands.push_back(
        {"scales", bufferView(cache.buffer, cache.scales, 2 * cache.scaleBytes),
         0});
  for (int64_t part = 0; part < parts; ++part) {
    for (Operand &own : cacheOperands(cache, part))
      for (Operand &operand : operands)
        if (operand.role == own.role)
          operand = own;
    const int64_t first = part * groupsOfAPart;
    // Counted on the device are all splits, not those of a part.
    if (failed(dispatch(op, family, spec, operands, rowCount, what, 0, {},
                        {context.macs / parts, context.bytes / parts},
                        {int32_t(first),
                         int32_t(std::min(groupsOfAPart, all - first))})))
      return failure();
  }
  return success();
}

CacheLayers ProgramLowering::layersOf(const CachePlan &cache, KVType type,
                                      int64_t layers) {
  CacheLayers all;
  all.layers = layers;
  all.stride = layers > 1 ? int64_t(cache.layerBytes) : 0;
  all.kvHeads = type.getHeads();
  all.headSize = type.getKeyWidth();
  all.capacity = targetLowering.capacity();
  all.kv = cache.format;
  return all;
}

} // namespace mlir::llm
