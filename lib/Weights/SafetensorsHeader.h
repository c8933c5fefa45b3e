// The JSON header of a safetensors file, before its offsets are checked.
#ifndef SPRIG_LIB_WEIGHTS_SAFETENSORSHEADER_H
#define SPRIG_LIB_WEIGHTS_SAFETENSORSHEADER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm {

struct SafetensorsEntry {
  std::string key;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries; ///< in the order of the text
  std::map<std::string, std::string> metadata;
};

/// Reads the header; refuses a key that occurs twice in one object, which JSON
/// readers that build a tree would silently drop. Errors do not name the file.
llvm::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef json);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_SAFETENSORSHEADER_H
