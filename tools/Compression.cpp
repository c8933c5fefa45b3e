#include "tools/Compression.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

namespace mlir::llm {

using ::llvm::StringRef;

static constexpr Preset kPresets[] = {
    {"as-is", "", "weights as they are in the source; fusion only"},
    {"w4a16", "w:4,group:64", "weights of layers in 4 bits, a scale for 64 of them"},
    {"w3a16", "w:3,group:64", "weights of layers in 3 bits, a scale for 64 of them"},
    {"w8a16", "w:8,group:64", "weights of layers in 8 bits, a scale for 64 of them"},
    {"w8a8", "w:8,group:64,a:8,a-group:32", "the same, and products of integers: activations in 8 bits, too"},
    {"w4a8", "w:4,group:64,a:8,a-group:32", "weights of layers in 4 bits, activations in 8"},
};

::llvm::ArrayRef<Preset> presets() { return kPresets; }

const Preset *findPreset(StringRef name) {
  const Preset *found = ::llvm::find_if(kPresets, [&](const Preset &preset) { return name == preset.name; });
  return found == std::end(kPresets) ? nullptr : found;
}

namespace {

/// A key of a short form, the pass and its option that it sets, and what it may be.
struct Key {
  StringRef name, pass, option;
  enum class Kind { Number, Real, Group, Word, File, YesNo, Run } kind;
  StringRef beside = {}; ///< keys of no pass of their own that may follow, with blanks
};
constexpr StringRef kWeights = "llm-quantize-weights", kActivations = "llm-quantize-activations";
constexpr StringRef kCaches = "llm-quantize-kv", kSmooth = "llm-smooth", kMix = "llm-mix-precision";
constexpr StringRef kRotate = "llm-rotate", kOutliers = "llm-split-outliers", kSearch = "llm-search-shape";
/// In the order of the passes.
constexpr StringRef kQuantizePasses[] = {kSmooth, kRotate, kOutliers, kMix, kWeights, kActivations, kCaches};
constexpr Key kQuantizeKeys[] = {
    {"w", kWeights, "bits", Key::Kind::Number},        {"group", kWeights, "group", Key::Kind::Group},
    {"method", kWeights, "method", Key::Kind::Word},   {"symmetric", kWeights, "symmetric", Key::Kind::YesNo},
    {"head", kWeights, "head", Key::Kind::YesNo},      {"tokens", kWeights, "tokens", Key::Kind::Number},
    {"window", kWeights, "window", Key::Kind::Number}, {"order", kWeights, "act-order", Key::Kind::YesNo},
    {"replay", kWeights, "replay", Key::Kind::YesNo},  {"a", kActivations, "bits", Key::Kind::Number},
    {"a-group", kActivations, "group", Key::Kind::Group},
    {"kv", kCaches, "bits", Key::Kind::Number},        {"smooth", kSmooth, "", Key::Kind::Run},
    {"mix", kMix, "bits", Key::Kind::Real},            {"rotate", kRotate, "", Key::Kind::Run},
    {"outliers", kOutliers, "threshold", Key::Kind::Real},
    {"attention", kCaches, "attention", Key::Kind::Number},
};
constexpr Key kCacheKeys[] = {{"attention", kCaches, "attention", Key::Kind::Number}};
constexpr StringRef kSparsify = "llm-sparsify";
constexpr StringRef kShares = "score recover tokens window", kSparse = "w group symmetric replay head score tokens window";
constexpr StringRef kBudgets = "recover tokens window", kTimed = "recover tokens window target";
constexpr Key kPruneKeys[] = {
    {"layers", "llm-prune-layers", "count", Key::Kind::Number, kShares},
    {"ffn", "llm-prune-ffn", "ratio", Key::Kind::Real, kShares},
    {"heads", "llm-prune-heads", "ratio", Key::Kind::Real, kShares},
    {"kv-heads", "llm-prune-kv-heads", "ratio", Key::Kind::Real, kShares},
    {"merge-kv", "llm-merge-kv-heads", "heads", Key::Kind::Number, "whiten tokens window"},
    {"head-dim", "llm-prune-head-dim", "ratio", Key::Kind::Real, kShares},
    {"width", "llm-prune-width", "ratio", Key::Kind::Real, kShares},
    {"rank", "llm-factorize", "ratio", Key::Kind::Real, "whiten head tokens window"},
    {"bytes", kSearch, "bytes", Key::Kind::Real, kBudgets},
    {"kv-bytes", kSearch, "kv-bytes", Key::Kind::Real, kBudgets},
    {"milliseconds", kSearch, "milliseconds", Key::Kind::Real, kTimed},
    {"mask", "llm-prune-masks", "file", Key::Kind::File, "recover tokens window"},
    {"sparse", kSparsify, "pattern", Key::Kind::Real, kSparse},
    {"target", "", "target", Key::Kind::Word},
    {"w", "", "bits", Key::Kind::Number},
    {"group", "", "group", Key::Kind::Group},
    {"symmetric", "", "symmetric", Key::Kind::YesNo},
    {"replay", "", "replay", Key::Kind::YesNo},
    {"whiten", "", "whiten", Key::Kind::YesNo},
    {"head", "", "head", Key::Kind::YesNo},
    {"score", "", "score", Key::Kind::Word},
    {"recover", "", "recover", Key::Kind::YesNo},
    {"tokens", "", "tokens", Key::Kind::Number},
    {"window", "", "window", Key::Kind::Number},
};

/// Reads KEY:VALUE pairs of one option of the command line.
class SpecParser {
public:
  SpecParser(StringRef option, ::llvm::ArrayRef<Key> keys) : option(option), keys(keys) {}

