#include "codegen/Package/TokenizerWriter.h"

#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Vocabulary.h"

namespace mlir::llm {

using namespace sprig;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

namespace {

/// A text with something of all that tokenizers tell apart.
constexpr char kProbe[] =
    "The quick brown fox's 12345 jumps, DON'T it?\r\n\n  \tint x = 3.14; // "
    "caf\xC3\xA9 cafe\xCC\x81 \xE4\xB8\xAD\xE6\x96\x87 "
    "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D "
    "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xC2\xBD "
    "\xE2\x85\xA7 \xC2\xA0  end   ";

std::vector<uint32_t> probeTokens(const TokenizerTables &tables) {
  const auto tokenizer = sprig::Tokenizer::create(tables.data());
  if (!tokenizer.ok())
    return {};
  auto tokens = tokenizer->encode(std::string_view(kProbe));
  return tokens.ok() ? std::move(*tokens) : std::vector<uint32_t>();
}

FailureOr<std::vector<uint16_t>> lengthsOf(const TokenizerTables &tables,
                                           ModuleOp module) {
  std::vector<uint16_t> lengths;
  for (size_t i = 0; i + 1 < tables.tokenOffsets.size(); ++i) {
    const uint32_t length = tables.tokenOffsets[i + 1] - tables.tokenOffsets[i];
    if (length > UINT16_MAX)
      return module.emitError("tokenizer: expects tokens of at most ")
             << UINT16_MAX << " bytes, but token " << i << " has " << length;
    lengths.push_back(uint16_t(length));
  }
  return lengths;
}

/// Merges by where they split the tokens that they make; none where that does
/// not say all. A pair takes ten times as much of a packed file.
std::vector<uint16_t> splitsOf(const TokenizerTables &tables, uint32_t &first) {
  const auto vocabulary = sprig::Vocabulary::create(tables.data());
  if (!vocabulary.ok() || tables.mergeLeft.empty())
    return {};
  auto textOf = [&](uint32_t token) {
    return std::string(vocabulary->bytes(token));
  };
  const auto start = vocabulary->find(textOf(tables.mergeLeft.front()) +
                                      textOf(tables.mergeRight.front()));
  if (!start)
    return {};
  first = *start;
  std::vector<uint16_t> splits;
  for (auto [i, left, right] :
       llvm::enumerate(tables.mergeLeft, tables.mergeRight)) {
    const std::string a = textOf(left), b = textOf(right);
    if (vocabulary->find(a) != left || vocabulary->find(b) != right ||
        vocabulary->bytes(first + uint32_t(i)) != a + b)
      return {};
    splits.push_back(uint16_t(a.size())); // a token: its length fits
  }
  return splits;
}

} // namespace

FailureOr<Offset<format::Tokenizer>>
writeTokenizer(FlatBufferBuilder &builder, const TokenizerTables &tables,
               ModuleOp module) {
  FailureOr<std::vector<uint16_t>> tokenLengths = lengthsOf(tables, module);
  if (failed(tokenLengths))
    return failure();
  auto pre = builder.CreateString(tables.pre);
  auto bytes = builder.CreateVector(tables.tokenBytes);
  auto lengths = builder.CreateVector(*tokenLengths);
  auto types = builder.CreateVector(tables.tokenTypes);
  auto scores = builder.CreateVector(tables.scores);
  uint32_t first = 0;
  const std::vector<uint16_t> splits = splitsOf(tables, first);
  Offset<flatbuffers::Vector<uint32_t>> left, right;
  Offset<flatbuffers::Vector<uint16_t>> splitVector;
  if (splits.empty()) {
    left = builder.CreateVector(tables.mergeLeft);
    right = builder.CreateVector(tables.mergeRight);
  } else
    splitVector = builder.CreateVector(splits);
  auto ends = builder.CreateVector(tables.endTokens);
  auto pipeline = builder.CreateString(tables.pipeline);
  auto flags = builder.CreateVector(tables.addedFlags);
  auto probe = builder.CreateString(kProbe);
  auto probed = builder.CreateVector(probeTokens(tables));
  return format::CreateTokenizer(
      builder, format::TokenizerKind(tables.kind), pre, bytes, lengths, types,
      scores, left, right, tables.bos, tables.unknown, tables.padding, ends,
      tables.addBos, tables.addEos, tables.addSpacePrefix,
      tables.removeExtraWhitespace, tables.ignoreMerges, pipeline, flags,
      tables.byteFallback, tables.fuseUnknown, probe, probed,
      splits.empty() ? 0 : first, splitVector);
}

} // namespace mlir::llm
