#include "lib/Weights/SafetensorsHeader.h"

#include <nlohmann/json.hpp>
#include <set>

namespace mlir::llm {
namespace {

/// Follows the events of the JSON parser. A handler that returns false stops
/// it; `problem` then says why.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a boolean"); }
  bool number_integer(number_integer_t) override {
    return other("a negative number");
  }
  bool number_float(number_float_t, const string_t &) override {
    return other("a fraction, or a number past 2^64");
  }
  bool binary(binary_t &) override { return other("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place != Place::Numbers)
      return other("a number");
    numbers->push_back(value);
    return true;
  }

  bool string(string_t &value) override {
    if (place == Place::Metadata) {
      header.metadata[name] = value;
      return true;
    }
    if (place != Place::Tensor || name != "dtype")
      return other("a string");
    header.entries.back().dtype = value;
    return true;
  }

  bool key(string_t &value) override {
    if (place == Place::Skipped)
      return true;
    if (!(place == Place::Top ? topKeys : innerKeys).insert(value).second)
      return fail("expects every key once, but '" + value + "' is there twice");
    name = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place == Place::Start) {
      place = Place::Top;
      return true;
    }
    if (place != Place::Top)
      return startSkipped("an object");
    innerKeys.clear();
    tensor = name;
    place = name == "__metadata__" ? Place::Metadata : Place::Tensor;
    if (place == Place::Tensor)
      header.entries.push_back({name, {}, {}, {}});
    return true;
  }

  bool end_object() override {
    if (place == Place::Skipped)
      return endSkipped();
    place = place == Place::Top ? Place::Start : Place::Top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place != Place::Tensor || (name != "shape" && name != "data_offsets"))
      return startSkipped("an array");
    SafetensorsEntry &entry = header.entries.back();
    numbers = &(name == "shape" ? entry.shape : entry.offsets).emplace();
    place = Place::Numbers;
    return true;
  }

  bool end_array() override {
    if (place == Place::Skipped)
      return endSkipped();
    place = Place::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return fail("the header is not valid JSON at byte " +
                std::to_string(position));
  }

private:
  /// What the next value belongs to.
  enum class Place { Start, Top, Tensor, Numbers, Metadata, Skipped };

  bool fail(std::string message) {
    problem = std::move(message);
    return false;
  }

  /// Whether the next value belongs to a member of a tensor that the format
  /// does not define: allowed, and ignored.
  bool isUnknownMember() const {
    return place == Place::Tensor && name != "dtype" && name != "shape" &&
           name != "data_offsets";
  }

  /// A value of a kind that has no place here.
  bool other(const char *kind) {
    if (place == Place::Skipped || isUnknownMember())
      return true;
    switch (place) {
    case Place::Start:
      return fail(std::string("the header expects an object, but got ") + kind);
    case Place::Top:
      return fail("'" + name + "' expects an object, but got " + kind);
    case Place::Metadata:
      return fail("metadata '" + name + "' expects a string, but got " + kind);
    default:
      return fail("tensor '" + tensor + "' has " + kind + " as its '" + name +
                  "'");
    }
  }

  bool startSkipped(const char *kind) {
    if (place != Place::Skipped && !isUnknownMember())
      return other(kind);
    place = Place::Skipped;
    ++skippedDepth;
    return true;
  }

  bool endSkipped() {
    if (--skippedDepth == 0)
      place = Place::Tensor;
    return true;
  }

  Place place = Place::Start;
  size_t skippedDepth = 0;
  std::string name;   ///< the last key
  std::string tensor; ///< the last key of the top level
  std::set<std::string> topKeys, innerKeys;
  std::vector<uint64_t> *numbers = nullptr;
};

} // namespace

llvm::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::StringRef json) {
  Reader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader))
    return llvm::createStringError(reader.problem);
  return std::move(reader.header);
}

} // namespace mlir::llm
