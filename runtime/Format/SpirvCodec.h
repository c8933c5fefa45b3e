//===- SpirvCodec.h - SPIR-V in an order that packs well
//---------------------------===//
//
// More than half of packed metadata was SPIR-V: every instruction has ids that
// no other has, so that equal code differs in most of its words. Here
//
// - an id is how far it lies behind the result before it, so that equal code
//   has equal words wherever it stands;
// - words of one kind lie together: the first words of all instructions, then
//   the first operands of all that do the same, their second ones, …;
// - of each of these columns the lowest bytes come first, then the second ones,
//   …: the higher ones are mostly zero.
//
// zstd packs what is left to two fifths of what it makes of the words
// themselves.
//
// The bytes of n words are 4 (n + 1): a little-endian word, the number of
// instructions; then the columns: the module's header (five words), the
// instructions' first words; for each last byte of an opcode from 0 to 255 the
// operands 1 … 6, and all from the seventh on; and what is left from where the
// words are not instructions. Any words can be encoded, SPIR-V or not, and
// decoding gives back the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sprig::format {
namespace codec {

/// What the operands of an instruction are: 'r' its result; 'i' an id of
/// something before it; 'd' what it decorates or names, which comes in order;
/// '-' anything else. The last letter stands for all further ones. A wrong
/// letter costs bytes and nothing else. Numbers: SPIR-V specification, 3.52.
inline const char *operandsOf(uint32_t opcode) {
  switch (opcode) {
  case 5: // Name, MemberName, Decorate, MemberDecorate
  case 6:
  case 71:
  case 72:
    return "d-";
  case 3: // Source, ExtInstImport and what else there is of a module's head
  case 4:
  case 7:
  case 8:
  case 14:
  case 15:
  case 16:
  case 17:
    return "-";
  case 10: // Extension, ExtInstImport, types of numbers
  case 11:
  case 19:
  case 20:
  case 21:
  case 22:
    return "r-";
  case 23: // types made of another
  case 24:
  case 25:
  case 26:
  case 27:
  case 28:
  case 29:
  case 31:
    return "ri-";
  case 30: // TypeStruct, TypeFunction
  case 33:
    return "ri";
  case 32: // TypePointer
    return "r-i";
  case 43: // Constant, SpecConstant, Variable
  case 50:
  case 59:
    return "-r-";
  case 54: // Function
    return "-r-i";
  case 12: // ExtInst
    return "-r--i";
  case 61: // Load, CompositeExtract
  case 81:
    return "-ri-";
  case 82: // CompositeInsert
    return "-rii-";
  case 62: // Store, LoopMerge
  case 246:
    return "ii-";
  case 247: // SelectionMerge
    return "i-";
  case 224: // barriers, branches, ReturnValue
  case 225:
  case 249:
  case 250:
  case 254:
    return "i";
  case 248: // Label
    return "r";
  default:
    break;
  }
  // Of subgroups: a scope, and of some the kind of reduction.
  if (opcode == 342 || (opcode >= 349 && opcode <= 364))
    return "-r--i";
  if (opcode >= 333 && opcode <= 366)
    return "-r-i";
  return "-ri";
}

/// A word and what stands for it, by the words before it.
class Operands {
public:
  void begin(uint32_t first) {
    kinds = operandsOf(first & 0xffff);
    before = result;
  }
  uint32_t encode(uint32_t word) {
    switch (next()) {
    case 'r':
      result = word;
      return word - before - 1;
    case 'i':
      return before - word;
    case 'd':
      return word - std::exchange(decorated, word);
    default:
      return word;
    }
  }
  uint32_t decode(uint32_t code) {
    switch (next()) {
    case 'r':
      return result = code + before + 1;
    case 'i':
      return before - code;
    case 'd':
      return decorated += code;
    default:
      return code;
    }
  }

private:
  char next() {
    const char kind = *kinds;
    if (kinds[1])
      ++kinds;
    return kind;
  }

  const char *kinds = "-";
  uint32_t result = 0, before = 0, decorated = 0;
};

/// Where the words of each column lie.
class Columns {
public:
  enum : uint32_t {
    kHeader,
    kFirst,
    kOperands,
    kPositions = 7, // of operands
    kTail = kOperands + 256 * kPositions,
    kCount
  };

  std::array<uint32_t, kCount> words = {}; ///< of each column

