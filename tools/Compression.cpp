#include "tools/Compression.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::llm {

using ::llvm::StringRef;

static constexpr Preset kPresets[] = {
    {"as-is", "", "weights as they are in the source; fusion only"},
    {"w4a16", "w:4,group:64", "weights of layers in 4 bits, a scale for 64 of them"},
    {"w3a16", "w:3,group:64", "weights of layers in 3 bits, a scale for 64 of them"},
    {"w8a16", "w:8,group:64", "weights of layers in 8 bits, a scale for 64 of them"},
};

::llvm::ArrayRef<Preset> presets() { return kPresets; }

const Preset *findPreset(StringRef name) {
  const Preset *found = ::llvm::find_if(kPresets, [&](const Preset &preset) { return name == preset.name; });
  return found == std::end(kPresets) ? nullptr : found;
}

namespace {

/// A key of --quantize, the option of llm-quantize-weights that it sets, and what it may be.
struct Key {
  StringRef name, option;
  enum class Kind { Number, Group, Word, YesNo } kind;
};
constexpr Key kKeys[] = {
    {"w", "bits", Key::Kind::Number},          {"group", "group", Key::Kind::Group},
    {"method", "method", Key::Kind::Word},     {"symmetric", "symmetric", Key::Kind::YesNo},
    {"head", "head", Key::Kind::YesNo},        {"tokens", "tokens", Key::Kind::Number},
    {"window", "window", Key::Kind::Number},   {"order", "act-order", Key::Kind::YesNo},
    {"replay", "replay", Key::Kind::YesNo},
};

::llvm::Error refuse(StringRef expected, StringRef part) {
  return ::llvm::createStringError("--quantize expects " + expected + ", but got '" + part + "'");
}

::llvm::Expected<std::string> valueOf(const Key &key, StringRef value, StringRef part) {
  unsigned number;
  switch (key.kind) {
  case Key::Kind::Group:
    if (value == "channel")
      return "0";
    [[fallthrough]];
  case Key::Kind::Number:
    if (value.getAsInteger(10, number))
      return refuse("a number behind '" + key.name.str() + ":'", part);
    return value.str();
  case Key::Kind::Word:
    if (value.empty() || !::llvm::all_of(value, ::llvm::isAlnum))
      return refuse("a word behind '" + key.name.str() + ":'", part);
    return value.str();
  case Key::Kind::YesNo:
    if (value != "yes" && value != "no")
      return refuse("yes or no behind '" + key.name.str() + ":'", part);
    return value == "yes" ? "true" : "false";
  }
  return value.str();
}

} // namespace

::llvm::Expected<std::string> quantizePasses(StringRef spec, bool hasText) {
  ::llvm::SmallVector<StringRef> parts;
  spec.split(parts, ',');
  std::string options;
  bool hasMethod = false;
  for (StringRef part : parts) {
    const auto [name, value] = part.split(':');
    const Key *key = ::llvm::find_if(kKeys, [&, name = name](const Key &known) { return known.name == name; });
    if (key == std::end(kKeys)) {
      std::string names;
      for (const Key &known : kKeys)
        names += (names.empty() ? "" : ", ") + known.name.str();
      return refuse("KEY:VALUE of the keys " + names, part);
    }
    auto text = valueOf(*key, value, part);
    if (!text)
      return text.takeError();
    hasMethod |= key->name == "method";
    options += " " + key->option.str() + "=" + *text;
  }
  if (!hasMethod)
    options += hasText ? " method=gptq" : " method=mse";
  return "llm-quantize-weights{" + options.substr(1) + "}";
}

std::string pipelineOf(StringRef passes) {
  return ("builtin.module(" + passes + (passes.empty() ? "" : ",") + "llm-default-pipeline)").str();
}

} // namespace mlir::llm
