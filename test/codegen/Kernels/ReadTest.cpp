#include "codegen/Kernels/Read.h"
#include "Harness.h"

namespace mlir::llm::test {
namespace {

/// Flipping a bit anywhere must show: nothing may be left unread.
TEST(Read, EveryByteCounts) {
  SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (int64_t texels : {0, 1})
    for (int64_t bytes : {16, 16 * 63, 65536, 65536 * 2 + 16 * 5}) {
      ReadSpec spec{bytes, texels};
      const CompiledKernel *kernel =
          compile("read", spec.toAttr(context()), deviceProfile());
      ASSERT_TRUE(kernel);
      auto sum = [&](size_t flipped) {
        std::vector<Bytes> buffers = {Bytes(size_t(bytes)),
                                      Bytes(size_t(spec.groups()) * 32)};
        if (flipped < size_t(bytes))
          buffers[0][flipped] = 1;
        run(*kernel, buffers, 1);
        return buffers[1];
      };
      Bytes none = sum(size_t(bytes));
      for (size_t at : {size_t(0), size_t(bytes) - 1, size_t(bytes) / 2,
                        size_t(random.below(uint32_t(bytes)))}) {
        // What is read an even number of times (the end, again) cancels out.
        if (at + 16 < size_t(bytes)) {
          EXPECT_NE(sum(at), none) << bytes << " bytes, at " << at;
        }
      }
    }
}

TEST(Read, RefusesPartsOfLoads) {
  ReadSpec spec{20, 0};
  EXPECT_TRUE(failed(describeKernel("read", spec.toAttr(context()),
                                    deviceProfile(),
                                    UnknownLoc::get(context()))));
  EXPECT_EQ(takeDiagnostics(),
            "read kernel expects bytes to be a multiple of 16, but got 20");
}

} // namespace
} // namespace mlir::llm::test
