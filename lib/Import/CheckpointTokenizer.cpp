#include "lib/Import/CheckpointTokenizer.h"

#include "lib/Import/TokenizerJson.h"
#include "lib/Import/TokenizerJsonSteps.h"
#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/TokenizerBuilder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using nlohmann::json;
using sprig::TokenType;

namespace mlir::llm {
namespace {

std::string inside(StringRef folder, StringRef name) {
  SmallString<256> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

Expected<std::unique_ptr<MemoryBuffer>> readFile(const std::string &path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(
        "'" + path + "' cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

class Reader {
public:
  explicit Reader(StringRef folder) : folder(folder) {}

  Expected<std::optional<ModelTokenizer>> read() {
    file = findCheckpointTokenizer(folder);
    if (file.empty())
      return std::nullopt;
    Expected<std::unique_ptr<MemoryBuffer>> buffer = readFile(file);
    if (!buffer)
      return buffer.takeError();
    const StringRef bytes = (*buffer)->getBuffer();
    Expected<sprig::TokenizerTables> tables =
        StringRef(file).ends_with(".json")
            ? readTokenizerJson(bytes, file)
            : readSentencePieceModel(bytes, file);
    if (!tables)
      return tables.takeError();
    ModelTokenizer out{std::move(*tables), ""};
    for (auto [name, value] : {std::pair("tokenizer_config.json", &settings),
                               std::pair("generation_config.json", &generation),
                               std::pair("config.json", &model)})
      if (Error error = readObject(name, *value))
        return std::move(error);
    if (Error error = addDecoderTokens(out.tables))
      return std::move(error);
    if (Error error = readSpecials(out.tables))
      return std::move(error);
    if (Error error = readTemplate(out.chatTemplate))
      return std::move(error);
    // Made once, to be sure; whoever uses the tables makes their own.
    const auto made = sprig::Tokenizer::create(out.tables.data());
    if (!made.ok())
      return createStringError("'" + file + "': " + made.status().message());
    return out;
  }

private:
  Error fail(StringRef name, const Twine &message) const {
    return createStringError("'" + inside(folder, name) + "' " + message);
  }

  /// A file that a folder may have; an empty object where it does not.
  Error readObject(StringRef name, json &out) {
    out = json::object();
    const std::string path = inside(folder, name);
    if (!sys::fs::exists(path))
      return Error::success();
    Expected<std::unique_ptr<MemoryBuffer>> buffer = readFile(path);
    if (!buffer)
      return buffer.takeError();
    const StringRef text = (*buffer)->getBuffer();
    out = json::parse(text.begin(), text.end(), nullptr, false);
    if (!out.is_object())
      return fail(name,
                  Twine("expects a JSON object, but got ") +
                      (out.is_discarded() ? "no valid JSON" : out.type_name()));
    return Error::success();
  }

  /// Tokens that only tokenizer_config.json adds, behind the others.
  Error addDecoderTokens(sprig::TokenizerTables &tables) {
    const json *added = member(settings, "added_tokens_decoder");
    if (!added || !added->is_object())
      return Error::success();
    std::map<uint32_t, const json *> byId;
    for (const auto &[key, token] : added->items()) {
      uint32_t id = 0;
      if (StringRef(key).getAsInteger(10, id) || id >= 1u << 24)
        return fail("tokenizer_config.json",
                    "added_tokens_decoder expects ids, but got '" + key + "'");
      byId[id] = &token;
    }
    for (const auto &[id, token] : byId) {
      const json *text = member(*token, "content"),
                 *special = member(*token, "special");
      if (!text || !text->is_string())
        return fail("tokenizer_config.json",
                    "added_tokens_decoder expects a content for " + Twine(id));
      const bool control = special && *special == true;
      const TokenType type =
          control ? TokenType::Control : TokenType::UserDefined;
      if (id < tables.tokenTypes.size()) {
        // SentencePiece's own word for it stays, but for tokens that are made
        // control tokens here.
        uint8_t &known = tables.tokenTypes[id];
        if (control && known == uint8_t(TokenType::Normal) &&
            tokenText(tables, id) == view(*text))
          known = uint8_t(type);
        continue;
      }
      append(tables, "", TokenType::Unused, id);
      append(tables, view(*text), type, id + 1);
    }
    return Error::success();
  }

  /// Appends tokens until there are `count`.
  static void append(sprig::TokenizerTables &tables, StringRef text,
                     TokenType type, uint32_t count) {
    while (tables.tokenTypes.size() < count) {
      tables.tokenBytes.insert(tables.tokenBytes.end(), text.bytes_begin(),
                               text.bytes_end());
      tables.tokenOffsets.push_back(uint32_t(tables.tokenBytes.size()));
      tables.tokenTypes.push_back(uint8_t(type));
      if (!tables.scores.empty())
        tables.scores.push_back(0.0f);
      if (!tables.addedFlags.empty())
        tables.addedFlags.push_back(0);
    }
  }

  static StringRef tokenText(const sprig::TokenizerTables &tables,
                             size_t token) {
    const uint32_t begin = tables.tokenOffsets[token];
    return {reinterpret_cast<const char *>(tables.tokenBytes.data()) + begin,
            tables.tokenOffsets[token + 1] - begin};
  }

  /// The token that a member of tokenizer_config.json names, as a string or as
  /// an object with a content.
  Expected<std::optional<uint32_t>> named(const sprig::TokenizerTables &tables,
                                          const char *key) {
    const json *value = member(settings, key);
    if (value && value->is_object())
      value = member(*value, "content");
    if (!value)
      return std::nullopt;
    if (!value->is_string())
      return fail("tokenizer_config.json",
                  Twine(key) + " expects the text of a token, but got " +
                      value->dump());
    // Control tokens first: a normal one may be spelled alike.
    std::optional<uint32_t> found;
    for (uint32_t token = 0; token < tables.tokenTypes.size(); ++token)
      if (tokenText(tables, token) == view(*value)) {
        const bool control =
            tables.tokenTypes[token] == uint8_t(TokenType::Control);
        if (!found || control)
          found = token;
        if (control)
          break;
      }
    return found; // a folder may name tokens that it does not have
  }

  /// Ids that a member names: one number, or a list.
  Error addIds(const json &object, StringRef name, const char *key,
               const sprig::TokenizerTables &tables,
               std::vector<uint32_t> &out) {
    const json *value = member(object, key);
    if (!value)
      return Error::success();
    const json list = value->is_array() ? *value : json::array({*value});
    for (const json &id : list) {
      if (!id.is_number_integer())
        return fail(name, Twine(key) +
                              " expects a token or a list of them, "
                              "but got " +
                              value->dump());
      const int64_t token = id.get<int64_t>();
      if (token < 0) // "none", as some write it
        continue;
      if (token >= int64_t(tables.tokenTypes.size()))
        return fail(name, Twine(key) + " expects tokens below " +
                              Twine(tables.tokenTypes.size()) + ", but got " +
                              Twine(token));
      out.push_back(uint32_t(token));
    }
    return Error::success();
  }

  Error readSpecials(sprig::TokenizerTables &tables) {
    // The token that tokenizer_config.json calls the end comes first: it is
    // what templates see as eos_token.
    std::vector<uint32_t> ends, begins;
    Expected<std::optional<uint32_t>> token = named(tables, "eos_token");
    if (!token)
      return token.takeError();
    if (*token)
      ends.push_back(**token);
    const std::pair<const json *, StringRef> files[] = {
        {&generation, "generation_config.json"}, {&model, "config.json"}};
    for (const auto &[object, name] : files) {
      if (Error error = addIds(*object, name, "eos_token_id", tables, ends))
        return error;
      if (Error error = addIds(*object, name, "bos_token_id", tables, begins))
        return error;
    }
    ends.insert(ends.end(), tables.endTokens.begin(), tables.endTokens.end());
    tables.endTokens.clear();
    addEnds(tables, ends);

    token = named(tables, "bos_token");
    if (!token)
      return token.takeError();
    if (*token)
      tables.bos = int32_t(**token);
    else if (tables.bos < 0 && !begins.empty() &&
             !settings.contains("bos_token"))
      tables.bos = int32_t(begins.front());
    token = named(tables, "pad_token");
    if (!token)
      return token.takeError();
    if (*token)
      tables.padding = int32_t(**token);
    if (const json *adds = member(settings, "add_bos_token")) {
      if (!adds->is_boolean())
        return fail("tokenizer_config.json",
                    "add_bos_token expects true or false, but got " +
                        adds->dump());
      tables.addBos = adds->get<bool>() && tables.bos >= 0;
    }
    return Error::success();
  }

  static void addEnds(sprig::TokenizerTables &tables, ArrayRef<uint32_t> ends) {
    for (const uint32_t end : ends)
      if (!is_contained(tables.endTokens, end))
        tables.endTokens.push_back(end);
    for (uint32_t token = 0; token < tables.tokenTypes.size(); ++token) {
      const StringRef text = tokenText(tables, token);
      if (tables.tokenTypes[token] == uint8_t(TokenType::Control) &&
          sprig::isKnownEnd({text.data(), text.size()}) &&
          !is_contained(tables.endTokens, token))
        tables.endTokens.push_back(token);
    }
  }

  Error readTemplate(std::string &out) {
    const std::string jinja = inside(folder, "chat_template.jinja");
    if (sys::fs::exists(jinja)) {
      Expected<std::unique_ptr<MemoryBuffer>> buffer = readFile(jinja);
      if (!buffer)
        return buffer.takeError();
      out = (*buffer)->getBuffer().str();
      return Error::success();
    }
    json apart;
    if (Error error = readObject("chat_template.json", apart))
      return error;
    const json *value = member(apart, "chat_template");
    if (!value)
      value = member(settings, "chat_template");
    if (!value)
      return Error::success();
    if (value->is_array()) // several, by name
      for (const json &entry : *value)
        if (const json *name = member(entry, "name");
            name && *name == "default")
          if (const json *text = member(entry, "template")) {
            value = text;
            break;
          }
    if (!value->is_string())
      return fail("tokenizer_config.json",
                  "chat_template expects a string, or a list with one named "
                  "default");
    out = view(*value).str();
    return Error::success();
  }

  StringRef folder;
  std::string file;
  json settings, generation, model;
};

} // namespace

std::string findCheckpointTokenizer(StringRef folder) {
  for (const char *name : {"tokenizer.json", "tokenizer.model"})
    if (const std::string path = inside(folder, name); sys::fs::exists(path))
      return path;
  return {};
}

Expected<std::optional<ModelTokenizer>>
readCheckpointTokenizer(StringRef folder) {
  return Reader(folder).read();
}

} // namespace mlir::llm