  ::llvm::Error refuse(StringRef expected, StringRef part) const {
    return ::llvm::createStringError(option + " expects " + expected + ", but got '" + part + "'");
  }

  /// Calls `use(key, value)` for each pair, the value as passes spell it.
  ::llvm::Error parse(StringRef spec, ::llvm::function_ref<void(const Key &, std::string)> use) const {
    ::llvm::SmallVector<StringRef> parts;
    spec.split(parts, ',');
    ::llvm::StringSet<> seen;
    for (StringRef part : parts) {
      const auto [name, value] = part.split(':');
      const Key *key = ::llvm::find_if(keys, [&, name = name](const Key &known) { return known.name == name; });
      if (key == keys.end()) {
        std::string names;
        for (const Key &known : keys)
          names += (names.empty() ? "" : ", ") + known.name.str();
        return refuse("KEY:VALUE of the keys " + names, part);
      }
      if (!seen.insert(name).second)
        return refuse("'" + name.str() + "' once", spec);
      auto text = valueOf(*key, value, part);
      if (!text)
        return text.takeError();
      use(*key, std::move(*text));
    }
    return ::llvm::Error::success();
  }

private:
  ::llvm::Expected<std::string> valueOf(const Key &key, StringRef value, StringRef part) const {
    unsigned number;
    double real;
    switch (key.kind) {
    case Key::Kind::Group:
      if (value == "channel")
        return "0";
      [[fallthrough]];
    case Key::Kind::Number:
      if (value.getAsInteger(10, number))
        return refuse("a number behind '" + key.name.str() + ":'", part);
      if (number == 0 && (key.name == "tokens" || key.name == "window"))
        return refuse("a number of tokens above 0 behind '" + key.name.str() + ":'", part);
      return std::to_string(number); // 033 is no octal number here
    case Key::Kind::Real:
      if (value.getAsDouble(real))
        return refuse("a number behind '" + key.name.str() + ":'", part);
      if (key.name == "milliseconds" && !(real > 0 && std::isfinite(real)))
        return refuse("milliseconds above 0 behind 'milliseconds:'", part);
      return value.str();
    case Key::Kind::Word:
      if (value.empty() || !::llvm::all_of(value, ::llvm::isAlnum))
        return refuse("a word behind '" + key.name.str() + ":'", part);
      return value.str();
    case Key::Kind::File:
      if (value.empty() || value.find_first_of(" {}'\"") != StringRef::npos)
        return refuse("a path without blanks, quotes and braces behind '" + key.name.str() + ":'", part);
      return value.str();
    case Key::Kind::YesNo:
    case Key::Kind::Run:
      if (value != "yes" && value != "no")
        return refuse("yes or no behind '" + key.name.str() + ":'", part);
      return value == "yes" ? "true" : "false";
    }
    return value.str();
  }

