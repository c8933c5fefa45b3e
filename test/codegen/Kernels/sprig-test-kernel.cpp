// For lit tests and experiments: shows what one kernel becomes, or times it on
// the device.
//
//   sprig-test-kernel FAMILY '{width = 576 : i64, …}' --target=lavapipe
//   --emit=mlir|interface|spirv|times
//                     [-o FILE.spv] [--choose=rows=4 …] [--time --width=T
//                     --dispatches=N --rounds=N --base=S]
#include "Device.h"
#include "codegen/Kernels/Registry.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/Format/Control.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace mlir;

static cl::opt<std::string> family(cl::Positional, cl::Required,
                                   cl::desc("FAMILY"));
static cl::opt<std::string> specText(cl::Positional, cl::Required,
                                     cl::desc("SPEC"));
static cl::opt<std::string> target("target", cl::init("lavapipe"));
static cl::opt<std::string> emit("emit", cl::init("mlir"));
static cl::opt<std::string> output("o", cl::init(""));
static cl::opt<bool> timed("time");
static cl::opt<unsigned> width("width", cl::init(1));
static cl::opt<unsigned> rounds("rounds", cl::init(5));
static cl::opt<unsigned> base("base", cl::init(0),
                              cl::desc("slot of the step's first token"));
static cl::list<std::string>
    choices("choose",
            cl::desc("schedule choices that replace the profile's: rows=4"));
static cl::opt<unsigned> dispatches("dispatches", cl::init(10));

static void printInterface(const mlir::llm::KernelInterface &interface) {
  llvm::outs() << "name: " << interface.name << "\nkey: " << interface.key
               << "\nworkgroup: " << interface.workgroup[0] << " "
               << interface.workgroup[1] << " " << interface.workgroup[2]
               << "\nshared: " << interface.sharedBytes
               << "\nsubgroup: " << interface.subgroupSize
               << "\ntoken tile: " << interface.tokenTile << "\n";
  for (auto [i, binding] : llvm::enumerate(interface.bindings))
    llvm::outs() << "binding " << i << ": " << binding.role << " access "
                 << unsigned(binding.access) << " bytes " << binding.bytes
                 << (binding.perToken ? " a token" : "") << "\n";
  auto groups = interface.groupsFor(width);
  llvm::outs() << "groups for " << width << ": " << groups[0] << " "
               << groups[1] << " " << groups[2] << "\n";
}

static int timeKernel(const mlir::llm::CompiledKernel &kernel) {
  std::string why;
  auto device = mlir::llm::test::Device::open(why);
  if (!device) {
    llvm::errs() << why << "\n";
    return 1;
  }
  const mlir::llm::KernelInterface &interface = kernel.interface;
  std::vector<mlir::llm::test::Bytes> buffers;
  uint64_t total = 0;
  uint32_t state = 1;
  uint32_t rows = (width + interface.tokenTile - 1) / interface.tokenTile *
                  interface.tokenTile;
  for (const mlir::llm::KernelBinding &binding : interface.bindings) {
    auto &bytes =
        buffers.emplace_back(binding.bytes * (binding.perToken ? rows : 1));
    // Small normal numbers, whether read as f32 or as pairs of f16.
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      state = state * 1664525u + 1013904223u;
      uint32_t word = (state >> 2 & 0x03ff03ffu) | 0x3c003c00u;
      for (int j = 0; j < 4; ++j)
        bytes[i + j] = uint8_t(word >> 8 * j);
    }
    total += bytes.size();
    if (binding.role != "control")
      continue;
    auto set = [&](sprig::format::ControlWord word, uint32_t value) {
      std::memcpy(&bytes[4 * word], &value, 4);
    };
    set(sprig::format::Base, base);
    set(sprig::format::Count, width);
  }
  auto best = device->time(kernel.interface, kernel.spirv, buffers, width,
                           dispatches, rounds);
  if (!best) {
    llvm::errs() << "the kernel did not run\n";
    return 1;
  }
  llvm::outs() << llvm::formatv(
      "{0} width {1}: {2:f3} ms, {3:f3} ms of processor, {4:f2} GB/s\n",
      interface.name, width.getValue(), best->wall * 1e3, best->processor * 1e3,
      double(total) / best->wall / 1e9);
  return 0;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "prints or times one kernel\n");
  MLIRContext context;
  mlir::llm::loadKernelDialects(context);
  auto profile = mlir::llm::findProfile(target);
  if (!profile) {
    llvm::errs() << llvm::toString(profile.takeError()) << "\n";
    return 1;
  }
  if (!choices.empty()) {
    mlir::llm::ScheduleRule rule;
    for (StringRef choice : choices) {
      auto [name, value] = choice.split('=');
      int64_t number;
      if (value.getAsInteger(10, number))
        rule.choices[name.str()] = value.str();
      else
        rule.choices[name.str()] = number;
    }
    profile->schedules[family] = {rule};
  }
  auto spec =
      dyn_cast_or_null<DictionaryAttr>(parseAttribute(specText, &context));
  if (!spec) {
    llvm::errs() << "expects a dictionary attribute, but got " << specText
                 << "\n";
    return 1;
  }
  Location loc = UnknownLoc::get(&context);
  if (emit == "interface") {
    auto interface = mlir::llm::describeKernel(family, spec, *profile, loc);
    if (failed(interface))
      return 1;
    printInterface(*interface);
    return 0;
  }
  if (emit == "mlir" && !timed && output.empty()) {
    auto module = mlir::llm::buildKernel(family, spec, *profile, loc);
    if (failed(module))
      return 1;
    (*module)->print(llvm::outs());
    return 0;
  }
  auto kernel = mlir::llm::compileKernel(family, spec, *profile, loc);
  if (failed(kernel))
    return 1;
  if (emit == "times")
    llvm::outs() << llvm::formatv(
        "{0}: build {1:f1} convert {2:f1} validate {3:f1} optimise {4:f1} ms, "
        "{5} bytes\n",
        kernel->interface.name, kernel->times.build * 1e3,
        kernel->times.convert * 1e3, kernel->times.validate * 1e3,
        kernel->times.optimise * 1e3, kernel->spirv.size() * 4);
  if (!output.empty()) {
    std::error_code error;
    llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_None);
    if (error) {
      llvm::errs() << output << ": " << error.message() << "\n";
      return 1;
    }
    file.os().write(reinterpret_cast<const char *>(kernel->spirv.data()),
                    kernel->spirv.size() * 4);
    file.keep();
  }
  return timed ? timeKernel(*kernel) : 0;
}
