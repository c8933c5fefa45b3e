// How numbers of x reach the lanes of a linear kernel.
#ifndef SPRIG_CODEGEN_KERNELS_LINEARX_H
#define SPRIG_CODEGEN_KERNELS_LINEARX_H

#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/Linear.h"

namespace mlir::llm {

/// What is the same for the whole kernel.
class XSource {
public:
  static std::unique_ptr<XSource>
  create(KernelBuilder &b, const LinearSchedule &schedule,
         const BlockCodec &codec, int64_t k, unsigned binding,
         std::optional<unsigned> gamma, bool squares, Value firstToken);

private:
  friend class XChunk;
  XSource(KernelBuilder &b, const LinearSchedule &schedule,
          const BlockCodec &codec)
      : b(b), schedule(schedule), codec(codec) {}
  /// 2^-shift of number 4 * quad + j of chunk `chunk`, for the quad that this
  /// lane fetches.
  Value laneFactor(unsigned chunk, unsigned j);

  KernelBuilder &b;
  const LinearSchedule &schedule;
  const BlockCodec &codec;
  int64_t k = 0;
  unsigned binding = 0;
  std::optional<unsigned> gamma;
  Value firstToken;
  Value quad; ///< the quad of a chunk that this lane fetches for its
              ///< neighbours, or whose squares it adds up
  Value base; ///< first lane of the eight that share a chunk, as an i32 whose
              ///< value the driver cannot know
};

/// The numbers of x that a chunk of weights meets, for every token of the tile;
/// fetched when first asked for.
class XChunk {
public:
  /// `offset`: of the chunk's first number in a row of x.
  XChunk(XSource &source, Value offset, unsigned count, unsigned chunk)
      : source(source), b(source.b), offset(offset), count(count),
        chunk(chunk) {}

  /// Loads what number() will ask for of this token, where lanes exchange.
  void load(unsigned token) {
    if (exchanged())
      fetch(token);
  }
  /// Number `k` of the chunk (divided by the code's power of two if the
  /// schedule says so), in every lane.
  Value number(unsigned token, unsigned k);
  /// The sum of the numbers [first, first + count) of the chunk, undivided;
  /// whole quads.
  Value sum(unsigned token, unsigned first, unsigned count);

  /// The sum of the squares of this lane's quad of the chunk, before γ.
  Value squares(unsigned token);

private:
  struct Token {
    Values lane;             ///< exchange: the quad that this lane holds
    Values laneScaled;       ///< the same, divided
    Values plain;            ///< the same, before γ
    SmallVector<Value> sums; ///< exchange: see sum()
    /// Direct: [level][i] is the sum of the quads from i * 2^level on.
    std::array<SmallVector<Value, kChunk / 4>, 4> tree;
    SmallVector<Value> raw;  ///< direct: numbers by k, quads when asked for
    SmallVector<Value> all;  ///< divided, in every lane, by k
  };
  Token &fetch(unsigned token);
  void fetchQuad(Token &known, unsigned token, unsigned quad);
  Value sumOfQuads(Token &known, unsigned token, unsigned level, unsigned i);
  /// Four numbers from 4 * quad of the chunk on; zero past `count`. Of x, and
  /// of γ.
  Values quadOfX(unsigned token, Value quad);
  const Values &quadOfGamma(Value quad);
  Values timesGamma(Values numbers, Value quad);
  Values gather(unsigned from, Value start, Value quad);
  bool exchanged() const {
    return source.schedule.x != LinearSchedule::X::Direct;
  }
  Value spread(Value laneValue, unsigned lane);

  XSource &source;
  KernelBuilder &b;
  Value offset;
  unsigned count, chunk;
  SmallVector<Token, 16> tokens;
  DenseMap<Value, Values> gammas; ///< by quad
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_LINEARX_H
