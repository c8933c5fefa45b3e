#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "transforms/Passes.h"
#include "transforms/Quantize/Products.h"
#include "transforms/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <random>

namespace mlir::llm {
#define GEN_PASS_DEF_ROTATEPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-rotate";
/// Numbers of an input that are transformed together: shorter blocks spread nothing.
static constexpr int64_t kLeastBlock = 8;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// Everything that touches the residual: what adds to it, what reads it through a norm, and where it is left.
class Residual {
public:
  /// Follows the residual from `start`. Gives back what keeps it from being rotated, or null.
  Operation *follow(Value start) {
    known.insert(start);
    for (size_t i = 0; i < known.size(); ++i)
      for (OpOperand &use : known[i].getUses())
        if (!visit(use))
          return use.getOwner();
    return nullptr;
  }

  llvm::SetVector<Operation *> norms, writers;
  SmallVector<OpOperand *> exits;

private:
  bool visit(OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto layer = dyn_cast<LayerOp>(op)) {
      known.insert(layer.getBodyBlock()->getArgument(use.getOperandNumber()));
      known.insert(layer.getResult(use.getOperandNumber()));
      return true;
    }
    if (isa<YieldOp>(op))
      return true;
    auto linear = dyn_cast<LinearOp>(op);
    if (linear && linear.getResidual() == use.get() && linear.getInput() != use.get() && isPlain(linear)) {
      writers.insert(op);
      known.insert(linear.getResult());
      return true;
    }
    auto norm = dyn_cast<RmsNormOp>(op);
    if (norm && layerOf(op) && readsByProducts(norm)) {
      norms.insert(op);
      return true;
    }
    if (!layerOf(op)) { // behind the layers: rotated back
      exits.push_back(&use);
      return true;
    }
    return false;
  }

  static bool isPlain(LinearOp linear) {
    return typeOf(linear.getWeight()).getRank() == 2 && typeOf(linear.getResult()).getRank() == 2 &&
           !linear.getGamma() && !linear.getRowScale();
  }

  static bool readsByProducts(RmsNormOp norm) {
    return norm.getResult().getType() == norm.getInput().getType() && llvm::all_of(norm->getUses(), [](OpOperand &use) {
             auto linear = dyn_cast<LinearOp>(use.getOwner());
             return linear && use.getOperandNumber() == 0 && typeOf(linear.getWeight()).getRank() == 2 &&
                    !linear.getGamma();
           });
  }

  llvm::SetVector<Value> known;
};

struct RotatePass final : llm::impl::RotatePassBase<RotatePass> {
  using RotatePassBase::RotatePassBase;

  void runOnOperation() override {
    const bool automatic = where == "auto";
    if (!automatic && where != "residual" && where != "inputs") {
      getOperation().emitError() << kPass << " expects where to be residual, inputs or auto, but got '" << where.getValue()
                                 << "'";
      return signalPassFailure();
    }
    LinearOp rounded;
    getOperation().walk([&](LinearOp linear) {
      if (isa<QuantizedType>(typeOf(linear.getInput()).getElementType()))
        rounded = linear;
    });
    if (rounded) {
      rounded.emitOpError("expects inputs of floats for ") << kPass << ", but got " << rounded.getInput().getType()
                                                           << "; rotate before activations are quantised";
      return signalPassFailure();
    }
    if (where == "inputs")
      return rotateInputs();
    EmbeddingOp embedding;
    bool several = false;
    getOperation().walk([&](EmbeddingOp op) {
      several |= bool(embedding);
      embedding = op;
    });
    const int64_t D = embedding ? typeOf(embedding.getResult()).getShape().back() : 0;
    Residual residual;
    Operation *refused = embedding ? residual.follow(embedding.getResult()) : nullptr;
    block = D & -D;
    if (automatic && (!embedding || several || block < 2 || refused))
      return rotateInputs();
    if (!embedding || several) {
      getOperation().emitOpError("expects one embedding whose rows are the residual");
      return signalPassFailure();
    }
    if (block < 2) {
      embedding.emitOpError("expects a width that a power of two divides, but got ") << D;
      return signalPassFailure();
    }
    if (refused) {
      refused->emitOpError("keeps the residual from being rotated: expects norms that products alone read, and products "
                           "that add to it; where=inputs needs neither");
      return signalPassFailure();
    }
    rotateResidual(embedding, residual, D);
  }

private:
  void rotateResidual(EmbeddingOp embedding, Residual &residual, int64_t D) {
    std::mt19937_64 random{seed};
    for (int64_t i = 0; i < (D + 63) / 64; ++i)
      signs.push_back(int64_t(random() & (D - 64 * i >= 64 ? ~uint64_t(0) : (uint64_t(1) << (D - 64 * i)) - 1)));
    for (Operation *norm : residual.norms)
      foldGamma(cast<RmsNormOp>(norm));
    for (Operation *norm : residual.norms)
      for (Operation *user : norm->getUsers())
        rotateColumns(cast<LinearOp>(user));
    for (Operation *writer : residual.writers)
      rotateRows(cast<LinearOp>(writer));
    for (OpOperand *exit : residual.exits) {
      OpBuilder builder(exit->getOwner());
      exit->set(transform(builder, exit->get(), /*inverse=*/true));
    }
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(embedding);
    Value rotated = transform(builder, embedding.getResult(), /*inverse=*/false);
    embedding.getResult().replaceAllUsesExcept(rotated, rotated.getDefiningOp());
    report(embedding, kPass, "residual rotated in blocks of " + Twine(block));
  }

