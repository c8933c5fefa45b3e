#include "runtime/Session/SelfTest.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {

Status selfTest(Session &session, float margin) {
  const auto *goldens = session.model().metadata().goldens();
  if (!goldens || goldens->size() == 0)
    return {StatusCode::Unsupported,
            "the package has no golden vectors; compile it with them"};
  uint32_t vocabulary = session.model().metadata().model()->vocabulary();
  for (uint32_t g = 0; g < goldens->size(); ++g) {
    const format::Golden &golden = *goldens->Get(g);
    size_t count = golden.tokens()->size();
    std::vector<uint32_t> tokens(golden.tokens()->begin(),
                                 golden.tokens()->end());
    std::vector<float> logits(count * vocabulary);
    if (Status status = session.truncate(0); !status.ok())
      return status;
    if (Status status = session.evaluate(tokens.data(), count, logits.data());
        !status.ok())
      return status;
    for (size_t i = 0; i < count; ++i) {
      const float *row = logits.data() + i * vocabulary;
      uint32_t best = uint32_t(std::max_element(row, row + vocabulary) - row);
      uint32_t expected = golden.argmax()->Get(uint32_t(i));
      if (best != expected && golden.margin()->Get(uint32_t(i)) > margin)
        return {StatusCode::DeviceError,
                concat("self-test: expects token ", expected, " after ", i + 1,
                       " tokens of golden vector ", g, ", but device '",
                       session.model().device()->physical().name, "' says ",
                       best, ": its driver computes something else")};
    }
  }
  return session.truncate(0);
}

} // namespace sprig
