// --draft of llm-compile: the passes behind its short forms.
#include "tools/Compression.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

using ::llvm::StringRef;

static ::llvm::Error refuse(StringRef expected, StringRef part) {
  return ::llvm::createStringError("--draft expects " + expected + ", but got '" + part + "'");
}

/// `3+7-9` to `3,7,8,9`; empty where it is something else.
static std::string layersIn(StringRef list) {
  constexpr unsigned kMost = 4096;
  ::llvm::SmallVector<StringRef> parts;
  list.split(parts, '+');
  std::string layers;
  for (StringRef part : parts) {
    auto [from, to] = part.split('-');
    unsigned first, last;
    if (from.getAsInteger(10, first) || (part.contains('-') ? to.getAsInteger(10, last) : (last = first, false)) ||
        last < first || last > kMost)
      return "";
    for (unsigned layer = first; layer <= last; ++layer)
      layers += (layers.empty() ? "" : ",") + std::to_string(layer);
  }
  return layers;
}

::llvm::Expected<std::string> draftPass(StringRef spec, bool hasText) {
  if (StringRef file = spec; file.consume_front("heads:")) {
    if (file.empty() || file.find_first_of("'{} ") != StringRef::npos)
      return refuse("a file behind 'heads:', without quotes, braces and spaces in its name", spec);
    return "llm-attach-heads{file=" + file.str() + "}";
  }
  std::string options, passes, note, channels, text;
  ::llvm::SmallVector<StringRef> parts;
  spec.split(parts, ',');
  for (StringRef part : parts) {
    auto [key, value] = part.split(':');
    double share = 0;
    unsigned number = 0;
    if (options.find(" " + key.str() + "=") != std::string::npos ||
        ("," + note).find("," + key.str() + ":") != std::string::npos)
      return refuse("'" + key.str() + "' once", spec);
    auto add = [&, key = key, value = value](const std::string &pass) {
      passes += (passes.empty() ? "" : ",") + pass;
      note += (note.empty() ? "" : ",") + key.str() + ":" + value.str();
    };
    if (key == "skip") {
      const std::string layers = layersIn(value);
      if (value == "auto")
        options += " skip=-1";
      else if (!value.getAsInteger(10, number) && number > 0)
        options += " skip=" + std::to_string(number);
      else if (!layers.empty() && value.find_first_of("+-") != StringRef::npos)
        options += " layers=" + layers;
      else
        return refuse("a number of layers, 'auto', or layers as 3+7-9 behind 'skip:'", part);
    } else if (key == "ffn") {
      if (value.getAsDouble(share) || !(share > 0 && share < 1))
        return refuse("the share of channels that goes, between 0 and 1, behind 'ffn:'", part);
      channels = value.str();
      note += (note.empty() ? "ffn:" : ",ffn:") + channels;
    } else if (key == "bits") {
      if (value.getAsInteger(10, number) || number < 2 || number > 8)
        return refuse("2 to 8 behind 'bits:'", part);
      add("llm-quantize-weights{bits=" + value.str() + " group=32 method=mse}");
    } else if (key == "tokens" || key == "window") {
      if (value.getAsInteger(10, number) || number == 0)
        return refuse("a number of tokens above 0 behind '" + key.str() + ":'", part);
      text += " " + key.str() + "=" + std::to_string(number);
      options += " " + key.str() + "=" + std::to_string(number);
    } else {
      return refuse("skip:LAYERS, ffn:SHARE, bits:N, tokens:N, window:N, or heads:FILE", part);
    }
  }
  if (!channels.empty()) {
    const std::string unit = passes.empty() ? "" : " unit=32"; // bits of what is left
    if (!hasText)
      text = " score=magnitude recover=false";
    else if (text.find(" tokens=") == std::string::npos)
      text += " tokens=2048";
    passes = "llm-prune-ffn{ratio=" + channels + text + unit + "}" + (passes.empty() ? "" : "," + passes);
  }
  if (!passes.empty())
    options += " passes={" + passes + "} note={" + note + "}";
  if (options.find("skip=") == std::string::npos && options.find("layers=") == std::string::npos && passes.empty())
    return refuse("skip:LAYERS, ffn:SHARE or bits:N", spec);
  return "llm-make-draft{" + options.substr(1) + "}";
}

} // namespace mlir::llm
