#include "codegen/Lowering/WeightTable.h"

#include "lib/Weights/WeightExpr.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::llm {

/// The expression as text: equal text means equal numbers.
static void print(Value value, llvm::raw_ostream &os) {
  Operation *op = value.getDefiningOp();
  os << op->getName() << op->getDiscardableAttrDictionary()
     << op->getPropertiesAsAttribute() << "#"
     << cast<OpResult>(value).getResultNumber() << ":" << value.getType()
     << "(";
  for (Value operand : op->getOperands())
    print(operand, os);
  os << ")";
}

/// The only key in the expression, or that of its first weight with a mark that
/// there is more to it.
static std::string nameOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast<WeightOp>(op))
    return weight.getKey() ? weight.getKey()->str() : std::string("inline");
  return nameOf(op->getOperand(0)) + "." + op->getName().stripDialect().str();
}

/// Copies `value` and what it is made of.
static Value cloneExpression(OpBuilder &builder, Value value,
                             IRMapping &mapping) {
  if (Value done = mapping.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneExpression(builder, operand, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

WeightTable::WeightTable(ModuleOp module) : module(module), symbols(module) {
  for (auto tensor : module.getOps<plan::TensorOp>()) {
    std::string key;
    llvm::raw_string_ostream os(key);
    print(tensor.getBody().front().getTerminator()->getOperand(0), os);
    byExpression[key + "|" + tensor.getLayout().str()] = tensor;
  }
}

FailureOr<plan::TensorOp> WeightTable::get(Value weight, StringRef layout,
                                           Operation *user) {
  if (!isWeightExpr(weight))
    return user->emitOpError("expects a weight that is known when the package "
                             "is written, but got a value that is "
                             "computed at run time");
  std::string key;
  llvm::raw_string_ostream os(key);
  print(weight, os);
  plan::TensorOp &tensor = byExpression[key + "|" + layout.str()];
  if (tensor)
    return tensor;
  FailureOr<uint64_t> bytes =
      layoutBytes(cast<RankedTensorType>(weight.getType()), layout,
                  [&] { return user->emitOpError(); });
  if (failed(bytes))
    return failure();
  tensor = insert(nameOf(weight), layout, *bytes, weight.getLoc());
  auto builder = OpBuilder::atBlockEnd(&tensor.getBody().front());
  IRMapping mapping;
  Value value = cloneExpression(builder, weight, mapping);
  plan::YieldOp::create(builder, weight.getLoc(), value);
  return tensor;
}

plan::TensorOp WeightTable::constant(StringRef name, DenseElementsAttr value) {
  std::string key;
  llvm::raw_string_ostream(key) << name << "|" << value.getAsOpaquePointer();
  plan::TensorOp &tensor = byExpression[key];
  if (tensor)
    return tensor;
  tensor = insert(name, kLayoutF32, uint64_t(value.getNumElements()) * 4,
                  module.getLoc());
  auto builder = OpBuilder::atBlockEnd(&tensor.getBody().front());
  Value weight = WeightOp::create(builder, tensor.getLoc(), value);
  plan::YieldOp::create(builder, tensor.getLoc(), weight);
  return tensor;
}

plan::TensorOp WeightTable::insert(StringRef name, StringRef layout,
                                   uint64_t bytes, Location loc) {
  OpBuilder builder(module.getContext());
  auto tensor = plan::TensorOp::create(builder, loc, name, layout, bytes,
                                       /*offset=*/IntegerAttr());
  tensor.getBody().emplaceBlock();
  // Before the targets; a second layout of one weight gets another name.
  auto targets = module.getOps<plan::TargetOp>();
  symbols.insert(tensor, targets.empty() ? module.getBody()->end()
                                         : Block::iterator(*targets.begin()));
  return tensor;
}

} // namespace mlir::llm
