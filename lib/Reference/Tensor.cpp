#include "lib/Reference/Tensor.h"

using namespace mlir::llm::reference;

/// Idle arrays beyond this are freed.
static constexpr size_t kMostIdleBytes = size_t(512) << 20;

template <typename E> std::shared_ptr<E[]> ArrayPool<E>::take(size_t length) {
  std::unique_ptr<E[]> array;
  {
    std::lock_guard lock(mutex);
    auto found = idle.find(length);
    if (found != idle.end() && !found->second.empty()) {
      array = std::move(found->second.back());
      found->second.pop_back();
      idleBytes -= length * sizeof(E);
    }
  }
  if (!array)
    array = std::make_unique_for_overwrite<E[]>(length);
  auto pool = this->shared_from_this();
  return std::shared_ptr<E[]>(array.release(), [pool, length](E *pointer) { pool->give(pointer, length); });
}

template <typename E> void ArrayPool<E>::give(E *array, size_t length) {
  std::unique_ptr<E[]> owned(array);
  std::lock_guard lock(mutex);
  if (idleBytes + length * sizeof(E) > kMostIdleBytes)
    return;
  idleBytes += length * sizeof(E);
  idle[length].push_back(std::move(owned));
}

template <typename E> ArrayPool<E> &ArrayPool<E>::shared() {
  static const auto pool = std::make_shared<ArrayPool<E>>();
  return *pool;
}

template class mlir::llm::reference::ArrayPool<float>;
template class mlir::llm::reference::ArrayPool<double>;
template class mlir::llm::reference::ArrayPool<int32_t>;

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

int64_t Tensor::width() const {
  int64_t product = 1;
  for (int64_t size : shape().drop_front(sizes.empty() ? 0 : 1))
    product *= size;
  return product;
}

std::vector<double> Tensor::toDoubles() const {
  return std::visit([&](const auto &array) { return std::vector<double>(array.get(), array.get() + elements()); },
                    numbers);
}

std::vector<float> Tensor::toFloats() const {
  return std::visit([&](const auto &array) { return std::vector<float>(array.get(), array.get() + elements()); },
                    numbers);
}

Tensor Tensor::reshaped(llvm::ArrayRef<int64_t> shape) const {
  Tensor result = *this;
  result.sizes.assign(shape.begin(), shape.end());
  return result;
}

size_t Tensor::bytes() const {
  return std::visit([&](const auto &array) { return size_t(elements()) * sizeof(array[0]); }, numbers);
}

const void *Tensor::storage() const {
  return std::visit([](const auto &array) -> const void * { return array.get(); }, numbers);
}
