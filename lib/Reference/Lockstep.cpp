#include "lib/Reference/Lockstep.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

LogicalResult Lockstep::begin(ArrayRef<std::vector<int32_t>> windows) {
  if (function.getNumArguments() != 3)
    return function.emitOpError("expects arguments (ids, positions, rows), but got ") << function.getFunctionType();
  states.clear();
  frames.clear();
  for (const std::vector<int32_t> &ids : windows) {
    std::vector<int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    Frame<float> &frame = frames.emplace_back();
    frame.state = states.emplace_back(std::make_unique<KVStore<float>>()).get();
    const Tensor inputs[] = {Tensor::ids(ids), Tensor::ids(positions), Tensor::ids({positions.back()})};
    if (failed(interpreter.bind(function.getBody(), function.getLoc(), inputs, frame)))
      return failure();
  }
  return success();
}

bool Lockstep::readAfter(Value value, Operation *op) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *place = inBody(user);
    return place && op->isBeforeInBlock(place);
  });
}

void Lockstep::sweep(Operation *op) {
  // A cache lives while a handle to it is read later on.
  std::set<std::pair<std::string, int64_t>> alive;
  function.walk([&](KVOp handle) {
    Operation *place = inBody(handle);
    if ((place && op->isBeforeInBlock(place)) || readAfter(handle.getHandle(), op))
      alive.emplace(handle.getCache().str(), handle.getIndex());
  });
  for (size_t w = 0; w < frames.size(); ++w) {
    SmallVector<Value> done;
    for (auto &[value, tensor] : frames[w].values)
      if (!readAfter(value, op))
        done.push_back(value);
    for (Value value : done)
      interpreter.forget(value, frames[w]);
    states[w]->eraseUnless([&](const auto &name) { return alive.count(name) != 0; });
  }
}

std::optional<std::vector<SavedValue>> Lockstep::save() const {
  llvm::DenseMap<Operation *, int64_t> places;
  for (auto [place, op] : llvm::enumerate(body))
    places[&op] = int64_t(place);
  std::vector<SavedValue> saved;
  for (auto [w, frame] : llvm::enumerate(frames)) {
    if (!states[w]->empty())
      return std::nullopt;
    for (const auto &[value, tensor] : frame.values) {
      if (isa<BlockArgument>(value))
        continue; // bound anew
      auto place = places.find(value.getDefiningOp());
      if (place == places.end() || !tensor.is<float>())
        return std::nullopt;
      SavedValue &one = saved.emplace_back();
      one.op = place->second, one.result = cast<OpResult>(value).getResultNumber(), one.window = int64_t(w);
      one.shape.assign(tensor.shape().begin(), tensor.shape().end());
      one.numbers = tensor.toFloats();
    }
  }
  return saved;
}

bool Lockstep::restore(ArrayRef<SavedValue> values) {
  SmallVector<Operation *> ops;
  for (Operation &op : body)
    ops.push_back(&op);
  for (const SavedValue &one : values)
    if (one.op < 0 || one.op >= int64_t(ops.size()) || one.window < 0 || one.window >= int64_t(frames.size()) ||
        one.result < 0 || one.result >= ops[size_t(one.op)]->getNumResults())
      return false;
  for (const SavedValue &one : values)
    frames[size_t(one.window)].values[ops[size_t(one.op)]->getResult(unsigned(one.result))] =
        Tensor::of<float>(one.shape, one.numbers);
  return true;
}
