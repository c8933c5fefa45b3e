#include "lib/Reference/Activations.h"

#include "lib/Reference/InputSums.h"
#include "lib/Reference/Lockstep.h"
#include "llvm/Support/xxhash.h"

#include <chrono>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

/// How long a run goes on before what it needs to be resumed is written down.
static constexpr std::chrono::seconds kSaveEvery(20);

static ActivationRows rowsOf(const Tensor &tensor, int64_t width) {
  return {tensor.as<float>(), tensor.elements() / width, width};
}

namespace {

/// Hands what the interpreter observes to a visitor.
class Adapter final : public Observer {
public:
  Adapter(Interpreter<float> &interpreter, ActivationVisitor &visitor) : interpreter(interpreter), visitor(visitor) {}
  bool wants(Operation *op) override { return visitor.wants(op); }

  LogicalResult visit(Operation *op, ArrayRef<Tensor> operands, ArrayRef<Tensor> results) override {
    if (operands.empty() || results.empty() || !operands.front().is<float>() || !results.front().is<float>())
      return op->emitOpError("expects an input and a result in floats to observe, but has none");
    FailureOr<Tensor> input = isProduct(op) ? meetingWeight(op, operands) : operands.front();
    if (failed(input))
      return failure();
    const int64_t width = isProduct(op) ? weightWidth(op) : input->width();
    return visitor.visit(op, window, rowsOf(*input, width), rowsOf(results.front(), results.front().width()));
  }

  int64_t window = 0;

private:
  /// The first operand of a product with a folded norm applied.
  FailureOr<Tensor> meetingWeight(Operation *op, ArrayRef<Tensor> operands) {
    const ProductInput in(op);
    const Tensor &x = operands.front();
    if (!in.gamma && !in.rowScale)
      return x;
    Tensor gamma, rowScale;
    for (auto [value, operand] : llvm::zip(op->getOperands(), operands)) {
      if (value == in.rowScale)
        rowScale = operand;
      if (value != in.gamma)
        continue;
      // Observers see no weights.
      FailureOr<Tensor> read = operand ? FailureOr<Tensor>(operand) : interpreter.constant(value);
      if (failed(read))
        return failure();
      gamma = *read;
    }
    float *numbers;
    Tensor result = Tensor::make<float>(x.shape(), numbers);
    const int64_t K = x.width();
    for (int64_t i = 0, count = x.elements(); i < count; ++i)
      numbers[i] = x.as<float>()[size_t(i)] * (gamma ? gamma.as<float>()[size_t(i % K)] : 1) *
                   (rowScale ? rowScale.as<float>()[size_t(i / K)] : 1);
    return result;
  }

  Interpreter<float> &interpreter;
  ActivationVisitor &visitor;
};

class ReferenceActivations final : public ActivationSource {
public:
  ReferenceActivations(std::shared_ptr<WeightStore> files, ActivationSettings settings)
      : files(std::move(files)), settings(std::move(settings)) {}

  int64_t available() const override { return int64_t(settings.tokens.size()); }
  LogicalResult visit(func::FuncOp function, const CalibrationOptions &options, ActivationVisitor &visitor) override;
  LogicalResult statistics(func::FuncOp function, const CalibrationOptions &options, const StatisticsRequest &request,
                           LayerCallback layerDone) override;

private:
  FailureOr<std::vector<std::vector<int32_t>>> cut(func::FuncOp function, const CalibrationOptions &options) const;
  FailureOr<uint64_t> keyOf(func::FuncOp function, ArrayRef<std::vector<int32_t>> windows, InputSums &sums,
                            bool gram) const;
  std::unique_ptr<Interpreter<float>> interpreterFor(func::FuncOp function) const {
    Options options;
    options.threads = settings.threads, options.cacheBytes = settings.cacheBytes;
    return std::make_unique<Interpreter<float>>(function->getParentOfType<ModuleOp>(), files, options);
  }
  void report(size_t place, size_t places, size_t window, size_t windows) const {
    if (settings.progress)
      settings.progress(int64_t(place * windows + window), int64_t(places * windows));
  }
  /// All windows through one op of the body, observed or not.
  LogicalResult pass(Lockstep &lockstep, Interpreter<float> &interpreter, Operation *op, Adapter *adapter) const;

