//===- Session.h - one sequence of tokens on a model
//---------------------------===//
#pragma once

#include "runtime/Session/Guesses.h"
#include "runtime/Session/SessionBuffers.h"
#include "runtime/Session/StepPlan.h"
#include "runtime/Session/StepQueue.h"

#include <optional>
#include <set>

namespace sprig {

/// NaN as one f32 and as two f16.
inline constexpr uint32_t kPoison = 0xffffffff;

struct SessionOptions {
  /// Word that KV cache and scratch are filled with first: kPoison finds
  /// kernels that read what they did not write. Unset: left as it comes.
  std::optional<uint32_t> fill;
  /// Steps that may be under way at once, 1 to StepQueue::kMostUnderWay.
  uint32_t ahead = 3;
};

/// What stays of a sequence when the context is full: its first tokens and its
/// last ones (StreamingLLM, arXiv 2309.17453).
struct Endless {
  uint32_t sinks = 4;  ///< first tokens
  uint32_t window = 0; ///< last tokens; 0: half of what the context has beside
                       ///< the sinks
};

/// A sequence and its KV cache. Tokens are fed, logits read or tokens sampled,
/// and the sequence cut back to any length. Not thread-safe; sessions of one
/// model may be used from different threads.
class Session {
public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Model> model,
                                                 const SessionOptions &options);
  ~Session();
  Session(const Session &) = delete;

  Model &model() { return *owner; }
  /// The whole sequence; the last sampled token may not be in the cache yet.
  const std::vector<uint32_t> &tokens() const { return known; }
  /// Tokens whose keys and values are in the cache, and those that went from it
  /// to make room.
  uint32_t cached() const { return filled; }
  /// Of them, those that went.
  uint32_t evicted() const { return gone; }
  /// Slots of the cache that are taken, and that are left until it is full.
  uint32_t slots() const { return filled - gone; }
  uint32_t room() const { return capacity() - slots(); }
  uint32_t capacity() const;
  uint64_t deviceBytes() const { return buffers.allocated(); }
  /// What came back from the device so far: tokens, counts, logits.
  uint64_t bytesRead() const { return buffers.bytesRead(); }

  /// How many leading tokens of `tokens` the session holds already.
  size_t match(const uint32_t *tokens, size_t count) const;
  /// Cuts the sequence to `length` tokens; steps under way are dropped. Where
  /// its end went to make room, what is left is computed again.
  Status truncate(size_t length);

  /// From here on a full context is no end: a step that needs a slot first makes
  /// room (an eviction). When that is depends on the tokens alone, so the tokens
  /// that come after it do not depend on how the steps were cut. Sinks are those
  /// of the first eviction of a sequence. Null: the context ends it again.
  /// Unsupported where the package has no program for it.
  Status setEndless(const Endless *wanted);
  bool endless() const { return endlessly.has_value(); }

  /// Writes the sequence, its keys and values and `note` to a file, aside
  /// first. Steps under way are dropped.
  Status save(const std::string &path, std::string_view note);
  /// Takes the place of what the session holds. A file of another package or
  /// target, or a damaged one, is refused and changes nothing; where the device
  /// fails the session is left empty.
  Status load(const std::string &path, std::string &note);

  /// Applies from the next `start`.
  Status setSampling(const Sampling &sampling);
  const Sampling &sampled() const { return sampling; }

  /// Uses the adapter of that name of the package from now on; an empty name:
  /// none. The sequence is forgotten, since another model made its keys and
  /// values.
  Status setAdapter(std::string_view name);
  /// Its number in the package, from 1; 0: none.
  uint32_t adapterUsed() const { return adapter; }

  /// Feeds tokens without asking for anything.
  Status append(const uint32_t *tokens, size_t count);
  /// Feeds tokens; writes `count` rows of `vocabulary` logits, one after each.
  Status evaluate(const uint32_t *tokens, size_t count, float *logits);
  /// Feeds tokens; writes the logits after the last one.
  Status evaluateLast(const uint32_t *tokens, size_t count, float *logits);

