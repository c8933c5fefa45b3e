#include "test/lib/Import/GeneratedCheckpoint.h"
#include "lib/Weights/SafetensorsWriter.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace mlir::llm::testing {

using nlohmann::json;
using sprig::quant::Format;

static const json &file() {
  static const json read = [] {
    std::ifstream stream(SPRIG_SOURCE_DIR "/test/lib/Import/variants.json");
    return json::parse(stream);
  }();
  return read;
}

const std::vector<std::string> &variantNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const json &variant : file()["variants"])
      out.push_back(variant["name"]);
    return out;
  }();
  return names;
}

/// The numbers of a tensor, the same as `numbers` and `tensor` of generate_variants.py.
static std::vector<float> numbersOf(const std::string &name, size_t count, float base, float scale, bool bfloat) {
  uint64_t key = 0xCBF29CE484222325u;
  for (const char c : name)
    key = (key ^ uint8_t(c)) * 0x100000001B3u;
  const int bits = bfloat ? (base != 0.0f ? 5 : 8) : 24;
  const float step = std::ldexp(1.0f, 1 - bits);
  std::vector<float> out;
  for (size_t i = 1; i <= count; ++i) {
    uint64_t z = key + i * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    out.push_back(base + scale * (float(z >> (64 - bits)) * step - 1.0f));
  }
  return out;
}

/// Null: there is none.
static const json *find(llvm::StringRef name) {
  for (const json &one : file()["variants"])
    if (one["name"] == name.str())
      return &one;
  return nullptr;
}

/// Which tokens a head knows, as its file says: of each of its rows the token less the row, and of each token whether.
static llvm::Error writeKnown(SafetensorsWriter &writer, const std::vector<int64_t> &known, int64_t vocabulary) {
  std::vector<int64_t> offsets;
  std::vector<std::byte> flags(size_t(vocabulary), std::byte(0));
  for (const int64_t token : known) {
    offsets.push_back(token - int64_t(offsets.size()));
    flags[size_t(token)] = std::byte(1);
  }
  if (llvm::Error error = writer.add("d2t", Format::I64, {int64_t(known.size())}, std::as_bytes(std::span(offsets))))
    return error;
  return writer.add("t2d", Format::Bool, {vocabulary}, flags);
}

static llvm::Error writeTensors(const json &entries, bool bfloat, llvm::StringRef folder,
                                const std::vector<int64_t> &known = {}, int64_t vocabulary = 0) {
  const Format format = bfloat ? Format::BF16 : Format::F32;
  auto writer = SafetensorsWriter::create((folder + "/model.safetensors").str());
  if (!writer)
    return writer.takeError();
  for (const json &entry : entries) {
    const auto key = entry[0].get<std::string>();
    const auto shape = entry[1].get<std::vector<int64_t>>();
    size_t count = 1;
    for (const int64_t size : shape)
      count *= size_t(size);
    const std::vector<float> numbers = numbersOf(key, count, entry[2], entry[3], bfloat);
    std::vector<std::byte> bytes(count * (bfloat ? 2 : 4));
    (void)sprig::quant::encode(format, numbers.data(), bytes.data(), count);
    if (llvm::Error error = (*writer)->add(key, format, shape, bytes))
      return error;
  }
  if (!known.empty())
    if (llvm::Error error = writeKnown(**writer, known, vocabulary))
      return error;
  return (*writer)->finish();
}

llvm::Error writeVariant(llvm::StringRef name, llvm::StringRef folder) {
  const json *variant = find(name);
  if (!variant)
    return llvm::createStringError("no variant " + name);
  const auto put = [&](const char *entry, const json &value) {
    std::ofstream((folder + "/" + entry).str()) << value;
  };
  put("config.json", (*variant)["config"]);
  put("expected.json", {{"tokens", file()["tokens"]},
                        {"argmax", (*variant)["argmax"]},
                        {"logits_first", (*variant)["first"]},
                        {"logits_last", (*variant)["last"]}});

  return writeTensors((*variant)["tensors"], (*variant)["config"]["dtype"] == "bfloat16", folder);
}

//===- Heads ------------------------------------------------------------===//

static const json &heads() {
  static const json read = [] {
    std::ifstream stream(SPRIG_SOURCE_DIR "/test/lib/Import/heads.json");
    return json::parse(stream);
  }();
  return read;
}

std::vector<HeadCase> headCases() {
  std::vector<HeadCase> cases;
  for (const json &one : heads()["cases"])
    cases.push_back({one["name"], file()["tokens"], heads()["prompt"], one["logits"], one.contains("config")});
  return cases;
}

llvm::Error writeHeadCase(llvm::StringRef name, llvm::StringRef model, llvm::StringRef head) {
  for (const json &one : heads()["cases"]) {
    if (one["name"] != name.str())
      continue;
    json variant = *find(one["base"].get<std::string>());
    variant["config"].update(one.value("changes", json::object()));
    for (const json &entry : one.value("added", json::array()))
      variant["tensors"].push_back(entry);
    std::ofstream((model + "/config.json").str()) << variant["config"];
    if (llvm::Error error = writeTensors(variant["tensors"], false, model))
      return error;
    if (!one.contains("config"))
      return llvm::Error::success();
    std::ofstream((head + "/config.json").str()) << one["config"];
    return writeTensors(one["tensors"], false, head, one.value("known", std::vector<int64_t>()),
                        one["config"]["vocab_size"]);
  }
  return llvm::createStringError("no head " + name);
}

} // namespace mlir::llm::testing
