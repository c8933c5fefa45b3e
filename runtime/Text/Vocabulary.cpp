#include "runtime/Text/Vocabulary.h"

#include <bit>
#include <cmath>

namespace sprig {
namespace {

// Ids are 32-bit on the device and tables are indexed by them; no vocabulary
// comes near this.
constexpr size_t kMaxTokens = size_t(1) << 24;

uint64_t hashBytes(std::string_view text) {
  uint64_t h =
      0xCBF29CE484222325u; // FNV-1a, then a multiply-shift to use the high bits
  for (const char c : text)
    h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return (h ^ h >> 29) * 0xBF58476D1CE4E5B9u >> 20;
}

Status corrupt(std::string message) {
  return {StatusCode::Corrupt, "tokenizer: " + std::move(message)};
}

Status checkLength(const char *name, size_t got, size_t expected) {
  if (got == expected)
    return {};
  return corrupt("expects " + std::to_string(expected) + " entries in " + name +
                 ", but got " + std::to_string(got));
}

Status checkTokens(const TokenizerData &data) {
  const size_t count = data.tokenTypes.size();
  if (count == 0)
    return corrupt("expects at least one token, but got an empty vocabulary");
  if (count > kMaxTokens)
    return corrupt("expects at most " + std::to_string(kMaxTokens) +
                   " tokens, but got " + std::to_string(count));
  if (Status s =
          checkLength("token_offsets", data.tokenOffsets.size(), count + 1);
      !s)
    return s;
  for (size_t i = 0; i < count; ++i) {
    if (data.tokenOffsets[i] > data.tokenOffsets[i + 1])
      return corrupt("expects ascending token_offsets, but got " +
                     std::to_string(data.tokenOffsets[i]) + " before " +
                     std::to_string(data.tokenOffsets[i + 1]) + " at token " +
                     std::to_string(i));
    if (data.tokenTypes[i] < 1 || data.tokenTypes[i] > 6)
      return corrupt("expects token types 1 to 6, but got " +
                     std::to_string(data.tokenTypes[i]) + " at token " +
                     std::to_string(i));
  }
  if (data.tokenOffsets[count] > data.tokenBytes.size())
    return corrupt(
        "expects offsets within the " + std::to_string(data.tokenBytes.size()) +
        " bytes of text, but got " + std::to_string(data.tokenOffsets[count]));
  return {};
}

Status checkScores(const TokenizerData &data) {
  const bool scored = data.kind == TokenizerKind::SentencePiece ||
                      data.kind == TokenizerKind::Unigram;
  if (!data.addedFlags.empty())
    if (Status s = checkLength("added_flags", data.addedFlags.size(),
                               data.tokenTypes.size());
        !s)
      return s;
  if (!scored && data.scores.empty())
    return {};
  if (Status s =
          checkLength("scores", data.scores.size(), data.tokenTypes.size());
      !s)
    return s;
  for (size_t i = 0; i < data.scores.size(); ++i)
    if (std::isnan(data.scores[i])) // would make the order of merges depend on
                                    // the sort
      return corrupt("expects numbers as scores, but got NaN at token " +
                     std::to_string(i));
  return {};
}

Status checkIds(const TokenizerData &data) {
  const size_t count = data.tokenTypes.size();
  if (Status s = checkLength("merge_right", data.mergeRight.size(),
                             data.mergeLeft.size());
      !s)
    return s;
  for (size_t i = 0; i < data.mergeLeft.size(); ++i)
    if (data.mergeLeft[i] >= count || data.mergeRight[i] >= count)
      return corrupt("expects merges of tokens below " + std::to_string(count) +
                     ", but merge " + std::to_string(i) + " is of " +
                     std::to_string(data.mergeLeft[i]) + " and " +
                     std::to_string(data.mergeRight[i]));
  const std::pair<const char *, int32_t> ids[] = {
      {"bos", data.bos}, {"unknown", data.unknown}, {"padding", data.padding}};
  for (const auto &[name, id] : ids)
    if (id < -1 || id >= static_cast<int64_t>(count))
      return corrupt(std::string("expects the ") + name + " token below " +
                     std::to_string(count) + ", but got " + std::to_string(id));
  for (const uint32_t id : data.endTokens)
    if (id >= count)
      return corrupt("expects end tokens below " + std::to_string(count) +
                     ", but got " + std::to_string(id));
  return {};
}

} // namespace

Result<Vocabulary> Vocabulary::create(const TokenizerData &data) {
  if (Status s = checkTokens(data); !s)
    return s;
  if (Status s = checkScores(data); !s)
    return s;
  if (Status s = checkIds(data); !s)
    return s;
  Vocabulary vocabulary(data);
  vocabulary.index();
  if (!data.mergeSplits.empty())
    if (Status s = vocabulary.pairMerges(); !s)
      return s;
  return vocabulary;
}

void Vocabulary::index() {
  byteTokens.fill(UINT32_MAX);
  for (uint32_t token = 0; token < size(); ++token)
    if (type(token) == TokenType::Byte && bytes(token).size() == 1)
      byteTokens[static_cast<uint8_t>(bytes(token)[0])] = token;
  slots.assign(std::bit_ceil(size_t(size()) * 2), 0);
  const size_t mask = slots.size() - 1;
  for (const TokenType wanted : {TokenType::Normal, TokenType::UserDefined}) {
    for (uint32_t token = 0; token < size(); ++token) {
      const std::string_view text = bytes(token);
      if (type(token) != wanted || text.empty())
        continue;
      size_t at = hashBytes(text) & mask;
      while (slots[at] != 0 && bytes(slots[at] - 1) != text)
        at = (at + 1) & mask;
      if (slots[at] == 0)
        slots[at] = token + 1;
      longestText = std::max(longestText, text.size());
    }
  }
}

Status Vocabulary::pairMerges() {
  const size_t count = data.mergeSplits.size();
  if (!data.mergeLeft.empty())
    return corrupt("expects merges as pairs or as splits, but got both");
  if (data.mergeFirst > size() || count > size() - data.mergeFirst)
    return corrupt("expects merges that make tokens below " +
                   std::to_string(size()) + ", but got " +
                   std::to_string(count) + " from " +
                   std::to_string(data.mergeFirst) + " on");
  left.resize(count), right.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view text = bytes(data.mergeFirst + uint32_t(i));
    const size_t split = std::min<size_t>(data.mergeSplits[i], text.size());
    const auto a = find(text.substr(0, split)), b = find(text.substr(split));
    if (!a || !b)
      return corrupt("expects merges of two tokens, but the parts of merge " +
                     std::to_string(i) + ", " + std::to_string(split) +
                     " bytes and " + std::to_string(text.size() - split) +
                     ", are none");
    left[i] = *a, right[i] = *b;
  }
  data.mergeLeft = left, data.mergeRight = right;
  return {};
}

std::optional<uint32_t> Vocabulary::find(std::string_view text) const {
  if (text.empty() || text.size() > longestText)
    return std::nullopt;
  const size_t mask = slots.size() - 1;
  for (size_t at = hashBytes(text) & mask; slots[at] != 0; at = (at + 1) & mask)
    if (bytes(slots[at] - 1) == text)
      return slots[at] - 1;
  return std::nullopt;
}

} // namespace sprig
