#include "transforms/Prune/Channels.h"

#include "lib/Weights/WeightExpr.h"
#include "transforms/Quantize/Products.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;

bool ChannelUse::isColumns() const {
  return llvm::is_contained(productWeights(owner()), operand) &&
         axis == cast<ShapedType>(operand->get().getType()).getRank() - 1;
}

SmallVector<int64_t> ChannelUse::indices(ArrayRef<int64_t> kept, int64_t channels) const {
  SmallVector<int64_t> result;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c : kept)
      for (int64_t i = 0; i < inner; ++i)
        result.push_back((o * channels + c) * inner + i);
  return result;
}

LayerOp ChannelGroup::layer() const {
  LayerOp common;
  for (const ChannelUse &use : uses) {
    auto layer = use.owner()->getParentOfType<LayerOp>();
    if (!layer || (common && layer != common))
      return {};
    common = layer;
  }
  return common;
}

/// Joins dimensions op by op, then makes a group of each class.
class ChannelGroups::Builder {
public:
  explicit Builder(func::FuncOp function) {
    function.walk([&](Operation *op) { visit(op); });
  }

  void finish(ChannelGroups &into);

private:
  /// Dimension of a value, or of a cache (by its symbol and index, which stand for all handles to it).
  using Axis = std::pair<void *, unsigned>;
  static constexpr unsigned kHeads = 0, kKey = 1, kValue = 2; ///< dimensions of a cache

  static ShapedType shaped(Value value) { return dyn_cast<ShapedType>(value.getType()); }
  static bool isChannels(Value value, unsigned d) {
    auto type = shaped(value);
    return type && type.hasRank() && int64_t(d) < type.getRank() && d > 0 && !type.isDynamicDim(d);
  }
  Axis axisOf(Value value, unsigned d) {
    Axis axis{value.getAsOpaquePointer(), d};
    if (members.insert({axis, {value, d}}).second)
      classes.insert(axis);
    return axis;
  }
  void link(Axis a, Axis b) { classes.unionSets(a, b); }
  void link(Value a, unsigned da, Value b, unsigned db) {
    if (isChannels(a, da) && isChannels(b, db))
      link(axisOf(a, da), axisOf(b, db));
  }
  /// All dimensions but the first.
  void link(Value a, Value b) {
    if (!a || !b || !shaped(a) || !shaped(b) || shaped(a).getRank() != shaped(b).getRank())
      return;
    for (unsigned d = 1; d < unsigned(shaped(a).getRank()); ++d)
      if (shaped(a).getDimSize(d) == shaped(b).getDimSize(d))
        link(a, d, b, d);
  }
  void fix(Value value, unsigned d, StringRef why) {
    if (isChannels(value, d))
      reasons[axisOf(value, d)] = why.str();
  }
  void fix(Value value, StringRef why) {
    if (auto type = value ? shaped(value) : ShapedType(); type && type.hasRank())
      for (unsigned d = 1; d < unsigned(type.getRank()); ++d)
        fix(value, d, why);
  }
  /// The axis of a weight runs along dimension `d` of `value` alone.
  void use(OpOperand &operand, int64_t axis, Value value, unsigned d, int64_t outer = 1, int64_t inner = 1) {
    if (isChannels(value, d))
      uses.push_back({axisOf(value, d), {&operand, axis, outer, inner}});
  }
  /// The axis of a weight runs along all dimensions of a row of `value`, in row-major order.
  void useRow(OpOperand &operand, int64_t axis, Value value) {
    const auto shape = shaped(value).getShape();
    for (size_t d = 1; d < shape.size(); ++d) {
      int64_t outer = 1, inner = 1;
      for (size_t i = 1; i < shape.size(); ++i)
        (i < d ? outer : inner) *= i == d ? 1 : shape[i];
      use(operand, axis, value, unsigned(d), outer, inner);
    }
  }
  Axis cacheAxis(Value handle, unsigned which) {
    auto op = handle.getDefiningOp<KVOp>();
    if (!op) // a cache that is handed in
      return axisOf(handle, 100 + which);
    auto key = std::pair(op.getCacheAttr().getAsOpaquePointer(), op.getIndex());
    auto [place, isNew] = caches.insert({key, nullptr});
    if (isNew)
      place->second = std::make_unique<char>();
    Axis axis{place->second.get(), which};
    classes.insert(axis);
    return axis;
  }

  void visit(Operation *op);
  void visitNorm(Operation *norm, Value input, Value result, MutableArrayRef<OpOperand *> factors);
  void visitLinear(LinearOp op);
  void visitAttention(Operation *op, Value query, Value cache, Value result, MutableOperandRange bias);

