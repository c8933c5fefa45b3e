#include "lib/Import/GGUFTokenizer.h"
#include "lib/Import/TokenizerJson.h"
#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/TokenizerBuilder.h"

using namespace llvm;
using sprig::TokenizerKind;

namespace mlir::llm {
namespace {

class Reader {
public:
  explicit Reader(const GGUFFile &file) : file(file), values(file.metadata()) {}

  Expected<std::optional<ModelTokenizer>> read() {
    Expected<StringRef> model =
        values.getString("tokenizer.ggml.model", "no_vocab");
    if (!model)
      return model.takeError();
    if (*model == "no_vocab" || *model == "none")
      return std::nullopt;
    if (*model != "gpt2" && *model != "llama")
      return fail("tokenizer.ggml.model",
                  "expects 'gpt2' (byte-level BPE) or 'llama' (SentencePiece "
                  "BPE), but got '" +
                      *model + "', which is not supported");
    sprig::TokenizerBuilder builder(*model == "gpt2"
                                        ? TokenizerKind::ByteBpe
                                        : TokenizerKind::SentencePiece);
    if (Error error = readTokens(builder))
      return std::move(error);
    if (Error error = readMerges(builder))
      return std::move(error);
    if (Error error = readFlags(builder.tables))
      return std::move(error);
    if (Error error = readIds(builder))
      return std::move(error);

    // Made once, to be sure; whoever uses the tables makes their own.
    const auto made = sprig::Tokenizer::create(builder.tables.data());
    if (!made.ok())
      return fail("tokenizer.ggml", made.status().message());
    Expected<StringRef> chat = values.getString("tokenizer.chat_template", "");
    if (!chat)
      return chat.takeError();
    return ModelTokenizer{std::move(builder.tables), chat->str()};
  }

private:
  Error fail(StringRef key, const Twine &message) {
    return createStringError("'" + file.path() + "' " + key + " " + message);
  }

  Error readTokens(sprig::TokenizerBuilder &builder) {
    constexpr StringLiteral typesKey = "tokenizer.ggml.token_type",
                            scoresKey = "tokenizer.ggml.scores";
    const bool scored = builder.tables.kind == TokenizerKind::SentencePiece;
    Expected<GGUFStrings> tokens = values.getStrings("tokenizer.ggml.tokens");
    if (!tokens)
      return tokens.takeError();
    std::vector<int64_t> types(tokens->size(),
                               int64_t(sprig::TokenType::Normal));
    if (values.has(typesKey)) {
      Expected<std::vector<int64_t>> read = values.getIntegers(typesKey);
      if (!read)
        return read.takeError();
      types = std::move(*read);
    }
    std::vector<float> scores;
    if (scored) {
      Expected<std::vector<float>> read = values.getReals(scoresKey);
      if (!read)
        return read.takeError();
      scores = std::move(*read);
    }
    for (const auto &[key, size] : {std::pair(typesKey, types.size()),
                                    std::pair(scoresKey, scores.size())})
      if (size != tokens->size() && (key == typesKey || scored))
        return fail(key, "expects one entry for each of the " +
                             Twine(tokens->size()) + " tokens, but got " +
                             Twine(size));
    size_t id = 0;
    for (const StringRef token : *tokens) {
      if (types[id] < 1 || types[id] > 6)
        return fail(typesKey, "expects types 1 to 6, but got " +
                                  Twine(types[id]) + " for token " + Twine(id));
      builder.addToken({token.data(), token.size()},
                       sprig::TokenType(types[id]),
                       scored ? std::optional(scores[id]) : std::nullopt);
      ++id;
    }
    return Error::success();
  }

  Error readMerges(sprig::TokenizerBuilder &builder) {
    constexpr StringLiteral key = "tokenizer.ggml.merges";
    if (builder.tables.kind != TokenizerKind::ByteBpe)
      return Error::success(); // SentencePiece merges by score
    Expected<GGUFStrings> merges = values.getStrings(key);
    if (!merges)
      return merges.takeError();
    for (const StringRef merge : *merges)
      if (const sprig::Status status =
              builder.addMerge({merge.data(), merge.size()});
          !status)
        return fail(key, status.message());
    return Error::success();
  }

