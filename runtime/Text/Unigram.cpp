#include "runtime/Text/Unigram.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <limits>

namespace sprig {

Unigram::Unigram(const Vocabulary &vocabulary) {
  const TokenizerData &data = vocabulary.tables();
  double least = std::numeric_limits<double>::max();
  for (uint32_t token = 0; token < vocabulary.size(); ++token) {
    least = std::min(least, double(data.scores[token]));
    // User-defined tokens were found before.
    if (vocabulary.type(token) == TokenType::Normal &&
        !vocabulary.bytes(token).empty())
      sorted.push_back(token);
  }
  unknownScore = least - 10.0;
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
    const int order = vocabulary.bytes(a).compare(vocabulary.bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
}

void Unigram::emitUnknown(const Vocabulary &vocabulary, std::string_view text,
                          std::vector<uint32_t> &out) const {
  const TokenizerData &data = vocabulary.tables();
  if (data.byteFallback &&
      std::all_of(text.begin(), text.end(), [&](char byte) {
        return vocabulary.byteToken(byte).has_value();
      })) {
    for (const char byte : text)
      out.push_back(*vocabulary.byteToken(byte));
  } else if (data.unknown >= 0) {
    out.push_back(static_cast<uint32_t>(data.unknown));
  }
}

void Unigram::encode(const Vocabulary &vocabulary, std::string_view text,
                     std::vector<uint32_t> &out) const {
  // The best way to each place: where its last token begins.
  struct Node {
    double score = 0.0;
    uint32_t from = 0;
    uint32_t token = UINT32_MAX; // none: an unknown character
    bool reached = false;
  };
  const TokenizerData &data = vocabulary.tables();
  std::vector<Node> best(text.size() + 1);
  best[0].reached = true;
  const auto offer = [&](size_t from, size_t to, double score, uint32_t token) {
    Node &node = best[to];
    if (!node.reached || score > node.score)
      node = {score, uint32_t(from), token, true};
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t letter = decodeUtf8(text.substr(begin)).length;
    const double here = best[begin].score;
    bool single = false;
    // As in SpecialTokens: the tokens that go on like the text are neighbours.
    auto low = sorted.begin(), high = sorted.end();
    for (size_t depth = 0; low != high && begin + depth < text.size();
         ++depth) {
      const int byte = static_cast<uint8_t>(text[begin + depth]);
      const auto at = [&](uint32_t token) {
        const std::string_view bytes = vocabulary.bytes(token);
        return depth < bytes.size() ? static_cast<uint8_t>(bytes[depth]) : -1;
      };
      low = std::partition_point(low, high,
                                 [&](uint32_t t) { return at(t) < byte; });
      high = std::partition_point(low, high,
                                  [&](uint32_t t) { return at(t) == byte; });
      if (low != high && vocabulary.bytes(*low).size() == depth + 1) {
        offer(begin, begin + depth + 1, here + double(data.scores[*low]), *low);
        single |= depth + 1 == letter;
      }
    }
    if (!single)
      offer(begin, begin + letter, here + unknownScore, UINT32_MAX);
    begin += letter;
  }

  std::vector<size_t> ends; // last first
  for (size_t at = text.size(); at > 0; at = best[at].from)
    ends.push_back(at);
  size_t unknown = text.size() + 1; // where a run of unknown characters begins
  for (size_t i = ends.size(); i-- > 0;) {
    const Node &node = best[ends[i]];
    if (node.token == UINT32_MAX) {
      unknown = std::min<size_t>(unknown, node.from);
      const bool last = i == 0 || best[ends[i - 1]].token != UINT32_MAX;
      if (last) {
        emitUnknown(vocabulary, text.substr(unknown, ends[i] - unknown), out);
        unknown = text.size() + 1;
      }
    } else {
      out.push_back(node.token);
    }
  }
}

} // namespace sprig
