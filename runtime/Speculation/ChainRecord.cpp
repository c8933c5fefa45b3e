#include "runtime/Speculation/ChainRecord.h"

namespace sprig {
namespace {

/// Before anything was seen: a draft made for the model is right this often,
/// as if that had been seen so many times.
constexpr double kPrior = 0.65, kPriorWeight = 4;
/// Of what was seen, a token later. Where the draft rests its record fades, so
/// that it is tried again.
constexpr double kFade = 0.98, kFadeAtRest = 0.995;
/// Weight of the newest time.
constexpr double kNewest = 0.3;
/// What a guess is taken to cost before any was made, in plain steps.
constexpr double kGuess = 0.3;

} // namespace

double ChainRecord::agreement() const {
  return (seen.right + kPrior * kPriorWeight) / (seen.all + kPriorWeight);
}

size_t ChainRecord::kindOf(float said) {
  constexpr float kUpTo[kKinds - 1] = {0.1f, 0.2f, 0.35f, 0.5f,
                                       0.7f, 0.85f, 0.95f};
  size_t kind = 0;
  while (kind + 1 < kKinds && said > kUpTo[kind])
    ++kind;
  return kind;
}

float ChainRecord::likely(float said, float prior) const {
  const Seen &kind = kinds[kindOf(said)];
  return float((kind.right + prior * kPriorWeight) / (kind.all + kPriorWeight));
}

void ChainRecord::follow(const std::vector<uint32_t> &tokens, bool sampled) {
  if (!sampled || tokens.size() <= guessedAt) {
    guessed.clear(); // another text
    checked = 0;
    return;
  }
  // One token at a time, so that the last one is the new one.
  const size_t at = tokens.size() - 1 - guessedAt;
  if (at != checked || checked >= guessed.size()) {
    seen.fade(kFadeAtRest);
    return;
  }
  const bool same = guessed[at].token == tokens.back();
  auto learn = [&](Seen &record) {
    record.fade(kFade);
    record.right += same ? 1 : 0;
    record.all += 1;
  };
  learn(seen);
  if (guessed[at].said >= 0)
    learn(kinds[kindOf(guessed[at].said)]);
  checked = same ? checked + 1 : guessed.size();
}

void ChainRecord::begin(size_t length) {
  guessed.clear();
  guessedAt = length;
  checked = 0;
}

void ChainRecord::took(double spent) {
  seconds = seconds > 0 ? seconds + kNewest * (spent - seconds) : spent;
}

uint32_t ChainRecord::worth(const StepTimes &times, uint32_t most,
                            double least) const {
  // A chain of k guesses brings 1 + a + … + a^k tokens.
  const double agree = agreement(),
               each = seconds > 0 ? seconds / times.plain() : kGuess;
  double sum = 1, power = 1;
  uint32_t best = 0;
  for (uint32_t k = 1; k < most; ++k) {
    sum += power *= agree;
    const double rate = sum / (times.cost(k + 1) + k * each);
    if (rate > least)
      least = rate, best = k;
  }
  return best;
}

} // namespace sprig
