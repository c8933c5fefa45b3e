#include "lib/Reference/KVStore.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

template <typename F> void KVSlots<F>::resize(int64_t slots) {
  if (slots < this->slots()) // rows are remembered before their keys are there
    remembered.resize(std::min(remembered.size(), size_t(slots) * rememberedRow));
  keys.resize(size_t(slots) * keyRow());
  values.resize(size_t(slots) * valueRow());
  positions.resize(size_t(slots), -1);
}

template <typename F> void KVSlots<F>::write(int64_t slot, int32_t position, const F *key, const F *value) {
  if (slot >= slots())
    resize(slot + 1);
  std::copy_n(key, keyRow(), keys.begin() + slot * int64_t(keyRow()));
  if (value)
    std::copy_n(value, valueRow(), values.begin() + slot * int64_t(valueRow()));
  positions[size_t(slot)] = position;
}

template <typename F> void KVSlots<F>::move(int64_t from, int64_t to) {
  if (from == to)
    return;
  std::copy_n(keys.begin() + from * int64_t(keyRow()), keyRow(), keys.begin() + to * int64_t(keyRow()));
  std::copy_n(values.begin() + from * int64_t(valueRow()), valueRow(), values.begin() + to * int64_t(valueRow()));
  positions[size_t(to)] = positions[size_t(from)];
  if (const F *row = rememberedAt(from))
    std::copy_n(row, rememberedRow, remembered.begin() + to * int64_t(rememberedRow));
}

template <typename F> void KVSlots<F>::remember(int64_t slot, const F *row, size_t numbers) {
  rememberedRow = numbers;
  remembered.resize(std::max(remembered.size(), size_t(slot + 1) * numbers));
  std::copy_n(row, numbers, remembered.begin() + slot * int64_t(numbers));
}

template <typename F> const F *KVSlots<F>::rememberedAt(int64_t slot) const {
  const size_t end = size_t(slot + 1) * rememberedRow;
  return slot >= 0 && rememberedRow != 0 && end <= remembered.size() ? remembered.data() + end - rememberedRow : nullptr;
}

template <typename F> KVSlots<F> &KVStore<F>::get(StringRef symbol, int64_t index, KVType type) {
  KVSlots<F> &slots = caches[{symbol.str(), index}];
  slots.type = type;
  return slots;
}

template <typename F> const KVSlots<F> *KVStore<F>::find(StringRef symbol, int64_t index) const {
  auto found = caches.find({symbol.str(), index});
  return found == caches.end() ? nullptr : &found->second;
}

template <typename F> void KVStore<F>::truncate(int64_t slots) {
  for (auto &[name, cache] : caches)
    if (cache.slots() > slots)
      cache.resize(slots);
}

template struct mlir::llm::reference::KVSlots<float>;
template struct mlir::llm::reference::KVSlots<double>;
template class mlir::llm::reference::KVStore<float>;
template class mlir::llm::reference::KVStore<double>;
