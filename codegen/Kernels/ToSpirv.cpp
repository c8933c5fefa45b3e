#include "codegen/Kernels/ToSpirv.h"

#include "codegen/Kernels/VulkanMemory.h"
#include "codegen/Target/TargetEnv.h"
#include "mlir/Conversion/ArithToSPIRV/ArithToSPIRV.h"
#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRV.h"
#include "mlir/Conversion/IndexToSPIRV/IndexToSPIRV.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRV.h"
#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRV.h"
#include "mlir/Conversion/SCFToSPIRV/SCFToSPIRV.h"
#include "mlir/Conversion/UBToSPIRV/UBToSPIRV.h"
#include "mlir/Conversion/VectorToSPIRV/VectorToSPIRV.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Dialect/SPIRV/Transforms/SPIRVConversion.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::llm {
namespace {

/// math.fma ==> spirv.GL.Fma, which upstream leaves out.
struct FmaPattern final : OpConversionPattern<math::FmaOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(math::FmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "type has no SPIR-V form");
    rewriter.replaceOpWithNewOp<spirv::GLFmaOp>(op, type, adaptor.getA(),
                                                adaptor.getB(), adaptor.getC());
    return success();
  }
};

LogicalResult lacks(Operation *op, StringRef kernel,
                    const TargetProfile &profile,
                    spirv::Capability capability) {
  std::string feature;
  if (auto known = featureFor(capability))
    feature = (" (feature " + featureName(*known) + ")").str();
  return op->emitError() << "kernel '" << kernel << "' needs the capability "
                         << spirv::stringifyCapability(capability) << feature
                         << ", which target '" << profile.name << "' lacks";
}

/// Narrow and wide types would be emulated or refused without a name; look for
/// them first.
LogicalResult checkType(Operation *op, Type type, StringRef kernel,
                        const TargetProfile &profile,
                        const spirv::TargetEnv &environment) {
  bool stored = false;
  if (auto memref = dyn_cast<MemRefType>(type)) {
    type = memref.getElementType();
    auto space =
        dyn_cast_or_null<spirv::StorageClassAttr>(memref.getMemorySpace());
    stored = space && space.getValue() == spirv::StorageClass::StorageBuffer;
  }
  type = getElementTypeOrSelf(type);
  if (!type.isIntOrFloat())
    return success();
  unsigned width = type.getIntOrFloatBitWidth();
  std::optional<spirv::Capability> needed;
  if (stored && width == 8)
    needed = spirv::Capability::StorageBuffer8BitAccess;
  else if (stored && width == 16)
    needed = spirv::Capability::StorageBuffer16BitAccess;
  else if (isa<FloatType>(type))
    needed = width == 16   ? std::optional(spirv::Capability::Float16)
             : width == 64 ? std::optional(spirv::Capability::Float64)
                           : std::nullopt;
  else
    needed = width == 8    ? std::optional(spirv::Capability::Int8)
             : width == 16 ? std::optional(spirv::Capability::Int16)
             : width == 64 ? std::optional(spirv::Capability::Int64)
                           : std::nullopt;
  if (needed && !environment.allows(*needed))
    return lacks(op, kernel, profile, *needed);
  return success();
}

LogicalResult checkCapabilities(ModuleOp module, const TargetProfile &profile,
                                StringRef kernel,
                                const spirv::TargetEnv &environment) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (auto query = dyn_cast<spirv::QueryCapabilityInterface>(op))
      for (ArrayRef<spirv::Capability> anyOf : query.getCapabilities())
        if (!anyOf.empty() && !environment.allows(anyOf))
          return lacks(op, kernel, profile, anyOf.front());
    for (Type type : op->getResultTypes())
      if (failed(checkType(op, type, kernel, profile, environment)))
        return failure();
    for (Region &region : op->getRegions())
      for (Type type : region.getArgumentTypes())
        if (failed(checkType(op, type, kernel, profile, environment)))
          return failure();
    return success();
  });
  return failure(result.wasInterrupted());
}

/// Keeps drivers from contracting a*b + c as they please: where a fused
/// operation is wanted the kernel says Fma, and a number's bits must not depend
/// on the kernel variant that computed it.
void forbidContraction(ModuleOp module) {
  auto unit = UnitAttr::get(module.getContext());
  module.walk([&](Operation *op) {
    if (isa<spirv::FAddOp, spirv::FSubOp, spirv::FMulOp, spirv::FDivOp,
            spirv::FNegateOp, spirv::GLFmaOp>(op))
      op->setAttr("no_contraction", unit);
  });
}

/// What loops say of their rounds, in the order of the text.
SmallVector<spirv::LoopControlAttr> loopControls(ModuleOp module) {
  SmallVector<spirv::LoopControlAttr> controls;
  module.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    controls.push_back(
        loop->getAttrOfType<spirv::LoopControlAttr>(kLoopControl));
  });
  return controls;
}

