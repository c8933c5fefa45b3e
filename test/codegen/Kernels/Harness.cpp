#include "Harness.h"

#include <map>

namespace mlir::llm::test {

static std::string diagnostics;

MLIRContext *context() {
  static MLIRContext *shared = [] {
    DialectRegistry registry;
    registerKernelDialects(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    made->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      diagnostics += (diagnostics.empty() ? "" : "\n") + diagnostic.str();
      return success();
    });
    return made;
  }();
  return shared;
}

std::string takeDiagnostics() { return std::exchange(diagnostics, {}); }

const TargetProfile &profile(StringRef name) {
  static std::map<std::string, TargetProfile> known;
  auto it = known.find(name.str());
  if (it == known.end()) {
    llvm::Expected<TargetProfile> found = findProfile(name);
    if (!found)
      ADD_FAILURE() << llvm::toString(found.takeError());
    it = known.emplace(name.str(), found ? *found : TargetProfile()).first;
  }
  return it->second;
}

const TargetProfile &deviceProfile() {
  return profile(device() && device()->lavapipe() &&
                         device()->subgroupSize() == 8
                     ? "lavapipe"
                     : "generic");
}

const CompiledKernel *compile(StringRef family, DictionaryAttr spec,
                              const TargetProfile &profile) {
  static std::map<std::string, std::optional<CompiledKernel>> known;
  Location loc = UnknownLoc::get(context());
  FailureOr<KernelInterface> interface =
      describeKernel(family, spec, profile, loc);
  if (failed(interface)) {
    ADD_FAILURE() << takeDiagnostics();
    return nullptr;
  }
  auto [it, isNew] = known.try_emplace(profile.name + ": " + interface->key);
  if (isNew) {
    FailureOr<CompiledKernel> kernel =
        compileKernel(family, spec, profile, loc);
    if (succeeded(kernel))
      it->second = std::move(*kernel);
    else
      ADD_FAILURE() << takeDiagnostics();
  }
  return it->second ? &*it->second : nullptr;
}

void run(const CompiledKernel &kernel, std::vector<Bytes> &buffers,
         uint32_t width) {
  std::string error =
      device()->run(kernel.interface, kernel.spirv, buffers, width);
  EXPECT_EQ(error, "") << kernel.interface.key;
}

uint32_t Random::bits() {
  // splitmix64
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return uint32_t((z ^ (z >> 31)) >> 32);
}

std::vector<float> Random::numbers(size_t count) {
  std::vector<float> list(count);
  for (float &value : list)
    value = number();
  return list;
}

} // namespace mlir::llm::test
