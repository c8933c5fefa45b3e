#include "tools/CompileFiles.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

namespace mlir::llm {

using ::llvm::StringRef;

/// What passes read: `PASS{… file=PATH …}`, under the name of the option that made them.
static ::llvm::Error readFilesOf(StringRef pipeline, OutputGuard &guard) {
  constexpr StringRef kKey = "file=";
  for (size_t at = pipeline.find(kKey); at != StringRef::npos; at = pipeline.find(kKey, at + 1)) {
    const StringRef before = pipeline.take_front(at);
    if (!before.ends_with("{") && !before.ends_with(" "))
      continue;
    const StringRef file = pipeline.drop_front(at + kKey.size()).take_until([](char c) { return c == ' ' || c == '}'; });
    const StringRef called = before.take_front(before.rfind('{'));
    const StringRef option = called.ends_with("llm-attach-heads")  ? "--draft=heads:"
                             : called.ends_with("llm-prune-masks") ? "--prune=mask:"
                                                                   : "--pass-pipeline";
    if (::llvm::Error error = guard.read(option, file.trim("'\"")))
      return error;
  }
  return ::llvm::Error::success();
}

::llvm::Error guardFiles(const CompileOptions &options, OutputGuard &guard) {
  for (const auto &[option, file] : {std::pair<StringRef, StringRef>("SOURCE", options.source),
                                     {"--calibrate", options.calibrationText},
                                     {"--prune=vocabulary:", options.keepTokens},
                                     {"--adapter", options.adapter}})
    if (::llvm::Error error = guard.read(option, file))
      return error;
  for (const SwitchableAdapter &adapter : options.switchable)
    if (::llvm::Error error = guard.read("--switch-adapter", adapter.folder))
      return error;
  for (StringRef target : options.targets)
    if (target.ends_with(".json"))
      if (::llvm::Error error = guard.read("--target", target))
        return error;
  if (::llvm::Error error = readFilesOf(options.passPipeline, guard))
    return error;
  // Kernels go into folders of their own below -o.
  for (const auto &[option, file] :
       {std::pair<StringRef, StringRef>("-o", options.emit == Emit::Spirv ? "" : StringRef(options.output)),
        {"--weights-out", options.weightsOut},
        {"--report", options.report},
        {"--prune-report", options.pruneReport}})
    if (::llvm::Error error = guard.write(option, file))
      return error;
  if (!options.saveTemps.empty())
    for (StringRef stage : {"llm.mlir", "plan.mlir", "spirv.mlir"}) {
      ::llvm::SmallString<128> file(options.saveTemps);
      ::llvm::sys::path::append(file, stage);
      if (::llvm::Error error = guard.write("--save-temps", file))
        return error;
    }
  return ::llvm::Error::success();
}

::llvm::Expected<std::string> newWeightsFile(const CompileOptions &options, OutputGuard &guard) {
  if (!options.weightsOut.empty())
    return options.weightsOut;
  const bool stays = options.emit != Emit::Package && options.emit != Emit::Spirv;
  if (stays && options.output == "-")
    return ::llvm::createStringError("expects a file in --weights-out where IR goes to the standard output, but got none; or "
                                     "name a file in -o, and they go beside it");
  ::llvm::SmallString<128> file(options.output);
  ::llvm::sys::path::replace_extension(file, ".safetensors");
  if (stays)
    if (::llvm::Error error = guard.write("--weights-out (by default beside -o)", file))
      return std::move(error);
  const auto taken = [&] {
    OutputGuard trial = guard;
    return ::llvm::errorToBool(trial.write("", file));
  };
  for (unsigned i = 1; !stays && taken(); ++i)
    ::llvm::sys::path::replace_extension(file = StringRef(options.output), ::llvm::Twine(i) + ".safetensors");
  return file.str().str();
}

} // namespace mlir::llm
