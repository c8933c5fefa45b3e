// Keys of a config.json, each read with its type and range checked.
#ifndef SPRIG_LIB_IMPORT_CONFIGKEYS_H
#define SPRIG_LIB_IMPORT_CONFIGKEYS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm {

/// Reads a JSON object. The first error sticks and is returned by `finish`;
/// after it values are meaningless but harmless. A key that holds null is
/// absent. Keys that nobody asked for are an error unless they can say nothing:
/// null, false, a text, or a name that begins with an underscore.
class ConfigKeys {
public:
  /// `place` stands before keys in messages: "", or "rope_parameters.".
  ConfigKeys(llvm::StringRef path, const nlohmann::json &object,
             std::string place, std::string &failure)
      : path(path), object(object), place(std::move(place)), failure(failure) {}

  bool has(llvm::StringRef key) { return value(key) != nullptr; }
  /// The first of the keys that is there, else the first.
  llvm::StringRef first(std::initializer_list<llvm::StringRef> keys);

  /// A whole number from `least` to 2^24; `absent` where the key is missing.
  int64_t size(llvm::StringRef key,
               std::optional<int64_t> absent = std::nullopt, int64_t least = 1);
  /// A finite number.
  double real(llvm::StringRef key, std::optional<double> absent = std::nullopt);
  /// The same, above 0.
  double positive(llvm::StringRef key,
                  std::optional<double> absent = std::nullopt);
  bool flag(llvm::StringRef key, bool absent);
  std::string text(llvm::StringRef key,
                   std::optional<llvm::StringRef> absent = std::nullopt);
  std::vector<std::string> texts(llvm::StringRef key);
  std::vector<double> reals(llvm::StringRef key);
  /// The object under a key, or null where there is none.
  const nlohmann::json *child(llvm::StringRef key);
  /// A reader of that object, which shares this one's errors.
  ConfigKeys within(llvm::StringRef key, const nlohmann::json &child) {
    return {path, child, place + key.str() + ".", failure};
  }

  /// Keys that say nothing about the numbers.
  void ignore(std::initializer_list<llvm::StringRef> keys);
  /// A key that must be absent, null, 0 or false; `what` names what it would
  /// ask for.
  void refuse(llvm::StringRef key, llvm::StringRef what);

  /// "'file' KEY MESSAGE".
  void fail(llvm::StringRef key, const llvm::Twine &message);
  /// Refuses what nobody asked for.
  void finish();

private:
  const nlohmann::json *value(llvm::StringRef key);
  void wrongType(llvm::StringRef key, llvm::StringRef expected,
                 const nlohmann::json &value);
  const nlohmann::json *needed(llvm::StringRef key, bool optional);

  llvm::StringRef path;
  const nlohmann::json &object;
  std::string place;
  std::string &failure;
  llvm::StringSet<> known;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CONFIGKEYS_H
