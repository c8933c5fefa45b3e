//===- PackageDraft.h - a draft that is part of the package
//---------------------===//
#pragma once

#include "runtime/Session/Session.h"
#include "runtime/Speculation/ChainRecord.h"
#include "runtime/Speculation/Draft.h"

namespace sprig {

/// Guesses by a cheaper function of the package: the model without some layers
/// or with fewer bits, which shares its weights and cache, or heads on its last
/// hidden state. It draws with the settings and the noise of the model, so that
/// the two draw the same token wherever they are of one mind.
class PackageDraft final : public Draft {
public:
  /// `used` and `which`, of its package, outlive the draft.
  PackageDraft(Session &used, const format::Draft &which);

  std::string_view name() const override { return draft.name()->string_view(); }
  bool costly() const override { return true; }
  Status follow(const std::vector<uint32_t> &tokens, bool sampled) override {
    record.follow(tokens, sampled);
    return {};
  }
  uint32_t worth(const StepTimes &times, uint32_t most, double rate) override;
  Status propose(DraftTree &tree, uint32_t nodes) override;

private:
  Session &session;
  const format::Draft &draft;
  ChainRecord record;
  bool warm = false; ///< its pipelines are made
};

} // namespace sprig
