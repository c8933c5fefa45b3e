#include "tools/Tune/KernelBench.h"

#include "runtime/Format/SpirvCodec.h"
#include "runtime/Vulkan/Buffers.h"
#include "runtime/Vulkan/RecordedProgram.h"
#include "tools/Support/Process.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::llm {
namespace {

using namespace sprig;

constexpr uint64_t kAlign = 256;        // Header.h: kAlignment
constexpr uint64_t kCopies = 32u << 20; // bytes of weights to go around
constexpr unsigned kMostDispatches = 16;

llvm::Error toError(const Status &status) {
  return llvm::createStringError(status.message());
}

/// A package's target with one kernel and one program of `dispatches`, each on
/// another copy of what does not grow with tokens.
class OneKernel {
public:
  OneKernel(const CompiledKernel &kernel, unsigned copies,
            unsigned dispatches) {
    const KernelInterface &interface = kernel.interface;
    auto name = builder.CreateString(interface.name);
    std::vector<uint32_t> texels;
    uint32_t uniform = 0;
    for (auto [i, binding] : llvm::enumerate(interface.bindings)) {
      texels.push_back(uint32_t(binding.texel));
      uniform |= uint32_t(binding.uniform) << i;
    }
    auto made = format::CreateKernel(
        builder, name, builder.CreateString(interface.family),
        builder.CreateString(interface.key), builder.CreateString("main"),
        builder.CreateVector(format::encodeSpirv(kernel.spirv)), interface.workgroup[0],
        interface.workgroup[1], interface.workgroup[2],
        uint32_t(interface.bindings.size()), interface.pushConstantBytes,
        interface.sharedBytes, interface.subgroupSize, uniform,
        builder.CreateVector(texels));
    // Command 0 is the barrier, those after it the dispatches.
    std::vector<flatbuffers::Offset<format::Command>> commands;
    commands.push_back(format::CreateCommand(builder, 0,
                                             format::CreateBarrier(builder)));
    for (unsigned i = 0; i < copies; ++i)
      commands.push_back(dispatch(interface, i));
    std::vector<uint32_t> order;
    for (unsigned i = 0; i < dispatches; ++i) {
      if (i)
        order.push_back(0);
      order.push_back(1 + i % copies);
    }
    auto program = format::CreateProgram(builder, format::ProgramKind::append,
                                         interface.tokenTile,
                                         builder.CreateVector(order));
    auto kernels = builder.CreateVector(&made, 1);
    auto programs = builder.CreateVector(&program, 1);
    auto buffers = builder.CreateVector(
        std::vector<flatbuffers::Offset<format::Buffer>>{});
    auto caches = builder.CreateVector(
        std::vector<flatbuffers::Offset<format::KvCache>>{});
    auto pool = builder.CreateVector(commands);
    builder.Finish(format::CreateTarget(
        builder, builder.CreateString("tuning"),
        format::CreateRequirements(builder), kernels, buffers, programs, caches,
        /*drivers=*/0, pool));
  }
  const format::Target &target() const {
    return *flatbuffers::GetRoot<format::Target>(builder.GetBufferPointer());
  }

private:
  flatbuffers::Offset<format::Command>
  dispatch(const KernelInterface &interface, uint64_t copy) {
    std::vector<format::Binding> bindings;
    for (auto [i, binding] : llvm::enumerate(interface.bindings)) {
      uint64_t bytes =
          binding.bytes * (binding.perToken ? interface.tokenTile : 1);
      uint64_t offset =
          binding.perToken ? 0 : copy * llvm::alignTo(bytes, kAlign);
      bindings.emplace_back(offset, bytes, uint32_t(i),
                            uint32_t(binding.access));
    }
    auto groups = interface.groupsFor(interface.tokenTile);
    auto list = builder.CreateVectorOfStructs(bindings);
    return format::CreateCommand(
        builder, format::CreateDispatch(builder, 0, 0, list, 0, groups[0],
                                        groups[1], groups[2]));
  }