  /// One step over a tree of draft tokens. Node 0 is the last token of the
  /// sequence, not yet in the cache; `parents[i]` < i is the parent of node i,
  /// -1 that of node 0. Appends to the sequence, and writes to `accepted`, what
  /// plain decoding would have sampled: the tokens of the accepted nodes, then
  /// one more (at most `count` in all; returns how many). With `logits`, writes
  /// the rows of all nodes. StatusCode::Context where the tree does not fit.
  Result<uint32_t> verify(const uint32_t *tokens, const int32_t *parents,
                          uint32_t count, uint32_t *accepted,
                          float *logits = nullptr);
  /// The same for a drafting loop: `next` gives the tokens out one by one, and
  /// no more than are left of the budget; what it has not given out is forgotten
  /// like what is sampled ahead. Returns how many it will give. With `rows`
  /// (format/Guesses.h) the nodes were drawn, a node's children from its row in
  /// the order of the nodes and without replacement: then what is accepted, at
  /// temperatures above 0, is what sampling would have brought in distribution.
  Result<uint32_t> stepTree(const uint32_t *tokens, const int32_t *parents,
                            uint32_t count, const uint32_t *rows = nullptr);
  /// Guesses by a draft of the package: the `count` tokens that it would sample
  /// behind the last one, which is not in the cache yet, as after sampling.
  /// Less where the draft has no more or the context ends. Nothing waits; the
  /// sequence and what of the cache is alive stay as they are.
  Result<uint32_t> guess(const format::Draft &draft, uint32_t count,
                         uint32_t *tokens);
  /// Whether drafts also say what else may follow (GuessRow).
  bool namesGuesses() const { return buffers.hasGuesses(); }
  /// What the draft said where it made the `index`-th guess of `guess`.
  Status guessRow(uint32_t index, GuessRow &row);
  /// The `index`-th guess alone, behind guesses of which `token` is the last;
  /// index 0 is that behind the sequence, whose last token it is.
  Status guessNext(const format::Draft &draft, uint32_t index, uint32_t token,
                   GuessRow &row);
  /// Asks the draft at all nodes of a tree, as `stepTree` takes it; `guessRow`
  /// then has what it said at each. Unsupported where it has no programs for
  /// trees. Of a draft that `goesOn` the nodes are those behind the last token,
  /// where `guessNext` asked with index 0, and their parent is -1. They keep
  /// their places from call to call, and the parent of a new one is one that
  /// was asked at before.
  Status guessTree(const format::Draft &draft, const uint32_t *tokens,
                   const int32_t *parents, uint32_t count);
  /// Whether a guess goes on from what the one before it left, beyond what the
  /// cache has.
  static bool goesOn(const format::Draft &draft) {
    return draft.repeats() && draft.count() > 1;
  }
  /// Makes the pipelines and records the commands of the draft; with `trees`
  /// those for trees as well.
  Status prepareDraft(const format::Draft &draft, bool trees);
  /// Nodes of the largest such tree; 0: none.
  uint32_t largestGuessTree(const format::Draft &draft) const;
  /// Nodes of the largest tree that the package has a program for; 0: none.
  uint32_t largestTree() const { return trees.empty() ? 0 : trees.back(); }
  /// Widths of the programs for trees, rising.
  const std::vector<uint32_t> &treeWidths() const { return trees; }

  /// Feeds tokens and starts to sample up to `budget` tokens, a few steps ahead
  /// of what `next` has taken. Without tokens it goes on from the last sampled
  /// one. `held`: as after `hold(true)`.
  Status start(const uint32_t *tokens, size_t count, uint64_t budget,
               bool held = false);
  /// The next sampled token. StatusCode::Context when the cache is full,
  /// InvalidArgument when the budget is used up.
  Result<uint32_t> next();
  /// Drops what was sampled ahead.
  Status stop();
  /// Tokens that `next` gives without a step of its own.
  uint32_t waiting() const { return pendingCount + acceptedCount; }
  /// Whether the next of them is what a step ahead samples.
  bool waitsForStep() const { return acceptedCount == 0 && pendingCount > 0; }
  /// Tokens of the budget that no step was submitted for.
  uint64_t left() const { return budget; }
  /// While held, no steps are submitted ahead, so that the caller can take
  /// `stepTree` instead. Ends with `stop` and `start`.
  Status hold(bool wanted);
  bool held() const { return holding; }
  /// While held and with nothing waiting: submits one step, and none ahead.
  Status stepOnce();

  /// Makes pipelines and records the commands of a program that will be needed.
  Status prepare(format::ProgramKind kind, uint32_t width);
  /// Runs one program on `width` copies of token 0 at slots from `base`, which
  /// is not below `cached()`, and waits for it; the sequence stays as it was.
  /// With `perDispatch`, answers when each dispatch ended
  /// (RecordedProgram::times).
  Result<std::vector<double>> measure(format::ProgramKind kind, uint32_t width,
                                      uint32_t base, bool perDispatch);
  /// Seconds that `steps` decode steps take from slot `base` on, submitted as
  /// far ahead as `start` does; the sequence stays as it was.
  Result<double> measureDecode(uint32_t base, uint32_t steps);

private:
  Session() = default;

