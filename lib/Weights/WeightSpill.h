// The safetensors file beside a tool's output that takes weights with new
// numbers (quantised, recovered, factorised). What was written can be read at
// once, so that a later pass or an evaluation sees it; the file gets its name
// when the tool finishes.
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTSPILL_H
#define SPRIG_LIB_WEIGHTS_WEIGHTSPILL_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/MappedFile.h"
#include "lib/Weights/SafetensorsWriter.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::llm {

class WeightSpill final : public WeightSource {
public:
  /// `path` is where the file will be; `sourcePath` the same as an `llm.source`
  /// names it.
  static llvm::Expected<std::unique_ptr<WeightSpill>>
  create(StringRef path, StringRef sourcePath);

  StringRef formatName() const override { return "safetensors"; }
  uint64_t fileBytes() const override { return writer->dataBytes(); }
  void release(std::span<const std::byte> range) const override;

  using Write = llvm::function_ref<llvm::Error(std::span<const std::byte>)>;

  /// Adds a tensor and gives it back as an `llm.weight` at the builder's place.
  /// A key that was used before gets a number behind it. `fill` writes the rows
  /// from first to last, in any number of pieces: numbers of a float or integer
  /// type, or whole GGUF blocks for a quantised type in the `gguf` layout (kept
  /// in the file as bytes). Errors are at `location`.
  ///
  /// One thread at a time.
  FailureOr<Value> add(OpBuilder &builder, Location location, StringRef key,
                       RankedTensorType type,
                       llvm::function_ref<llvm::Error(Write)> fill);
  /// The same with all bytes at hand.
  FailureOr<Value> add(OpBuilder &builder, Location location, StringRef key,
                       RankedTensorType type, std::span<const std::byte> bytes);

  llvm::Error finish();

private:
  WeightSpill(StringRef path, StringRef sourcePath,
              std::unique_ptr<SafetensorsWriter> writer)
      : WeightSource(path), sourcePath(sourcePath.str()),
        writer(std::move(writer)) {}
  llvm::Error write(StringRef key, RankedTensorType type,
                    llvm::function_ref<llvm::Error(Write)> fill);
  /// The symbol of the `llm.source` of this file in the module around `at`,
  /// which is made where it is missing.
  FailureOr<StringRef> symbolIn(Operation *at);

  std::string sourcePath;
  std::unique_ptr<SafetensorsWriter> writer;
  bool finished = false;
  std::vector<MappedFile> maps;
  std::vector<std::unique_ptr<std::string>> keys;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_WEIGHTSPILL_H