  Error readFlags(sprig::TokenizerTables &tables) {
    const bool pieces = tables.kind == TokenizerKind::SentencePiece;
    constexpr StringLiteral charsmap = "tokenizer.ggml.precompiled_charsmap";
    if (const GGUFValue *map = values.find(charsmap); map && map->count > 0) {
      if (!pieces || !map->isArray() || map->bytes.size() != map->count)
        return fail(charsmap, "expects bytes, beside sentence pieces, but got " +
                                  map->describe());
      tables.pre = sprig::kSentenceMapName;
      tables.pipeline = sentenceMapPipeline(
          {reinterpret_cast<const char *>(map->bytes.data()),
           map->bytes.size()});
    }
    if (!pieces) {
      Expected<StringRef> pre =
          values.getString("tokenizer.ggml.pre", "default");
      if (!pre)
        return pre.takeError();
      tables.pre = pre->str();
      const sprig::PreTokenizerInfo *info = sprig::findPreTokenizer(tables.pre);
      if (!info)
        return fail("tokenizer.ggml.pre",
                    "expects one of " + sprig::preTokenizerNames() +
                        ", but got '" + *pre + "', which is not supported");
      tables.ignoreMerges = info->ignoreMerges;
    }
    // Files leave a flag out where it is what their kind of tokenizer has.
    const bool llama3 =
        !pieces && sprig::findPreTokenizer(tables.pre)->family == "llama3";
    const struct {
      const char *key;
      bool *flag;
      bool absent;
    } flags[] = {
        {"tokenizer.ggml.add_bos_token", &tables.addBos, pieces || llama3},
        {"tokenizer.ggml.add_eos_token", &tables.addEos, false},
        {"tokenizer.ggml.add_space_prefix", &tables.addSpacePrefix, pieces},
        {"tokenizer.ggml.remove_extra_whitespaces",
         &tables.removeExtraWhitespace, false},
    };
    for (const auto &[key, flag, absent] : flags) {
      Expected<bool> read = values.getBool(key, absent);
      if (!read)
        return read.takeError();
      *flag = *read;
    }
    return Error::success();
  }

  /// -1 where the key is absent or says "none" by all bits set.
  Expected<int32_t> readId(StringRef name,
                           const sprig::TokenizerTables &tables) {
    const std::string key = ("tokenizer.ggml." + name + "_token_id").str();
    Expected<int64_t> id = values.getInteger(key, -1);
    if (!id)
      return id.takeError();
    if (*id == -1 || *id == int64_t(UINT32_MAX))
      return -1;
    if (*id < 0 || *id >= int64_t(tables.tokenTypes.size()))
      return fail(key, "expects a token below " +
                           Twine(tables.tokenTypes.size()) + ", but got " +
                           Twine(*id));
    return int32_t(*id);
  }

  Error readIds(sprig::TokenizerBuilder &builder) {
    sprig::TokenizerTables &tables = builder.tables;
    const std::pair<const char *, int32_t *> ids[] = {
        {"bos", &tables.bos},
        {"unknown", &tables.unknown},
        {"padding", &tables.padding}};
    for (const auto &[name, id] : ids) {
      Expected<int32_t> read = readId(name, tables);
      if (!read)
        return read.takeError();
      *id = *read;
    }
    for (const char *name : {"eos", "eot", "eom"}) {
      Expected<int32_t> read = readId(name, tables);
      if (!read)
        return read.takeError();
      if (*read >= 0)
        builder.addEnd(uint32_t(*read));
    }
    builder.addKnownEnds();
    return Error::success();
  }

  const GGUFFile &file;
  const GGUFMetadata &values;
};

} // namespace

Expected<std::optional<ModelTokenizer>>
readGGUFTokenizer(const GGUFFile &file) {
  return Reader(file).read();
}

} // namespace mlir::llm
