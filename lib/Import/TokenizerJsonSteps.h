// What a tokenizer.json does behind its model, and how its members are read.
#ifndef SPRIG_LIB_IMPORT_TOKENIZERJSONSTEPS_H
#define SPRIG_LIB_IMPORT_TOKENIZERJSONSTEPS_H

#include "runtime/Text/TokenizerData.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>

namespace mlir::llm {

/// Reads `post_processor` (the tokens put around a text) and `decoder` (whether
/// it drops the space in front) into `tables`, whose tokens are there already.
::llvm::Error readStepsAround(const nlohmann::json &root,
                              ::llvm::StringRef path,
                              sprig::TokenizerTables &tables);

/// The text of a JSON string.
inline ::llvm::StringRef view(const nlohmann::json &text) {
  return text.get_ref<const std::string &>();
}

/// `value[name]`, or null where it is absent, null or `value` no object.
inline const nlohmann::json *member(const nlohmann::json &value,
                                    const std::string &name) {
  if (!value.is_object())
    return nullptr;
  const auto found = value.find(name);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

inline bool isKind(const nlohmann::json &step, ::llvm::StringRef type) {
  const nlohmann::json *name = member(step, "type");
  return name && name->is_string() && view(*name) == type;
}

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_TOKENIZERJSONSTEPS_H
