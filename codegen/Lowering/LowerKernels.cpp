// plan-lower-kernels: see Passes.td.
#include "codegen/Lowering/KernelAttrs.h"
#include "codegen/Lowering/Passes.h"
#include "codegen/Target/TargetEnv.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "codegen/Lowering/Passes.h.inc"

namespace {

/// Features behind the OpCapability instructions at the head of a module, in
/// the order of their numbers.
SmallVector<StringRef> featuresOf(ArrayRef<uint32_t> words) {
  constexpr uint32_t kHeaderWords = 5, kOpCapability = 17;
  uint32_t bits = 0;
  for (size_t at = kHeaderWords;
       at + 1 < words.size() && (words[at] & 0xffff) == kOpCapability; at += 2)
    if (auto capability = spirv::symbolizeCapability(words[at + 1]))
      if (std::optional<Feature> feature = featureFor(*capability))
        bits |= 1u << unsigned(*feature);
  SmallVector<StringRef> names;
  for (unsigned feature = 0; feature != kFeatureCount; ++feature)
    if (bits >> feature & 1)
      names.push_back(featureName(Feature(feature)));
  return names;
}

struct Job {
  plan::KernelOp kernel;
  const TargetProfile *profile;
  CompiledKernel compiled;
};

struct LowerKernels final : impl::LowerKernelsPassBase<LowerKernels> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    std::vector<std::unique_ptr<TargetProfile>> profiles;
    std::vector<Job> jobs;
    for (auto target : getOperation().getOps<plan::TargetOp>()) {
      llvm::Expected<TargetProfile> profile =
          findProfile(target.getProfileName());
      if (!profile) {
        target.emitOpError() << llvm::toString(profile.takeError());
        return signalPassFailure();
      }
      profiles.push_back(std::make_unique<TargetProfile>(std::move(*profile)));
      for (auto kernel : target.getOps<plan::KernelOp>())
        if (!kernel.getSpirv())
          jobs.push_back({kernel, profiles.back().get(), {}});
    }
    if (failed(failableParallelForEach(&getContext(), jobs,
                                       [](Job &job) { return compile(job); })))
      return signalPassFailure();
    size_t words = 0;
    for (Job &job : jobs) {
      finish(job);
      words += job.compiled.spirv.size();
    }
    remark::passed(
        getOperation().getLoc(),
        remark::RemarkOpts::name("kernels").category(kLoweringRemarks))
        << llvm::formatv("{0} kernels compiled to {1} bytes of SPIR-V",
                         jobs.size(), words * 4)
               .str();
  }

  /// Reads the kernel's operation, but changes nothing outside the job.
  static LogicalResult compile(Job &job) {
    Location loc = job.kernel.getLoc();
    FailureOr<CompiledKernel> compiled = failure();
    if (Operation *code = job.kernel.getModule()) {
      FailureOr<KernelInterface> interface = describeKernel(
          job.kernel.getFamily(), job.kernel.getSpec(), *job.profile, loc);
      if (failed(interface))
        return failure();
      OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
      (*module)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                         UnitAttr::get(code->getContext()));
      module->getBody()->push_back(code->clone());
      compiled = lowerKernel(*module, *interface, *job.profile, loc);
    } else {
      compiled = compileKernel(job.kernel.getFamily(), job.kernel.getSpec(),
                               *job.profile, loc);
    }
    if (failed(compiled))
      return failure();
    job.compiled = std::move(*compiled);
    return success();
  }

  void finish(Job &job) {
    plan::KernelOp kernel = job.kernel;
    Builder builder(&getContext());
    setInterface(kernel, job.compiled.interface);
    SmallVector<StringRef> features = featuresOf(job.compiled.spirv);
    if (!features.empty())
      kernel.setFeaturesAttr(builder.getStrArrayAttr(features));
    SmallVector<int32_t> words(job.compiled.spirv.begin(),
                               job.compiled.spirv.end());
    kernel.setSpirvAttr(DenseIntElementsAttr::get(
        RankedTensorType::get({int64_t(words.size())}, builder.getI32Type()),
        ArrayRef(words)));
    kernel.getCode().front().clear();
  }
};

} // namespace
} // namespace mlir::llm