  std::shared_ptr<WeightStore> files;
  ActivationSettings settings;
};

} // namespace

FailureOr<std::vector<std::vector<int32_t>>> ReferenceActivations::cut(func::FuncOp function,
                                                                       const CalibrationOptions &options) const {
  const int64_t own = options.window - (settings.begin ? 1 : 0);
  if (options.tokens < 1)
    return function.emitOpError("expects tokens, how much of the calibration text is read, of at least 1, but got ")
               << options.tokens,
           failure();
  if (own < 1)
    return function.emitOpError("expects windows of at least ")
               << 1 + (settings.begin ? 1 : 0) << " tokens, but got " << options.window,
           failure();
  if (options.tokens > available())
    return function.emitOpError("wants ")
               << options.tokens << " tokens of calibration text, but the text has " << available()
               << "; give a longer one, or say 'tokens' of the step that reads it",
           failure();
  const int64_t longest = std::min(options.window, options.tokens + (settings.begin ? 1 : 0));
  WalkResult fit = function->getParentOfType<ModuleOp>().walk([&](KVCacheOp cache) {
    const int64_t most = cache.getCacheType().getCapacity();
    if (longest <= most)
      return WalkResult::advance();
    cache.emitOpError("expects windows of calibration text of at most ")
        << most << " tokens, the context, but got " << longest
        << "; say 'window' of the step that reads it, or a longer context (--context)";
    return WalkResult::interrupt();
  });
  if (fit.wasInterrupted())
    return failure();
  std::vector<std::vector<int32_t>> windows;
  for (int64_t first = 0; first < options.tokens; first += own) {
    std::vector<int32_t> &window = windows.emplace_back();
    if (settings.begin)
      window.push_back(*settings.begin);
    const int64_t end = std::min(first + own, options.tokens);
    window.insert(window.end(), settings.tokens.begin() + first, settings.tokens.begin() + end);
  }
  return windows;
}

LogicalResult ReferenceActivations::pass(Lockstep &lockstep, Interpreter<float> &interpreter, Operation *op,
                                         Adapter *adapter) const {
  const auto places = lockstep.block().getOperations().size();
  const auto place = size_t(std::distance(lockstep.block().begin(), op->getIterator()));
  interpreter.setObserver(adapter);
  for (size_t w = 0; w < lockstep.windows(); ++w) {
    if (adapter)
      adapter->window = int64_t(w);
    if (failed(lockstep.execute(op, w)))
      return failure();
    report(place, places, w + 1, lockstep.windows());
  }
  return success();
}

LogicalResult ReferenceActivations::visit(func::FuncOp function, const CalibrationOptions &options,
                                          ActivationVisitor &visitor) {
  auto windows = cut(function, options);
  if (failed(windows))
    return failure();
  auto interpreter = interpreterFor(function);
  Lockstep lockstep(*interpreter, function);
  if (failed(lockstep.begin(*windows)))
    return failure();
  Adapter adapter(*interpreter, visitor);
  // A visitor may put ops in front of the next one, so that is looked up late.
  for (Operation *op = &lockstep.block().front(); op != lockstep.block().getTerminator(); op = op->getNextNode()) {
    if (failed(pass(lockstep, *interpreter, op, &adapter)))
      return failure();
    FailureOr<LayerChange> change = visitor.passed(op);
    if (failed(change))
      return failure();
    if (*change == LayerChange::Rewritten) {
      interpreter->moduleChanged();
      if (failed(pass(lockstep, *interpreter, op, nullptr)))
        return failure();
    }
    lockstep.sweep(op);
  }
  return success();
}

FailureOr<uint64_t> ReferenceActivations::keyOf(func::FuncOp function, ArrayRef<std::vector<int32_t>> windows,
                                                InputSums &sums, bool gram) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto module = function->getParentOfType<ModuleOp>();
  module.print(stream);
  stream << function.getSymName() << gram << '\n';
  for (SourceOp source : module.getOps<SourceOp>()) {
    if (source.isRuntime())
      continue;
    auto file = files->source(source, FlatSymbolRefAttr::get(source.getSymNameAttr()));
    if (failed(file))
      return failure();
    stream << (*file)->fingerprint() << '\n';
  }
  for (Operation &op : function.getBody().front()) {
    sums.begin(&op);
    stream << sums.size() << ' ';
  }
  for (const std::vector<int32_t> &window : windows)
    stream << StringRef(reinterpret_cast<const char *>(window.data()), window.size() * sizeof(int32_t)) << '\n';
  return llvm::xxh3_64bits(StringRef(text));
}

