#include "codegen/Kernels/Registry.h"

#include "codegen/Kernels/AdapterChoice.h"
#include "codegen/Kernels/Attention.h"
#include "codegen/Kernels/AttentionCombine.h"
#include "codegen/Kernels/AttentionGroups.h"
#include "codegen/Kernels/CosineGate.h"
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/Embedding.h"
#include "codegen/Kernels/ExpertLinear.h"
#include "codegen/Kernels/Hadamard.h"
#include "codegen/Kernels/HiddenRows.h"
#include "codegen/Kernels/IntegerLinear.h"
#include "codegen/Kernels/IntegerRows.h"
#include "codegen/Kernels/JoinHeads.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/KvEvict.h"
#include "codegen/Kernels/Linear.h"
#include "codegen/Kernels/Norm.h"
#include "codegen/Kernels/Read.h"
#include "codegen/Kernels/RmsFactor.h"
#include "codegen/Kernels/RopeAppend.h"
#include "codegen/Kernels/Route.h"
#include "codegen/Kernels/Sample.h"
#include "codegen/Kernels/SpirvTools.h"
#include "codegen/Kernels/ToSpirv.h"
#include "codegen/Kernels/Top.h"
#include "codegen/Kernels/TreeAccept.h"
#include "codegen/Kernels/TreeTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include <chrono>

namespace mlir::llm {
namespace {

/// A family with its spec type forgotten.
struct Family {
  StringRef name;
  FailureOr<KernelInterface> (*describe)(DictionaryAttr, const TargetProfile &,
                                         EmitError);
  LogicalResult (*build)(DictionaryAttr, const KernelInterface &,
                         KernelBuilder &, EmitError);
};

template <typename Spec> constexpr Family familyOf() {
  return {Spec::kFamily,
          [](DictionaryAttr attr, const TargetProfile &profile,
             EmitError emitError) -> FailureOr<KernelInterface> {
            FailureOr<Spec> spec = Spec::fromAttr(attr, emitError);
            if (failed(spec))
              return failure();
            return spec->interface(profile, emitError);
          },
          [](DictionaryAttr attr, const KernelInterface &interface,
             KernelBuilder &builder, EmitError emitError) -> LogicalResult {
            FailureOr<Spec> spec = Spec::fromAttr(attr, emitError);
            if (failed(spec))
              return failure();
            spec->build(builder, interface);
            return success();
          }};
}

// In alphabetical order.
constexpr Family kFamilies[] = {
    familyOf<AdapterChoiceSpec>(),
    familyOf<AttentionSpec>(),
    familyOf<AttentionCombineSpec>(),
    familyOf<AttentionGroupsSpec>(),
    familyOf<CosineGateSpec>(),
    familyOf<ElementwiseSpec>(),
    familyOf<EmbeddingSpec>(),
    familyOf<ExpertLinearSpec>(),
    familyOf<HadamardSpec>(),
    familyOf<HiddenRowsSpec>(),
    familyOf<IntegerLinearSpec>(),
    familyOf<JoinHeadsSpec>(),
    familyOf<KvCompactSpec>(),
    familyOf<KvEvictSpec>(),
    familyOf<LinearSpec>(),
    familyOf<NormSpec>(),
    familyOf<QuantizeRowsSpec>(),
    familyOf<ReadSpec>(),
    familyOf<RmsFactorSpec>(),
    familyOf<RopeAppendSpec>(),
    familyOf<RouteSpec>(),
    familyOf<SampleSpec>(),
    familyOf<TopSpec>(),
    familyOf<TreeAcceptSpec>(),
    familyOf<TreeTableSpec>(),
};

FailureOr<const Family *> findFamily(StringRef name, EmitError emitError) {
  for (const Family &family : kFamilies)
    if (family.name == name)
      return &family;
  return emitError() << "expects a kernel family among "
                     << llvm::join(kernelFamilies(), ", ") << ", but got '"
                     << name << "'";
}

/// What no family should have to check by itself.
LogicalResult checkLimits(const KernelInterface &interface,
                          const TargetProfile &profile, EmitError emitError) {
  const TargetLimits &limits = profile.limits;
  auto refuse = [&](StringRef what, uint64_t most, uint64_t got) {
    return emitError() << "kernel '" << interface.name << "' expects at most "
                       << most << " " << what << " on target '" << profile.name
                       << "', but got " << got;
  };
  if (interface.invocations() > limits.workgroupInvocations)
    return refuse("invocations in a workgroup", limits.workgroupInvocations,
                  interface.invocations());
  if (interface.sharedBytes > limits.sharedBytes)
    return refuse("bytes of shared memory", limits.sharedBytes,
                  interface.sharedBytes);
  if (interface.bindings.size() > limits.storageBuffers)
    return refuse("storage buffers", limits.storageBuffers,
                  interface.bindings.size());
  for (unsigned i = 0; i < 3; ++i)
    if (interface.groups[i].fixed > limits.groups)
      return refuse("workgroups along a dimension", limits.groups,
                    interface.groups[i].fixed);
  for (const KernelBinding &binding : interface.bindings) {
    uint64_t most = binding.mostBytes(limits);
    if (binding.bytes > most)
      return refuse("bytes in the binding of " + binding.role, most,
                    binding.bytes);
  }
  if (interface.subgroupSize && interface.subgroupSize != profile.subgroupSize)
    return emitError() << "kernel '" << interface.name
                       << "' expects subgroups of " << interface.subgroupSize
                       << ", but target '" << profile.name << "' has "
                       << profile.subgroupSize;
  return success();
}

double secondsSince(std::chrono::steady_clock::time_point &mark) {
  auto now = std::chrono::steady_clock::now();
  double seconds = std::chrono::duration<double>(now - mark).count();
  mark = now;
  return seconds;
}

} // namespace

ArrayRef<StringRef> kernelFamilies() {
  static const auto names = [] {
    SmallVector<StringRef> list;
    for (const Family &family : kFamilies)
      list.push_back(family.name);
    return list;
  }();
  return names;
}

void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, gpu::GPUDialect, index::IndexDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  spirv::SPIRVDialect, ub::UBDialect, vector::VectorDialect>();
}

void loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context.getOrLoadDialect(name);
}

FailureOr<KernelInterface> describeKernel(StringRef name, DictionaryAttr spec,
                                          const TargetProfile &profile,
                                          Location loc) {
  auto emitError = [&] { return mlir::emitError(loc); };
  FailureOr<const Family *> family = findFamily(name, emitError);
  if (failed(family))
    return failure();
  FailureOr<KernelInterface> interface =
      (*family)->describe(spec, profile, emitError);
  if (failed(interface) || failed(checkLimits(*interface, profile, emitError)))
    return failure();
  interface->family = name.str();
  return interface;
}

FailureOr<OwningOpRef<ModuleOp>> buildKernel(StringRef name,
                                             DictionaryAttr spec,
                                             const TargetProfile &profile,
                                             Location loc) {
  FailureOr<KernelInterface> interface =
      describeKernel(name, spec, profile, loc);
  if (failed(interface))
    return failure();
  auto emitError = [&] { return mlir::emitError(loc); };
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  KernelBuilder builder(*module, profile, *interface);
  FailureOr<const Family *> family = findFamily(name, emitError);
  if (failed((*family)->build(spec, *interface, builder, emitError)))
    return failure();
  if (failed(verify(*module)))
    return emitError() << "kernel '" << interface->name << "' was built wrong";
  return module;
}

FailureOr<CompiledKernel> lowerKernel(ModuleOp module,
                                      const KernelInterface &interface,
                                      const TargetProfile &profile,
                                      Location loc) {
  auto mark = std::chrono::steady_clock::now();
  CompiledKernel kernel;
  kernel.interface = interface;
  StringRef symbol = kernel.interface.name;
  if (failed(convertToSpirv(module, profile, kernel.interface)))
    return failure();
  FailureOr<std::vector<uint32_t>> words = serialiseSpirv(module, symbol);
  if (failed(words))
    return failure();
  kernel.times.convert = secondsSince(mark);

  auto refuse = [&](StringRef stage, StringRef message) {
    return emitError(loc) << "kernel '" << symbol << "' " << stage
                          << " for target '" << profile.name
                          << "': " << message;
  };
  std::string message = validateSpirv(*words, profile);
  if (!message.empty())
    return refuse("is not valid SPIR-V", message);
  kernel.times.validate = secondsSince(mark);
  kernel.spirv = optimiseSpirv(*words, profile, message);
  if (kernel.spirv.empty())
    return refuse("cannot be optimised", message);
  kernel.times.optimise = secondsSince(mark);
  message = validateSpirv(kernel.spirv, profile);
  if (!message.empty())
    return refuse("is not valid SPIR-V after optimisation", message);
  kernel.times.validate += secondsSince(mark);
  return kernel;
}

FailureOr<CompiledKernel> compileKernel(StringRef name, DictionaryAttr spec,
                                        const TargetProfile &profile,
                                        Location loc) {
  auto mark = std::chrono::steady_clock::now();
  FailureOr<KernelInterface> interface =
      describeKernel(name, spec, profile, loc);
  if (failed(interface))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> module =
      buildKernel(name, spec, profile, loc);
  if (failed(module))
    return failure();
  double build = secondsSince(mark);
  FailureOr<CompiledKernel> kernel =
      lowerKernel(**module, *interface, profile, loc);
  if (succeeded(kernel))
    kernel->times.build = build;
  return kernel;
}

} // namespace mlir::llm
