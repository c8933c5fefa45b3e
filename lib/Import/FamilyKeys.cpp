#include "lib/Import/FamilyKeys.h"

#include <cmath>

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;

/// Larger than any real model's sizes, small enough that a product of two of
/// them cannot wrap.
static constexpr int64_t kMostSize = int64_t(1) << 24;

std::string FamilyKeys::full(StringRef key) {
  known.insert(key);
  return (prefix + "." + key).str();
}

void FamilyKeys::fail(StringRef key, const Twine &message) {
  if (failure.empty())
    failure =
        ("'" + file.path() + "' " + prefix + "." + key + " " + message).str();
}

template <typename T, typename R>
void FamilyKeys::keep(llvm::Expected<R> read, T &value) {
  if (read) {
    value = T(*read);
    return;
  }
  std::string message = llvm::toString(read.takeError());
  if (failure.empty())
    failure = std::move(message);
}

bool FamilyKeys::has(StringRef key) { return file.metadata().has(full(key)); }

bool FamilyKeys::isArray(StringRef key) {
  const GGUFValue *value = file.metadata().find(full(key));
  return value && value->isArray();
}

int64_t FamilyKeys::size(StringRef key, std::optional<int64_t> absent,
                         int64_t least) {
  int64_t value = least;
  keep(file.metadata().getInteger(full(key), absent), value);
  if (value >= least && value <= kMostSize)
    return value;
  fail(key, "expects a number from " + Twine(least) + " to " +
                Twine(kMostSize) + ", but got " + Twine(value));
  return least;
}

std::vector<int64_t> FamilyKeys::flagPerLayer(StringRef key, size_t layers) {
  std::vector<int64_t> flags(layers);
  keep(file.metadata().getIntegers(full(key)), flags);
  if (flags.size() != layers) {
    fail(key, "expects one value for each of " + Twine(layers) +
                  " layers, but got " + Twine(flags.size()));
    flags.resize(layers);
  }
  return flags;
}

std::vector<int64_t> FamilyKeys::sizePerLayer(StringRef key, size_t layers,
                                              llvm::ArrayRef<int64_t> absent) {
  if (!has(key) && !absent.empty())
    return absent.vec();
  std::vector<uint64_t> read(layers);
  keep(file.metadata().getUnsignedPerLayer(full(key), layers), read);
  std::vector<int64_t> sizes;
  for (uint64_t value : read) {
    if (value > uint64_t(kMostSize))
      fail(key, "expects numbers of at most " + Twine(kMostSize) +
                    ", but got " + Twine(value) + " for layer " +
                    Twine(sizes.size()));
    sizes.push_back(int64_t(std::min<uint64_t>(value, kMostSize)));
  }
  return sizes;
}

double FamilyKeys::real(StringRef key, std::optional<double> absent) {
  double value = absent.value_or(1.0);
  keep(file.metadata().getReal(full(key), absent), value);
  if (std::isfinite(value))
    return value;
  fail(key, "expects a finite number, but got " + std::to_string(value));
  return 1.0;
}

double FamilyKeys::factor(StringRef key, double absent) {
  const double value = real(key, 0.0);
  return value == 0.0 ? absent : value;
}

std::string FamilyKeys::text(StringRef key, StringRef absent) {
  StringRef value;
  keep(file.metadata().getString(full(key), absent), value);
  return value.str();
}

bool FamilyKeys::flag(StringRef key, bool absent) {
  bool value = absent;
  keep(file.metadata().getBool(full(key), absent), value);
  return value;
}

void FamilyKeys::refuse(StringRef key, StringRef what) {
  const GGUFValue *value = file.metadata().find(full(key));
  if (!value)
    return;
  for (std::byte byte : value->bytes)
    if (byte != std::byte(0)) {
      fail(key, "expects 0, for " + what +
                    " is not supported by this importer, but got a " +
                    value->describe() + " that is not 0");
      return;
    }
}

llvm::Error FamilyKeys::finish() {
  for (const GGUFValue &value : file.metadata().values()) {
    StringRef key = value.key;
    if (key.consume_front(prefix) && key.consume_front(".") &&
        !known.contains(key))
      fail(key, "expects to be a key that this importer knows, but got a " +
                    value.describe() +
                    " whose meaning for the model would be lost");
  }
  return failure.empty() ? llvm::Error::success()
                         : llvm::createStringError(failure);
}
