// How keys and values lie in the cache: one word array per layer and side,
// [slot][G][E] as f32, or as f16 or integers in 32-bit words (first element in
// the lowest bits), so that devices without small types can read them. Behind
// all the codes of a side lie the scales: a word a group, [slot][G][groups].
//
// Names: "f32", "f16"; "i8": signed codes, with an f32 scale a head; "u4x32",
// "u4x16", "u4x64": unsigned codes, with a scale (low half of the word) and a
// minimum in f16 for so many numbers of a head.
#ifndef SPRIG_CODEGEN_KERNELS_KVFORMAT_H
#define SPRIG_CODEGEN_KERNELS_KVFORMAT_H

#include "codegen/Kernels/KernelBuilder.h"
#include "runtime/Format/Control.h"
#include <optional>

namespace mlir::llm {

class SpecReader;
class SpecWriter;

/// A cache of which one binding does not span a side: a dispatch sees some slots
/// of it (`part`: how many; 0: all), from a multiple of `part` on, and behind
/// them those that a tree may have gone on to. The number of the part is the
/// workgroup's along z divided by how many there are for each. The scales of
/// both sides are a binding of their own: all slots' of the keys, then all of
/// the values.
struct CacheParts {
  int64_t part = 0;
  explicit operator bool() const { return part != 0; }
  /// Slots that a binding spans of a cache of `slots`.
  int64_t spanned(int64_t slots) const {
    return part ? std::min<int64_t>(part + sprig::format::kMostNodes, slots)
                : slots;
  }
  /// Parts of a cache of `slots`.
  int64_t count(int64_t slots) const {
    return part ? llvm::divideCeilSigned(slots, part) : 1;
  }
  /// Slots that the binding of the last part spans.
  int64_t leastSpanned(int64_t slots) const {
    return part ? slots - (count(slots) - 1) * part : slots;
  }
};

/// What the codes of a group are turned to numbers with.
struct KvScale {
  Value scale, minimum; ///< no minimum with signed codes
};

struct KvFormat {
  unsigned bits = 16;
  int64_t group = 0; ///< numbers that share a scale; 0: a head

  static constexpr llvm::StringLiteral kNames = "f16, f32, i8, u4x16, u4x32, u4x64";
  static std::optional<KvFormat> find(llvm::StringRef name);
  /// Of a name that is known.
  static KvFormat named(llvm::StringRef name) { return *find(name); }
  /// What is wrong with `name` for heads of `headSize` numbers; empty if
  /// nothing.
  static std::string whyRefused(llvm::StringRef name, int64_t headSize);

  bool quantised() const { return bits < 16; }
  unsigned elementsPerWord() const { return 32 / bits; }
  /// Words of the numbers or codes of one head of one slot.
  int64_t headWords(int64_t headSize) const {
    return headSize / elementsPerWord();
  }
  /// Words of its scales.
  int64_t groups(int64_t headSize) const {
    return !quantised() ? 0 : group ? headSize / group : 1;
  }
  /// Of one side of a layer's cache; whole vectors of four words, so that a
  /// scale is read as part of one.
  uint64_t sideBytes(int64_t slots, int64_t heads, int64_t headSize) const;
  /// Of the numbers or codes alone.
  uint64_t codeBytes(int64_t slots, int64_t heads, int64_t headSize) const {
    return uint64_t(slots * heads * headWords(headSize)) * 4;
  }
  /// Of the scales of one side alone, whole vectors of four words.
  uint64_t scaleBytes(int64_t slots, int64_t heads, int64_t headSize) const {
    return llvm::alignTo(uint64_t(slots * heads * groups(headSize)) * 4, 16);
  }
  /// Word of the first scale of head `head` (counted through all slots).
  Value scaleWord(KernelBuilder &b, Value head, int64_t slots, int64_t heads,
                  int64_t headSize) const;
  KvScale scaleOf(KernelBuilder &b, Value word) const;

  /// The numbers in a word, in order, or the `count` in its lowest bits; without
  /// a scale the codes.
  Values unpack(KernelBuilder &b, Value word, const KvScale &scale = {},
                unsigned count = 0) const;
  /// A word of as many numbers; not of codes.
  Value pack(KernelBuilder &b, ValueRange numbers) const;

  /// The word that holds the scale of a group, from the largest and the
  /// smallest number of it.
  Value scaleFor(KernelBuilder &b, Value most, Value least) const;
  /// A word of codes for as many numbers.
  Value encode(KernelBuilder &b, ValueRange numbers, Value scaleWord) const;
};

/// The scales of one head whose words are spread over lanes and rounds: those of
/// all lanes where a head has one, else of the lanes of each group. Numbers come
/// round after round; lanes past the last word bring zeros.
class HeadScales {
public:
  /// `groups` of the head's `words`.
  HeadScales(KernelBuilder &b, const KvFormat &format, int64_t lanes,
             int64_t words, int64_t groups)
      : b(b), format(format), lanes(lanes), words(words), groups(groups) {}

  /// The numbers of this lane's word of the next round.
  void add(ValueRange numbers);
  /// The words of the scales, one a round; exchanges between lanes.
  Values done();

private:
  bool whole() const { return groups == 1; }

  KernelBuilder &b;
  const KvFormat &format;
  int64_t lanes, words, groups;
  Values most, least; ///< of each round, of this lane's numbers
};

/// Members of the specs of kernels over one side, or both, of some layers'
/// caches: {kv_heads = G, head_size = E, capacity = S, kv = a name of a
/// KvFormat, layers? = how many, stride? = bytes from one to the next}.
struct CacheLayers {
  int64_t kvHeads = 0, headSize = 0, capacity = 0;
  int64_t layers = 1, stride = 0;
  std::string kv = "f16";

  void readFrom(SpecReader &reader);
  void addTo(SpecWriter &writer) const;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_KVFORMAT_H
