#include "lib/Import/Adapter.h"

#include "lib/Import/AdapterFile.h"
#include "lib/Import/AdapterRows.h"
#include "lib/Import/Family.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::llm;

namespace {

/// What a product computes on before a checkpoint's scheme rounds it: adapters are trained beside whole numbers.
Value unrounded(Value x) {
  while (auto rounded = x.getDefiningOp<QuantizeOp>())
    x = rounded.getInput();
  return x;
}

/// What an adapter adds to a product, up · down · x: [r, K] and [N, r]; null where it leaves the product.
struct Branch {
  Value down, up;
};

/// Several of them for one kind of product, `n x r x K` and `n x N x r`; null where all leave it. Ranks that one does not
/// have, and all of one that leaves its product, are zeros. `whose`: what an error, which is on `product`, calls them.
FailureOr<Branch> stacked(OpBuilder &builder, Operation *product, StringRef whose, ArrayRef<Branch> branches, int64_t N,
                          int64_t K) {
  int64_t rank = 0;
  Type element;
  for (const Branch &branch : branches) {
    if (!branch.down)
      continue;
    for (Value part : {branch.down, branch.up}) {
      const Type own = cast<ShapedType>(part.getType()).getElementType();
      if (element && own != element)
        return product->emitOpError("expects ")
                   << whose << " of one type of numbers, but got " << element << " and " << own,
               failure();
      element = own;
    }
    rank = std::max(rank, cast<ShapedType>(branch.down.getType()).getDimSize(0));
  }
  if (!element)
    return Branch();
  const Location loc = product->getLoc();
  const auto zeros = [&](int64_t rows, int64_t columns) -> Value {
    const auto type = RankedTensorType::get({rows, columns}, element);
    return WeightOp::create(builder, loc, DenseElementsAttr::get(type, builder.getFloatAttr(element, 0)));
  };
  const auto filled = [&](Value part, int64_t rows, int64_t columns) -> Value {
    if (!part)
      return zeros(rows, columns);
    const auto own = cast<ShapedType>(part.getType()).getShape();
    const unsigned axis = own[0] == rows ? 1 : 0;
    const int64_t missing = axis ? columns - own[1] : rows - own[0];
    if (missing == 0)
      return part;
    return ConcatOp::create(builder, loc, ValueRange{part, axis ? zeros(rows, missing) : zeros(missing, columns)}, axis);
  };
  SmallVector<Value> downs, ups;
  for (const Branch &branch : branches) {
    downs.push_back(filled(branch.down, rank, K));
    ups.push_back(filled(branch.up, N, rank));
  }
  const auto all = [&](ArrayRef<Value> parts, int64_t rows, int64_t columns) -> Value {
    Value joined = ConcatOp::create(builder, loc, parts, 0);
    return ReshapeOp::create(builder, loc, RankedTensorType::get({int64_t(parts.size()), rows, columns}, element), joined);
  };
  return Branch{all(downs, rank, K), all(ups, N, rank)};
}

class Adder {
public:
  Adder(ModuleOp module, StringRef folder, double scale, WeightStore &store)
      : module(module), file(module, folder, scale, store) {
    if (auto model = module->getAttrOfType<DictionaryAttr>("llm.model"))
      if (auto name = model.getAs<StringAttr>("architecture"))
        architecture = name.getValue();
  }

  LogicalResult open() { return file.open(); }
  LogicalResult checkUse() { return file.checkUse(); }
  double factor() const { return file.factor(); }

  /// Beside the products that it changes, for good.
  LogicalResult run() {
    if (failed(open()))
      return failure();
    SmallVector<ExpertLinearOp> experts;
    module.walk([&](ExpertLinearOp product) { experts.push_back(product); });
    for (LinearOp linear : productsOf(module))
      if (failed(change(linear)))
        return failure();
    for (ExpertLinearOp product : experts)
      if (failed(change(product)))
        return failure();
    return checkUse();
  }

  /// Adapters that sessions switch are chosen as experts are, so they are none of experts.
  LogicalResult refuseExperts() {
    StringRef name;
    module.walk([&](ExpertLinearOp product) {
      for (Value matrix : matricesOfExperts(product.getWeight()))
        if (auto from = fileMatrixOf(matrix); from && name.empty())
          name = file.find(adapterNames(from->name, architecture));
    });
    if (name.empty())
      return success();
    return module.emitError() << "expects adapters to switch between that leave the experts of a token as they are, but "
                                 "got one that changes '"
                              << name << "'; add it for good (--adapter)";
  }

  static SmallVector<LinearOp> productsOf(Operation *root) {
    SmallVector<LinearOp> products;
    root->walk([&](LinearOp linear) { products.push_back(linear); });
    return products;
  }

