// Views that make new numbers, or put single elements in another order.
#include "lib/Quant/Half.h"
#include "lib/Weights/WeightViews.h"

#include <cmath>
#include <cstring>
#include <mutex>

namespace mlir::llm::weights {

namespace quant = sprig::quant;

namespace {

/// Rounds to a float format; `numbers` were computed in f64.
void store(Format format, ArrayRef<double> numbers, std::byte *to) {
  switch (format) {
  case Format::F64:
    std::memcpy(to, numbers.data(), numbers.size() * sizeof(double));
    return;
  case Format::F16:
    for (double number : numbers) {
      quant::store(to, quant::floatToHalf(float(number)));
      to += 2;
    }
    return;
  case Format::BF16:
    for (double number : numbers) {
      quant::store(to, quant::floatToBfloat(float(number)));
      to += 2;
    }
    return;
  default:
    for (double number : numbers) {
      quant::store(to, float(number));
      to += 4;
    }
  }
}

class Convert final : public WeightExpr {
public:
  Convert(Expr source, Format format)
      : WeightExpr(format, source->shape()), input(std::move(source)) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    buffer.resize(size_t(count) * rowBytes());
    if (format() == Format::F32) { // the common case, without the way by f64
      input->decode(first, count, reinterpret_cast<float *>(buffer.data()));
      return buffer;
    }
    std::vector<double> numbers(size_t(count * columns()));
    input->decode(first, count, numbers.data());
    store(format(), numbers, buffer.data());
    return buffer;
  }
  void release(int64_t first, int64_t count) const override {
    input->release(first, count);
  }

private:
  Expr input;
};

/// Numbers of the input, changed in f64 and rounded to the format again.
class Changed : public WeightExpr {
public:
  Changed(Expr source, Format format)
      : WeightExpr(format, source->shape()), input(std::move(source)) {}

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    std::vector<double> numbers(size_t(count * columns()));
    input->decode(first, count, numbers.data());
    change(first, numbers);
    buffer.resize(size_t(count) * rowBytes());
    store(format(), numbers, buffer.data());
    return buffer;
  }
  void release(int64_t first, int64_t count) const override {
    input->release(first, count);
  }

private:
  /// Whole rows, from row `first` on.
  virtual void change(int64_t first, MutableArrayRef<double> rows) const = 0;

  Expr input;
};

class Scale final : public Changed {
public:
  Scale(Expr source, std::vector<double> factors, int64_t axis, Format format)
      : Changed(std::move(source), format), factors(std::move(factors)),
        byColumn(axis + 1 == int64_t(shape().size())) {
    for (int64_t size :
         shape().drop_front(size_t(axis) + 1).drop_back(!byColumn))
      rowsPerFactor *= size;
  }

private:
  void change(int64_t first, MutableArrayRef<double> rows) const override {
    const size_t width = size_t(columns());
    for (size_t row = 0; row * width < rows.size(); ++row) {
      const double factor =
          byColumn ? 1
                   : factors[size_t((first + int64_t(row)) / rowsPerFactor) %
                             factors.size()];
      for (size_t column = 0; column < width; ++column)
        rows[row * width + column] *= byColumn ? factors[column] : factor;
    }
  }

  std::vector<double> factors;
  bool byColumn;
  int64_t rowsPerFactor = 1;
};

class Offset final : public Changed {
public:
  Offset(Expr source, double amount)
      : Changed(std::move(source), Format::F32), amount(amount) {}

private:
  void change(int64_t, MutableArrayRef<double> rows) const override {
    for (double &number : rows)
      number += amount;
  }

  double amount;
};

class Normalise final : public Changed {
public:
  Normalise(Expr source, double count, double epsilon, Format format)
      : Changed(std::move(source), format), count(count), epsilon(epsilon) {}

private:
  void change(int64_t, MutableArrayRef<double> rows) const override {
    for (; !rows.empty(); rows = rows.drop_front(size_t(columns()))) {
      MutableArrayRef<double> row = rows.take_front(size_t(columns()));
      double squares = 0.0;
      for (double number : row)
        squares += number * number;
      const double factor = 1.0 / std::sqrt(squares / count + epsilon);
      for (double &number : row)
        number *= factor;
    }
  }

  double count, epsilon;
};