  flatbuffers::FlatBufferBuilder builder;
};

class Loaded final : public LoadedKernel {
public:
  Loaded(const CompiledKernel &kernel, std::shared_ptr<vulkan::Device> used,
         std::shared_ptr<vulkan::CommandPool> pool,
         const vulkan::Buffers &shared, unsigned copies, unsigned count)
      : device(std::move(used)), buffers(shared), dispatches(count),
        code(kernel, copies, count) {
    for (auto [i, binding] : llvm::enumerate(kernel.interface.bindings))
      if (binding.access != Access::Read)
        outputs.push_back(i);
    status = prepare(std::move(pool));
  }

  Status prepare(std::shared_ptr<vulkan::CommandPool> pool) {
    auto cache = vulkan::PipelineCache::open(device, "");
    if (!cache.ok())
      return cache.status();
    pipelines = std::make_unique<vulkan::Pipelines>(device, *cache,
                                                    code.target());
    if (Status made = pipelines->ensure({0}); !made.ok())
      return made;
    std::vector<VkBuffer> handles;
    for (size_t i = 0; i < buffers.size(); ++i)
      handles.push_back(buffers.handle(i));
    auto recorded = vulkan::RecordedProgram::record(
        std::move(pool), *pipelines, code.target(),
        *code.target().programs()->Get(0), handles,
        /*timed=*/device->physical().timestampBits != 0);
    if (!recorded.ok())
      return recorded.status();
    program = std::move(*recorded);
    auto made = vulkan::Fence::create(device);
    if (!made.ok())
      return made.status();
    fence = std::move(*made);
    // Drivers finish compiling when a kernel first runs.
    return time() ? Status() : Status(StatusCode::DeviceError, "did not run");
  }

  std::optional<double> time() override {
    tools::Stopwatch clock;
    VkCommandBuffer commands = program->commands().front();
    if (!fence.reset().ok() ||
        !device->submit(&commands, 1, fence.handle()).ok() ||
        !fence.wait("a tuning").ok())
      return std::nullopt;
    double processor = clock.ofProcessor(), wall = clock.seconds();
    if (device->physical().properties.deviceType ==
        VK_PHYSICAL_DEVICE_TYPE_CPU)
      return processor / dispatches;
    if (device->physical().timestampBits == 0)
      return wall / dispatches;
    auto stamps = program->times();
    if (!stamps.ok())
      return std::nullopt;
    return stamps->back() * 1e-9 / dispatches;
  }

  std::vector<float> output() override {
    std::vector<float> numbers;
    for (size_t i : outputs) {
      const auto *from = static_cast<const float *>(buffers.mapped(i));
      numbers.insert(numbers.end(), from, from + buffers.bytes(i) / 4);
    }
    return numbers;
  }

  Status status;

private:
  std::shared_ptr<vulkan::Device> device;
  const vulkan::Buffers &buffers;
  unsigned dispatches;
  OneKernel code;
  std::vector<size_t> outputs;
  std::unique_ptr<vulkan::Pipelines> pipelines;
  std::unique_ptr<vulkan::RecordedProgram> program;
  vulkan::Fence fence;
};

class Bench final : public KernelBench {
public:
  explicit Bench(std::shared_ptr<vulkan::Device> used)
      : device(std::move(used)) {}

