// Attention of T queries over cached keys and values, with every option of the
// dialect.
#ifndef SPRIG_LIB_REFERENCE_MATH_ATTENTION_H
#define SPRIG_LIB_REFERENCE_MATH_ATTENTION_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace mlir::llm::reference {

class Workers;

template <typename F> struct AttentionInputs {
  size_t T, H, G;                          ///< queries, query heads, key-value heads; head h reads group
                                           ///< h / (H / G)
  size_t E, EV;                            ///< widths of a key and of a value
  size_t S;                                ///< keys
  const F *queries;                        ///< [T, H, E]
  const F *keys;                           ///< [S, G, E]
  const F *values;                         ///< [S, G, …], of which the first EV of each head are read
  size_t valueStride;                      ///< elements from one head's value to the next: EV, or E
                                           ///< where a value heads its key
  const uint8_t *visible;                  ///< [T, S]: 1 where the query sees the key
  double scale;                            ///< of the scores
  double softcap = 0;                      ///< c·tanh(score / c); 0: off
  std::span<const F> slopes;               ///< empty, or one a head: slope · (key − query
                                           ///< position) is added (ALiBi)
  const int32_t *queryPositions = nullptr; ///< [T], read with slopes
  const int32_t *keyPositions = nullptr;   ///< [S], read with slopes and with a weight block
  size_t weightBlock = 0;                  ///< positions, from a multiple of it on, whose weights, times the
                                           ///< scales of their values, are rounded to 127ths of the greatest;
                                           ///< 0: they stay
};

/// y[T, H, EV] = softmax(scores) · values. A query that sees no key gives
/// zeros. Numbers behind hidden keys are never touched, so NaN there does not
/// show.
template <typename F> void attention(Workers &workers, const AttentionInputs<F> &in, F *y);

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_ATTENTION_H
