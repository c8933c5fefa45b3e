#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/RegionUtils.h"
#include "transforms/Passes.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSEQKVPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-fuse-qkv";

/// Rows of `x` that a product reads, with the norm folded into it.
using Rows = std::tuple<Block *, Value, Value, Value>;

enum Role { Query, Key, Val, RoleCount };
using Trio = std::array<LinearOp, RoleCount>;

static bool makesHeads(LinearOp linear) {
  return cast<ShapedType>(linear.getType()).getRank() == 3 &&
         cast<ShapedType>(linear.getWeight().getType()).getRank() == 2;
}

/// What a product of heads is made for, seen through rotations and norms of heads; nothing where it has other users.
static std::optional<Role> roleOf(Value value) {
  if (!value.hasOneUse())
    return std::nullopt;
  OpOperand &use = *value.use_begin();
  if (isa<RopeOp, HadamardOp, RmsNormOp, ScaleOp>(use.getOwner()) && use.getOperandNumber() == 0)
    return roleOf(use.getOwner()->getResult(0));
  if (isa<AttentionOp, TreeAttentionOp>(use.getOwner()) && use.getOperandNumber() == 0)
    return Query;
  auto append = dyn_cast<KVAppendOp>(use.getOwner());
  if (append && use.get() == append.getKey())
    return Key;
  if (append && use.get() == append.getValue())
    return Val;
  return std::nullopt;
}

static int64_t headsOf(LinearOp linear) { return cast<ShapedType>(linear.getType()).getDimSize(1); }
static int64_t headSizeOf(LinearOp linear) { return cast<ShapedType>(linear.getType()).getDimSize(2); }

/// Why `linear` cannot join the product that `first` begins, or an empty string.
static StringRef whyApart(LinearOp first, LinearOp linear) {
  auto type = cast<RankedTensorType>(first.getWeight().getType());
  auto other = cast<RankedTensorType>(linear.getWeight().getType());
  if (type.getElementType() != other.getElementType() || type.getEncoding() != other.getEncoding())
    return "weights of different types";
  if (headSizeOf(first) != headSizeOf(linear))
    return "heads of different sizes";
  if (bool(first.getBias()) != bool(linear.getBias()))
    return "some products have a bias and some have none";
  if (first.getBias() && cast<ShapedType>(first.getBias().getType()).getElementType() !=
                             cast<ShapedType>(linear.getBias().getType()).getElementType())
    return "biases of different types";
  if (first.getType().getElementType() != linear.getType().getElementType())
    return "results of different types";
  if (linear.getResidual() || first.getResidual())
    return "a product adds a residual";
  return "";
}

namespace {

struct FuseQKVPass final : llm::impl::FuseQKVPassBase<FuseQKVPass> {
  using FuseQKVPassBase::FuseQKVPassBase;

  void runOnOperation() override {
    llvm::MapVector<Rows, Trio> groups;
    getOperation().walk([&](LinearOp linear) {
      const std::optional<Role> role = makesHeads(linear) ? roleOf(linear.getResult()) : std::nullopt;
      if (role)
        groups[{linear->getBlock(), linear.getInput(), linear.getGamma(), linear.getRowScale()}][*role] = linear;
    });
    IRRewriter rewriter(&getContext());
    for (auto &[rows, trio] : groups)
      if (canJoin(rewriter, trio))
        join(rewriter, trio);
  }

private:
  bool canJoin(IRRewriter &rewriter, const Trio &trio) {
    const auto present = llvm::find_if(trio, [](LinearOp linear) { return bool(linear); });
    for (LinearOp linear : trio)
      if (linear && isa<RmsNormOp, ScaleOp>(*linear->user_begin())) {
        (void)refuse(rewriter, linear, kPass, "a norm or a factor of heads reads the product as a whole");
        return false;
      }
    for (LinearOp linear : trio) {
      StringRef why = linear ? whyApart(trio[Query] ? trio[Query] : linear, linear)
                             : "query, key and value are not products of the same rows";
      if (why.empty())
        continue;
      (void)refuse(rewriter, linear ? linear : *present, kPass, why);
      return false;
    }
    return pays(rewriter, trio);
  }

  /// Products that fill the device by themselves gain nothing but a dispatch.
  bool pays(IRRewriter &rewriter, const Trio &linears) {
    if (minRows == 0)
      return true;
    for (LinearOp linear : linears)
      if (headsOf(linear) * headSizeOf(linear) < minRows)
        return true;
    (void)refuse(rewriter, linears.front(), kPass, "every product has min-rows rows of weights or more");
    return false;
  }

  /// linear(x, wq), linear(x, wk), linear(x, wv) ==> slices of linear(x, concat(wq, wk, wv))
  void join(IRRewriter &rewriter, const Trio &linears) {
    LinearOp first = *llvm::min_element(linears, [](LinearOp a, LinearOp b) {
      return a.getOperation() != b.getOperation() && a->isBeforeInBlock(b);
    });
    SmallVector<Value> weights, biases;
    int64_t heads = 0;
    for (LinearOp linear : linears) {
      weights.push_back(linear.getWeight());
      if (linear.getBias())
        biases.push_back(linear.getBias());
      heads += headsOf(linear);
    }
    // The joined product takes the place of the first, where later weights may not be defined yet.
    SmallVector<Value> moved(weights);
    moved.append(biases);
    DominanceInfo dominance(getOperation());
    if (failed(moveValueDefinitions(rewriter, moved, first, dominance))) {
      (void)refuse(rewriter, first, kPass, "a weight cannot be made before the first product");
      return;
    }
    rewriter.setInsertionPoint(first);
    const Location loc = first.getLoc();
    Value weight = ConcatOp::create(rewriter, loc, weights, 0);
    Value bias = biases.empty() ? Value() : ConcatOp::create(rewriter, loc, biases, 0).getResult();
    auto type = cast<RankedTensorType>(first.getType());
    auto product = LinearOp::create(
        rewriter, loc, RankedTensorType::get({type.getDimSize(0), heads, type.getDimSize(2)}, type.getElementType()),
        first.getInput(), weight, first.getGamma(), first.getRowScale(), bias, /*residual=*/Value());
    report(product, kPass, "query, key and value products joined");
    SmallVector<Value> parts;
    int64_t begin = 0;
    for (LinearOp linear : linears) {
      const int64_t end = begin + headsOf(linear);
      parts.push_back(SliceOp::create(rewriter, linear.getLoc(), product.getResult(), begin, end, 1));
      begin = end;
    }
    for (auto [linear, part] : llvm::zip_equal(linears, parts))
      rewriter.replaceOp(linear, part);
  }
};

} // namespace
