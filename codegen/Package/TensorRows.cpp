#include "codegen/Package/TensorRows.h"

#include "codegen/Lowering/WeightLayout.h"
#include "dialects/LLM/LLM.h"
#include "llvm/Support/Path.h"

namespace mlir::llm {

FailureOr<const WeightSource *> WeightFiles::open(StringRef symbol,
                                                  Operation *user) {
  std::unique_ptr<WeightSource> &file = files[symbol];
  if (file)
    return file.get();
  auto source = module.lookupSymbol<SourceOp>(symbol);
  if (!source || !source.getPath())
    return user->emitOpError("expects a source with a file, but got @")
           << symbol;
  llvm::SmallString<128> path(*source.getPath());
  if (llvm::sys::path::is_relative(path)) {
    path = folder;
    llvm::sys::path::append(path, *source.getPath());
  }
  llvm::Expected<std::unique_ptr<WeightSource>> opened = openWeightSource(path);
  if (!opened)
    return source.emitOpError() << llvm::toString(opened.takeError());
  file = std::move(*opened);
  return file.get();
}

namespace {

/// Rows that lie one after another in memory.
struct MemoryRows final : TensorRows {
  std::span<const std::byte> read(size_t first, size_t count,
                                  std::vector<std::byte> &) const override {
    return data.subspan(first * rowBytes(), count * rowBytes());
  }
  std::span<const std::byte> data;
  std::vector<std::byte> owned; // of an inline value
};

struct SliceRows final : TensorRows {
  std::span<const std::byte>
  read(size_t first, size_t count,
       std::vector<std::byte> &buffer) const override {
    return input->read(begin + first, count, buffer);
  }
  std::unique_ptr<TensorRows> input;
  size_t begin = 0;
};

struct ConcatRows final : TensorRows {
  std::span<const std::byte>
  read(size_t first, size_t count,
       std::vector<std::byte> &buffer) const override {
    std::vector<std::byte> collected, own;
    collected.reserve(count * rowBytes());
    for (const auto &input : inputs) {
      size_t here =
          first < input->rows ? std::min(count, input->rows - first) : 0;
      if (here != 0) {
        auto bytes = input->read(first, here, own);
        if (here == count &&
            collected.empty()) { // the usual case: nothing to join
          buffer.swap(own);
          return bytes;
        }
        collected.insert(collected.end(), bytes.begin(), bytes.end());
      }
      count -= here;
      first = first > input->rows ? first - input->rows : 0;
    }
    buffer.swap(collected);
    return buffer;
  }
  std::vector<std::unique_ptr<TensorRows>> inputs;
};

/// Rows of dimension 0: the sizes between the first and the last multiply them.
size_t rowsPerSlice(RankedTensorType type) {
  size_t rows = 1;
  for (int64_t size : type.getShape().drop_back().drop_front(
           std::min<size_t>(1, type.getRank() - 1)))
    rows *= size_t(size);
  return rows;
}

FailureOr<std::unique_ptr<TensorRows>> openWeight(WeightOp weight,
                                                  WeightFiles &files) {
  auto type = cast<RankedTensorType>(weight.getResult().getType());
  auto rows = std::make_unique<MemoryRows>();
  if (weight.isInline()) {
    auto dense = dyn_cast<DenseElementsAttr>(weight.getValueAttr());
    std::optional<sprig::quant::Format> format =
        formatOf(type.getElementType());
    if (!dense || !format)
      return weight.emitOpError(
                 "expects an inline value of a format that GGUF has, but got ")
             << type;
    rows->format = *format;
    rows->columns = size_t(type.getShape().back());
    rows->rows = size_t(type.getNumElements()) / rows->columns;
    size_t bytes = rows->rows * rows->rowBytes();
    ArrayRef<char> raw = dense.getRawData();
    auto data = reinterpret_cast<const std::byte *>(raw.data());
    if (dense.isSplat())
      for (size_t at = 0; at < bytes; at += raw.size())
        rows->owned.insert(rows->owned.end(), data, data + raw.size());
    else
      rows->owned.assign(data, data + raw.size());
    rows->data = rows->owned;
    return std::unique_ptr<TensorRows>(std::move(rows));
  }
  FailureOr<const WeightSource *> source =
      files.open(*weight.getSource(), weight);
  if (failed(source))
    return failure();
  llvm::Expected<const WeightTensor *> tensor =
      (*source)->get(*weight.getKey());
  if (!tensor)
    return weight.emitOpError() << llvm::toString(tensor.takeError());
  std::optional<sprig::quant::Format> declared =
      formatOf(type.getElementType());
  if (ArrayRef<int64_t>((*tensor)->shape) != type.getShape() ||
      declared != (*tensor)->format) {
    InFlightDiagnostic diagnostic = weight.emitOpError("expects '")
                                    << *weight.getKey() << "' to be " << type
                                    << ", but " << (*source)->path()
                                    << " holds ";
    llvm::interleave((*tensor)->shape, diagnostic, "x");
    return diagnostic << " of "
                      << StringRef(sprig::quant::info((*tensor)->format).name);
  }
  rows->format = (*tensor)->format;
  rows->rows = size_t((*tensor)->rows());
  rows->columns = size_t((*tensor)->columns());
  rows->data = (*tensor)->data;
  return std::unique_ptr<TensorRows>(std::move(rows));
}

} // namespace

FailureOr<std::unique_ptr<TensorRows>> openRows(Value value,
                                                WeightFiles &files) {
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast<WeightOp>(op))
    return openWeight(weight, files);
  auto slice = dyn_cast<SliceOp>(op);
  if (slice && slice.getAxis() == 0) {
    FailureOr<std::unique_ptr<TensorRows>> input =
        openRows(slice.getInput(), files);
    if (failed(input))
      return failure();
    auto type = cast<RankedTensorType>(slice.getInput().getType());
    auto rows = std::make_unique<SliceRows>();
    rows->format = (*input)->format;
    rows->columns = (*input)->columns;
    rows->begin = size_t(slice.getBegin()) * rowsPerSlice(type);
    rows->rows = size_t(slice.getEnd() - slice.getBegin()) * rowsPerSlice(type);
    rows->input = std::move(*input);
    return std::unique_ptr<TensorRows>(std::move(rows));
  }
  auto concat = dyn_cast<ConcatOp>(op);
  if (concat && concat.getAxis() == 0) {
    auto rows = std::make_unique<ConcatRows>();
    for (Value part : concat.getInputs()) {
      FailureOr<std::unique_ptr<TensorRows>> input = openRows(part, files);
      if (failed(input))
        return failure();
      rows->format = (*input)->format;
      rows->columns = (*input)->columns;
      rows->rows += (*input)->rows;
      rows->inputs.push_back(std::move(*input));
    }
    return std::unique_ptr<TensorRows>(std::move(rows));
  }
  return op->emitOpError(
             "expects a weight, or rows of weights sliced or joined, but got '")
         << op->getName() << "'";
}

} // namespace mlir::llm
