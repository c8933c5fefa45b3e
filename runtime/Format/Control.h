// The device-side step block: one storage buffer of 64 32-bit words that the host fills before the first step and
// that every sampling program advances by itself, so that several steps can be submitted ahead.
#ifndef SPRIG_RUNTIME_FORMAT_CONTROL_H
#define SPRIG_RUNTIME_FORMAT_CONTROL_H

#include <cstdint>

namespace sprig::format {

/// Word indices. Token ids of a step are history[Base + t] for t < Count; their positions are Base + t and their
/// keys and values go to those slots. Rows at or past Count are padding: they may compute but never write state.
enum ControlWord : uint32_t {
  Base = 0,          ///< slot of the first token of this step = tokens cached before it
  Count = 1,         ///< valid tokens of this step, 1 … width
  Capacity = 2,      ///< slots of the KV cache (the compiled context)
  SeedLow = 3,       ///< noise is keyed by (seed, absolute position of the new token)
  SeedHigh = 4,
  Temperature = 5,   ///< f32; 0 = greedy
  TopK = 6,          ///< 0 = off
  TopP = 7,          ///< f32; 1 = off
  MinP = 8,          ///< f32; 0 = off
  RepeatPenalty = 9, ///< f32; 1 = off
  RepeatLastN = 10,  ///< how many history slots back the penalty looks
  Sampled = 11,      ///< the token sampled last
  Steps = 12,        ///< sampling steps done since the host wrote the block
  Accepted = 13,     ///< `verify`: nodes accepted after node 0; 0 once the host has written the block for another step
                     ///< than a `draft`
  Rounds = 14,       ///< `verify`: not 0 where the guesses were drawn (Guesses.h) and are kept by the multi-round rule
  Adapter = 15,      ///< of the package's adapters, from 1; 0: none
  Parents = 16,      ///< `verify`: 64 bytes, node by node, low byte first: the parent, kNoParent at a root
  Sinks = Parents,       ///< `evict`, which has no tree: slots that stay at the start, …
  Dropped = Parents + 1, ///< … and those behind them that go
  Path = 32,         ///< `verify`: 64 bytes, the accepted nodes in order
  Depths = 48,       ///< `verify`: 64 bytes, the depth of each node; kernels write and read them
  ControlWords = 64
};

/// Nodes of a tree at most.
constexpr uint32_t kMostNodes = 64;
constexpr uint32_t kNoParent = 0xff;

} // namespace sprig::format

#endif // SPRIG_RUNTIME_FORMAT_CONTROL_H