/// The conversion drops attributes, but keeps the order.
void setLoopControls(ModuleOp module,
                     ArrayRef<spirv::LoopControlAttr> controls) {
  module.walk<WalkOrder::PreOrder>([&](spirv::LoopOp loop) {
    if (controls.front())
      loop.setLoopControlAttr(controls.front());
    controls = controls.drop_front();
  });
  assert(controls.empty() && "expects a loop of SPIR-V for each of scf");
}

/// Tells the driver which buffers a kernel only reads.
void markReadOnly(ModuleOp module, const KernelInterface &interface) {
  auto unit = UnitAttr::get(module.getContext());
  module.walk([&](spirv::GlobalVariableOp variable) {
    std::optional<uint32_t> binding = variable.getBinding();
    if (binding && *binding < interface.bindings.size() &&
        interface.bindings[*binding].access == Access::Read &&
        !interface.bindings[*binding].uniform)
      variable->setAttr("non_writable", unit);
  });
}

} // namespace

LogicalResult convertToSpirv(ModuleOp module, const TargetProfile &profile,
                             const KernelInterface &interface) {
  StringRef kernel = interface.name;
  MLIRContext *context = module.getContext();
  spirv::TargetEnvAttr environment = getTargetEnv(profile, context);
  if (failed(checkCapabilities(module, profile, kernel,
                               spirv::TargetEnv(environment))))
    return failure();
  module->setAttr(spirv::getTargetEnvAttrName(), environment);

  SPIRVConversionOptions options;
  options.emulateLT32BitScalarTypes = false;
  SPIRVTypeConverter types(environment, options);
  ScfToSPIRVContext scf;
  RewritePatternSet patterns(context);
  arith::populateArithToSPIRVPatterns(types, patterns);
  index::populateIndexToSPIRVPatterns(types, patterns);
  populateGPUToSPIRVPatterns(types, patterns);
  populateMMAToSPIRVCoopMatrixTypeConversion(types);
  populateGpuWMMAToSPIRVCoopMatrixKHRConversionPatterns(types, patterns);
  populateMathToSPIRVPatterns(types, patterns);
  populateMemRefToSPIRVPatterns(types, patterns);
  populateSCFToSPIRVPatterns(types, scf, patterns);
  populateVectorToSPIRVPatterns(types, patterns);
  ub::populateUBToSPIRVConversionPatterns(types, patterns);
  patterns.add<FmaPattern>(types, context);

  const SmallVector<spirv::LoopControlAttr> controls = loopControls(module);
  std::unique_ptr<ConversionTarget> target =
      SPIRVConversionTarget::get(environment);
  SmallVector<Operation *> kernels;
  module.walk(
      [&](gpu::GPUModuleOp gpuModule) { kernels.push_back(gpuModule); });
  if (failed(applyFullConversion(kernels, *target, std::move(patterns))))
    return module.emitError()
           << "kernel '" << kernel << "' does not convert to SPIR-V";
  forbidContraction(module);
  setLoopControls(module, controls);

  PassManager pipeline(context, ModuleOp::getOperationName());
  OpPassManager &nested = pipeline.nest<spirv::ModuleOp>();
  nested.addPass(spirv::createSPIRVLowerABIAttributesPass());
  nested.addPass(spirv::createSPIRVUpdateVCEPass());
  if (failed(pipeline.run(module)))
    return module.emitError() << "kernel '" << kernel
                              << "' has no legal SPIR-V interface for target '"
                              << profile.name << "'";
  for (auto shader : module.getOps<spirv::ModuleOp>()) {
    // The version found is the least for the operations; from 1.4 on the target's
    // has been taken for the entry point's list of variables.
    auto needs = *shader.getVceTriple();
    spirv::Version version = spirv::TargetEnv(environment).getVersion();
    if (version >= spirv::Version::V_1_4)
      shader.setVceTripleAttr(
          spirv::VerCapExtAttr::get(
              version, llvm::to_vector(needs.getCapabilities()),
              llvm::to_vector(needs.getExtensions()), context));
    if (usesMatrices(shader))
      useVulkanMemoryModel(shader);
  }
  markReadOnly(module, interface);
  if (failed(verify(module)))
    return module.emitError()
           << "kernel '" << kernel << "' does not verify as SPIR-V";
  return success();
}

FailureOr<std::vector<uint32_t>> serialiseSpirv(ModuleOp module,
                                                StringRef kernel) {
  auto modules = llvm::to_vector(module.getOps<spirv::ModuleOp>());
  SmallVector<uint32_t, 0> binary;
  if (modules.size() != 1 || failed(spirv::serialize(modules[0], binary)))
    return module.emitError()
           << "kernel '" << kernel << "' cannot be serialised as SPIR-V";
  return std::vector<uint32_t>(binary.begin(), binary.end());
}

} // namespace mlir::llm
