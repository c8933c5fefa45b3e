// Sampling and trees of draft tokens: docs/sampling.md.
#include "lib/Reference/Interpreter.h"
#include "lib/Reference/Math/Sample.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// The eight words of `llm.sample`.
static SampleParameters parametersOf(ArrayRef<int32_t> words) {
  auto number = [&](size_t i) { return llvm::bit_cast<float>(words[i]); };
  SampleParameters parameters;
  parameters.seedLow = uint32_t(words[0]), parameters.seedHigh = uint32_t(words[1]);
  parameters.temperature = number(2), parameters.topK = uint32_t(words[3]);
  parameters.topP = number(4), parameters.minP = number(5);
  parameters.repeatPenalty = number(6), parameters.repeatLastN = uint32_t(words[7]);
  return parameters;
}

/// Tokens before `position`.
static std::span<const int32_t> before(ArrayRef<int32_t> history, int64_t position) {
  return {history.data(), size_t(std::clamp<int64_t>(position, 0, int64_t(history.size())))};
}

template <typename F> static LogicalResult evaluateSample(const OpContext<F> &context) {
  auto op = cast<SampleOp>(context.op);
  const Tensor &logits = context.get(op.getLogits());
  const SampleParameters parameters = parametersOf(context.ints(op.getParameters()));
  const ArrayRef<int32_t> history = context.ints(op.getHistory()), positions = context.ints(op.getPositions());
  const size_t V = size_t(logits.width());
  int32_t *tokens = context.template make<int32_t>(op.getTokens(), logits.rows());
  for (size_t t = 0; t < size_t(logits.rows()); ++t)
    tokens[t] = sample<F>({logits.as<F>().data() + t * V, V}, parameters, before(history, positions[t]),
                          uint32_t(positions[t]));
  return success();
}

template <typename F> static LogicalResult evaluateTreeMask(const OpContext<F> &context) {
  auto op = cast<TreeMaskOp>(context.op);
  const ArrayRef<int32_t> parents = context.ints(op.getParents());
  for (auto [i, parent] : llvm::enumerate(parents))
    if (parent < -1 || parent >= int64_t(i) || parents.size() > 64)
      return op.emitOpError("expects at most 64 nodes, each after its parent, but got parent ")
             << parent << " of node " << i << " in " << parents.size();
  int32_t *mask = context.template make<int32_t>(op.getMask(), int64_t(parents.size()));
  int32_t *depths = context.template make<int32_t>(op.getDepths(), int64_t(parents.size()));
  treeMask(parents, {mask, 2 * parents.size()}, {depths, parents.size()});
  if (op.getBase())
    for (size_t i = 0; i < parents.size(); ++i)
      depths[i] += context.ints(op.getBase())[0];
  return success();
}

template <typename F> static LogicalResult evaluateTreeVerify(const OpContext<F> &context) {
  auto op = cast<TreeVerifyOp>(context.op);
  const Tensor &logits = context.get(op.getLogits());
  const int64_t base = context.ints(op.getBase())[0];
  const TreeVerdict verdict = verifyTree<F>({logits.as<F>().data(), size_t(logits.elements())}, size_t(logits.width()),
                                            context.ints(op.getTokens()), context.ints(op.getParents()),
                                            parametersOf(context.ints(op.getParameters())),
                                            before(context.ints(op.getHistory()), base), uint32_t(base));
  int32_t *accepted = context.template make<int32_t>(op.getAccepted(), logits.rows());
  std::fill_n(accepted, logits.rows(), -1);
  llvm::copy(verdict.accepted, accepted);
  *context.template make<int32_t>(op.getCount(), 1) = int32_t(verdict.accepted.size());
  *context.template make<int32_t>(op.getBonus(), 1) = verdict.bonus;
  return success();
}

template <typename F> void reference::addSpeculationOps(OpTable<F> &table) {
  table[TypeID::get<SampleOp>()] = {evaluateSample<F>};
  table[TypeID::get<TreeMaskOp>()] = {evaluateTreeMask<F>};
  table[TypeID::get<TreeVerifyOp>()] = {evaluateTreeVerify<F>};
}
template void reference::addSpeculationOps<float>(OpTable<float> &);
template void reference::addSpeculationOps<double>(OpTable<double> &);
