// Byte ranges touched since the last barrier, kept by the buffer (or unplaced
// scratch value) they lie in.
#include "dialects/Plan/Hazards.h"

using namespace mlir;
using namespace mlir::plan;

/// Buffers are told apart by name, unplaced scratch values by identity.
static const void *keyOf(const Place &place) {
  return place.symbol ? place.symbol.getAsOpaquePointer()
                      : place.scratch.getAsOpaquePointer();
}

bool HazardTracker::conflicts(const Place &place, bool write) const {
  auto it = spans.find(keyOf(place));
  if (place.weight || it == spans.end())
    return false;
  return llvm::any_of(it->second, [&](const Span &span) {
    return (write || span.write) && place.offset < span.end &&
           span.begin < place.offset + place.bytes;
  });
}

bool HazardTracker::needsBarrier(DispatchOp dispatch, bool &indirect) const {
  indirect = false;
  bool wait = false;
  if (Value counts = dispatch.getIndirect()) {
    indirect = conflicts(getPlace(counts), /*write=*/false);
    wait |= indirect;
  }
  for (auto [i, binding] : llvm::enumerate(dispatch.getBindings()))
    wait |= conflicts(getPlace(binding), dispatch.writes(i));
  return wait;
}

void HazardTracker::add(DispatchOp dispatch) {
  auto note = [&](Value view, bool write) {
    Place place = getPlace(view);
    if (!place.weight)
      spans[keyOf(place)].push_back(
          {place.offset, place.offset + place.bytes, write});
  };
  for (auto [i, binding] : llvm::enumerate(dispatch.getBindings()))
    note(binding, dispatch.writes(i));
  if (dispatch.getIndirect())
    note(dispatch.getIndirect(), /*write=*/false);
}
