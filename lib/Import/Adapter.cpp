#include "lib/Import/Adapter.h"

#include "dialects/LLM/LLM.h"
#include "lib/Import/TensorNames.h"
#include "lib/Weights/WeightTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::llm;
using Json = nlohmann::json;

namespace {

/// The two matrices that change one product.
struct Pair {
  const WeightTensor *down = nullptr, *up = nullptr; ///< A [r, K], B [N, r]
};

/// What adapters call a product: `model.layers.3.self_attn.q_proj`.
std::string productName(StringRef key) {
  key.consume_back(".weight");
  StringRef rest = key;
  if (!rest.consume_front(kGGUFNames.layer))
    return key.str();
  auto [layer, role] = rest.split('.');
  for (StringRef TensorNames::*part :
       {&TensorNames::query, &TensorNames::key, &TensorNames::value, &TensorNames::packedQKV, &TensorNames::output,
        &TensorNames::gate, &TensorNames::up, &TensorNames::down})
    if (role == kGGUFNames.*part)
      return (kLlamaNames.root + kLlamaNames.layer + layer + "." + kLlamaNames.*part).str();
  return key.str();
}

class Adder {
public:
  Adder(ModuleOp module, StringRef folder, double scale, WeightStore &store)
      : module(module), folder(folder), scale(scale), store(store) {}

  LogicalResult open() { return failure(failed(readConfig()) || failed(openWeights())); }

  /// Beside the products that it changes, for good.
  LogicalResult run() {
    if (failed(open()))
      return failure();
    for (LinearOp linear : productsOf(module))
      if (failed(change(linear)))
        return failure();
    return checkUse();
  }

  static SmallVector<LinearOp> productsOf(Operation *root) {
    SmallVector<LinearOp> products;
    root->walk([&](LinearOp linear) { products.push_back(linear); });
    return products;
  }

  /// What is added to a product: up · down · x, times factor().
  struct Branch {
    Value down, up; ///< [r, K] and [N, r]; null where the adapter leaves the product
  };
  FailureOr<Branch> branchOf(LinearOp linear, OpBuilder &builder);
  double factor() const { return scale * alpha / (byRoot ? std::sqrt(double(rank)) : double(rank)); }

  /// Whether all that the adapter changes was found.
  LogicalResult checkUse() {
    for (auto &[name, pair] : pairs)
      if (!used.count(name))
        return module.emitError() << "'" << folder << "' changes '" << name
                                  << "', which this model does not have; is it an adapter for another model?";
    return success();
  }

private:
  std::string inside(StringRef name) const {
    ::llvm::SmallString<256> path(folder);
    ::llvm::sys::path::append(path, name);
    return path.str().str();
  }

  LogicalResult readConfig() {
    const std::string path = inside("adapter_config.json");
    auto buffer = ::llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      return module.emitError() << "cannot read '" << path << "': " << buffer.getError().message();
    const Json config = Json::parse((*buffer)->getBuffer().str(), nullptr, /*allow_exceptions=*/false);
    if (!config.is_object())
      return module.emitError() << "'" << path << "' expects a JSON object";
    const auto refuse = [&](StringRef key, StringRef expected) {
      return module.emitError() << "'" << path << "' expects " << expected << " in \"" << key << "\", but got "
                                << (config.contains(key.str()) ? config[key.str()].dump() : std::string("nothing"));
    };
    if (config.value("peft_type", Json()) != Json("LORA"))
      return refuse("peft_type", "\"LORA\"");
    if (config.value("bias", Json("none")) != Json("none"))
      return refuse("bias", "\"none\"");
    const Json dora = config.value("use_dora", Json(false));
    if (dora.is_boolean() && dora.get<bool>())
      return refuse("use_dora", "false");
    for (const char *key : {"modules_to_save", "alpha_pattern", "rank_pattern", "layer_replication"})
      if (config.contains(key) && !config[key].empty() && !config[key].is_null())
        return refuse(key, "nothing");
    const Json alphaKey = config.value("lora_alpha", Json()), rankKey = config.value("r", Json());
    if (!alphaKey.is_number())
      return refuse("lora_alpha", "a number");
    if (!rankKey.is_number_integer() || rankKey.get<int64_t>() < 1)
      return refuse("r", "a number above 0");
    alpha = alphaKey.get<double>(), rank = rankKey.get<int64_t>();
    const Json rooted = config.value("use_rslora", Json(false));
    byRoot = rooted.is_boolean() && rooted.get<bool>();
    if (!std::isfinite(alpha))
      return refuse("lora_alpha", "a finite number");
    return success();
  }

