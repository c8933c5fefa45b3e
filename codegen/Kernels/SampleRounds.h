// The multi-round rule (SpecInfer, arXiv 2305.09781; drawn without replacement:
// Sequoia, arXiv 2402.12374) at a node of a tree whose children a draft drew:
// child x stays if u < p(x) / q(x), otherwise p becomes norm(max(p - q, 0)) and
// q loses x. What follows is distributed as p, whatever q is.
//
// The draft's distribution has kGuesses tokens at most (Format/Guesses.h), so
// the rule changes so many numbers of p one by one and scales the rest.
#ifndef SPRIG_CODEGEN_KERNELS_SAMPLEROUNDS_H
#define SPRIG_CODEGEN_KERNELS_SAMPLEROUNDS_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/StepControl.h"

namespace mlir::llm {

class SampleNoise;

class SampleRounds {
public:
  /// Reads what the children of `node` were drawn from, at `guesses`.
  SampleRounds(KernelBuilder &builder, StepControl control, unsigned guesses,
               Value node);

  unsigned size() const { return unsigned(ids.size()); }
  /// The i-th token that the draft named, i32.
  Value token(unsigned i) const { return ids[i]; }
  /// Whether it named `token` (index).
  Value names(Value token);

  struct Verdict {
    Value token;  ///< of the child that stays, or ~0
    Values named; ///< what became of p at the tokens that the draft named
    Value scale;  ///< and by how much p grew at all others
  };
  /// Goes through the children, in the order in which they were drawn. `named`:
  /// p at the named tokens; `rest`: of all others together. `tokenOf` gives the
  /// token of a node.
  Verdict walk(Values named, Value rest, SampleNoise &noise, Value count,
               function_ref<Value(Value node)> tokenOf);

private:
  KernelBuilder &b;
  StepControl control;
  Value node;
  Values ids, drawn; ///< q
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SAMPLEROUNDS_H
