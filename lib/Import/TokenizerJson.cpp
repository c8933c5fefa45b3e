#include "lib/Import/TokenizerJson.h"

#include "lib/Import/TokenizerJsonSteps.h"
#include "runtime/Text/Pipeline.h"
#include "runtime/Text/TokenizerBuilder.h"
#include "llvm/ADT/Twine.h"
#include <nlohmann/json.hpp>

using namespace llvm;
using nlohmann::json;
using sprig::TokenizerKind;
using sprig::TokenType;

namespace mlir::llm {
namespace {

constexpr int64_t kMostTokens = int64_t(1) << 24;

class Reader {
public:
  Reader(const json &root, StringRef path) : root(root), path(path) {}

  Expected<sprig::TokenizerTables> read() {
    const json *found = member(root, "model");
    if (!found)
      return fail("model", "expects an object, but got none");
    model = found;
    if (Error error = readPipeline())
      return std::move(error);
    sprig::TokenizerBuilder builder(kind);
    builder.tables.pre = sprig::kPipelineName;
    builder.tables.pipeline = pipeline;
    if (Error error =
            kind == TokenizerKind::Unigram ? readPieces() : readVocabulary())
      return std::move(error);
    if (Error error = readAdded())
      return std::move(error);
    if (Error error = addTokens(builder))
      return std::move(error);
    if (kind != TokenizerKind::Unigram)
      if (Error error = readMerges(builder))
        return std::move(error);
    if (Error error = readUnknown(builder))
      return std::move(error);
    if (Error error = readStepsAround(root, path, builder.tables))
      return std::move(error);
    return std::move(builder.tables);
  }

private:
  struct Token {
    StringRef text;
    TokenType type = TokenType::Unused; // an id that nothing names
    float score = 0.0f;
    uint8_t flags = 0;
  };

  Error fail(const Twine &where, const Twine &message) const {
    return createStringError("'" + path + "' " + where + " " + message);
  }

  Expected<bool> flag(const json &value, const char *name, bool absent) const {
    const json *found = member(value, name);
    if (!found)
      return absent;
    if (!found->is_boolean())
      return fail(name, Twine("expects true or false, but got ") +
                            found->type_name());
    return found->get<bool>();
  }

  /// The kind of model, and the steps before it as a package keeps them.
  Error readPipeline() {
    json steps = json::object();
    for (const char *name : {"normalizer", "pre_tokenizer"})
      if (const json *step = member(root, name))
        steps[name] = *step;
    pipeline = steps.dump(-1, ' ', false, json::error_handler_t::replace);
    sprig::Result<sprig::Pipeline> made = sprig::Pipeline::create(pipeline);
    if (!made.ok())
      return createStringError("'" + path + "': " + made.status().message());
    const json *merges = member(*model, "merges");
    if (isKind(*model, "Unigram"))
      kind = TokenizerKind::Unigram;
    else if (isKind(*model, "BPE") || (!member(*model, "type") && merges))
      kind =
          made->byteLevel() ? TokenizerKind::ByteBpe : TokenizerKind::CharBpe;
    else
      return fail("model",
                  "expects type BPE or Unigram, but got " +
                      (member(*model, "type") ? member(*model, "type")->dump()
                                              : std::string("none")));
    if (kind == TokenizerKind::Unigram && made->byteLevel())
      return fail("pre_tokenizer",
                  "expects no ByteLevel before a Unigram model");
    return Error::success();
  }

  Error put(int64_t id, const Token &token, const Twine &where) {
    if (id < 0 || id >= kMostTokens)
      return fail(where, "expects ids of 0 to " + Twine(kMostTokens - 1) +
                             ", but got " + Twine(id));
    if (tokens.size() <= size_t(id))
      tokens.resize(size_t(id) + 1);
    Token &place = tokens[size_t(id)];
    if (place.type != TokenType::Unused && place.text != token.text)
      return fail(where, "expects one token an id, but got '" + place.text +
                             "' and '" + token.text + "' for " + Twine(id));
    const float score = place.score;
    place = token;
    if (score != 0.0f)
      place.score = score;
    return Error::success();
  }

  Error readVocabulary() {
    for (const char *name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const json *text = member(*model, name);
          text && !(text->is_string() && view(*text).empty()))
        return fail(Twine("model.") + name,
                    "expects none, for marks of parts of words are not "
                    "supported, but got " +
                        text->dump());
    const json *vocabulary = member(*model, "vocab");
    if (!vocabulary || !vocabulary->is_object())
      return fail("model.vocab", "expects an object of tokens and ids");
    Expected<bool> fallback = flag(*model, "byte_fallback", false);
    if (!fallback)
      return fallback.takeError();
    byteFallback = *fallback && kind == TokenizerKind::CharBpe;
    for (const auto &[text, id] : vocabulary->items()) {
      if (!id.is_number_integer())
        return fail("model.vocab", Twine("expects numbers as ids, but got a ") +
                                       id.type_name() + " for '" + text + "'");
      if (Error error =
              put(id.get<int64_t>(), {text, typeOf(text)}, "model.vocab"))
        return error;
    }
    return Error::success();
  }

  TokenType typeOf(StringRef text) const {
    uint8_t byte;
    const bool is = byteFallback && text.size() == 6 &&
                    text.starts_with("<0x") && text.ends_with(">") &&
                    !text.substr(3, 2).getAsInteger(16, byte);
    return is ? TokenType::Byte : TokenType::Normal;
  }

