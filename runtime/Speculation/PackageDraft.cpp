#include "runtime/Speculation/PackageDraft.h"

#include <algorithm>
#include <chrono>

namespace sprig {

PackageDraft::PackageDraft(Session &used, const format::Draft &which)
    : session(used), draft(which) {
  record.reserve(format::kMostNodes);
}

uint32_t PackageDraft::worth(const StepTimes &times, uint32_t most,
                             double rate) {
  if (!draft.repeats())
    most = std::min(most, draft.count() + 1);
  return record.worth(times, most, rate);
}

Status PackageDraft::propose(DraftTree &tree, uint32_t nodes) {
  record.begin(session.tokens().size());
  if (nodes < 2)
    return {};
  std::array<uint32_t, format::kMostNodes> tokens;
  const auto began = std::chrono::steady_clock::now();
  Result<uint32_t> made = session.guess(
      draft, std::min(nodes - 1, format::kMostNodes - 1), tokens.data());
  if (!made.ok())
    return made.status();
  if (*made == 0)
    return {};
  // The first time pipelines are made.
  if (warm)
    record.took(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
            .count() /
        double(*made));
  warm = true;
  const float likely = float(record.agreement());
  uint32_t node = 0;
  for (uint32_t i = 0; i < *made && node != DraftTree::kNone; ++i) {
    record.add(tokens[i]);
    node = tree.add(node, tokens[i], likely);
  }
  return {};
}

} // namespace sprig
