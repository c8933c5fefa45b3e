#include "runtime/Session/Sampling.h"
#include "runtime/Support/Strings.h"

namespace sprig {

Status Sampling::check() const {
  // Written so that a NaN fails.
  auto refuse = [](const char *what, const char *range, float value) {
    return Status(StatusCode::InvalidArgument,
                  concat("expects ", what, " ", range, ", but got ", value));
  };
  if (!(temperature >= 0 && temperature <= 100))
    return refuse("a temperature", "of 0 to 100", temperature);
  if (!(topP > 0 && topP <= 1))
    return refuse("top-p", "above 0 and at most 1", topP);
  if (!(minP >= 0 && minP < 1))
    return refuse("min-p", "of 0 to below 1", minP);
  if (!(repeatPenalty > 0 && repeatPenalty <= 100))
    return refuse("a repeat penalty", "above 0 and at most 100", repeatPenalty);
  return {};
}

} // namespace sprig