class Hadamard final : public Changed {
public:
  Hadamard(Expr source, int64_t block, std::vector<double> signs, bool inverse,
           Format format)
      : Changed(std::move(source), format), block(block),
        signs(std::move(signs)), inverse(inverse) {}

private:
  void change(int64_t, MutableArrayRef<double> rows) const override {
    const size_t width = size_t(columns());
    for (size_t at = 0; at < rows.size(); at += width) {
      double *row = rows.data() + at;
      if (!inverse)
        flip(row);
      for (size_t begin = 0; begin < width; begin += size_t(block))
        transform(row + begin);
      if (inverse)
        flip(row);
    }
  }

  void flip(double *row) const {
    for (size_t i = 0; i < signs.size(); ++i)
      row[i] *= signs[i];
  }

  void transform(double *x) const {
    for (int64_t half = 1; half < block; half *= 2)
      for (int64_t i = 0; i < block; ++i)
        if (!(i & half)) {
          const double a = x[i], b = x[i + half];
          x[i] = a + b, x[i + half] = a - b;
        }
    for (int64_t i = 0; i < block; ++i)
      x[i] /= std::sqrt(double(block));
  }

  int64_t block;
  std::vector<double> signs;
  bool inverse;
};

SmallVector<int64_t, 4> permuted(ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> order) {
  SmallVector<int64_t, 4> result;
  for (int64_t axis : order)
    result.push_back(shape[size_t(axis)]);
  return result;
}

class Transpose final : public WeightExpr {
public:
  Transpose(Expr source, ArrayRef<int64_t> order)
      : WeightExpr(source->format(), permuted(source->shape(), order)),
        input(std::move(source)), order(order) {}

  std::span<const std::byte> read(int64_t first, int64_t count,
                                  std::vector<std::byte> &) const override {
    std::call_once(once, [&] { transpose(); });
    return std::span(whole).subspan(size_t(first) * rowBytes(),
                                    size_t(count) * rowBytes());
  }

private:
  void transpose() const {
    const auto from = input->read(0, input->rows(), whole);
    const size_t bytes = quant::info(format()).blockBytes;
    const size_t rank = order.size();
    // Elements to step in the input for one step along each result dimension.
    SmallVector<int64_t> steps(rank, 1), inputSteps(rank, 1);
    for (size_t axis = rank; axis-- > 1;)
      inputSteps[axis - 1] = inputSteps[axis] * input->shape()[axis];
    for (size_t axis = 0; axis < rank; ++axis)
      steps[axis] = inputSteps[size_t(order[axis])];
    std::vector<std::byte> result(from.size());
    SmallVector<int64_t> place(rank, 0);
    int64_t at = 0;
    for (std::byte *to = result.data(); to != result.data() + result.size();
         to += bytes) {
      std::memcpy(to, from.data() + size_t(at) * bytes, bytes);
      for (size_t axis = rank; axis-- > 0;) { // count up, last dimension first
        at += steps[axis];
        if (++place[axis] < shape()[axis])
          break;
        at -= steps[axis] * shape()[axis];
        place[axis] = 0;
      }
    }
    whole = std::move(result);
  }

  Expr input;
  SmallVector<int64_t> order;
  mutable std::once_flag once;
  mutable std::vector<std::byte> whole;
};

} // namespace

Expr convert(Expr input, Format format) {
  if (input->format() == format)
    return input;
  return std::make_unique<Convert>(std::move(input), format);
}

Expr scale(Expr input, std::vector<double> factors, int64_t axis,
           Format format) {
  return std::make_unique<Scale>(std::move(input), std::move(factors), axis,
                                 format);
}

Expr offset(Expr input, double amount) {
  return std::make_unique<Offset>(std::move(input), amount);
}

Expr normalise(Expr input, double count, double epsilon, Format format) {
  return std::make_unique<Normalise>(std::move(input), count, epsilon, format);
}

Expr hadamard(Expr input, int64_t block, std::vector<double> signs,
              bool inverse, Format format) {
  return std::make_unique<Hadamard>(std::move(input), block, std::move(signs),
                                    inverse, format);
}

Expr transposeElements(Expr input, ArrayRef<int64_t> order) {
  return std::make_unique<Transpose>(std::move(input), order);
}

} // namespace mlir::llm::weights
