//===- ModelDraft.h - a smaller model guesses
//-------------------------------------===//
#pragma once

#include "runtime/Session/Session.h"
#include "runtime/Speculation/ChainRecord.h"
#include "runtime/Speculation/Draft.h"

namespace sprig {

/// Guesses what a smaller model with the same vocabulary says. It samples with
/// the settings and the noise of the model that it guesses for, so that the two
/// draw the same token wherever they are of one mind, at any temperature.
class ModelDraft final : public Draft {
public:
  /// InvalidArgument where the vocabularies differ. `target` outlives the
  /// draft.
  static Result<std::unique_ptr<ModelDraft>>
  create(Session &target, const std::shared_ptr<Model> &model);

  std::string_view name() const override { return "model"; }
  bool costly() const override { return true; }
  Status follow(const std::vector<uint32_t> &tokens, bool sampled) override;
  uint32_t worth(const StepTimes &times, uint32_t most,
                 double rate) override {
    return record.worth(times, most, rate);
  }
  Status propose(DraftTree &tree, uint32_t nodes) override;

private:
  ModelDraft(Session &used) : target(used) {}

  Session &target;
  std::unique_ptr<Session> session;
  ChainRecord record;
};

} // namespace sprig
