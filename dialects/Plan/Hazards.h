// Which dispatches must not run at the same time: the one rule that memory
// planning and barrier insertion share.
#ifndef SPRIG_DIALECTS_PLAN_HAZARDS_H
#define SPRIG_DIALECTS_PLAN_HAZARDS_H

#include "dialects/Plan/Plan.h"

namespace mlir::plan {

/// The bytes touched since the last barrier. At the start of a program nothing
/// is pending: the runtime separates programs (runtime/Format/Package.fbs).
class HazardTracker {
public:
  /// Whether `dispatch` must wait for a barrier. `indirect`, then, is set when
  /// it reads its workgroup counts from bytes that were written since the last
  /// one.
  bool needsBarrier(DispatchOp dispatch, bool &indirect) const;

  /// Adds what `dispatch` touches.
  void add(DispatchOp dispatch);

  /// A barrier: nothing is pending any more.
  void clear() { spans.clear(); }

private:
  struct Span {
    int64_t begin, end;
    bool write;
  };

  bool conflicts(const Place &place, bool write) const;

  llvm::DenseMap<const void *, SmallVector<Span, 4>>
      spans; // by buffer name or scratch value
};

} // namespace mlir::plan

#endif // SPRIG_DIALECTS_PLAN_HAZARDS_H
