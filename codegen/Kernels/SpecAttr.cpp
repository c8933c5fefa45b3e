#include "codegen/Kernels/SpecAttr.h"

namespace mlir::llm {

Attribute SpecReader::get(StringRef key) {
  seen.push_back(key);
  return spec.get(key);
}

void SpecReader::fail(const Twine &message) {
  if (!isBad)
    emitError() << family << " kernel " << message.str();
  isBad = true;
}

void SpecReader::expected(StringRef what, StringRef key) {
  std::string got = "nothing";
  if (Attribute value = spec.get(key)) {
    got.clear();
    llvm::raw_string_ostream(got) << value;
  }
  fail("expects " + what + " for '" + key + "', but got " + got);
}

void SpecReader::read(StringRef key, int64_t &into, int64_t least,
                      int64_t most) {
  auto value = dyn_cast_or_null<IntegerAttr>(get(key));
  if (!value || value.getInt() < least || value.getInt() > most)
    return expected(
        ("a whole number from " + Twine(least) + " to " + Twine(most)).str(),
        key);
  into = value.getInt();
}

void SpecReader::read(StringRef key, bool &into) {
  Attribute value = get(key);
  if (value && !isa<UnitAttr, BoolAttr>(value))
    return expected("unit or a boolean", key);
  into = value && (isa<UnitAttr>(value) || cast<BoolAttr>(value).getValue());
}

void SpecReader::read(StringRef key, std::string &into) {
  auto value = dyn_cast_or_null<StringAttr>(get(key));
  if (!value)
    return expected("a string", key);
  into = value.getValue().str();
}

void SpecReader::read(StringRef key, double &into) {
  auto value = dyn_cast_or_null<FloatAttr>(get(key));
  if (!value)
    return expected("a float", key);
  into = value.getValueAsDouble();
}

void SpecReader::maybe(StringRef key, int64_t &into, int64_t least,
                       int64_t most) {
  if (get(key))
    read(key, into, least, most);
}
void SpecReader::maybe(StringRef key, std::string &into) {
  if (get(key))
    read(key, into);
}
void SpecReader::maybe(StringRef key, double &into) {
  if (get(key))
    read(key, into);
}

void SpecReader::maybe(StringRef key, SmallVector<int64_t> &into,
                       int64_t least) {
  Attribute value = get(key);
  if (!value)
    return;
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (!list || llvm::any_of(list.asArrayRef(),
                            [&](int64_t number) { return number < least; }))
    return expected(("an array<i64: …> of numbers from " + Twine(least)).str(),
                    key);
  into.assign(list.asArrayRef().begin(), list.asArrayRef().end());
}

void SpecReader::maybe(StringRef key, DictionaryAttr &into) {
  Attribute value = get(key);
  into = dyn_cast_or_null<DictionaryAttr>(value);
  if (value && !into)
    expected("a spec", key);
}

LogicalResult SpecReader::finish() {
  for (NamedAttribute member : spec)
    if (!llvm::is_contained(seen, member.getName().getValue()))
      fail("has an unknown member '" + Twine(member.getName().getValue()) +
           "'");
  return failure(isBad);
}

SpecWriter &SpecWriter::add(StringRef key, int64_t value) {
  if (value)
    members.push_back(
        builder.getNamedAttr(key, builder.getI64IntegerAttr(value)));
  return *this;
}
SpecWriter &SpecWriter::add(StringRef key, StringRef value) {
  if (!value.empty())
    members.push_back(builder.getNamedAttr(key, builder.getStringAttr(value)));
  return *this;
}
SpecWriter &SpecWriter::add(StringRef key, double value) {
  if (value != 0)
    members.push_back(
        builder.getNamedAttr(key, builder.getF64FloatAttr(value)));
  return *this;
}
SpecWriter &SpecWriter::add(StringRef key, ArrayRef<int64_t> values) {
  if (!values.empty())
    members.push_back(
        builder.getNamedAttr(key, builder.getDenseI64ArrayAttr(values)));
  return *this;
}
SpecWriter &SpecWriter::flag(StringRef key, bool value) {
  if (value)
    members.push_back(builder.getNamedAttr(key, builder.getUnitAttr()));
  return *this;
}

} // namespace mlir::llm
