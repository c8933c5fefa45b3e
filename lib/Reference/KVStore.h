// Key-value caches of the evaluator, by symbol and index.
#ifndef SPRIG_LIB_REFERENCE_KVSTORE_H
#define SPRIG_LIB_REFERENCE_KVSTORE_H

#include "dialects/LLM/LLM.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::llm::reference {

/// One cache. Storage grows with the highest slot that was written.
template <typename F> struct KVSlots {
  KVType type;
  std::vector<F> keys;            ///< [slots, G, E]
  std::vector<F> values;          ///< [slots, G, EV]; empty where values are a prefix of the keys
  std::vector<int32_t> positions; ///< -1: an empty slot
  /// What llm.previous_rows remembers: a row for each slot up to the last one that has one.
  std::vector<F> remembered;
  size_t rememberedRow = 0; ///< numbers of one

  int64_t slots() const { return int64_t(positions.size()); }
  size_t keyRow() const { return size_t(type.getHeads() * type.getKeyWidth()); }
  size_t valueRow() const { return type.isValuePrefix() ? 0 : size_t(type.getHeads() * type.getValueWidth()); }

  /// Forgets all slots from `slots` on, or makes empty ones up to there.
  void resize(int64_t slots);
  void write(int64_t slot, int32_t position, const F *key, const F *value);
  void move(int64_t from, int64_t to);
  void remember(int64_t slot, const F *row, size_t numbers);
  /// Null: nothing was remembered.
  const F *rememberedAt(int64_t slot) const;
};

template <typename F> class KVStore {
public:
  KVSlots<F> &get(StringRef symbol, int64_t index, KVType type);
  /// Null when the cache was never touched.
  const KVSlots<F> *find(StringRef symbol, int64_t index) const;
  bool empty() const { return caches.empty(); }
  /// Drops the caches whose (symbol, index) the predicate refuses.
  template <typename Predicate> void eraseUnless(Predicate keep) {
    std::erase_if(caches, [&](const auto &entry) { return !keep(entry.first); });
  }
  void clear() { caches.clear(); }
  void truncate(int64_t slots);

private:
  std::map<std::pair<std::string, int64_t>, KVSlots<F>> caches;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_KVSTORE_H