  LogicalResult openWeights() {
    const std::string path = inside("adapter_model.safetensors");
    auto opened = openWeightSource(path);
    if (!opened)
      return module.emitError() << ::llvm::toString(opened.takeError());
    file = std::move(*opened);
    for (const WeightTensor &tensor : file->tensors()) {
      StringRef name = tensor.key;
      name.consume_front("base_model.model.");
      const bool down = name.consume_back(".lora_A.weight"), up = !down && name.consume_back(".lora_B.weight");
      if (!down && !up)
        return module.emitError() << "'" << path << "' expects tensors called …lora_A.weight and …lora_B.weight, but got '"
                                  << tensor.key << "'";
      (down ? pairs[name.str()].down : pairs[name.str()].up) = &tensor;
    }
    for (auto &[name, pair] : pairs)
      if (!pair.down || !pair.up || pair.down->shape.size() != 2 || pair.up->shape.size() != 2 ||
          pair.down->shape[0] != rank || pair.up->shape[1] != rank)
        return module.emitError() << "'" << path << "' expects matrices " << rank << "xK and Nx" << rank << " for '"
                                  << name << "', as its adapter_config.json says";
    symbol = declareSource(module, "adapter", *file, path, store);
    return success();
  }

  LogicalResult change(LinearOp linear) {
    OpBuilder builder(linear);
    builder.setInsertionPointAfter(linear);
    FailureOr<Branch> branch = branchOf(linear, builder);
    if (failed(branch) || !branch->down)
      return failure(failed(branch));
    const Location loc = linear.getLoc();
    auto factors = DenseElementsAttr::get(RankedTensorType::get({rank}, builder.getF32Type()), float(factor()));
    Value A = ScaleAxisOp::create(builder, loc, branch->down.getType(), branch->down,
                                  WeightOp::create(builder, loc, factors), uint64_t(0));
    const auto input = cast<RankedTensorType>(linear.getInput().getType());
    Value between = LinearOp::create(builder, loc, RankedTensorType::get({input.getDimSize(0), rank}, builder.getF32Type()),
                                     linear.getInput(), A);
    auto sum = LinearOp::create(builder, loc, linear.getType(), between, branch->up, /*bias=*/Value(), linear.getResult());
    linear.getResult().replaceAllUsesExcept(sum.getResult(), sum);
    return success();
  }

  Value read(OpBuilder &builder, Location loc, const WeightTensor &tensor) {
    Type element = tensor.format == sprig::quant::Format::F32    ? Type(builder.getF32Type())
                   : tensor.format == sprig::quant::Format::BF16 ? Type(builder.getBF16Type())
                                                                 : Type(builder.getF16Type());
    return WeightOp::create(builder, loc, RankedTensorType::get(tensor.shape, element), symbol, tensor.key);
  }

  /// Rows of queries and keys lie in another order in a GGUF file whose rotation pairs neighbours: the halves of a head
  /// are shuffled together.
  Value inOrder(OpBuilder &builder, LinearOp linear, Value B) {
    RopeOp rope;
    for (Operation *user : linear->getUsers())
      if (auto found = dyn_cast<RopeOp>(user))
        rope = found;
    auto tensors = module.getOps<SourceOp>();
    const bool gguf = llvm::any_of(tensors, [](SourceOp source) { return source.getFormat() == StringRef("gguf"); });
    if (!gguf || !rope || !rope.getInterleaved())
      return B;
    const auto type = cast<ShapedType>(rope.getType());
    const int64_t H = type.getDimSize(1), E = type.getDimSize(2), half = rope.getRotatedDims() / 2;
    SmallVector<int32_t> order;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t e = 0; e < E; ++e)
        order.push_back(int32_t(h * E + (e < 2 * half ? e % 2 * half + e / 2 : e)));
    auto index = DenseElementsAttr::get(RankedTensorType::get({H * E}, builder.getI32Type()), ArrayRef<int32_t>(order));
    return GatherOp::create(builder, linear.getLoc(), B, WeightOp::create(builder, linear.getLoc(), index), 0);
  }