  /// What is added to a product, times factor().
  FailureOr<Branch> branchOf(LinearOp linear, OpBuilder &builder) {
    FailureOr<Branch> branch = branchOf(linear.getWeight(), linear, builder);
    if (succeeded(branch) && branch->up)
      branch->up = inOrder(builder, linear, branch->up);
    return branch;
  }

private:
  /// The factors of a weight `NxK` of `product`.
  FailureOr<Branch> branchOf(Value weight, Operation *product, OpBuilder &builder) {
    const auto shape = cast<ShapedType>(weight.getType()).getShape();
    const std::optional<FileMatrix> from = fileMatrixOf(weight);
    const auto names = from ? adapterNames(from->name, architecture) : SmallVector<std::string>();
    const AdapterPair *pair = shape.size() == 2 ? file.use(names) : nullptr;
    if (!pair)
      return Branch();
    const auto [down, up] = *pair;
    if (down->shape[1] != shape[1] || up->shape[0] != from->rows)
      return product->emitOpError("expects an adapter of ")
                 << from->rows << "x" << file.rank() << " and " << file.rank() << "x" << shape[1] << " for '"
                 << file.find(names) << "', but got " << up->shape[0] << "x" << up->shape[1] << " and " << down->shape[0]
                 << "x" << down->shape[1] << "; is it for another model?",
             failure();
    const Location loc = product->getLoc();
    Value A = file.read(builder, loc, *down), B = file.read(builder, loc, *up);
    if (from->order)
      A = GatherOp::create(builder, loc, A, from->order, 1);
    return Branch{A, rowsLike(builder, loc, weight, B)};
  }

  /// `down`, whose last dimensions are r and K, times factor().
  Value scaled(OpBuilder &builder, Location loc, Value down) {
    const auto type = cast<RankedTensorType>(down.getType());
    const int64_t axis = type.getRank() - 2;
    auto factors =
        DenseElementsAttr::get(RankedTensorType::get({type.getDimSize(axis)}, builder.getF32Type()), float(factor()));
    return ScaleAxisOp::create(builder, loc, type, down, WeightOp::create(builder, loc, factors), uint64_t(axis));
  }

  LogicalResult change(LinearOp linear) {
    OpBuilder builder(linear);
    builder.setInsertionPointAfter(linear);
    FailureOr<Branch> branch = branchOf(linear, builder);
    if (failed(branch) || !branch->down)
      return failure(failed(branch));
    const Location loc = linear.getLoc();
    Value A = scaled(builder, loc, branch->down), x = unrounded(linear.getInput());
    const auto input = cast<RankedTensorType>(x.getType());
    Value between = LinearOp::create(
        builder, loc, RankedTensorType::get({input.getDimSize(0), file.rank()}, builder.getF32Type()), x, A);
    auto sum = LinearOp::create(builder, loc, linear.getType(), between, branch->up, /*bias=*/Value(), linear.getResult());
    linear.getResult().replaceAllUsesExcept(sum.getResult(), sum);
    return success();
  }

  /// The same for the products of a token's experts; experts that the adapter leaves have zeros.
  LogicalResult change(ExpertLinearOp product) {
    OpBuilder builder(product);
    builder.setInsertionPointAfter(product);
    const Location loc = product.getLoc();
    SmallVector<Branch> branches;
    for (Value matrix : matricesOfExperts(product.getWeight())) {
      FailureOr<Branch> branch = branchOf(matrix, product, builder);
      if (failed(branch))
        return failure();
      branches.push_back(*branch);
    }
    const auto shape = cast<ShapedType>(product.getWeight().getType()).getShape();
    FailureOr<Branch> all = stacked(builder, product, "an adapter", branches, shape[1], shape[2]);
    if (failed(all) || !all->down)
      return failure(failed(all));
    Value A = scaled(builder, loc, all->down);
    const auto ids = cast<ShapedType>(product.getIds().getType()).getShape();
    const auto between = RankedTensorType::get({ids[0], ids[1], file.rank()}, builder.getF32Type());
    Value narrow = ExpertLinearOp::create(builder, loc, between, unrounded(product.getInput()), product.getIds(), A,
                                          /*combine=*/Value(), /*bias=*/Value(), /*residual=*/Value());
    // A sum over experts takes what there is along; what each of them makes is added to.
    Value residual = product.getCombine() ? product.getResult() : Value();
    auto addition = ExpertLinearOp::create(builder, loc, product.getType(), narrow, product.getIds(), all->up,
                                           product.getCombine(), /*bias=*/Value(), residual);
    Operation *sum = addition;
    if (!residual)
      sum = AddOp::create(builder, loc, product.getType(), product.getResult(), addition);
    product.getResult().replaceAllUsesExcept(sum->getResult(0), sum);
    return success();
  }

