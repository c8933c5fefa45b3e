// That a drafting loop asks the heap for nothing and the device for little, once
// all programs are made.
#ifndef SPRIG_TEST_TOOLS_STEADYLOOP_H
#define SPRIG_TEST_TOOLS_STEADYLOOP_H

#include "test/tools/SpeculationTest.h"

namespace mlir::llm::testing {

/// Of this thread. A program with such tests defines it in the file that counts
/// (test/runtime/Tiny/CountedAllocations.h).
size_t allocationsSoFar();

/// `session` is without validation layers, which allocate on the thread that
/// calls them.
inline void expectSteadyLoop(sprig::Session &session,
                             const std::vector<uint32_t> &prompt,
                             const sprig::SpeculationOptions &options,
                             bool treesExpected = true) {
  using namespace sprig;
  std::string what = "by rule " + std::to_string(int(options.growth));
  for (const std::string &name : options.drafts)
    what = name + " " + what;
  auto made = Speculator::create(session, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto &with = *made;
  Sampling sampling;
  sampling.temperature = options.drawn ? 0.5f : 0;
  ASSERT_TRUE(session.setSampling(sampling).ok());
  ASSERT_TRUE(session.truncate(0).ok());
  ASSERT_TRUE(with->start(prompt.data(), prompt.size(), 97).ok());
  for (int i = 0; i < 70; ++i) // all programs were made
    ASSERT_TRUE(with->next().ok());
  const uint64_t trees = with->counts().trees, steps = with->counts().steps;
  const uint64_t read = session.bytesRead();
  const size_t before = allocationsSoFar();
  for (int i = 0; i < 25; ++i)
    ASSERT_TRUE(with->next().ok());
  EXPECT_EQ(allocationsSoFar() - before, 0u) << what;
  if (treesExpected)
    EXPECT_GT(with->counts().trees, trees) << what;
  // A tree that grows takes a step of each draft for each level.
  const uint64_t drafts =
      options.growth == Growth::Comb ? 1 : 1 + 6 * options.drafts.size();
  EXPECT_LE(session.bytesRead() - read,
            1024 * drafts * (with->counts().steps - steps))
      << what;
}

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_TOOLS_STEADYLOOP_H
