#include "tools/Tune/State.h"

#include "lib/Weights/OutputFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::llm {
namespace {

namespace json = llvm::json;

constexpr uint64_t kMostBytes = 64u << 20;

json::Object toJson(const ScheduleValues &choices) {
  json::Object object;
  for (const auto &[name, value] : choices)
    if (const int64_t *number = std::get_if<int64_t>(&value))
      object[name] = *number;
    else
      object[name] = std::get<std::string>(value);
  return object;
}

std::optional<ScheduleValues> fromJson(const json::Object *object) {
  if (!object)
    return std::nullopt;
  ScheduleValues choices;
  for (const auto &member : *object) {
    std::string name = llvm::StringRef(member.first).str();
    if (auto number = member.second.getAsInteger())
      choices[name] = *number;
    else if (auto word = member.second.getAsString())
      choices[name] = word->str();
    else
      return std::nullopt;
  }
  return choices;
}

} // namespace

llvm::Expected<TuneState> TuneState::open(std::string file, std::string what) {
  TuneState state;
  state.file = std::move(file);
  state.what = std::move(what);
  if (!llvm::sys::fs::exists(state.file))
    return state;
  // Neither a device nor a file that no state could grow to is read.
  uint64_t bytes = 0;
  if (!llvm::sys::fs::is_regular_file(state.file) ||
      llvm::sys::fs::file_size(state.file, bytes) || bytes > kMostBytes)
    return llvm::createStringError(
        "state '" + state.file +
        "' expects a file of at most 64 MiB; give another --state");
  auto text = llvm::MemoryBuffer::getFile(state.file);
  if (!text)
    return llvm::createStringError("cannot read state '" + state.file +
                                   "': " + text.getError().message());
  if (llvm::Error error = state.read((*text)->getBuffer()))
    return llvm::createStringError("state '" + state.file + "' " +
                                   llvm::toString(std::move(error)) +
                                   "; remove it or give another --state");
  return state;
}

llvm::Error TuneState::read(llvm::StringRef text) {
  if (!json::isUTF8(text))
    return llvm::createStringError("expects UTF-8");
  llvm::Expected<json::Value> root = json::parse(text);
  if (!root)
    return llvm::createStringError("is not JSON: " +
                                   llvm::toString(root.takeError()));
  const json::Object *object = root->getAsObject();
  auto of = object ? object->getString("tuning_of") : std::nullopt;
  const json::Array *list = object ? object->getArray("done") : nullptr;
  if (!of || !list)
    return llvm::createStringError("expects what llm-tune wrote, but is none");
  if (*of != what)
    return llvm::createStringError("expects a tuning of '" + what +
                                   "', but is one of '" + *of + "'");
  for (const json::Value &value : *list) {
    const json::Object *entry = value.getAsObject();
    auto product = entry ? entry->getString("product") : std::nullopt;
    auto tokens = entry ? entry->getInteger("tokens") : std::nullopt;
    auto start = fromJson(entry ? entry->getObject("start") : nullptr);
    auto ratio = entry ? entry->getNumber("ratio") : std::nullopt;
    auto choices = fromJson(entry ? entry->getObject("choices") : nullptr);
    bool nothing = entry && !entry->get("choices");
    if (!product || !tokens || !start ||
        (!nothing && !(choices && ratio && *ratio > 0 && *ratio <= 1)))
      return llvm::createStringError(
          "expects entries with product, tokens, start, and choices with a "
          "ratio between 0 and 1");
    done[{product->str(), *tokens, *start}] =
        nothing ? std::nullopt : std::optional(TileResult{*choices, *ratio});
  }
  return llvm::Error::success();
}

const std::optional<TileResult> *TuneState::find(const Key &key) const {
  auto it = done.find(key);
  return it == done.end() ? nullptr : &it->second;
}

llvm::Error TuneState::add(const Key &key, std::optional<TileResult> result) {
  done[key] = std::move(result);
  return write();
}

llvm::Error TuneState::write() const {
  json::Array list;
  for (const auto &[key, result] : done) {
    json::Object entry{{"product", key.product},
                       {"tokens", key.tokens},
                       {"start", toJson(key.start)}};
    if (result) {
      entry["choices"] = toJson(result->choices);
      entry["ratio"] = result->ratio;
    }
    list.push_back(std::move(entry));
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << json::Value(json::Object{{"tuning_of", what},
                                  {"done", std::move(list)}})
      << "\n";
  if (llvm::Error error = writeText(file, text))
    return llvm::createStringError("cannot write state '" + file +
                                   "': " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

} // namespace mlir::llm
