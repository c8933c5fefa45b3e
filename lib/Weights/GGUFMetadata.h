// The key-value section of a GGUF file. Values stay in the mapped file; reading
// one with the wrong type is an error that names the key and both types.
#ifndef SPRIG_LIB_WEIGHTS_GGUFMETADATA_H
#define SPRIG_LIB_WEIGHTS_GGUFMETADATA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

namespace mlir::llm {

/// Type numbers of the file format.
enum class GGUFType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

struct GGUFValue {
  llvm::StringRef key;
  GGUFType type;
  /// Of an array: what it holds, and how many.
  GGUFType elementType = GGUFType::U8;
  uint64_t count = 1;
  /// The number, the characters of a string, or the elements of an array as
  /// they lie in the file.
  std::span<const std::byte> bytes;

  bool isArray() const { return type == GGUFType::Array; }
  /// "u32 12", "string", "array of 49152 string": for messages.
  std::string describe() const;
};

/// The strings of an array value, found one after another in the file (each is
/// a 64-bit length and its characters). No copies: a vocabulary may be huge.
class GGUFStrings {
public:
  class iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = llvm::StringRef;
    using difference_type = std::ptrdiff_t;
    using pointer = const llvm::StringRef *;
    using reference = llvm::StringRef;

    iterator() = default;
    explicit iterator(const std::byte *at) : at(at) {}
    llvm::StringRef operator*() const {
      return {reinterpret_cast<const char *>(at) + 8, length()};
    }
    iterator &operator++() {
      at += 8 + length();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const iterator &) const = default;

  private:
    size_t length() const {
      uint64_t bytes;
      std::memcpy(&bytes, at, sizeof(bytes));
      return bytes;
    }
    const std::byte *at = nullptr;
  };

  GGUFStrings(uint64_t count, std::span<const std::byte> bytes)
      : count(count), bytes(bytes) {}
  size_t size() const { return count; }
  iterator begin() const { return iterator(bytes.data()); }
  iterator end() const { return iterator(bytes.data() + bytes.size()); }

private:
  uint64_t count;
  std::span<const std::byte> bytes;
};

class GGUFMetadata {
public:
  /// In the order of the file.
  llvm::ArrayRef<GGUFValue> values() const { return table; }
  const GGUFValue *find(llvm::StringRef key) const;
  bool has(llvm::StringRef key) const { return find(key) != nullptr; }

  // Each getter: the value; `absent` where the key is missing; an error where
  // it is missing and there is no `absent`, or has another type. Any integer
  // type will do for an integer that fits, and integers for real numbers.
  llvm::Expected<uint64_t>
  getUnsigned(llvm::StringRef key,
              std::optional<uint64_t> absent = std::nullopt) const;
  llvm::Expected<int64_t>
  getInteger(llvm::StringRef key,
             std::optional<int64_t> absent = std::nullopt) const;
  llvm::Expected<double>
  getReal(llvm::StringRef key,
          std::optional<double> absent = std::nullopt) const;
  llvm::Expected<bool> getBool(llvm::StringRef key,
                               std::optional<bool> absent = std::nullopt) const;
  llvm::Expected<llvm::StringRef>
  getString(llvm::StringRef key,
            std::optional<llvm::StringRef> absent = std::nullopt) const;

  /// An array of strings.
  llvm::Expected<GGUFStrings> getStrings(llvm::StringRef key) const;
  /// An array of any integers (or booleans, as 0 and 1).
  llvm::Expected<std::vector<int64_t>> getIntegers(llvm::StringRef key) const;
  /// An array of f32 or f64, and nothing else: scores stored as integers would
  /// be read as something that they are not.
  llvm::Expected<std::vector<float>> getReals(llvm::StringRef key) const;
  /// One number per layer: an array of `layers` unsigned integers, or one
  /// integer that holds for all of them.
  llvm::Expected<std::vector<uint64_t>>
  getUnsignedPerLayer(llvm::StringRef key, size_t layers,
                      std::optional<uint64_t> absent = std::nullopt) const;

private:
  friend class GGUFParser;
  template <typename T, typename Read>
  llvm::Expected<T> get(llvm::StringRef key, std::optional<T> absent,
                        const char *expected, Read read) const;
  llvm::Expected<const GGUFValue *> getArray(llvm::StringRef key,
                                             const char *expected) const;
  llvm::Error wrongType(const GGUFValue &value,
                        const llvm::Twine &expected) const;
  llvm::Error missing(llvm::StringRef key) const;

  std::string path;
  llvm::SmallVector<GGUFValue, 0> table;
  llvm::DenseMap<llvm::StringRef, size_t> indexOfKey;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_GGUFMETADATA_H
