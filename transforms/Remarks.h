// How passes tell what they did and what they left: remarks of category `llm`, named after the pass.
#ifndef SPRIG_TRANSFORMS_REMARKS_H
#define SPRIG_TRANSFORMS_REMARKS_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/Twine.h"

namespace mlir::llm {

inline constexpr StringLiteral kRemarkCategory = "llm";

/// Why an opportunity that a user would see was left: a `missed` remark, and a reason for the rewriter's log.
inline LogicalResult refuse(RewriterBase &rewriter, Operation *op, StringRef pass, const Twine &why) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name(pass).category(kRemarkCategory)) << StringRef(why.str());
  return rewriter.notifyMatchFailure(op, why);
}

/// What was done: a `passed` remark.
inline void report(Operation *op, StringRef pass, const Twine &what) {
  remark::passed(op->getLoc(), remark::RemarkOpts::name(pass).category(kRemarkCategory)) << StringRef(what.str());
}

} // namespace mlir::llm

#endif // SPRIG_TRANSFORMS_REMARKS_H