  std::map<Axis, std::pair<Value, unsigned>> members;
  llvm::EquivalenceClasses<Axis> classes;
  std::map<Axis, std::string> reasons;
  std::vector<std::pair<Axis, ChannelUse>> uses;
  std::vector<std::pair<Axis, Operation *>> norms, rotations;
  std::vector<Axis> results;
  std::map<std::pair<const void *, int64_t>, std::unique_ptr<char>> caches;
};

static OpOperand *first(MutableOperandRange range) { return range.empty() ? nullptr : &range[0]; }

void ChannelGroups::Builder::visitNorm(Operation *norm, Value input, Value result,
                                       MutableArrayRef<OpOperand *> factors) {
  link(input, result);
  const unsigned last = unsigned(shaped(input).getRank()) - 1;
  bool wholeRow = false;
  for (OpOperand *factor : factors) {
    if (!factor)
      continue;
    if (shaped(factor->get()).getDimSize(0) == shaped(input).getDimSize(last)) {
      use(*factor, 0, input, last);
    } else {
      useRow(*factor, 0, input);
      wholeRow = true;
    }
  }
  for (unsigned d = wholeRow ? 1 : last; d <= last; ++d)
    if (isChannels(input, d))
      norms.push_back({axisOf(input, d), norm});
}

void ChannelGroups::Builder::visitLinear(LinearOp op) {
  OpOperand &weight = op.getWeightMutable();
  link(op.getResult(), op.getResidual());
  if (!isWeightExpr(weight.get())) {
    fix(op.getInput(), "it meets a weight that is filled at run time");
    fix(op.getResult(), "it comes from a weight that is filled at run time");
    return;
  }
  if (shaped(weight.get()).getRank() == 3) {
    link(op.getInput(), 1, op.getResult(), 1);
    use(weight, 0, op.getResult(), 1);
    use(weight, 1, op.getResult(), 2);
    use(weight, 2, op.getInput(), 2);
  } else {
    useRow(weight, 0, op.getResult());
    useRow(weight, 1, op.getInput());
  }
  if (OpOperand *bias = first(op.getBiasMutable())) {
    // One number a row of the product, or with a product a head one for all heads.
    const auto shape = shaped(op.getResult()).getShape().drop_front();
    if (shaped(bias->get()).getDimSize(0) == ShapedType::getNumElements(shape))
      useRow(*bias, 0, op.getResult());
    else
      use(*bias, 0, op.getResult(), unsigned(shape.size()));
  }
  if (OpOperand *gamma = first(op.getGammaMutable()))
    useRow(*gamma, 0, op.getInput());
}

void ChannelGroups::Builder::visitAttention(Operation *op, Value query, Value cache, Value result,
                                            MutableOperandRange bias) {
  link(query, 1, result, 1);
  link(axisOf(query, 2), cacheAxis(cache, kKey));
  link(axisOf(result, 2), cacheAxis(cache, kValue));
  if (OpOperand *slopes = first(bias))
    use(*slopes, 0, query, 1);
}

