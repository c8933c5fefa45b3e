#include "lib/Reference/WeightLoader.h"

#include "lib/Reference/Decode.h"
#include "lib/Weights/WeightTypes.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

std::optional<Tensor> TensorCache::find(StringRef key) {
  auto found = index.find(key);
  if (found == index.end())
    return std::nullopt;
  entries.splice(entries.begin(), entries, found->second);
  return entries.front().tensor;
}

void TensorCache::insert(StringRef key, Tensor tensor) {
  erase(key);
  if (budget != 0 && tensor.bytes() > budget)
    return; // it would only push out the rest
  held += tensor.bytes();
  entries.push_front({key.str(), std::move(tensor)});
  index[key] = entries.begin();
  while (budget != 0 && held > budget)
    erase(std::string(entries.back().key));
}

void TensorCache::erase(StringRef key) {
  auto found = index.find(key);
  if (found == index.end())
    return;
  held -= found->second->tensor.bytes();
  entries.erase(found->second);
  index.erase(found);
}

static std::string keyOf(WeightOp op) { return (*op.getSource() + "\n" + *op.getKey()).str(); }

template <typename F> void WeightLoader<F>::set(StringRef source, StringRef key, Tensor value) {
  runtime[(source + "\n" + key).str()] = std::move(value);
  dropExpressions();
}

template <typename F> std::string WeightLoader<F>::nameOf(Value value) {
  // Keys of weights have a source's name before the line break; these have none.
  return "\n" + std::to_string(reinterpret_cast<uintptr_t>(value.getAsOpaquePointer()));
}

template <typename F> void WeightLoader<F>::keepExpression(Value value, Tensor tensor) {
  const std::string name = nameOf(value);
  expressions.insert(name);
  decoded.insert(name, std::move(tensor));
}

template <typename F> void WeightLoader<F>::dropExpressions() {
  for (const auto &entry : expressions)
    decoded.erase(entry.getKey());
  expressions.clear();
}

template <typename F> bool WeightLoader<F>::isRuntime(WeightOp op) {
  auto source = SymbolTable::lookupNearestSymbolFrom<SourceOp>(op, op.getSourceAttr());
  return source && source.isRuntime();
}

template <typename F> FailureOr<Tensor> WeightLoader<F>::given(WeightOp op) {
  auto found = runtime.find(keyOf(op));
  if (found == runtime.end())
    return op.emitOpError("expects a value for \"")
               << *op.getKey() << "\" of the run-time source @" << *op.getSource() << ", but none was set",
           failure();
  return convertGiven<F>(op, found->second);
}

template <typename F> FailureOr<std::pair<WeightTensor, sprig::quant::Format>> WeightLoader<F>::locate(WeightOp op) {
  FailureOr<const WeightSource *> file = files.source(op, op.getSourceAttr());
  if (failed(file))
    return failure();
  auto tensor = (*file)->get(*op.getKey());
  if (!tensor)
    return op.emitOpError() << llvm::toString(tensor.takeError()), failure();
  auto format = checkPromise(op, cast<RankedTensorType>(op.getType()), **tensor, (*file)->path());
  if (failed(format))
    return failure();
  return std::make_pair(**tensor, *format);
}

template <typename F> FailureOr<Tensor> WeightLoader<F>::load(WeightOp op) {
  if (op.isInline())
    return decodeInline<F>(op, workers);
  if (isRuntime(op))
    return given(op);
  const std::string name = keyOf(op);
  if (std::optional<Tensor> found = decoded.find(name))
    return *found;
  auto tensor = locate(op);
  if (failed(tensor))
    return failure();
  FailureOr<Tensor> result = decodeTensor<F>(op, tensor->first, tensor->second, workers);
  if (succeeded(result))
    decoded.insert(name, *result);
  return result;
}

template <typename F> FailureOr<Tensor> WeightLoader<F>::rows(WeightOp op, ArrayRef<int32_t> ids) {
  FailureOr<Tensor> whole = failure();
  if (op.isInline() || isRuntime(op)) {
    whole = load(op);
    if (failed(whole))
      return failure();
  } else if (std::optional<Tensor> found = decoded.find(keyOf(op))) {
    whole = *found;
  } else {
    auto tensor = locate(op);
    if (failed(tensor))
      return failure();
    return decodeRows<F>(op, tensor->first, tensor->second, ids);
  }
  F *data;
  const int64_t width = whole->width(), count = whole->rows();
  Tensor result = Tensor::make<F>({int64_t(ids.size()), width}, data);
  for (auto [i, id] : llvm::enumerate(ids))
    llvm::copy(whole->as<F>().slice(size_t(std::clamp<int64_t>(id, 0, count - 1) * width), size_t(width)),
               data + int64_t(i) * width);
  return result;
}

template class mlir::llm::reference::WeightLoader<float>;
template class mlir::llm::reference::WeightLoader<double>;
