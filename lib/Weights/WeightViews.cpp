// Views that only move bytes.
#include "lib/Weights/WeightViews.h"

#include <cstring>

namespace mlir::llm::weights {

namespace quant = sprig::quant;

namespace {

class Memory final : public WeightExpr {
public:
  Memory(Format format, ArrayRef<int64_t> shape,
         std::span<const std::byte> data, const WeightSource *source,
         std::vector<std::byte> owned = {})
      : WeightExpr(format, shape), owned(std::move(owned)), data(data),
        source(source) {
    if (!source)
      this->data = this->owned;
  }

  std::span<const std::byte> read(int64_t first, int64_t count,
                                  std::vector<std::byte> &) const override {
    return data.subspan(size_t(first) * rowBytes(), size_t(count) * rowBytes());
  }
  void release(int64_t first, int64_t count) const override {
    if (source)
      source->release(
          data.subspan(size_t(first) * rowBytes(), size_t(count) * rowBytes()));
  }

private:
  std::vector<std::byte> owned;
  std::span<const std::byte> data;
  const WeightSource *source;
};

class PickRows final : public WeightExpr {
public:
  PickRows(std::vector<Expr> inputs, ArrayRef<int64_t> shape,
           std::vector<RowRun> pieces)
      : WeightExpr(inputs.front()->format(), shape), inputs(std::move(inputs)) {
    int64_t at = 0;
    for (const RowRun &run : pieces) {
      // Neighbours in one input are one run: a gather of consecutive rows.
      if (!runs.empty() && runs.back().input == run.input &&
          runs.back().first + runs.back().count == run.first) {
        runs.back().count += run.count;
      } else if (run.count) {
        runs.push_back(run);
        starts.push_back(at);
      }
      at += run.count;
    }
  }

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    size_t i = runAt(first);
    if (count && first + count <= starts[i] + runs[i].count)
      return part(i, first, count, buffer);
    std::vector<std::byte> own;
    buffer.resize(size_t(count) * rowBytes());
    std::byte *to = buffer.data();
    for (const int64_t end = first + count; first < end; ++i) {
      const int64_t here = std::min(end, starts[i] + runs[i].count) - first;
      const auto bytes = part(i, first, here, own);
      std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
      first += here;
    }
    return buffer;
  }

  void release(int64_t first, int64_t count) const override {
    const int64_t end = first + count;
    for (size_t i = runAt(first); i < runs.size() && first < end; ++i) {
      const int64_t here = std::min(end, starts[i] + runs[i].count) - first;
      inputs[runs[i].input]->release(runs[i].first + first - starts[i], here);
      first += here;
    }
  }

private:
  size_t runAt(int64_t row) const {
    return size_t(llvm::upper_bound(starts, row) - starts.begin()) - 1;
  }
  std::span<const std::byte> part(size_t i, int64_t first, int64_t count,
                                  std::vector<std::byte> &buffer) const {
    return inputs[runs[i].input]->read(runs[i].first + first - starts[i], count,
                                       buffer);
  }

  std::vector<Expr> inputs;
  std::vector<RowRun> runs;
  std::vector<int64_t> starts; ///< the first row of each run
};

SmallVector<int64_t, 4> withColumns(ArrayRef<int64_t> shape, int64_t columns) {
  SmallVector<int64_t, 4> result(shape);
  result.back() = columns;
  return result;
}

/// Bytes [begin, begin + rowBytes()) of every row.
class SliceColumns final : public WeightExpr {
public:
  SliceColumns(Expr source, size_t begin, int64_t columns)
      : WeightExpr(source->format(), withColumns(source->shape(), columns)),
        input(std::move(source)), begin(begin) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    std::vector<std::byte> own;
    const auto from = input->read(first, count, own);
    const size_t bytes = rowBytes(), stride = input->rowBytes();
    buffer.resize(size_t(count) * bytes);
    for (size_t row = 0; row < size_t(count); ++row)
      std::memcpy(buffer.data() + row * bytes,
                  from.data() + row * stride + begin, bytes);
    return buffer;
  }
  void release(int64_t first, int64_t count) const override {
    input->release(first, count);
  }

private:
  Expr input;
  size_t begin;
};

int64_t totalColumns(const std::vector<Expr> &inputs) {
  int64_t columns = 0;
  for (const Expr &input : inputs)
    columns += input->columns();
  return columns;
}