  StringRef option;
  ::llvm::ArrayRef<Key> keys;
};

} // namespace

::llvm::Expected<std::string> quantizePasses(StringRef spec, bool hasText) {
  ::llvm::StringMap<std::string> options; // by pass
  std::string shared;                     // how much text is read, for every pass that reads some
  std::string group;
  bool hasMethod = false;
  auto error = SpecParser("--quantize", kQuantizeKeys).parse(spec, [&](const Key &key, std::string value) {
    hasMethod |= key.name == "method";
    if (key.name == "group")
      group = value;
    const std::string text = key.option.empty() ? "" : " " + key.option.str() + "=" + value;
    if (key.name == "tokens" || key.name == "window")
      shared += text;
    else if (key.name == "mix") // the groups are those of the weights
      options[kMix] += text, options[kWeights];
    else if (key.kind != Key::Kind::Run || value == "true")
      options[key.pass] += text;
  });
  if (error)
    return std::move(error);
  if (const std::string caches = options.lookup(kCaches); !caches.empty() && !StringRef(caches).contains(" bits="))
    return SpecParser("--quantize", kQuantizeKeys).refuse("kv:8 beside 'attention:'", spec);
  if (options.count(kMix) && !group.empty())
    options[kMix] += " group=" + group;
  if (options.count(kWeights) && !hasMethod)
    options[kWeights] += hasText ? " method=gptq" : " method=mse";
  std::string passes;
  for (StringRef pass : kQuantizePasses) {
    auto found = options.find(pass);
    if (found == options.end())
      continue;
    std::string text = found->second;
    if (pass == kWeights || pass == kSmooth || pass == kMix || pass == kOutliers)
      text += shared;
    if (pass == kRotate)
      text += " where=auto";
    const bool ofFunctions = pass == kActivations || pass == kMix || pass == kRotate;
    passes += (passes.empty() ? "" : ",");
    passes += ofFunctions ? "func.func(" : "";
    passes += pass.str() + (text.empty() ? "" : "{" + text.substr(1) + "}");
    passes += ofFunctions ? ")" : "";
  }
  return passes;
}

::llvm::Expected<Caches> cachesOf(StringRef spec) {
  const auto [bits, rest] = spec.split(',');
  Caches caches;
  if (bits.getAsInteger(10, caches.bits) || !::llvm::is_contained({4, 8, 16, 32}, caches.bits))
    return SpecParser("--kv", kCacheKeys).refuse("4, 8, 16 or 32", spec);
  std::string options = "bits=" + bits.str();
  if (!rest.empty())
    if (auto error = SpecParser("--kv", kCacheKeys).parse(rest, [&](const Key &key, std::string value) {
          options += " " + key.option.str() + "=" + value;
        }))
      return std::move(error);
  if (caches.bits >= 16 && !rest.empty())
    return SpecParser("--kv", kCacheKeys).refuse("caches of 8 bits for attention in 8", spec);
  if (caches.bits < 16)
    caches.pass = kCaches.str() + "{" + options + "}";
  return caches;
}

bool quantisesWeights(StringRef spec) {
  return spec.starts_with("w:") || spec.contains(",w:") || spec.contains("mix:");
}

int64_t cacheBitsIn(StringRef quantize) {
  ::llvm::SmallVector<StringRef> parts;
  quantize.split(parts, ',');
  int64_t bits = 16;
  for (StringRef part : parts)
    if (part.consume_front("kv:") && part.getAsInteger(10, bits))
      bits = 16;
  return bits;
}

bool draftsInBits(StringRef draft) { return draft.starts_with("bits:") || draft.contains(",bits:"); }

bool packsWeights(StringRef prune) { return prune.starts_with("2:4") || prune.starts_with("4:8"); }

::llvm::Expected<std::string> prunePass(StringRef spec, const PruneContext &context) {
  const SpecParser parser("--prune", kPruneKeys);
  const StringRef whole = spec;
  StringRef pass, what, beside;
  std::string options;
  // 2:4 and 4:8 are patterns, with the score behind them: no pair of a key and a value.
  if (packsWeights(spec)) {
    const auto [first, rest] = spec.split(',');
    what = first.take_front(3), pass = kSparsify, beside = kSparse;
    options = " pattern=" + what.str();
    if (StringRef score = first.drop_front(3); score.consume_front(":"))
      options += " score=" + score.str();
    else if (!score.empty())
      return parser.refuse("2:4 or 4:8, perhaps with ':' and a score", whole);
    spec = rest;
  }
  std::vector<std::pair<StringRef, std::string>> more; // of no pass of their own
  if (!spec.empty() || pass.empty())
    if (auto error = parser.parse(spec, [&](const Key &key, std::string value) {
          const std::string text = " " + key.option.str() + "=" + value;
          if (key.pass.empty() || !pass.empty())
            return void(more.emplace_back(key.name, text));
          pass = key.pass, what = key.name, beside = key.beside;
          options += text;
        }))
      return std::move(error);
  if (pass.empty())
    return parser.refuse("what goes, as layers:N, ffn:RATIO, heads:RATIO, kv-heads:RATIO, merge-kv:HEADS, head-dim:RATIO, "
                         "width:RATIO, rank:RATIO, bytes:SHARE, kv-bytes:SHARE, milliseconds:N, 2:4, 4:8, sparse:RATIO, "
                         "mask:FILE or vocabulary:FILE",
                         whole);
  ::llvm::SmallVector<StringRef> allowed;
  beside.split(allowed, ' ');
  for (const auto &[key, text] : more) {
    if (key == "target" && !::llvm::is_contained(allowed, key))
      return parser.refuse("'target:' only beside milliseconds:N", whole);
    if (!::llvm::is_contained(allowed, key))
      return parser.refuse("beside '" + what.str() + "' one of " + ::llvm::join(allowed, ", "), key);
    options += text;
  }
  if (pass == kSparsify) {
    if (!context.hasText && !StringRef(options).contains(" score="))
      options += " score=magnitude";
    if (context.isQuantised && !StringRef(options).contains(" bits="))
      options += " bits=16";
  }
  // What is written in few bits after it comes in units of 32 numbers of a row.
  constexpr StringRef kInUnits[] = {"ffn",   "heads", "kv-heads", "head-dim",
                                    "width", "bytes", "kv-bytes", "milliseconds"};
  if ((context.isPacked && ::llvm::is_contained(kInUnits, what)) || (context.isGrouped && what == "mask"))
    options += " unit=32";
  // Caches of bytes are read in words; those of nibbles have groups.
  if (what == "head-dim" && context.cacheBits < 16)
    options += context.cacheBits == 8 ? " cache-unit=4" : " cache-unit=16";
  return pass.str() + "{" + options.substr(1) + "}";
}

std::string pipelineOf(StringRef passes) {
  return ("builtin.module(" + passes + (passes.empty() ? "" : ",") + "llm-default-pipeline)").str();
}

} // namespace mlir::llm