  /// One more instruction.
  void add(uint32_t first) {
    ++words[kFirst];
    const uint32_t operands = (first >> 16) - 1;
    const uint32_t single = std::min<uint32_t>(operands, kPositions - 1);
    for (uint32_t i = 1; i <= single; ++i)
      ++words[operand(first, i)];
    words[operand(first, kPositions)] += operands - single;
  }
  /// That of operand i, from 1.
  static uint32_t operand(uint32_t first, uint32_t i) {
    return kOperands + (first & 0xff) * kPositions +
           std::min<uint32_t>(i, kPositions) - 1;
  }
  /// Behind the number of instructions, when all columns are counted.
  void place() {
    uint64_t at = 4;
    for (uint32_t column = 0; column < kCount; ++column) {
      places[column] = at;
      at += 4 * uint64_t(words[column]);
    }
  }
  void put(uint8_t *bytes, uint32_t column, uint32_t word) {
    uint8_t *to = bytes + places[column]++;
    for (int plane = 0; plane < 4; ++plane)
      to[uint64_t(plane) * words[column]] = uint8_t(word >> 8 * plane);
  }
  uint32_t take(const uint8_t *bytes, uint32_t column) {
    const uint8_t *from = bytes + places[column]++;
    uint32_t word = 0;
    for (int plane = 0; plane < 4; ++plane)
      word |= uint32_t(from[uint64_t(plane) * words[column]]) << 8 * plane;
    return word;
  }

private:
  std::array<uint64_t, kCount> places = {};
};

inline constexpr uint32_t kHeaderWords = 5;

} // namespace codec

/// At most 2^30 words.
inline std::vector<uint8_t> encodeSpirv(std::span<const uint32_t> words) {
  using codec::Columns;
  const uint32_t total = uint32_t(words.size());
  const uint32_t header = std::min(total, codec::kHeaderWords);
  Columns columns;
  columns.words[Columns::kHeader] = header;
  uint32_t end = header; // of what is instructions
  while (end < total) {
    const uint32_t count = words[end] >> 16;
    if (count == 0 || count > total - end)
      break;
    columns.add(words[end]);
    end += count;
  }
  columns.words[Columns::kTail] = total - end;
  columns.place();

  std::vector<uint8_t> bytes(4 * (size_t(total) + 1));
  for (int i = 0; i < 4; ++i)
    bytes[size_t(i)] = uint8_t(columns.words[Columns::kFirst] >> 8 * i);
  codec::Operands operands;
  for (uint32_t i = 0; i < header; ++i)
    columns.put(bytes.data(), Columns::kHeader, words[i]);
  for (uint32_t at = header; at < end;) {
    const uint32_t first = words[at], count = first >> 16;
    columns.put(bytes.data(), Columns::kFirst, first);
    operands.begin(first);
    for (uint32_t i = 1; i < count; ++i)
      columns.put(bytes.data(), Columns::operand(first, i),
                  operands.encode(words[at + i]));
    at += count;
  }
  for (uint32_t i = end; i < total; ++i)
    columns.put(bytes.data(), Columns::kTail, words[i]);
  return bytes;
}

/// Nothing where the bytes are none that `encodeSpirv` writes. Takes time and
/// memory in proportion to their number, whatever they are.
inline std::optional<std::vector<uint32_t>>
decodeSpirv(std::span<const uint8_t> bytes) {
  using codec::Columns;
  if (bytes.size() < 4 || bytes.size() % 4 != 0 ||
      bytes.size() / 4 - 1 > UINT32_MAX)
    return std::nullopt;
  const uint32_t total = uint32_t(bytes.size() / 4 - 1);
  const uint32_t header = std::min(total, codec::kHeaderWords);
  uint32_t instructions = 0;
  for (int i = 0; i < 4; ++i)
    instructions |= uint32_t(bytes[size_t(i)]) << 8 * i;
  if (instructions > total - header)
    return std::nullopt;
  // The first words of the instructions say how long the other columns are.
  Columns firsts;
  firsts.words[Columns::kHeader] = header;
  firsts.words[Columns::kFirst] = instructions;
  firsts.place();
  Columns columns;
  columns.words[Columns::kHeader] = header;
  uint32_t left = total - header;
  for (uint32_t i = 0; i < instructions; ++i) {
    const uint32_t first = firsts.take(bytes.data(), Columns::kFirst);
    if (first >> 16 == 0 || first >> 16 > left)
      return std::nullopt;
    columns.add(first);
    left -= first >> 16;
  }
  columns.words[Columns::kTail] = left;
  columns.place();

  std::vector<uint32_t> words;
  words.reserve(total);
  codec::Operands operands;
  for (uint32_t i = 0; i < header; ++i)
    words.push_back(columns.take(bytes.data(), Columns::kHeader));
  for (uint32_t n = 0; n < instructions; ++n) {
    const uint32_t first = columns.take(bytes.data(), Columns::kFirst);
    words.push_back(first);
    operands.begin(first);
    for (uint32_t i = 1; i < first >> 16; ++i)
      words.push_back(operands.decode(
          columns.take(bytes.data(), Columns::operand(first, i))));
  }
  for (uint32_t i = 0; i < left; ++i)
    words.push_back(columns.take(bytes.data(), Columns::kTail));
  return words;
}

/// Of the module in `encoded` bytes.
inline uint64_t spirvBytes(uint64_t encoded) {
  return encoded < 4 ? 0 : encoded - 4;
}

} // namespace sprig::format
