#include "lib/Weights/GGUFMetadata.h"

#include <limits>
#include <string>

namespace mlir::llm {
namespace {

const char *nameOf(GGUFType type) {
  switch (type) {
  case GGUFType::U8:
    return "u8";
  case GGUFType::I8:
    return "i8";
  case GGUFType::U16:
    return "u16";
  case GGUFType::I16:
    return "i16";
  case GGUFType::U32:
    return "u32";
  case GGUFType::I32:
    return "i32";
  case GGUFType::F32:
    return "f32";
  case GGUFType::Bool:
    return "bool";
  case GGUFType::String:
    return "string";
  case GGUFType::Array:
    return "array";
  case GGUFType::U64:
    return "u64";
  case GGUFType::I64:
    return "i64";
  case GGUFType::F64:
    return "f64";
  }
  return "an unknown type";
}

template <typename T> T loadAs(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// An integer of any of the integer types, or of bool; none where it does not
/// fit 64 signed bits.
std::optional<int64_t> integerAt(GGUFType type, const std::byte *at) {
  switch (type) {
  case GGUFType::U8:
  case GGUFType::Bool:
    return loadAs<uint8_t>(at);
  case GGUFType::I8:
    return loadAs<int8_t>(at);
  case GGUFType::U16:
    return loadAs<uint16_t>(at);
  case GGUFType::I16:
    return loadAs<int16_t>(at);
  case GGUFType::U32:
    return loadAs<uint32_t>(at);
  case GGUFType::I32:
    return loadAs<int32_t>(at);
  case GGUFType::I64:
    return loadAs<int64_t>(at);
  case GGUFType::U64: {
    const uint64_t value = loadAs<uint64_t>(at);
    if (value <= uint64_t(std::numeric_limits<int64_t>::max()))
      return int64_t(value);
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

bool isInteger(GGUFType type) {
  return type <= GGUFType::I32 || type == GGUFType::U64 ||
         type == GGUFType::I64;
}

size_t bytesOf(GGUFType type) {
  switch (type) {
  case GGUFType::U8:
  case GGUFType::I8:
  case GGUFType::Bool:
    return 1;
  case GGUFType::U16:
  case GGUFType::I16:
    return 2;
  case GGUFType::U32:
  case GGUFType::I32:
  case GGUFType::F32:
    return 4;
  default:
    return 8;
  }
}

} // namespace

std::string GGUFValue::describe() const {
  if (isArray())
    return "array of " + std::to_string(count) + " " + nameOf(elementType);
  const std::string name = nameOf(type);
  if (type == GGUFType::U64)
    return name + " " + std::to_string(loadAs<uint64_t>(bytes.data()));
  if (isInteger(type))
    return name + " " + std::to_string(*integerAt(type, bytes.data()));
  return name;
}

const GGUFValue *GGUFMetadata::find(llvm::StringRef key) const {
  const auto at = indexOfKey.find(key);
  return at == indexOfKey.end() ? nullptr : &table[at->second];
}

llvm::Error GGUFMetadata::wrongType(const GGUFValue &value,
                                    const llvm::Twine &expected) const {
  return llvm::createStringError(path + ": metadata '" + value.key +
                                 "' expects " + expected + ", but got " +
                                 value.describe());
}

llvm::Error GGUFMetadata::missing(llvm::StringRef key) const {
  return llvm::createStringError(path + ": expects metadata '" + key +
                                 "', but the file has no such key");
}

template <typename T, typename Read>
llvm::Expected<T> GGUFMetadata::get(llvm::StringRef key,
                                    std::optional<T> absent,
                                    const char *expected, Read read) const {
  const GGUFValue *value = find(key);
  if (!value) {
    if (absent)
      return *absent;
    return missing(key);
  }
  if (std::optional<T> result = read(*value))
    return *result;
  return wrongType(*value, expected);
}

llvm::Expected<uint64_t>
GGUFMetadata::getUnsigned(llvm::StringRef key,
                          std::optional<uint64_t> absent) const {
  return get<uint64_t>(key, absent, "an unsigned integer",
                       [](const GGUFValue &value) -> std::optional<uint64_t> {
                         if (value.type == GGUFType::U64)
                           return loadAs<uint64_t>(value.bytes.data());
                         if (!isInteger(value.type))
                           return std::nullopt;
                         const auto number =
                             integerAt(value.type, value.bytes.data());
                         return number && *number >= 0
                                    ? std::optional(uint64_t(*number))
                                    : std::nullopt;
                       });
}

llvm::Expected<int64_t>
GGUFMetadata::getInteger(llvm::StringRef key,
                         std::optional<int64_t> absent) const {
  return get<int64_t>(key, absent, "an integer",
                      [](const GGUFValue &value) -> std::optional<int64_t> {
                        if (!isInteger(value.type))
                          return std::nullopt;
                        return integerAt(value.type, value.bytes.data());
                      });
}

llvm::Expected<double>
GGUFMetadata::getReal(llvm::StringRef key, std::optional<double> absent) const {
  return get<double>(
      key, absent, "a real number",
      [](const GGUFValue &value) -> std::optional<double> {
        if (value.type == GGUFType::F32)
          return loadAs<float>(value.bytes.data());
        if (value.type == GGUFType::F64)
          return loadAs<double>(value.bytes.data());
        if (!isInteger(value.type))
          return std::nullopt;
        const auto number = integerAt(value.type, value.bytes.data());
        return number ? std::optional(double(*number)) : std::nullopt;
      });
}

llvm::Expected<bool> GGUFMetadata::getBool(llvm::StringRef key,
                                           std::optional<bool> absent) const {
  return get<bool>(key, absent, "a boolean",
                   [](const GGUFValue &value) -> std::optional<bool> {
                     if (value.type != GGUFType::Bool)
                       return std::nullopt;
                     return loadAs<uint8_t>(value.bytes.data()) != 0;
                   });
}

llvm::Expected<llvm::StringRef>
GGUFMetadata::getString(llvm::StringRef key,
                        std::optional<llvm::StringRef> absent) const {
  return get<llvm::StringRef>(
      key, absent, "a string",
      [](const GGUFValue &value) -> std::optional<llvm::StringRef> {
        if (value.type != GGUFType::String)
          return std::nullopt;
        return llvm::StringRef(
            reinterpret_cast<const char *>(value.bytes.data()),
            value.bytes.size());
      });
}

llvm::Expected<const GGUFValue *>
GGUFMetadata::getArray(llvm::StringRef key, const char *expected) const {
  const GGUFValue *value = find(key);
  if (!value)
    return missing(key);
  if (!value->isArray())
    return wrongType(*value, expected);
  return value;
}

llvm::Expected<GGUFStrings>
GGUFMetadata::getStrings(llvm::StringRef key) const {
  const char *expected = "an array of strings";
  llvm::Expected<const GGUFValue *> value = getArray(key, expected);
  if (!value)
    return value.takeError();
  if ((*value)->elementType != GGUFType::String)
    return wrongType(**value, expected);
  return GGUFStrings((*value)->count, (*value)->bytes);
}

llvm::Expected<std::vector<int64_t>>
GGUFMetadata::getIntegers(llvm::StringRef key) const {
  const char *expected = "an array of integers";
  llvm::Expected<const GGUFValue *> value = getArray(key, expected);
  if (!value)
    return value.takeError();
  const GGUFType type = (*value)->elementType;
  if (!isInteger(type) && type != GGUFType::Bool)
    return wrongType(**value, expected);
  std::vector<int64_t> numbers((*value)->count);
  const std::byte *at = (*value)->bytes.data();
  for (int64_t &number : numbers) {
    const auto read = integerAt(type, at);
    if (!read)
      return wrongType(**value, "integers below 2^63");
    number = *read;
    at += bytesOf(type);
  }
  return numbers;
}

llvm::Expected<std::vector<float>>
GGUFMetadata::getReals(llvm::StringRef key) const {
  const char *expected = "an array of f32";
  llvm::Expected<const GGUFValue *> value = getArray(key, expected);
  if (!value)
    return value.takeError();
  const GGUFType type = (*value)->elementType;
  if (type != GGUFType::F32 && type != GGUFType::F64)
    return wrongType(**value, expected);
  std::vector<float> numbers((*value)->count);
  const std::byte *at = (*value)->bytes.data();
  for (float &number : numbers) {
    number = type == GGUFType::F32 ? loadAs<float>(at)
                                   : static_cast<float>(loadAs<double>(at));
    at += bytesOf(type);
  }
  return numbers;
}

llvm::Expected<std::vector<uint64_t>>
GGUFMetadata::getUnsignedPerLayer(llvm::StringRef key, size_t layers,
                                  std::optional<uint64_t> absent) const {
  const GGUFValue *value = find(key);
  if (!value || !value->isArray()) {
    llvm::Expected<uint64_t> number = getUnsigned(key, absent);
    if (!number)
      return number.takeError();
    return std::vector<uint64_t>(layers, *number);
  }
  const std::string expected = "an unsigned integer, or one for each of " +
                               std::to_string(layers) + " layers";
  if (!isInteger(value->elementType) || value->count != layers)
    return wrongType(*value, expected);
  std::vector<uint64_t> numbers(layers);
  const std::byte *at = value->bytes.data();
  for (uint64_t &number : numbers) {
    const auto read = integerAt(value->elementType, at);
    if (!read || *read < 0)
      return wrongType(*value, expected);
    number = uint64_t(*read);
    at += bytesOf(value->elementType);
  }
  return numbers;
}

} // namespace mlir::llm
