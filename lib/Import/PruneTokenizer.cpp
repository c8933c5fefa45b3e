#include "lib/Import/PruneTokenizer.h"

#include "llvm/ADT/Twine.h"

#include <string_view>
#include <unordered_map>

namespace mlir::llm {
namespace {

using sprig::TokenizerKind;
using sprig::TokenizerTables;
using sprig::TokenType;

std::string_view textOf(const TokenizerTables &tables, size_t token) {
  const char *bytes = reinterpret_cast<const char *>(tables.tokenBytes.data());
  return {bytes + tables.tokenOffsets[token], tables.tokenOffsets[token + 1] - tables.tokenOffsets[token]};
}

/// Tokens by their text. Control tokens are not what text is merged to.
std::unordered_map<std::string_view, uint32_t> tokensByText(const TokenizerTables &tables) {
  std::unordered_map<std::string_view, uint32_t> tokens;
  for (size_t i = 0; i < tables.tokenTypes.size(); ++i)
    if (TokenType(tables.tokenTypes[i]) == TokenType::Normal)
      tokens.try_emplace(textOf(tables, i), uint32_t(i));
  return tokens;
}

/// The pairs that make up each token: of byte-level BPE its merges; of SentencePiece every way to cut it into two
/// tokens. A merge is never undone, so that on the way to a token only its own parts are met.
class Ancestors {
public:
  explicit Ancestors(const TokenizerTables &tables) : tables(tables), tokens(tokensByText(tables)) {
    std::string joined;
    for (size_t i = 0; i < tables.mergeLeft.size(); ++i) {
      joined = textOf(tables, tables.mergeLeft[i]);
      joined += textOf(tables, tables.mergeRight[i]);
      if (auto found = tokens.find(joined); found != tokens.end())
        pairs.emplace(found->second, i);
    }
  }

  template <typename Use> void forEach(uint32_t token, Use use) const {
    for (auto [at, end] = pairs.equal_range(token); at != end; ++at) {
      use(tables.mergeLeft[at->second]);
      use(tables.mergeRight[at->second]);
    }
    if (tables.kind != TokenizerKind::SentencePiece)
      return;
    const std::string_view text = textOf(tables, token);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      auto left = tokens.find(text.substr(0, cut)), right = tokens.find(text.substr(cut));
      if (left != tokens.end() && right != tokens.end())
        use(left->second), use(right->second);
    }
  }

private:
  const TokenizerTables &tables;
  std::unordered_map<std::string_view, uint32_t> tokens;
  std::unordered_multimap<uint32_t, size_t> pairs;
};

bool alwaysStays(const TokenizerTables &tables, size_t token) {
  switch (TokenType(tables.tokenTypes[token])) {
  case TokenType::Unused:
    return false;
  case TokenType::Normal:
    return textOf(tables, token).size() == 1 || int64_t(token) == tables.unknown || int64_t(token) == tables.padding;
  default:
    return true;
  }
}

} // namespace

::llvm::Expected<std::vector<int32_t>> closeVocabulary(const TokenizerTables &tables,
                                                       ::llvm::ArrayRef<uint32_t> wanted) {
  const size_t size = tables.tokenTypes.size();
  std::vector<bool> kept(size);
  std::vector<uint32_t> open;
  const auto keep = [&](uint32_t token) {
    if (!kept[token])
      kept[token] = true, open.push_back(token);
  };
  for (uint32_t token : wanted) {
    if (token >= size)
      return ::llvm::createStringError("expects tokens below " + ::llvm::Twine(size) + " to keep, but got " +
                                       ::llvm::Twine(token));
    keep(token);
  }
  for (size_t token = 0; token < size; ++token)
    if (alwaysStays(tables, token))
      keep(uint32_t(token));
  for (uint32_t token : tables.endTokens)
    keep(token);
  if (tables.bos >= 0)
    keep(uint32_t(tables.bos));
  const Ancestors ancestors(tables);
  while (!open.empty()) {
    const uint32_t token = open.back();
    open.pop_back();
    ancestors.forEach(token, keep);
  }
  std::vector<int32_t> result;
  for (size_t token = 0; token < size; ++token)
    if (kept[token])
      result.push_back(int32_t(token));
  return result;
}

::llvm::Expected<TokenizerTables> pruneTokenizer(const TokenizerTables &tables, ::llvm::ArrayRef<int32_t> keep) {
  const size_t size = tables.tokenTypes.size();
  std::vector<int64_t> renamed(size, -1);
  TokenizerTables result = tables;
  result.tokenBytes.clear(), result.tokenTypes.clear(), result.scores.clear();
  result.addedFlags.clear();
  result.mergeLeft.clear(), result.mergeRight.clear(), result.endTokens.clear();
  result.tokenOffsets = {0};
  for (int32_t token : keep) {
    if (token < 0 || size_t(token) >= size)
      return ::llvm::createStringError("expects tokens below " + ::llvm::Twine(size) + " to keep, but got " +
                                       ::llvm::Twine(token));
    renamed[size_t(token)] = int64_t(result.tokenTypes.size());
    const std::string_view text = textOf(tables, size_t(token));
    result.tokenBytes.insert(result.tokenBytes.end(), text.begin(), text.end());
    result.tokenOffsets.push_back(uint32_t(result.tokenBytes.size()));
    result.tokenTypes.push_back(tables.tokenTypes[size_t(token)]);
    if (!tables.scores.empty())
      result.scores.push_back(tables.scores[size_t(token)]);
    if (!tables.addedFlags.empty())
      result.addedFlags.push_back(tables.addedFlags[size_t(token)]);
  }
  const std::pair<const char *, int32_t *> named[] = {
      {"begin", &result.bos}, {"unknown", &result.unknown}, {"padding", &result.padding}};
  for (auto [name, id] : named) {
    if (*id < 0)
      continue;
    if (renamed[size_t(*id)] < 0)
      return ::llvm::createStringError("expects the " + ::llvm::Twine(name) + " token " + ::llvm::Twine(*id) +
                                       " among those to keep, but it is not");
    *id = int32_t(renamed[size_t(*id)]);
  }
  for (uint32_t token : tables.endTokens) {
    if (renamed[token] < 0)
      return ::llvm::createStringError("expects the end token " + ::llvm::Twine(token) +
                                       " among those to keep, but it is not");
    result.endTokens.push_back(uint32_t(renamed[token]));
  }
  const auto tokens = tokensByText(tables);
  std::string joined;
  for (size_t i = 0; i < tables.mergeLeft.size(); ++i) {
    joined = textOf(tables, tables.mergeLeft[i]);
    joined += textOf(tables, tables.mergeRight[i]);
    auto made = tokens.find(joined);
    const int64_t left = renamed[tables.mergeLeft[i]], right = renamed[tables.mergeRight[i]];
    if (left >= 0 && right >= 0 && made != tokens.end() && renamed[made->second] >= 0) {
      result.mergeLeft.push_back(uint32_t(left));
      result.mergeRight.push_back(uint32_t(right));
    }
  }
  return result;
}

} // namespace mlir::llm