  Status prepare(const KernelInterface &interface) {
    auto made = vulkan::CommandPool::create(device);
    if (!made.ok())
      return made.status();
    pool = *made;
    uint64_t fixed = 0;
    for (const KernelBinding &binding : interface.bindings)
      if (!binding.perToken)
        fixed += llvm::alignTo(binding.bytes, kAlign);
    copies = unsigned(std::clamp<uint64_t>(
        kCopies / std::max<uint64_t>(fixed, 1), 1, kMostDispatches));
    dispatches = std::max(copies, 2u);
    std::vector<vulkan::BufferRequest> requests;
    for (const KernelBinding &binding : interface.bindings)
      requests.push_back({binding.role,
                          binding.perToken
                              ? binding.bytes * interface.tokenTile
                              : llvm::alignTo(binding.bytes, kAlign) * copies,
                          vulkan::Placement::Shared});
    auto allocated = vulkan::Buffers::allocate(device, requests);
    if (!allocated.ok())
      return allocated.status();
    buffers = std::move(*allocated);
    fill();
    return {};
  }

  llvm::Expected<std::unique_ptr<LoadedKernel>>
  load(const CompiledKernel &kernel) override {
    auto loaded = std::make_unique<Loaded>(kernel, device, pool, buffers,
                                           copies, dispatches);
    if (!loaded->status.ok())
      return toError(loaded->status);
    return loaded;
  }

private:
  /// Small normal numbers, whether read as f32 or as pairs of f16; as codes,
  /// any.
  void fill() {
    uint32_t state = 1;
    for (size_t i = 0; i < buffers.size(); ++i) {
      auto *words = static_cast<uint32_t *>(buffers.mapped(i));
      for (uint64_t j = 0; j < buffers.bytes(i) / 4; ++j) {
        state = state * 1664525u + 1013904223u;
        words[j] = (state >> 2 & 0x03ff03ffu) | 0x3c003c00u;
      }
    }
  }

  std::shared_ptr<vulkan::Device> device;
  std::shared_ptr<vulkan::CommandPool> pool;
  vulkan::Buffers buffers;
  unsigned copies = 1, dispatches = 1;
};

} // namespace

llvm::Expected<TuneDevice> TuneDevice::open(const std::string &wanted,
                                            const TargetProfile &profile) {
  auto instance = vulkan::Instance::create({});
  if (!instance.ok())
    return toError(instance.status());
  auto devices = vulkan::listDevices(**instance);
  if (!devices.ok())
    return toError(devices.status());
  auto physical = vulkan::chooseDevice(*devices, wanted);
  if (!physical.ok())
    return toError(physical.status());
  vulkan::DeviceOptions options;
  std::vector<std::string> lacks;
  for (unsigned i = 0; i < kFeatureCount; ++i) {
    if (!profile.has(Feature(i)))
      continue;
    options.features.push_back(format::Feature(i));
    if (!physical->supports(format::Feature(i)))
      lacks.push_back(featureName(Feature(i)).str());
  }
  uint32_t subgroup = physical->subgroup.subgroupSize;
  bool size = profile.subgroupSize == 0 || subgroup == profile.subgroupSize ||
              (physical->subgroupSizeControl &&
               physical->minSubgroup <= profile.subgroupSize &&
               profile.subgroupSize <= physical->maxSubgroup);
  if (!size)
    lacks.push_back("subgroups of " + std::to_string(profile.subgroupSize));
  if (!lacks.empty())
    return llvm::createStringError("expects a device that fits target '" +
                                   profile.name + "', but " + physical->name +
                                   " lacks " + llvm::join(lacks, ", "));
  auto device = vulkan::Device::create(*instance, *physical, options);
  if (!device.ok())
    return toError(device.status());
  TuneDevice opened;
  opened.device = *device;
  return opened;
}

std::string TuneDevice::name() const {
  return device->physical().name + ", " + device->physical().driver;
}

bool TuneDevice::onProcessor() const {
  return device->physical().properties.deviceType ==
         VK_PHYSICAL_DEVICE_TYPE_CPU;
}

llvm::Expected<std::unique_ptr<KernelBench>>
KernelBench::create(const TuneDevice &device,
                    const KernelInterface &interface) {
  auto bench = std::make_unique<Bench>(device.handle());
  if (Status status = bench->prepare(interface); !status.ok())
    return toError(status);
  return bench;
}

} // namespace mlir::llm
