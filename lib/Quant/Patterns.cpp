#include "lib/Quant/Patterns.h"

#include <bit>

namespace sprig::quant {

/// Ways to choose `kept` of `of`.
static uint64_t ways(unsigned of, unsigned kept) {
  uint64_t count = kept <= of;
  for (unsigned i = 1; i <= kept && count; ++i)
    count = count * (of - kept + i) / i;
  return count;
}

uint32_t patternOfNumber(unsigned kept, unsigned of, uint32_t number) {
  uint32_t mask = 0;
  uint64_t left = number;
  for (unsigned place = 0; place < of && kept; ++place) {
    // All ways that keep this place come before those that do not.
    const uint64_t with = ways(of - place - 1, kept - 1);
    if (left < with || of - place == kept) {
      mask |= 1u << place;
      --kept;
    } else {
      left -= with;
    }
  }
  return mask;
}

uint32_t numberOfPattern(unsigned of, uint32_t mask) {
  uint64_t number = 0;
  unsigned kept = unsigned(std::popcount(mask));
  for (unsigned place = 0; place < of && kept; ++place) {
    if (mask >> place & 1)
      --kept;
    else
      number += ways(of - place - 1, kept - 1);
  }
  return uint32_t(number);
}

} // namespace sprig::quant
