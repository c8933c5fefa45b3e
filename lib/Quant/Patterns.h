// Patterns of N:M sparsity: which N of M neighbouring numbers are kept. In memory a pattern is a mask, bit i for place i;
// in files it is a number, the ways to choose being numbered in lexical order, the first place first.
#ifndef SPRIG_LIB_QUANT_PATTERNS_H
#define SPRIG_LIB_QUANT_PATTERNS_H

#include <cstdint>

namespace sprig::quant {

/// The mask of way `number` to keep `kept` of `of` places (of <= 32). Numbers that no way has give the last one.
uint32_t patternOfNumber(unsigned kept, unsigned of, uint32_t number);

/// The number of a mask; what patternOfNumber turns back.
uint32_t numberOfPattern(unsigned of, uint32_t mask);

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_PATTERNS_H
