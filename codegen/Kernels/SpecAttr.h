// Specs as dictionary attributes: small readers with errors, and writers that
// leave defaults out.
#ifndef SPRIG_CODEGEN_KERNELS_SPECATTR_H
#define SPRIG_CODEGEN_KERNELS_SPECATTR_H

#include "codegen/Kernels/Registry.h"
#include "mlir/IR/Builders.h"

namespace mlir::llm {

/// Reads the members of a spec, remembers the first error, and refuses members
/// that nobody read.
class SpecReader {
public:
  SpecReader(DictionaryAttr spec, StringRef family, EmitError emitError)
      : spec(spec), family(family), emitError(emitError) {}

  void read(StringRef key, int64_t &into, int64_t least,
            int64_t most = INT32_MAX);
  void read(StringRef key, bool &into);
  void read(StringRef key, std::string &into);
  void read(StringRef key, double &into);
  /// As above, with the value kept where the key is absent.
  void maybe(StringRef key, int64_t &into, int64_t least,
             int64_t most = INT32_MAX);
  void maybe(StringRef key, std::string &into);
  void maybe(StringRef key, double &into);
  void maybe(StringRef key, DictionaryAttr &into);
  /// A list of whole numbers of at least `least`.
  void maybe(StringRef key, SmallVector<int64_t> &into, int64_t least);

  bool bad() const { return isBad; }
  /// Emits the first complaint; later ones are kept quiet.
  void fail(const Twine &message);
  /// Call once, last.
  LogicalResult finish();

private:
  void expected(StringRef what, StringRef key);
  Attribute get(StringRef key);

  DictionaryAttr spec;
  StringRef family;
  EmitError emitError;
  SmallVector<StringRef> seen;
  bool isBad = false;
};

/// Collects members; zero, false and empty ones are left out.
class SpecWriter {
public:
  explicit SpecWriter(MLIRContext *context) : builder(context) {}
  SpecWriter &add(StringRef key, int64_t value);
  SpecWriter &add(StringRef key, StringRef value);
  SpecWriter &add(StringRef key, double value);
  SpecWriter &add(StringRef key, ArrayRef<int64_t> values);
  SpecWriter &flag(StringRef key, bool value);
  DictionaryAttr done() { return builder.getDictionaryAttr(members); }

private:
  Builder builder;
  SmallVector<NamedAttribute> members;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SPECATTR_H
