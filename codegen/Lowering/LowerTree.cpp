// Trees of draft tokens: their table, verification, compaction. The parents lie
// in the step block, the tokens in the history behind the prefix, as those of
// any step.
#include "codegen/Kernels/Sample.h"
#include "codegen/Kernels/TreeAccept.h"
#include "codegen/Kernels/TreeTable.h"
#include "codegen/Lowering/Drafts.h"
#include "codegen/Lowering/OpLowerings.h"

namespace mlir::llm {
namespace {

/// Whether `value` is argument `number` of the function.
bool isArgument(ProgramLowering &p, Value value, unsigned number) {
  auto argument = dyn_cast<BlockArgument>(p.resolve(value));
  return argument && argument.getArgNumber() == number;
}

/// The arguments of @verify: tokens, parents, parameters, history, base.
enum : unsigned { kTokens, kParents, kParameters, kHistory, kBase };

LogicalResult lowerMask(ProgramLowering &p, TreeMaskOp op) {
  if (!isArgument(p, op.getParents(), kParents))
    return op.emitOpError("expects the parents that the function is given, but "
                          "got parents that are computed");
  if (!op.getBase() || !isArgument(p, op.getBase(), kBase))
    return op.emitOpError("expects the base that the function is given, but "
                          "got none or another");
  TreeTableSpec spec;
  spec.width = kTreeStride;
  Value table = p.scratch("tree", TreeTableSpec::bytes(spec.width));
  p.setView(op.getMask(), table, p.width());
  p.setView(op.getDepths(), table, p.width());
  return p.dispatch(op, TreeTableSpec::kFamily, spec.toAttr(p.context()),
                    {{"control", p.controlView()}, {"tree", table}}, p.width(),
                    "tree");
}

LogicalResult lowerVerify(ProgramLowering &p, TreeVerifyOp op) {
  struct {
    StringRef what;
    Value value;
    unsigned argument;
  } wanted[] = {{"tokens", op.getTokens(), kTokens},
                {"parents", op.getParents(), kParents},
                {"parameters", op.getParameters(), kParameters},
                {"history", op.getHistory(), kHistory},
                {"base", op.getBase(), kBase}};
  for (const auto &one : wanted)
    if (!isArgument(p, one.value, one.argument))
      return op.emitOpError("expects the ")
             << one.what << " that the function is given, but got others";
  Value table;
  for (const FlatOp &entry : p.function().ops())
    if (auto mask = dyn_cast<TreeMaskOp>(entry.op))
      table = p.view(mask.getMask());
  if (!table)
    return op.emitOpError("expects an llm.tree_mask before it, but got none");

  SampleSpec sample;
  sample.vocabulary = p.rowElements(op.getLogits());
  sample.tokens = drawableTokens(op, sample.vocabulary);
  sample.capacity = p.target().capacity();
  sample.tree = kTreeStride;
  // Drafts that are part of the model may draw their guesses.
  sample.rounds = !draftsOf(op->getParentOfType<ModuleOp>()).empty();
  // One kernel for trees of all widths.
  const int64_t nodes = p.target().mostNodes();
  Value drawn = p.scratch("drawn", uint64_t(nodes) * 4);
  SmallVector<Operand> operands = {{"logits", p.view(op.getLogits())},
                                   {"control", p.controlView()},
                                   {"history", p.historyView(), 0},
                                   {"tree", table},
                                   {"drawn", drawn}};
  if (sample.rounds)
    operands.push_back({"guesses", guessesView(p)});
  if (failed(p.dispatch(op, SampleSpec::kFamily, sample.toAttr(p.context()),
                        operands, p.width(), "sample nodes")))
    return failure();
  TreeAcceptSpec accept;
  accept.width = nodes;
  accept.capacity = p.target().capacity();
  return p.dispatch(op, TreeAcceptSpec::kFamily, accept.toAttr(p.context()),
                    {{"control", p.controlView()},
                     {"history", p.historyView(), 8 * p.width()},
                     {"drawn", drawn}},
                    1, "accept");
}

LogicalResult lowerCompact(ProgramLowering &p, KVCompactOp op) {
  auto verify = p.resolve(op.getAccepted()).getDefiningOp<TreeVerifyOp>();
  if (!verify || p.resolve(op.getCount()) != verify.getCount() ||
      !isArgument(p, op.getBase(), kBase))
    return op.emitOpError("expects what an llm.tree_verify before it accepted "
                          "behind its base, but got others");
  FailureOr<CachePlan> cache =
      p.target().cache(op.getCache().getDefiningOp<KVOp>());
  if (failed(cache))
    return failure();
  // One dispatch for as many layers as a binding spans.
  auto handle = op.getCache().getDefiningOp<KVOp>();
  const int64_t index = handle.getIndex();
  int64_t layers = 0, others = 0;
  for (const FlatOp &entry : p.function().ops())
    if (auto other = dyn_cast<KVCompactOp>(entry.op)) {
      auto its = other.getCache().getDefiningOp<KVOp>();
      if (its.getCacheAttr() != handle.getCacheAttr())
        continue;
      ++others;
      layers = std::max(layers, int64_t(its.getIndex()) + 1);
    }
  int64_t together = 1;
  if (others == layers && !cache->parts)
    together = std::min(layers, p.layersWithin(*cache));
  if (index % together != 0)
    return success(); // moved with a layer before it
  together = std::min(together, layers - index);
  const uint64_t bytes =
      cache->sideBytes + uint64_t(together - 1) * cache->layerBytes;
  KvCompactSpec spec;
  static_cast<CacheLayers &>(spec) =
      p.layersOf(*cache, op.getCache().getType(), together);
  spec.width = kTreeStride;
  spec.cache = cache->parts;
  SmallVector<Operand> operands{{"control", p.controlView()}};
  if (cache->parts)
    operands.append(p.cacheOperands(*cache));
  else
    operands.append(
        {{"keys", p.bufferView(cache->buffer, cache->keys, bytes), 0},
         {"values", p.bufferView(cache->buffer, cache->values, bytes), 0}});
  return p.dispatchOnCache(op, KvCompactSpec::kFamily,
                           spec.toAttr(p.context()), *cache, operands, 1,
                           "compact");
}

} // namespace

FailureOr<Value> treeOf(ProgramLowering &p, Operation *op, Value positions,
                        Value base) {
  positions = p.resolve(positions);
  if (!base) {
    if (!isArgument(p, positions, 1) || p.kind() == plan::ProgramKind::verify) {
      op->emitOpError("expects the positions that the function is given, "
                      "but got positions that are computed");
      return failure();
    }
    return Value();
  }
  auto mask = positions.getDefiningOp<TreeMaskOp>();
  if (!mask || positions != mask.getDepths() || !mask.getBase() ||
      p.resolve(mask.getBase()) != p.resolve(base)) {
    op->emitOpError("expects the positions of an llm.tree_mask with the same "
                    "base, but got others");
    return failure();
  }
  return p.view(positions);
}

ArrayRef<OpLoweringRow> treeLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<KVCompactOp, lowerCompact>(),
      loweringOf<TreeMaskOp, lowerMask>(),
      loweringOf<TreeVerifyOp, lowerVerify>(),
  };
  return rows;
}

} // namespace mlir::llm