  Error readPieces() {
    const json *pieces = member(*model, "vocab");
    if (!pieces || !pieces->is_array())
      return fail("model.vocab", "expects a list of tokens and scores");
    Expected<bool> fallback = flag(*model, "byte_fallback", false);
    if (!fallback)
      return fallback.takeError();
    byteFallback = *fallback;
    for (size_t id = 0; id < pieces->size(); ++id) {
      const json &piece = (*pieces)[id];
      if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() ||
          !piece[1].is_number())
        return fail("model.vocab", "expects pairs of a token and its score, "
                                   "but got " +
                                       piece.dump() + " for " + Twine(id));
      const StringRef text = view(piece[0]);
      if (Error error =
              put(int64_t(id), {text, typeOf(text), piece[1].get<float>()},
                  "model.vocab"))
        return error;
    }
    return Error::success();
  }

  Error readAdded() {
    const json *added = member(root, "added_tokens");
    if (!added)
      return Error::success();
    if (!added->is_array())
      return fail("added_tokens",
                  Twine("expects a list, but got a ") + added->type_name());
    for (const json &entry : *added) {
      const json *id = member(entry, "id"), *text = member(entry, "content");
      if (!id || !id->is_number_integer() || !text || !text->is_string())
        return fail("added_tokens",
                    "expects an id and a content, but got " + entry.dump());
      Token token{view(*text)};
      const std::pair<const char *, uint8_t> names[] = {
          {"lstrip", sprig::added::kStripLeft},
          {"rstrip", sprig::added::kStripRight},
          {"single_word", sprig::added::kWord},
          {"normalized", sprig::added::kNormalized}};
      for (const auto &[name, bit] : names) {
        Expected<bool> set = flag(entry, name, false);
        if (!set)
          return set.takeError();
        token.flags |= *set ? bit : 0;
      }
      Expected<bool> special = flag(entry, "special", false);
      if (!special)
        return special.takeError();
      token.type = *special ? TokenType::Control : TokenType::UserDefined;
      if (Error error = put(id->get<int64_t>(), token, "added_tokens"))
        return error;
    }
    return Error::success();
  }

  Error addTokens(sprig::TokenizerBuilder &builder) {
    uint8_t any = 0;
    for (const Token &token : tokens) {
      builder.addToken(token.text, token.type,
                       kind == TokenizerKind::Unigram
                           ? std::optional(token.score)
                           : std::nullopt);
      any |= token.flags;
    }
    if (any)
      for (const Token &token : tokens)
        builder.tables.addedFlags.push_back(token.flags);
    return Error::success();
  }

  Error readMerges(sprig::TokenizerBuilder &builder) {
    const json *merges = member(*model, "merges");
    if (!merges || !merges->is_array())
      return fail("model.merges", "expects a list");
    for (const json &merge : *merges) {
      const bool pair = merge.is_array() && merge.size() == 2 &&
                        merge[0].is_string() && merge[1].is_string();
      if (!pair && !merge.is_string())
        return fail("model.merges",
                    "expects pairs of tokens, or strings, but got " +
                        merge.dump());
      const sprig::Status status =
          pair ? builder.addMerge(view(merge[0]), view(merge[1]))
               : builder.addMerge(view(merge));
      if (!status)
        return fail("model.merges", status.message());
    }
    return Error::success();
  }

  Error readUnknown(sprig::TokenizerBuilder &builder) {
    sprig::TokenizerTables &tables = builder.tables;
    tables.byteFallback = byteFallback;
    for (const auto &[name, set] :
         {std::pair("ignore_merges", &tables.ignoreMerges),
          std::pair("fuse_unk", &tables.fuseUnknown)}) {
      Expected<bool> read = flag(*model, name, false);
      if (!read)
        return read.takeError();
      *set = *read;
    }
    const json *id = member(*model, "unk_id");
    const json *name = member(*model, "unk_token");
    std::optional<uint32_t> unknown;
    if (name && name->is_string())
      unknown = builder.find(view(*name));
    else if (id && id->is_number_unsigned() &&
             id->get<uint64_t>() < tokens.size())
      unknown = id->get<uint32_t>();
    if ((name && !unknown) || (id && !unknown))
      return fail(name ? "model.unk_token" : "model.unk_id",
                  "expects a token of the vocabulary, but got " +
                      (name ? name : id)->dump());
    if (!unknown)
      return Error::success();
    tables.unknown = int32_t(*unknown);
    // One that was added as a control token is parsed as the others are.
    uint8_t &type = tables.tokenTypes[*unknown];
    if (type != uint8_t(TokenType::Control))
      type = uint8_t(TokenType::Unknown);
    return Error::success();
  }

  const json &root;
  StringRef path;
  const json *model = nullptr;
  TokenizerKind kind = TokenizerKind::ByteBpe;
  std::string pipeline;
  bool byteFallback = false;
  std::vector<Token> tokens; // by id
};

} // namespace

Expected<sprig::TokenizerTables> readTokenizerJson(StringRef text,
                                                   StringRef path) {
  const json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object())
    return createStringError(
        "'" + path + "' expects a JSON object, but got " +
        (root.is_discarded() ? "no valid JSON" : root.type_name()));
  return Reader(root, path).read();
}

} // namespace mlir::llm