  ModuleOp module;
  StringRef folder;
  double scale, alpha = 1;
  int64_t rank = 1;
  bool byRoot = false;
  WeightStore &store;
  std::unique_ptr<WeightSource> file;
  std::string symbol;
  std::map<std::string, Pair> pairs; ///< by the name of the product
  std::set<std::string> used;
};

} // namespace

FailureOr<Adder::Branch> Adder::branchOf(LinearOp linear, OpBuilder &builder) {
  // The file's tensor, and which of its rows.
  Value weight = linear.getWeight();
  SliceOp rows;
  while (Operation *op = weight.getDefiningOp()) {
    if (auto slice = dyn_cast<SliceOp>(op))
      rows = slice;
    if (isa<WeightOp>(op) || op->getNumOperands() == 0)
      break;
    weight = op->getOperand(0);
  }
  auto tensor = weight.getDefiningOp<WeightOp>();
  if (!tensor || !tensor.getKey())
    return Branch();
  const std::string name = productName(*tensor.getKey());
  const auto found = pairs.find(name);
  const auto shape = cast<ShapedType>(linear.getWeight().getType()).getShape();
  if (found == pairs.end() || shape.size() != 2)
    return Branch();
  const auto [down, up] = found->second;
  const int64_t wholeRows = rows ? cast<ShapedType>(rows.getInput().getType()).getDimSize(0) : shape[0];
  if (down->shape[1] != shape[1] || up->shape[0] != wholeRows)
    return linear.emitOpError("expects an adapter of ")
               << wholeRows << "x" << rank << " and " << rank << "x" << shape[1] << " for '" << name << "', but got "
               << up->shape[0] << "x" << up->shape[1] << " and " << down->shape[0] << "x" << down->shape[1]
               << "; is it for another model?",
           failure();
  used.insert(name);
  const Location loc = linear.getLoc();
  Value A = read(builder, loc, *down), B = read(builder, loc, *up);
  if (rows && rows.getAxis() == 0)
    B = SliceOp::create(builder, loc, B, rows.getBegin(), rows.getEnd(), 0);
  return Branch{A, inOrder(builder, linear, B)};
}

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
      if (failed(adder->open()))
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
    const auto shape = cast<ShapedType>(linear.getWeight().getType()).getShape();
    SmallVector<Adder::Branch> branches;
    int64_t rank = 0;
    Type element;
    for (auto &adder : adders) {
      FailureOr<Adder::Branch> branch = adder->branchOf(linear, builder);
      if (failed(branch))
        return failure();
      branches.push_back(*branch);
      if (!branch->down)
        continue;
      for (Value part : {branch->down, branch->up}) {
        const Type own = cast<ShapedType>(part.getType()).getElementType();
        if (element && own != element)
          return linear.emitOpError("expects adapters of one type of numbers, but got ") << element << " and " << own;
        element = own;
      }
      rank = std::max(rank, cast<ShapedType>(branch->down.getType()).getDimSize(0));
    }
    if (!element)
      return success();
    // Ranks that an adapter does not have, and all of one that leaves this product, are zeros.
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
    for (const Adder::Branch &branch : branches) {
      downs.push_back(filled(branch.down, rank, shape[1]));
      ups.push_back(filled(branch.up, shape[0], rank));
    }
    const auto stacked = [&](ArrayRef<Value> parts, int64_t rows, int64_t columns) -> Value {
      Value all = ConcatOp::create(builder, loc, parts, 0);
      return ReshapeOp::create(builder, loc, RankedTensorType::get({int64_t(parts.size()), rows, columns}, element), all);
    };
    const auto between = RankedTensorType::get({ShapedType::kDynamic, 1, rank}, builder.getF32Type());
    Value narrow = ExpertLinearOp::create(builder, loc, between, linear.getInput(), choice.getIds(),
                                          stacked(downs, rank, shape[1]), /*combine=*/Value(), /*bias=*/Value(),
                                          /*residual=*/Value());
    auto sum = ExpertLinearOp::create(builder, loc, linear.getType(), narrow, choice.getIds(), stacked(ups, shape[0], rank),
                                      choice.getGain(), /*bias=*/Value(), linear.getResult());
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
