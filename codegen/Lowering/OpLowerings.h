// The table of operations that have kernels. Each group of operations has a
// file of its own that adds its rows.
#ifndef SPRIG_CODEGEN_LOWERING_OPLOWERINGS_H
#define SPRIG_CODEGEN_LOWERING_OPLOWERINGS_H

#include "codegen/Kernels/RopeAppend.h"
#include "codegen/Lowering/ProgramLowering.h"
#include "runtime/Format/Control.h"

namespace mlir::llm {

/// Adds the dispatches of one operation, and gives its results their views.
using OpLowering = LogicalResult (*)(ProgramLowering &, Operation *);

/// The lowering of `op`, or null.
OpLowering findOpLowering(Operation *op);
/// Names of the operations in the table, in alphabetical order.
SmallVector<StringRef> loweredOps();

struct OpLoweringRow {
  StringRef name;
  OpLowering lowering;
};

/// Adapts a lowering of one operation class to a row of the table.
template <typename OpT, LogicalResult (*lower)(ProgramLowering &, OpT)>
OpLoweringRow loweringOf() {
  return {OpT::getOperationName(), [](ProgramLowering &p, Operation *op) {
            return lower(p, cast<OpT>(op));
          }};
}

// One list a file.
ArrayRef<OpLoweringRow> appendLowerings();
ArrayRef<OpLoweringRow> attentionLowerings();
ArrayRef<OpLoweringRow> draftLowerings();
ArrayRef<OpLoweringRow> elementwiseLowerings();
ArrayRef<OpLoweringRow> embeddingLowerings();
ArrayRef<OpLoweringRow> evictLowerings();
ArrayRef<OpLoweringRow> expertLowerings();
ArrayRef<OpLoweringRow> headLowerings();
ArrayRef<OpLoweringRow> integerLowerings();
ArrayRef<OpLoweringRow> linearLowerings();
ArrayRef<OpLoweringRow> normLowerings();
ArrayRef<OpLoweringRow> treeLowerings();

/// Nodes that the table of a tree has room for, whatever the width: programs of
/// all widths share their kernels.
inline constexpr int64_t kTreeStride = sprig::format::kMostNodes;

/// Positions of an append or an attention: those that the function is given, or
/// the depths of a tree behind a base. The table of the tree, or null; the
/// failure is reported.
FailureOr<Value> treeOf(ProgramLowering &program, Operation *op,
                        Value positions, Value base);

/// The numbers of a cached value where they are fewer than those of a key, else
/// 0.
int64_t shorterValue(KVType type);

/// Chosen columns of activations TxK.
LogicalResult gatherColumns(ProgramLowering &program, GatherOp op);

/// Rounds `input` to the type of `result`, behind the norm `norm` where it is
/// one: integers where all users can multiply them, else the f32 numbers that
/// they stand for.
LogicalResult quantizeRows(ProgramLowering &program, Operation *op,
                           RmsNormOp norm, Value input, Value result);
/// Rounds the f32 numbers in the view of the result of `op` where its type is
/// quantised, as above.
LogicalResult roundResult(ProgramLowering &program, Operation *op);
/// Whether the view of `value` holds integers (IntegerRows.h).
bool holdsIntegers(ProgramLowering &program, Value value);
/// y = x · wᵀ of integers.
LogicalResult lowerIntegerLinear(ProgramLowering &program, LinearOp op);
LogicalResult lowerIntegerLinear(ProgramLowering &program, GatedLinearOp op);

/// The append that the product `op` does itself (LinearAppend.h), since its rows
/// are the queries, keys and values that go there and nowhere else; null where
/// the append is a dispatch of its own. The failure is reported.
FailureOr<KVAppendOp> appendOf(ProgramLowering &program, LinearOp op);
/// Whether the kernel of `op` can end with `append` on the target.
bool canAppend(ProgramLowering &program, LinearOp op,
               const RopeAppendSpec &append);
/// The product and its append in one dispatch; `operands`: those of the append.
LogicalResult lowerAppendingLinear(ProgramLowering &program, LinearOp op,
                                   const RopeAppendSpec &append,
                                   ArrayRef<Operand> operands);

/// Whether `user` is a product whose kernel finds `factor`, an RMS factor of the
/// rows that it reads, on the way.
bool findsFactor(ProgramLowering &program, Operation *user, Value factor);

/// How many tokens may be drawn by what `llm.model` says (`tokens`: the ids of
/// its tokenizer; the rows behind them pad the vocabulary); 0 where all may.
int64_t drawableTokens(Operation *at, int64_t vocabulary);

/// Hidden states between programs (LowerDraft.cpp). What the model's programs
/// leave for heads (null: nothing), which mostly is what the last layer does,
/// and that.
Value hiddenToLeave(ProgramLowering &p);
LogicalResult leaveHidden(ProgramLowering &p);
/// The hidden state that a draft starts from, and the one that it leaves for
/// its next guess, if it does.
LogicalResult takeHidden(ProgramLowering &p);
LogicalResult passHidden(ProgramLowering &p);
/// At the end of a verify program: for layers that read the hidden state of the
/// token before (llm.previous_rows).
LogicalResult keepAccepted(ProgramLowering &p);

/// Where drafts leave what they say (runtime/Format/Guesses.h), and that.
Value guessesView(ProgramLowering &p);
LogicalResult lowerGuesses(ProgramLowering &p, Operation *at, Value logits);

/// The end of a `sample` or `draft` program: draws a token from the logits and
/// advances the control block.
LogicalResult lowerSampling(ProgramLowering &program, Operation *at,
                            Value logits);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_LOWERING_OPLOWERINGS_H