class ConcatColumns final : public WeightExpr {
public:
  explicit ConcatColumns(std::vector<Expr> sources)
      : WeightExpr(
            sources.front()->format(),
            withColumns(sources.front()->shape(), totalColumns(sources))),
        inputs(std::move(sources)) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    std::vector<std::byte> own;
    const size_t stride = rowBytes();
    buffer.resize(size_t(count) * stride);
    std::byte *to = buffer.data();
    for (const Expr &input : inputs) {
      const auto from = input->read(first, count, own);
      const size_t bytes = input->rowBytes();
      for (size_t row = 0; row < size_t(count); ++row)
        std::memcpy(to + row * stride, from.data() + row * bytes, bytes);
      to += bytes;
    }
    return buffer;
  }
  void release(int64_t first, int64_t count) const override {
    for (const Expr &input : inputs)
      input->release(first, count);
  }

private:
  std::vector<Expr> inputs;
};

class GatherColumns final : public WeightExpr {
public:
  GatherColumns(Expr source, ArrayRef<int64_t> index)
      : WeightExpr(source->format(),
                   withColumns(source->shape(), int64_t(index.size()))),
        input(std::move(source)), index(index) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    std::vector<std::byte> own;
    const auto from = input->read(first, count, own);
    const size_t bytes = quant::info(format()).blockBytes;
    const size_t stride = input->rowBytes();
    buffer.resize(size_t(count) * rowBytes());
    std::byte *to = buffer.data();
    for (size_t row = 0; row < size_t(count); ++row)
      for (int64_t column : index) {
        std::memcpy(to, from.data() + row * stride + size_t(column) * bytes,
                    bytes);
        to += bytes;
      }
    return buffer;
  }
  void release(int64_t first, int64_t count) const override {
    input->release(first, count);
  }

private:
  Expr input;
  SmallVector<int64_t> index;
};

/// Rows of another length over the same bytes of a plain tensor.
class Reshape final : public WeightExpr {
public:
  Reshape(Expr source, ArrayRef<int64_t> shape)
      : WeightExpr(source->format(), shape), input(std::move(source)) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    const auto [row, end] = inputRows(first, count);
    const auto bytes = input->read(row, end - row, buffer);
    return bytes.subspan(size_t(first) * rowBytes() -
                             size_t(row) * input->rowBytes(),
                         size_t(count) * rowBytes());
  }
  void release(int64_t first, int64_t count) const override {
    const auto [row, end] = inputRows(first, count);
    input->release(row, end - row);
  }

private:
  std::pair<int64_t, int64_t> inputRows(int64_t first, int64_t count) const {
    const int64_t width = input->columns();
    const int64_t begin = first * columns(), end = begin + count * columns();
    return {begin / width, (end + width - 1) / width};
  }

  Expr input;
};

} // namespace

Expr memory(Format format, ArrayRef<int64_t> shape,
            std::span<const std::byte> data, const WeightSource *source) {
  return std::make_unique<Memory>(format, shape, data, source);
}

Expr memory(Format format, ArrayRef<int64_t> shape,
            std::vector<std::byte> owned) {
  return std::make_unique<Memory>(format, shape, std::span<const std::byte>(),
                                  nullptr, std::move(owned));
}

/// Inputs that are joined have one format: where a quantised one was decoded
/// already, the others follow.
static void unify(std::vector<Expr> &inputs) {
  if (llvm::all_of(inputs, [&](const Expr &input) {
        return input->format() == inputs.front()->format();
      }))
    return;
  for (Expr &input : inputs)
    if (input->format() != Format::F32)
      input = convert(std::move(input), Format::F32);
}

Expr pickRows(std::vector<Expr> inputs, ArrayRef<int64_t> shape,
              std::vector<RowRun> runs) {
  unify(inputs);
  return std::make_unique<PickRows>(std::move(inputs), shape, std::move(runs));
}

Expr sliceColumns(Expr input, int64_t begin, int64_t end) {
  const quant::FormatInfo *row = &quant::info(input->format());
  if (row->isPlanar || begin % row->blockElements || end % row->blockElements) {
    input = convert(std::move(input), Format::F32);
    row = &quant::info(Format::F32);
  }
  return std::make_unique<SliceColumns>(
      std::move(input), row->rowBytes(size_t(begin)), end - begin);
}

Expr concatColumns(std::vector<Expr> inputs) {
  unify(inputs);
  for (Expr &input : inputs) // planes of a row do not join by their ends
    if (quant::info(input->format()).isPlanar)
      input = convert(std::move(input), Format::F32);
  return std::make_unique<ConcatColumns>(std::move(inputs));
}

Expr gatherColumns(Expr input, ArrayRef<int64_t> index) {
  if (!quant::info(input->format()).isPlain())
    input = convert(std::move(input), Format::F32);
  return std::make_unique<GatherColumns>(std::move(input), index);
}

Expr reshape(Expr input, ArrayRef<int64_t> shape) {
  return std::make_unique<Reshape>(std::move(input), shape);
}

} // namespace mlir::llm::weights