  using Recorded = std::unique_ptr<vulkan::RecordedProgram>;
  Result<vulkan::RecordedProgram *> program(format::ProgramKind kind,
                                            uint32_t width,
                                            uint32_t guess = 0);
  /// `append` where the target has it at this width, otherwise `sample`.
  format::ProgramKind innerKind(uint32_t width) const;
  std::vector<uint32_t> innerWidths() const;
  StepInput input(uint32_t base, const uint32_t *tokens, uint32_t count) const;
  Status checkFeed(const uint32_t *tokens, size_t count) const;
  /// Before a sampling step that finds no slot, where generation is endless.
  Status makeRoom();
  /// Feeds of known[filled…] all but what still fits, and makes room between.
  Status feedOverflow();
  /// Makes room; no sampled token waits to be read.
  Status evict();
  /// What of the sequence the cache has slots for.
  std::vector<uint32_t> live() const;
  /// `behind`: of the nodes behind the last token, which is none of them.
  Status checkTree(const uint32_t *tokens, const int32_t *parents,
                   uint32_t count, bool behind = false) const;
  /// Runs a tree; leaves what was accepted, and one more, in `accepted`.
  Result<uint32_t> runTree(const uint32_t *tokens, const int32_t *parents,
                           uint32_t count, float *logits,
                           const uint32_t *rows = nullptr);
  /// The parents as the step block has them.
  using Packed = std::array<uint8_t, format::kMostNodes>;
  static Packed packed(const int32_t *parents, uint32_t count);
  Status checkGuess() const;
  /// Runs a draft's step over `given` and waits for it.
  Status runGuess(format::ProgramKind kind, uint32_t width, uint32_t guess,
                  StepInput given);
  /// Feeds known[filled…] and `tokens` by inner programs, and the end of them
  /// by one of `kind`; returns that step's number.
  Result<uint64_t> feed(const uint32_t *tokens, size_t count,
                        format::ProgramKind kind);
  /// Steps for `tokens` more. Where nothing is made yet, the one-token programs
  /// that generation needs anyway may be sooner done with a short prompt than
  /// the pipelines of wider ones are made.
  std::vector<PlannedStep> planFor(uint32_t tokens, format::ProgramKind kind);
  /// Of the program of step `i` of a plan that ends in `kind`.
  format::ProgramKind kindOf(const std::vector<PlannedStep> &plan, size_t i,
                             format::ProgramKind kind) const;
  /// That its programs dispatch.
  std::set<uint32_t> kernelsOf(const std::vector<PlannedStep> &plan,
                               format::ProgramKind kind) const;
  Result<uint64_t> submitPlan(const std::vector<PlannedStep> &plan,
                              format::ProgramKind kind);
  Status prepareMeasure(uint32_t base, uint32_t slots);
  void push(uint64_t step, uint32_t slot);
  Status pump();
  Status submitStep();

  std::shared_ptr<Model> owner;
  SessionOptions options;
  Sampling sampling;
  uint32_t adapter = 0;
  std::shared_ptr<void> memory; ///< what the model holds for this session
  SessionBuffers buffers;
  std::shared_ptr<vulkan::CommandPool> pool;
  std::vector<Recorded> recorded; ///< one a program of the target
  std::vector<uint32_t> trees;    ///< widths of the programs for trees
  std::unique_ptr<StepQueue> queue;

  /// The sequence, and how much of it went through the cache. Of that,
  /// known[kept … kept + gone) went from it: later tokens have slots `gone`
  /// below their place.
  std::vector<uint32_t> known;
  uint32_t filled = 0, gone = 0, kept = 0;
  std::optional<Endless> endlessly;
  /// Sampling steps under way, oldest first from `firstPending` round: number,
  /// and the slot their token will be in.
  struct Pending {
    uint64_t step;
    uint32_t slot;
  };
  std::array<Pending, StepQueue::kMostUnderWay> pending;
  uint32_t firstPending = 0, pendingCount = 0;
  /// What a tree brought and `next` has not given out yet.
  std::array<uint32_t, format::kMostNodes> accepted;
  uint32_t firstAccepted = 0, acceptedCount = 0;
  bool holding = false;
  /// The device's own state is not that of the sequence: the next step has to
  /// be told where it starts.
  bool astray = false;
  uint64_t budget = 0;   ///< tokens that may still be asked for
  uint32_t nextBase = 0; ///< slot that the next decode step starts from
};

} // namespace sprig
