//===- PackageDraft.h - a draft that is part of the package
//---------------------===//
#pragma once

#include "runtime/Session/Session.h"
#include "runtime/Speculation/ChainRecord.h"
#include "runtime/Speculation/Draft.h"
#include "runtime/Speculation/DrawnTree.h"
#include "runtime/Speculation/DynamicTree.h"

namespace sprig {

/// What becomes a tree of what a draft says.
enum class Growth {
  Chain,  ///< the guesses that it draws, one behind the other
  Comb,   ///< and beside each what else it names there
  Clover, ///< by CloverRule
  Eagle   ///< by EagleRule
};

/// Guesses by a cheaper function of the package: the model without some layers
/// or with fewer bits, which shares its weights and cache, or heads on its last
/// hidden state. A chain is drawn with the settings and the noise of the model,
/// so that the two draw the same token wherever they are of one mind. Trees
/// grow by a step of the draft a level, over the nodes that lead there; heads
/// that guess each a token further ahead say the same at all nodes of a level;
/// those that go on from what their guesses left are asked for the first one by
/// itself, and their nodes keep their places, for those behind them to find it.
/// A draft without programs for trees has combs.
class PackageDraft final : public Draft, private Guesser {
public:
  /// `used` and `which`, of its package, outlive the draft.
  PackageDraft(Session &used, const format::Draft &which, Growth how);

  std::string_view name() const override { return draft.name()->string_view(); }
  bool costly() const override { return true; }
  Status prepare() override {
    warm = true;
    return session.prepareDraft(draft, growth == Growth::Clover ||
                                           growth == Growth::Eagle);
  }
  Status follow(const std::vector<uint32_t> &tokens, bool sampled) override {
    record.follow(tokens, sampled);
    return {};
  }
  uint32_t worth(const StepTimes &times, uint32_t most, double rate) override;
  Status propose(DraftTree &tree, uint32_t nodes) override;
  /// Draws `levels` of guesses, `branches` each.
  Status draw(DrawnTree &tree, uint32_t levels, uint32_t branches);

private:
  Result<uint32_t> proposeChain(DraftTree &tree, uint32_t guesses);
  Result<uint32_t> proposeTree(DraftTree &tree, uint32_t levels);
  Status guesses(const DraftTree &tree, std::span<const uint32_t> nodes,
                 std::span<GuessRow> out) override;
  Status askAtNodes(const DraftTree &tree, std::span<const uint32_t> nodes,
                    std::span<GuessRow> out);
  /// The same where the nodes of earlier levels were asked at already.
  Status askOnward(const DraftTree &tree, std::span<const uint32_t> nodes,
                   std::span<GuessRow> out);
  /// Follows the likeliest path of what is said, for the record.
  void keepRecord(const DraftTree &tree, std::span<const uint32_t> nodes,
                  std::span<const GuessRow> rows);
  /// Probabilities as they turned out to be.
  void correct(GuessRow &row) const;
  float temperature() const { return session.sampled().temperature; }

  Session &session;
  const format::Draft &draft;
  Growth growth;
  ChainRecord record;
  TreeGrower grower;
  CloverRule clover;
  uint32_t largest;    ///< nodes of a tree that it can be asked at; 0: none
  bool warm = false;   ///< its pipelines are made
  uint32_t asked = 0;  ///< levels of the tree that grows
  uint32_t onPath = 0; ///< its likeliest node on the last level, and
  uint32_t next = 0;   ///< the likeliest token behind it
  /// The nodes that it is asked at, as a step is given them.
  std::array<uint32_t, DraftTree::kMost> placeOf;
  std::array<uint32_t, format::kMostNodes> asks; ///< their tokens
  std::array<int32_t, format::kMostNodes> parents;
  uint32_t placed = 0;
};

} // namespace sprig