  /// Rows of queries and keys lie in another order in GGUF files of families that pair neighbours there alone: the halves
  /// of a head are shuffled together, in layers that are not rotated too.
  Value inOrder(OpBuilder &builder, LinearOp linear, Value B) {
    const Family *family = findFamily(architecture);
    const auto from = fileMatrixOf(linear.getWeight());
    const auto [layer, role] = StringRef(from ? from->name : "").rsplit('.');
    const auto type = cast<ShapedType>(linear.getType());
    if (!family || !family->interleavedInGGUF || family->interleavedInCheckpoint || type.getRank() != 3 ||
        !layer.starts_with(kGGUFNames.layer) || (role != kGGUFNames.query && role != kGGUFNames.key))
      return B;
    const int64_t H = type.getDimSize(1), E = type.getDimSize(2);
    int64_t half = E / 2;
    for (Operation *user : linear->getUsers())
      if (auto rope = dyn_cast<RopeOp>(user))
        half = rope.getRotatedDims() / 2;
    SmallVector<int32_t> order;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t e = 0; e < E; ++e)
        order.push_back(int32_t(h * E + (e < 2 * half ? e % 2 * half + e / 2 : e)));
    auto index = DenseElementsAttr::get(RankedTensorType::get({H * E}, builder.getI32Type()), ArrayRef<int32_t>(order));
    return GatherOp::create(builder, linear.getLoc(), B, WeightOp::create(builder, linear.getLoc(), index), 0);
  }

  ModuleOp module;
  AdapterFile file;
  StringRef architecture;
};

} // namespace

LogicalResult mlir::llm::addAdapter(ModuleOp module, StringRef folder, double scale, WeightStore &store) {
  return Adder(module, folder, scale, store).run();
}

namespace {

/// Several adapters beside a module's products, of which a session uses one or none.
class Choice {
public:
  Choice(ModuleOp module, ArrayRef<SwitchableAdapter> adapters, WeightStore &store) : module(module) {
    for (const SwitchableAdapter &adapter : adapters)
      adders.push_back(std::make_unique<Adder>(module, adapter.folder, adapter.scale, store));
  }

  LogicalResult run(ArrayRef<SwitchableAdapter> adapters) {
    SmallVector<StringRef> names;
    for (const SwitchableAdapter &adapter : adapters) {
      if (adapter.name.empty() || llvm::is_contained(names, adapter.name))
        return module.emitError() << "expects adapters of different names, but got '" << adapter.name << "' for '"
                                  << adapter.folder << "'";
      names.push_back(adapter.name);
    }
    for (auto &adder : adders)
      if (failed(adder->open()) || failed(adder->refuseExperts()))
        return failure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(change(function)))
        return failure();
    for (auto &adder : adders)
      if (failed(adder->checkUse()))
        return failure();
    module->setAttr("llm.adapters", Builder(module.getContext()).getStrArrayAttr(names));
    return success();
  }

private:
  LogicalResult change(func::FuncOp function) {
    auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
    const Location loc = function.getLoc();
    SmallVector<float> gains;
    for (auto &adder : adders)
      gains.push_back(float(adder->factor()));
    const auto vector = RankedTensorType::get({int64_t(gains.size())}, builder.getF32Type());
    Value numbers = WeightOp::create(builder, loc, DenseElementsAttr::get(vector, ArrayRef<float>(gains)));
    const int64_t one[] = {ShapedType::kDynamic, 1};
    auto choice = AdapterChoiceOp::create(builder, loc, RankedTensorType::get(one, builder.getI32Type()),
                                          RankedTensorType::get(one, builder.getF32Type()), function.getArgument(1), numbers);
    for (LinearOp linear : Adder::productsOf(function))
      if (failed(change(linear, choice)))
        return failure();
    return success();
  }

  LogicalResult change(LinearOp linear, AdapterChoiceOp choice) {
    OpBuilder builder(linear);
    builder.setInsertionPointAfter(linear);
    const Location loc = linear.getLoc();
    SmallVector<Branch> branches;
    for (auto &adder : adders) {
      FailureOr<Branch> branch = adder->branchOf(linear, builder);
      if (failed(branch))
        return failure();
      branches.push_back(*branch);
    }
    const auto shape = cast<ShapedType>(linear.getWeight().getType()).getShape();
    FailureOr<Branch> all = stacked(builder, linear, "adapters", branches, shape[0], shape[1]);
    if (failed(all) || !all->down)
      return failure(failed(all));
    const int64_t rank = cast<ShapedType>(all->down.getType()).getDimSize(1);
    const auto between = RankedTensorType::get({ShapedType::kDynamic, 1, rank}, builder.getF32Type());
    Value narrow = ExpertLinearOp::create(builder, loc, between, unrounded(linear.getInput()), choice.getIds(), all->down,
                                          /*combine=*/Value(), /*bias=*/Value(), /*residual=*/Value());
    auto sum = ExpertLinearOp::create(builder, loc, linear.getType(), narrow, choice.getIds(), all->up, choice.getGain(),
                                      /*bias=*/Value(), linear.getResult());
    linear.getResult().replaceAllUsesExcept(sum.getResult(), sum);
    return success();
  }

  ModuleOp module;
  SmallVector<std::unique_ptr<Adder>> adders;
};

} // namespace

LogicalResult mlir::llm::addSwitchableAdapters(ModuleOp module, ArrayRef<SwitchableAdapter> adapters, WeightStore &store) {
  return Choice(module, adapters, store).run(adapters);
}
