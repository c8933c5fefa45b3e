// SentencePiece's tokenizer.model: a message of Protocol Buffers
// (sentencepiece_model.proto), of which few fields matter here.
#include "lib/Import/TokenizerJson.h"

#include "runtime/Text/TokenizerBuilder.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using sprig::TokenizerKind;
using sprig::TokenType;

namespace mlir::llm {
namespace {

/// A field: its number, and a number or bytes.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0; // varint, or the bits of a float
  StringRef bytes;
};

/// Fields of a message, one after another.
class Message {
public:
  explicit Message(StringRef rest) : rest(rest) {}

  /// False at the end, or where the bytes are no message (`broken`).
  bool next(Field &field) {
    if (rest.empty() || broken)
      return false;
    uint64_t tag = 0;
    if (!varint(tag))
      return false;
    field = {uint32_t(tag >> 3), 0, {}};
    uint64_t length = 0;
    switch (tag & 7) {
    case 0:
      return varint(field.value);
    case 1:
      return take(8, field.bytes);
    case 2:
      return varint(length) && take(length, field.bytes);
    case 5:
      if (!take(4, field.bytes))
        return false;
      field.value = support::endian::read32le(field.bytes.data());
      return true;
    default:
      broken = true;
      return false;
    }
  }

  bool broken = false;

private:
  bool take(uint64_t length, StringRef &out) {
    broken |= length > rest.size();
    if (broken)
      return false;
    out = rest.take_front(length);
    rest = rest.drop_front(length);
    return true;
  }

  bool varint(uint64_t &out) {
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = uint8_t(rest.front());
      rest = rest.drop_front();
      out |= uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80)
        return true;
    }
    broken = true;
    return false;
  }

  StringRef rest;
};

struct Spec {
  uint64_t modelType = 1; // 1: unigram, 2: BPE
  bool byteFallback = false, suffix = false;
  int32_t unknown = 0, begin = 1, end = 2, padding = -1;
  bool dummyPrefix = true, removeSpaces = true, escapes = true;
  StringRef charsmap;
};

bool readTrainer(StringRef bytes, Spec &spec) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    const auto id = int32_t(field.value);
    switch (field.number) {
    case 3:
      spec.modelType = field.value;
      break;
    case 24:
      spec.suffix = field.value;
      break;
    case 35:
      spec.byteFallback = field.value;
      break;
    case 40:
      spec.unknown = id;
      break;
    case 41:
      spec.begin = id;
      break;
    case 42:
      spec.end = id;
      break;
    case 43:
      spec.padding = id;
      break;
    }
  }
  return !message.broken;
}

bool readNormalizer(StringRef bytes, Spec &spec) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    switch (field.number) {
    case 2:
      spec.charsmap = field.bytes;
      break;
    case 3:
      spec.dummyPrefix = field.value;
      break;
    case 4:
      spec.removeSpaces = field.value;
      break;
    case 5:
      spec.escapes = field.value;
      break;
    }
  }
  return !message.broken;
}

} // namespace

Expected<sprig::TokenizerTables> readSentencePieceModel(StringRef bytes,
                                                        StringRef path) {
  const auto fail = [&](const Twine &message) {
    return createStringError("'" + path + "' " + message);
  };
  Spec spec;
  std::vector<StringRef> pieces;
  bool good = true;
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 1)
      pieces.push_back(field.bytes);
    else if (field.number == 2)
      good &= readTrainer(field.bytes, spec);
    else if (field.number == 3)
      good &= readNormalizer(field.bytes, spec);
  }
  if (message.broken || !good || pieces.empty())
    return fail("expects a SentencePiece model, but got " +
                Twine(pieces.empty() ? "no pieces" : "a broken message"));
  if (spec.modelType != 1 && spec.modelType != 2)
    return fail("model_type expects 1 (unigram) or 2 (BPE), but got " +
                Twine(spec.modelType));
  if (spec.suffix || !spec.escapes)
    return fail(Twine(spec.suffix ? "treat_whitespace_as_suffix expects false, "
                                    "but got true"
                                  : "escape_whitespaces expects true, but got "
                                    "false"));

  sprig::TokenizerBuilder builder(spec.modelType == 2
                                      ? TokenizerKind::SentencePiece
                                      : TokenizerKind::Unigram);
  for (const StringRef piece : pieces) {
    StringRef text;
    float score = 0.0f;
    uint64_t type = uint64_t(TokenType::Normal);
    Message fields(piece);
    for (Field field; fields.next(field);) {
      if (field.number == 1)
        text = field.bytes;
      else if (field.number == 2)
        score = bit_cast<float>(uint32_t(field.value));
      else if (field.number == 3)
        type = field.value;
    }
    if (fields.broken || type < 1 || type > 6)
      return fail("piece " + Twine(builder.tables.tokenTypes.size()) +
                  " expects a text, a score and a type of 1 to 6, but got a "
                  "broken one, or type " +
                  Twine(type));
    builder.addToken({text.data(), text.size()}, TokenType(type), score);
  }
  sprig::TokenizerTables &tables = builder.tables;
  // SentencePiece's own symbols do not cut a sentence in two.
  for (const uint8_t type : tables.tokenTypes)
    tables.addedFlags.push_back(
        type == uint8_t(TokenType::UserDefined) ? sprig::added::kNormalized : 0);
  const auto id = [&](int32_t id) {
    return id >= 0 && size_t(id) < pieces.size() ? id : -1;
  };
  tables.unknown = id(spec.unknown);
  tables.bos = id(spec.begin);
  tables.padding = id(spec.padding);
  if (id(spec.end) >= 0)
    builder.addEnd(uint32_t(spec.end));
  tables.addBos = tables.bos >= 0; // as transformers do, unless told otherwise
  tables.addSpacePrefix = spec.dummyPrefix;
  tables.removeExtraWhitespace = spec.removeSpaces;
  tables.byteFallback = spec.byteFallback;
  if (!spec.charsmap.empty()) {
    tables.pre = sprig::kSentenceMapName;
    tables.pipeline = sentenceMapPipeline(spec.charsmap);
  }
  return std::move(tables);
}

std::string sentenceMapPipeline(StringRef charsmap) {
  return R"({"normalizer":{"type":"Precompiled","longest":true,)"
         R"("precompiled_charsmap":")" +
         encodeBase64(charsmap) + "\"}}";
}

} // namespace mlir::llm