  /// linear(x, w) ==> linear(hadamard(x), hadamard(w)), once for all products of an input.
  void rotateInputs() {
    llvm::MapVector<Value, SmallVector<LinearOp>> byInput;
    getOperation().walk([&](LinearOp linear) {
      if (layerOf(linear) && typeOf(linear.getWeight()).getRank() == 2 && !linear.getGamma() && !linear.getRowScale() &&
          !staysInFloats(linear))
        byInput[linear.getInput()].push_back(linear);
    });
    for (auto &[input, products] : byInput) {
      const int64_t last = typeOf(input).getShape().back();
      block = std::min<int64_t>(last & -last, most);
      if (block < kLeastBlock || block & (block - 1)) {
        remark::missed(products.front().getLoc(), remark::RemarkOpts::name(kPass).category(kRemarkCategory))
            << "rows of " << Twine(last).str() << " numbers have no block to transform";
        continue;
      }
      OpBuilder builder(products.front());
      builder.setInsertionPointAfterValue(input);
      Value turned = transform(builder, input, /*inverse=*/false);
      for (LinearOp product : products) {
        product.getInputMutable().set(turned);
        rotateColumns(product);
      }
      report(products.front(), kPass, "input transformed in blocks of " + Twine(block));
    }
  }

  Value transform(OpBuilder &builder, Value value, bool inverse) {
    return HadamardOp::create(builder, value.getLoc(), value.getType(), value, builder.getI64IntegerAttr(block),
                              signs.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(signs),
                              inverse ? builder.getUnitAttr() : UnitAttr());
  }

  static Value asFloats(OpBuilder &builder, Value weight) {
    if (!isa<QuantizedType>(typeOf(weight).getElementType()))
      return weight;
    return DequantizeOp::create(builder, weight.getLoc(),
                                RankedTensorType::get(typeOf(weight).getShape(), builder.getF32Type()), weight);
  }

  /// rms_norm(x) gamma(g), products ==> rms_norm(x), products whose columns are scaled by g
  static void foldGamma(RmsNormOp norm) {
    if (!norm.getGamma())
      return;
    for (Operation *user : norm->getUsers()) {
      auto linear = cast<LinearOp>(user);
      OpBuilder builder(linear);
      Value weight = asFloats(builder, linear.getWeight());
      linear.getWeightMutable().set(
          ScaleAxisOp::create(builder, linear.getLoc(), weight.getType(), weight, norm.getGamma(), 1));
    }
    norm.getGammaMutable().clear();
  }

  /// W ==> W·Qᵀ: what reads rotated rows.
  void rotateColumns(LinearOp linear) {
    OpBuilder builder(linear);
    linear.getWeightMutable().set(transform(builder, asFloats(builder, linear.getWeight()), /*inverse=*/false));
  }

  /// W ==> Q·W: what adds to a rotated residual.
  void rotateRows(LinearOp linear) {
    OpBuilder builder(linear);
    const auto turn = [&](Value value) {
      return TransposeOp::create(builder, linear.getLoc(), value, ArrayRef<int64_t>{1, 0}).getResult();
    };
    Value weight = asFloats(builder, linear.getWeight());
    linear.getWeightMutable().set(turn(transform(builder, turn(weight), /*inverse=*/false)));
    if (linear.getBias())
      linear.getBiasMutable()[0].set(transform(builder, linear.getBias(), /*inverse=*/false));
  }

  int64_t block = 1;
  SmallVector<int64_t> signs; ///< none for inputs
};

} // namespace
