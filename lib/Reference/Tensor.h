// Values of the reference evaluator: a shape and shared, immutable numbers. Floats are f32 or f64 as the evaluator was
// made, integers are i32; a quantised tensor holds the numbers that its codes mean.
#ifndef SPRIG_LIB_REFERENCE_TENSOR_H
#define SPRIG_LIB_REFERENCE_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <variant>
#include <vector>

namespace mlir::llm::reference {

/// Recycles arrays of equal length: a step makes the same few dozen over and over, and fresh pages are dear.
template <typename E> class ArrayPool : public std::enable_shared_from_this<ArrayPool<E>> {
public:
  /// Not initialised.
  std::shared_ptr<E[]> take(size_t length);
  /// The pool of the process.
  static ArrayPool &shared();

private:
  void give(E *array, size_t length);
  std::mutex mutex;
  std::unordered_map<size_t, std::vector<std::unique_ptr<E[]>>> idle;
  size_t idleBytes = 0;
};

class Tensor {
public:
  Tensor() = default;

  /// Copies the numbers; E is float, double or int32_t.
  template <typename E> static Tensor of(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<E> numbers) {
    E *data;
    Tensor tensor = make<E>(shape, data);
    std::copy(numbers.begin(), numbers.end(), data);
    return tensor;
  }
  /// A vector of ids, positions or rows.
  static Tensor ids(llvm::ArrayRef<int32_t> numbers) { return of<int32_t>({int64_t(numbers.size())}, numbers); }

  /// Numbers for the caller to fill through `data`, before the tensor is shared.
  template <typename E> static Tensor make(llvm::ArrayRef<int64_t> shape, E *&data) {
    Tensor tensor;
    tensor.sizes.assign(shape.begin(), shape.end());
    auto array = ArrayPool<E>::shared().take(size_t(tensor.elements()));
    data = array.get();
    tensor.numbers = std::shared_ptr<const E[]>(std::move(array));
    return tensor;
  }

  /// A default-constructed tensor stands for "none".
  explicit operator bool() const { return storage() != nullptr; }

  llvm::ArrayRef<int64_t> shape() const { return sizes; }
  int64_t elements() const;
  /// The first dimension; 1 for a scalar.
  int64_t rows() const { return sizes.empty() ? 1 : sizes.front(); }
  /// Elements of one row.
  int64_t width() const;

  template <typename E> bool is() const { return std::holds_alternative<std::shared_ptr<const E[]>>(numbers); }
  /// The numbers, which must be of type E.
  template <typename E> llvm::ArrayRef<E> as() const {
    return {std::get<std::shared_ptr<const E[]>>(numbers).get(), size_t(elements())};
  }
  /// Any floats, as f64 or as f32.
  std::vector<double> toDoubles() const;
  std::vector<float> toFloats() const;

  /// The same numbers under another shape of as many elements.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  size_t bytes() const;
  /// Identifies the array, whatever the shape over it.
  const void *storage() const;

private:
  llvm::SmallVector<int64_t, 4> sizes;
  std::variant<std::shared_ptr<const float[]>, std::shared_ptr<const double[]>, std::shared_ptr<const int32_t[]>>
      numbers;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_TENSOR_H