LogicalResult ReferenceActivations::statistics(func::FuncOp function, const CalibrationOptions &options,
                                               const StatisticsRequest &request, LayerCallback layerDone) {
  auto windows = cut(function, options);
  if (failed(windows))
    return failure();
  auto interpreter = interpreterFor(function);
  InputSums sums(interpreter->workers, request);
  Lockstep lockstep(*interpreter, function);
  Block &body = lockstep.block();

  uint64_t key = 0;
  if (!request.replay && !settings.cacheFolder.empty()) {
    FailureOr<uint64_t> known = keyOf(function, *windows, sums, request.gram);
    if (failed(known))
      return failure();
    key = *known;
  }
  StatisticsCache cache(request.replay ? "" : settings.cacheFolder, key);

  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  auto stored = [&](size_t place) -> std::optional<LayerStatistics> {
    auto numbers = cache.load(int64_t(place));
    return numbers ? sums.assign(std::move(*numbers)) : std::nullopt;
  };
  size_t known = 0; // ops whose statistics are on disk, or that have none
  for (; known < ops.size(); ++known) {
    sums.begin(ops[known]);
    if (!sums.empty() && !stored(known))
      break;
  }
  // Evaluate up to there first: the callback may change layers, and must not be seen to.
  size_t place = 0;
  if (known < ops.size()) {
    if (failed(lockstep.begin(*windows)))
      return failure();
    for (size_t saved = known; saved-- > 0 && place == 0;)
      if (auto state = cache.loadState(int64_t(saved)); state && lockstep.restore(*state))
        place = saved + 1;
    for (; place < known; ++place) {
      if (failed(pass(lockstep, *interpreter, ops[place], nullptr)))
        return failure();
      lockstep.sweep(ops[place]);
    }
  }
  for (size_t i = 0; i < known; ++i) {
    sums.begin(ops[i]);
    if (sums.empty())
      continue;
    std::optional<LayerStatistics> found = stored(i);
    if (!found)
      return ops[i]->emitOpError("lost its statistics: they were in '") << settings.cacheFolder << "' just now";
    if (failed(layerDone(ops[i], *found)))
      return failure();
  }
  interpreter->moduleChanged();
  place = known;

  Adapter adapter(*interpreter, sums);
  auto lastSave = std::chrono::steady_clock::now();
  for (; place < ops.size(); ++place) {
    Operation *op = ops[place];
    sums.begin(op);
    if (failed(pass(lockstep, *interpreter, op, sums.empty() ? nullptr : &adapter)))
      return failure();
    const bool observed = !sums.empty();
    if (observed) {
      const LayerStatistics gathered = sums.take();
      cache.store(int64_t(place), InputSums::distinct(gathered));
      FailureOr<LayerChange> change = layerDone(op, gathered);
      if (failed(change))
        return failure();
      if (*change == LayerChange::Rewritten)
        interpreter->moduleChanged();
      if (request.replay && *change == LayerChange::Rewritten && failed(pass(lockstep, *interpreter, op, nullptr)))
        return failure();
    }
    lockstep.sweep(op);
    // Writing the state of a large model takes seconds; what lies between two saves is evaluated again.
    if (observed && std::chrono::steady_clock::now() - lastSave > kSaveEvery)
      if (auto state = lockstep.save()) {
        cache.storeState(int64_t(place), *state);
        lastSave = std::chrono::steady_clock::now();
      }
  }
  cache.dropState();
  return success();
}

std::shared_ptr<ActivationSource> reference::makeActivationSource(std::shared_ptr<WeightStore> files,
                                                                  ActivationSettings settings) {
  return std::make_shared<ReferenceActivations>(std::move(files), std::move(settings));
}
