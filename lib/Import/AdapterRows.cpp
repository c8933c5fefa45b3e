#include "lib/Import/AdapterRows.h"

#include "lib/Import/Family.h"
#include "lib/Import/TensorNames.h"

using namespace mlir;
using namespace mlir::llm;

static std::string moduleName(StringRef key) {
  for (StringRef end : {".weight", ".weight_packed", ".qweight"})
    if (key.consume_back(end))
      break;
  return key.str();
}

/// Whether `op` chooses or orders along the last axis of its input.
template <typename OpT> static bool isOfColumns(OpT op, Value input) {
  return int64_t(op.getAxis()) + 1 == cast<ShapedType>(input.getType()).getRank();
}

std::optional<FileMatrix> mlir::llm::fileMatrixOf(Value weight) {
  bool turned = false, inModelOrder = false;
  while (Operation *op = weight.getDefiningOp()) {
    const auto shape = cast<ShapedType>(op->getResult(0).getType()).getShape();
    if (auto tensor = dyn_cast<WeightOp>(op)) {
      if (!tensor.getKey() || shape.size() != 2)
        return std::nullopt;
      return FileMatrix{moduleName(*tensor.getKey()), shape[turned ? 1 : 0], Value()};
    }
    if (auto parts = dyn_cast<AssembleOp>(op)) {
      auto codes = parts.getCodes().getDefiningOp<WeightOp>();
      if (!codes || !codes.getKey() || turned || shape.size() != 2)
        return std::nullopt;
      return FileMatrix{moduleName(*codes.getKey()), shape[0], inModelOrder ? Value() : parts.getOrder()};
    }
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      if (shape.size() != 2 || !transpose.getInput().getDefiningOp<WeightOp>())
        return std::nullopt;
      turned = true;
    } else if (auto gather = dyn_cast<GatherOp>(op)) {
      inModelOrder |= isOfColumns(gather, gather.getInput());
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      if (isOfColumns(slice, slice.getInput()))
        return std::nullopt;
    } else if (auto concat = dyn_cast<ConcatOp>(op)) {
      std::string name;
      for (Value input : concat.getInputs()) {
        auto from = fileMatrixOf(input);
        if (!from || isOfColumns(concat, input) || (!name.empty() && name != from->name))
          return std::nullopt;
        name = from->name;
      }
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      if (cast<ShapedType>(reshape.getInput().getType()).getShape().back() != shape.back())
        return std::nullopt;
    } else if (!isa<DequantizeOp, RelayoutOp>(op)) {
      return std::nullopt;
    }
    weight = op->getOperand(0);
  }
  return std::nullopt;
}

Value mlir::llm::rowsLike(OpBuilder &builder, Location loc, Value weight, Value matrix) {
  Operation *op = weight.getDefiningOp();
  if (isa<WeightOp, AssembleOp, TransposeOp>(op))
    return matrix;
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    SmallVector<Value> parts;
    for (Value input : concat.getInputs())
      parts.push_back(rowsLike(builder, loc, input, matrix));
    return ConcatOp::create(builder, loc, parts, concat.getAxis());
  }
  Value rows = rowsLike(builder, loc, op->getOperand(0), matrix);
  if (auto slice = dyn_cast<SliceOp>(op))
    return SliceOp::create(builder, loc, rows, slice.getBegin(), slice.getEnd(), slice.getAxis());
  auto gather = dyn_cast<GatherOp>(op);
  if (gather && !isOfColumns(gather, gather.getInput()))
    return GatherOp::create(builder, loc, rows, gather.getIndex(), gather.getAxis());
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    auto type = cast<RankedTensorType>(rows.getType());
    SmallVector<int64_t> shape(cast<ShapedType>(reshape.getType()).getShape());
    shape.back() = type.getShape().back();
    return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), rows);
  }
  return rows;
}

SmallVector<Value> mlir::llm::matricesOfExperts(Value weight) {
  if (auto numbers = weight.getDefiningOp<DequantizeOp>())
    weight = numbers.getInput();
  auto stack = weight.getDefiningOp<ReshapeOp>();
  const auto shape = cast<ShapedType>(weight.getType()).getShape();
  if (!stack || shape.size() != 3)
    return {};
  SmallVector<Value> matrices{stack.getInput()};
  if (auto all = stack.getInput().getDefiningOp<ConcatOp>())
    matrices.assign(all.getInputs().begin(), all.getInputs().end());
  const bool one = int64_t(matrices.size()) == shape[0] && llvm::all_of(matrices, [&](Value matrix) {
                     return cast<ShapedType>(matrix.getType()).getShape() == shape.drop_front();
                   });
  return one ? matrices : SmallVector<Value>();
}

SmallVector<std::string> mlir::llm::adapterNames(StringRef name, StringRef architecture) {
  SmallVector<std::string> found{name.str()};
  if (const Family *family = findCheckpointFamily(architecture); family && !name.starts_with(family->names->root))
    found.push_back((family->names->root + name).str());
  StringRef rest = name;
  const Family *family = findFamily(architecture);
  if (!family || !rest.consume_front(kGGUFNames.layer)) {
    if (family && name == kGGUFNames.head)
      found.push_back(family->names->head.str());
    return found;
  }
  auto [layer, role] = rest.split('.');
  // Files of one architecture may be of several families.
  for (const TensorNames *names : {family->names, &kLlamaNames, &kMixtralNames})
    for (StringRef TensorNames::*part :
         {&TensorNames::query, &TensorNames::key, &TensorNames::value, &TensorNames::packedQKV, &TensorNames::output,
          &TensorNames::queryLatent, &TensorNames::latentQuery, &TensorNames::latent, &TensorNames::latentKeyValue,
          &TensorNames::gate, &TensorNames::up, &TensorNames::packedGateUp, &TensorNames::down, &TensorNames::sharedGate,
          &TensorNames::sharedUp, &TensorNames::sharedDown, &TensorNames::router, &TensorNames::oneRouter}) {
      StringRef called = part == &TensorNames::oneRouter ? kGGUFNames.router : kGGUFNames.*part;
      if (!called.empty() && role == called && !(names->*part).empty())
        found.push_back((names->root + names->layer + layer + "." + names->*part).str());
    }
  return found;
}
