//===- Speculator.h - decoding with guesses
//--------------------------------------===//
#pragma once

#include "runtime/Session/Session.h"
#include "runtime/Speculation/PackageDraft.h"
#include "runtime/Speculation/StepTimes.h"

#include <chrono>
#include <memory>

namespace sprig {

struct SpeculationOptions {
  /// Names of drafts, in order; `{"auto"}`: every draft that the package has,
  /// and only while it pays.
  std::vector<std::string> drafts;
  uint32_t nodes = 0; ///< of a tree at most; 0: as many as the package takes
  bool chain = false; ///< no branches
  /// Of drafts of the package; `chain` wins.
  Growth growth = Growth::Comb;
  /// One draft, of the package, draws its guesses where the temperature is
  /// above 0: what is given out is distributed as without it, but not the same.
  bool drawn = false;
  std::shared_ptr<Model> model; ///< of the draft "model"; may be null
};

/// Since the last `start`.
struct SpeculationCounts {
  uint64_t steps = 0;    ///< of the device that sampled
  uint64_t trees = 0;    ///< of those, over trees
  uint64_t drafted = 0;  ///< guesses that were verified
  uint64_t accepted = 0; ///< of those, right
  uint64_t tokens = 0;   ///< given out
};

/// Samples from a session as `Session::start` and `Session::next` do, the same
/// tokens, but lets drafts guess ahead and verifies the guesses in one step
/// where that is expected to be faster: by the step times of this device and by
/// how often the guesses were right so far.
class Speculator {
public:
  /// InvalidArgument names a draft that does not exist; Unsupported where the
  /// package has no programs for trees.
  static Result<std::unique_ptr<Speculator>>
  create(Session &session, const SpeculationOptions &options);

  ~Speculator();
  Speculator(const Speculator &) = delete;

  /// As those of Session; `stop` is Session's own.
  Status start(const uint32_t *tokens, size_t count, uint64_t budget);
  Result<uint32_t> next();

  const SpeculationCounts &counts() const { return made; }
  const StepTimes &times() const { return spent; }

private:
  using Clock = std::chrono::steady_clock;

  Speculator(Session &session, const SpeculationOptions &options);
  /// Fills `tree` and says how many of its nodes are worth a step; 1: none.
  /// `ahead`: steps are under way, and costly drafts only say whether they
  /// would be worth theirs.
  Result<uint32_t> propose(bool ahead);
  /// How many of the tree's likeliest nodes bring most tokens a second, and how
  /// many times those of plain steps; 1 where none bring enough.
  struct Choice {
    uint32_t nodes;
    double rate;
  };
  Choice choose(uint32_t most);
  /// The same for guesses that are drawn, of `most` nodes at most.
  Result<uint32_t> proposeDrawn(uint32_t most, bool ahead);
  Status prepare();
  Status follow(bool sampled);
  Status stepTree(uint32_t nodes);
  Result<uint32_t> take();

  Session &session;
  SpeculationOptions options;
  std::vector<std::unique_ptr<Draft>> drafts;
  bool always = false; ///< also where it does not pay
  StepTimes spent;
  DraftTree tree;
  DraftTree::Cut cut;
  PackageDraft *drawing = nullptr; ///< one of the drafts
  DrawnTree drawn;
  const uint32_t *rows = nullptr; ///< of `drawn`, where the next tree is
  SpeculationCounts made;
  /// When the last plain token came, where its step can be told from it.
  Clock::time_point last;
  bool timed = false, fresh = false;
  /// Tokens since a tree brought more than one.
  uint32_t sinceGain = UINT32_MAX;
};

} // namespace sprig