void ChannelGroups::Builder::visit(Operation *op) {
  if (llvm::all_of(op->getResults(), [](Value value) { return isWeightExpr(value); }) && op->getNumResults())
    return; // a weight; its users say what its axes are
  llvm::TypeSwitch<Operation *>(op)
      .Case<EmbeddingOp>([&](EmbeddingOp op) { use(op.getTableMutable(), 1, op.getResult(), 1); })
      .Case<RmsNormOp>([&](RmsNormOp op) {
        OpOperand *factors[] = {first(op.getGammaMutable())};
        visitNorm(op, op.getInput(), op.getResult(), factors);
      })
      .Case<LayerNormOp>([&](LayerNormOp op) {
        OpOperand *factors[] = {first(op.getGammaMutable()), first(op.getBetaMutable())};
        visitNorm(op, op.getInput(), op.getResult(), factors);
      })
      .Case<RmsScaleOp>([&](RmsScaleOp op) {
        if (isChannels(op.getInput(), 1))
          norms.push_back({axisOf(op.getInput(), 1), op});
      })
      .Case<LinearOp>([&](LinearOp op) { visitLinear(op); })
      .Case<GatedLinearOp>([&](GatedLinearOp op) {
        for (OpOperand *weight : productWeights(op)) {
          useRow(*weight, 0, op.getResult());
          useRow(*weight, 1, op.getInput());
        }
        if (OpOperand *gamma = first(op.getGammaMutable()))
          useRow(*gamma, 0, op.getInput());
      })
      .Case<ExpertLinearOp>([&](ExpertLinearOp op) {
        const unsigned in = unsigned(shaped(op.getInput()).getRank()) - 1;
        const unsigned out = unsigned(shaped(op.getResult()).getRank()) - 1;
        const auto shape = shaped(op.getWeight()).getShape();
        // Rows of one expert a token may be split in two dimensions, as those of a linear.
        const bool rows = shaped(op.getInput()).getShape()[in] != shape[2];
        const bool made = shaped(op.getResult()).getShape()[out] != shape[1];
        rows ? useRow(op.getWeightMutable(), 2, op.getInput()) : use(op.getWeightMutable(), 2, op.getInput(), in);
        made ? useRow(op.getWeightMutable(), 1, op.getResult()) : use(op.getWeightMutable(), 1, op.getResult(), out);
        if (OpOperand *bias = first(op.getBiasMutable()))
          use(*bias, 1, op.getResult(), out);
        link(op.getResult(), op.getResidual());
        for (unsigned d = 1; d < in && !rows; ++d)
          fix(op.getInput(), d, "it counts experts");
        for (unsigned d = 1; d < out && !made; ++d)
          fix(op.getResult(), d, "it counts experts");
      })
      .Case<RopeOp>([&](RopeOp op) {
        link(op.getInput(), op.getResult());
        rotations.push_back({axisOf(op.getInput(), 2), op});
      })
      .Case<KVAppendOp>([&](KVAppendOp op) {
        link(axisOf(op.getKey(), 1), cacheAxis(op.getCache(), kHeads));
        link(axisOf(op.getKey(), 2), cacheAxis(op.getCache(), kKey));
        if (!op.getValue()) {
          fix(op.getKey(), 2, "values are a part of the keys");
          link(cacheAxis(op.getCache(), kKey), cacheAxis(op.getCache(), kValue));
          return;
        }
        link(op.getKey(), 1, op.getValue(), 1);
        link(axisOf(op.getValue(), 2), cacheAxis(op.getCache(), kValue));
      })
      .Case<AttentionOp, TreeAttentionOp>([&](auto op) {
        visitAttention(op, op.getQuery(), op.getCache(), op.getResult(), op.getBiasMutable());
      })
      .Case<ActivationOp, ScaleOp, SoftcapOp, QuantizeOp, DequantizeOp>(
          [&](auto op) { link(op.getInput(), op->getResult(0)); })
      .Case<GatedActivationOp>([&](GatedActivationOp op) {
        link(op.getGate(), op.getUp());
        link(op.getGate(), op.getResult());
      })
      .Case<AddOp, MultiplyOp>([&](auto op) {
        link(op.getLhs(), op.getRhs());
        link(op.getLhs(), op.getResult());
      })
      .Case<SelectRowsOp>([&](SelectRowsOp op) { link(op.getInput(), op.getResult()); })
      .Case<LayerOp>([&](LayerOp op) {
        for (auto [outside, inside, yielded, result] :
             llvm::zip(op.getInputs(), op.getBodyBlock()->getArguments(), op.getYield().getValues(), op.getResults())) {
          link(outside, inside);
          link(yielded, result);
          link(outside, result);
        }
      })
      .Case<func::ReturnOp>([&](func::ReturnOp op) {
        for (Value value : op.getOperands())
          if (isChannels(value, 1))
            results.push_back(axisOf(value, 1));
      })
      .Case<KVOp, YieldOp, func::FuncOp>([](Operation *) {})
      .Default([&](Operation *op) {
        const std::string why = ("'" + op->getName().getStringRef() + "' needs all of it").str();
        for (Value value : op->getOperands())
          fix(value, why);
        for (Value value : op->getResults())
          fix(value, why);
      });
}

void ChannelGroups::Builder::finish(ChannelGroups &into) {
  std::map<Axis, ChannelGroup *> byLeader;
  for (auto &[axis, member] : members) {
    ChannelGroup *&group = byLeader[classes.getLeaderValue(axis)];
    if (!group)
      group = into.groups.emplace_back(std::make_unique<ChannelGroup>()).get();
    into.byDimension[axis] = group;
    if (auto type = dyn_cast<ShapedType>(member.first.getType())) {
      group->values.push_back(member);
      group->size = type.getDimSize(member.second);
    }
  }
  for (auto &[axis, use] : uses)
    into.byDimension[axis]->uses.push_back(use);
  for (auto &[axis, norm] : norms)
    into.byDimension[axis]->norms.push_back(norm);
  for (auto &[axis, rope] : rotations)
    into.byDimension[axis]->rotations.push_back(rope);
  for (Axis axis : results)
    into.byDimension[axis]->returned = true;
  for (auto &[axis, why] : reasons)
    into.byDimension[axis]->fixed = why;
}

ChannelGroups::ChannelGroups(func::FuncOp function) { Builder(function).finish(*this); }
ChannelGroups::~ChannelGroups() = default;

ChannelGroup *ChannelGroups::of(Value value, unsigned dimension) const {
  auto found = byDimension.find({value.getAsOpaquePointer(), dimension});
  return found == byDimension.end() ? nullptr : found->second;
}
