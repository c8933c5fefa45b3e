//===- Guesses.h - what a draft says may follow a token
//-------------------------===//
#pragma once

#include "runtime/Format/Guesses.h"

#include <array>
#include <cstdint>

namespace sprig {

/// The likeliest tokens, the likeliest first, each with its probability at
/// temperature 1.
struct GuessRow {
  std::array<uint32_t, format::kGuesses> tokens;
  std::array<float, format::kGuesses> probabilities;
  uint32_t count = 0;

  void add(uint32_t token, float probability) {
    tokens[count] = token;
    probabilities[count++] = probability;
  }
};

} // namespace sprig
