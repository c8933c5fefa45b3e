#include "Harness.h"

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/RmsFactor.h"
#include "codegen/Kernels/SpirvTools.h"
#include "codegen/Kernels/ToSpirv.h"

namespace mlir::llm::test {
namespace {

Location unknown() { return UnknownLoc::get(context()); }

TEST(Registry, RefusesUnknownFamiliesAndMembers) {
  Builder builder(context());
  EXPECT_TRUE(failed(describeKernel("alchemy", builder.getDictionaryAttr({}),
                                    profile("generic"), unknown())));
  EXPECT_NE(takeDiagnostics().find("expects a kernel family among"),
            std::string::npos);
  EXPECT_TRUE(failed(describeKernel("rms_factor", builder.getDictionaryAttr({}),
                                    profile("generic"), unknown())));
  EXPECT_EQ(takeDiagnostics(), "rms_factor kernel expects a whole number from "
                               "1 to 2147483647 for 'width', but got nothing");
  DictionaryAttr spec = builder.getDictionaryAttr(
      {builder.getNamedAttr("width", builder.getI64IntegerAttr(8)),
       builder.getNamedAttr("eps", builder.getF64FloatAttr(1e-5)),
       builder.getNamedAttr("depth", builder.getI64IntegerAttr(8))});
  EXPECT_TRUE(failed(
      describeKernel("rms_factor", spec, profile("generic"), unknown())));
  EXPECT_EQ(takeDiagnostics(),
            "rms_factor kernel has an unknown member 'depth'");
}

TEST(Registry, NamesTheLimitThatAKernelBreaks) {
  TargetProfile small = profile("generic");
  small.limits.storageBuffers = 1;
  EXPECT_TRUE(failed(describeKernel("rms_factor",
                                    RmsFactorSpec{8, 8, 1e-5}.toAttr(context()),
                                    small, unknown())));
  EXPECT_NE(
      takeDiagnostics().find(
          "expects at most 1 storage buffers on target 'generic', but got 2"),
      std::string::npos);
}

/// A kernel that stores one value of `make`.
LogicalResult convert(const TargetProfile &profile,
                      function_ref<Value(KernelBuilder &)> make) {
  KernelInterface interface;
  interface.name = "probe";
  interface.workgroup = {8, 1, 1};
  interface.bindings = {{"y", Access::Write}};
  OwningOpRef<ModuleOp> module(ModuleOp::create(unknown()));
  KernelBuilder b(*module, profile, interface);
  b.open({b.i32()});
  b.store(make(b), 0, b.localId());
  b.close();
  return convertToSpirv(*module, profile, interface);
}

TEST(ToSpirv, NamesTheCapabilityThatAProfileLacks) {
  auto wide = [](KernelBuilder &b) {
    Value lane =
        arith::IndexCastUIOp::create(b.ops(), b.loc(), b.i64(), b.localId());
    return arith::TruncIOp::create(b.ops(), b.loc(), b.i32(), lane).getResult();
  };
  auto shuffled = [](KernelBuilder &b) {
    return b.shuffleXor(b.toI32(b.localId()), 1);
  };
  EXPECT_TRUE(succeeded(convert(profile("lavapipe"), wide)));
  EXPECT_TRUE(succeeded(convert(profile("lavapipe"), shuffled)));
  EXPECT_EQ(takeDiagnostics(), "");
  EXPECT_TRUE(failed(convert(profile("generic"), wide)));
  EXPECT_EQ(takeDiagnostics(), "kernel 'probe' needs the capability Int64 "
                               "(feature shader_int64), which target "
                               "'generic' lacks");
  EXPECT_TRUE(failed(convert(profile("generic"), shuffled)));
  EXPECT_EQ(
      takeDiagnostics(),
      "kernel 'probe' needs the capability GroupNonUniformShuffle (feature "
      "subgroup_shuffle), which target 'generic' lacks");
}

TEST(SpirvTools, SaysWhatIsWrong) {
  EXPECT_NE(
      validateSpirv({0x07230203, 0x00010300, 0, 1, 0}, profile("generic")), "");
  std::string message;
  EXPECT_TRUE(optimiseSpirv({1, 2, 3}, profile("generic"), message).empty());
  EXPECT_NE(message, "");
}

} // namespace
} // namespace mlir::llm::test
