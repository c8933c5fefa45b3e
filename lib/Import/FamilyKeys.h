// Metadata keys of one family in a GGUF file, each read once and with its type
// and range checked.
#ifndef SPRIG_LIB_IMPORT_FAMILYKEYS_H
#define SPRIG_LIB_IMPORT_FAMILYKEYS_H

#include "lib/Weights/GGUFFile.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::llm {

/// Reads `PREFIX.key`. The first error sticks and is returned by `finish`;
/// after it values are meaningless but harmless. Keys that nobody asked for are
/// an error too: they say something about the model that would be lost.
class FamilyKeys {
public:
  FamilyKeys(const GGUFFile &file, llvm::StringRef prefix)
      : file(file), prefix(prefix) {}

  bool has(llvm::StringRef key);
  /// Whether the key is there and holds one value a layer.
  bool isArray(llvm::StringRef key);
  /// A whole number from `least` to 2^24; `absent` where the key is missing.
  int64_t size(llvm::StringRef key,
               std::optional<int64_t> absent = std::nullopt, int64_t least = 1);
  /// The same for each layer: an array, or one number for all.
  std::vector<int64_t> sizePerLayer(llvm::StringRef key, size_t layers,
                                    llvm::ArrayRef<int64_t> absent = {});
  /// Yes or no for each layer, as booleans or numbers: an array.
  std::vector<int64_t> flagPerLayer(llvm::StringRef key, size_t layers);
  /// A finite number.
  double real(llvm::StringRef key, std::optional<double> absent = std::nullopt);
  /// A factor, where 0 stands for a missing key, as converters write it.
  double factor(llvm::StringRef key, double absent);
  std::string text(llvm::StringRef key, llvm::StringRef absent);
  bool flag(llvm::StringRef key, bool absent);
  /// Whether the file has a tensor of that name: what some keys leave unsaid.
  bool hasTensor(const llvm::Twine &name) const {
    return file.find(name.str());
  }

  /// A key that says nothing about the numbers.
  void ignore(llvm::StringRef key) { known.insert(key); }
  /// A key that must be absent, 0 or false; `what` names what it would ask for.
  void refuse(llvm::StringRef key, llvm::StringRef what);

  /// "'file' KEY MESSAGE".
  void fail(llvm::StringRef key, const llvm::Twine &message);
  llvm::Error finish();

private:
  std::string full(llvm::StringRef key);
  template <typename T, typename R> void keep(llvm::Expected<R> read, T &value);

  const GGUFFile &file;
  llvm::StringRef prefix;
  llvm::StringSet<> known;
  std::string failure;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_FAMILYKEYS_H
