#include "lib/Import/ModelWeights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::llm;
using llvm::ArrayRef;
using llvm::Twine;

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

void TensorTable::fail(const Twine &message) {
  if (failure.empty())
    failure = ("'" + source.path() + "' " + message).str();
}

const WeightTensor *TensorTable::takeOptional(const Twine &key,
                                              ArrayRef<int64_t> shape) {
  const WeightTensor *tensor = source.find(key.str());
  if (!tensor)
    return nullptr;
  taken.insert(tensor);
  if (ArrayRef<int64_t>(tensor->shape) == shape)
    return tensor;
  fail("expects tensor '" + key + "' to be " + shapeText(shape) +
       " by the metadata, but got " + shapeText(tensor->shape));
  return nullptr;
}

const WeightTensor *TensorTable::take(const Twine &key,
                                      ArrayRef<int64_t> shape) {
  const WeightTensor *tensor = takeOptional(key, shape);
  if (!tensor)
    fail("expects a tensor '" + key + "' of shape " + shapeText(shape) +
         ", but got none; is the file complete, and of the family that it "
         "names?");
  return tensor;
}

const WeightTensor *TensorTable::asFloats(const WeightTensor *tensor) {
  using sprig::quant::Format;
  if (!tensor || tensor->format == Format::F32 ||
      tensor->format == Format::F16 || tensor->format == Format::BF16)
    return tensor;
  fail("expects tensor '" + tensor->key +
       "' to be of type F32, F16 or BF16, but got " +
       llvm::StringRef(sprig::quant::info(tensor->format).name));
  return nullptr;
}

const WeightTensor *TensorTable::takeVector(const Twine &key, int64_t size) {
  return asFloats(take(key, {size}));
}

const WeightTensor *TensorTable::takeOptionalVector(const Twine &key,
                                                    int64_t size) {
  return asFloats(takeOptional(key, {size}));
}

void TensorTable::ignore(const Twine &key) {
  if (const WeightTensor *tensor = source.find(key.str()))
    taken.insert(tensor);
}

bool TensorTable::leaveOut(llvm::StringRef prefix) {
  bool any = false;
  for (const WeightTensor &tensor : source.tensors())
    if (llvm::StringRef(tensor.key).starts_with(prefix)) {
      taken.insert(&tensor);
      any = true;
    }
  return any;
}

llvm::Error TensorTable::finish(llvm::StringRef architecture) const {
  if (!failure.empty())
    return llvm::createStringError(failure);
  llvm::SmallVector<llvm::StringRef> left;
  for (const WeightTensor &tensor : source.tensors())
    if (!taken.contains(&tensor))
      left.push_back(tensor.key);
  if (left.empty())
    return llvm::Error::success();
  const size_t shown = std::min<size_t>(left.size(), 4);
  return llvm::createStringError(
      "'" + source.path() + "' expects only tensors of the '" + architecture +
      "' family as this importer knows it, but got " + Twine(left.size()) +
      " more: " + llvm::join(ArrayRef(left).take_front(shown), ", ") +
      (left.size() > shown ? ", …" : ""));
}

NormWeights mlir::llm::takeNorm(TensorTable &tensors, const Twine &stem,
                                int64_t size) {
  NormWeights found;
  found.gamma = {tensors.takeVector(stem + ".weight", size)};
  return found;
}

LinearWeights mlir::llm::takeLinear(TensorTable &tensors, const Twine &stem,
                                    int64_t rows, int64_t columns) {
  LinearWeights found;
  found.weight = {tensors.take(stem + ".weight", {rows, columns})};
  found.bias = {tensors.takeOptionalVector(stem + ".bias", rows)};
  return found;
}
