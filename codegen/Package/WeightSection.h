// The weight section as it is written: one pass from front to back, hashed in
// chunks, whatever the size of the model.
#ifndef SPRIG_CODEGEN_PACKAGE_WEIGHTSECTION_H
#define SPRIG_CODEGEN_PACKAGE_WEIGHTSECTION_H

#include "dialects/Plan/Plan.h"
#include "lib/Weights/OutputFile.h"
#include "mlir/IR/BuiltinOps.h"
#include <vector>

namespace mlir::llm {

/// As `Chunk` of the package format.
struct SectionChunk {
  uint64_t offset, bytes, hash;
};

/// Collects bytes into chunks of format::kChunkBytes, hashes and writes each as
/// it fills.
class SectionStream {
public:
  /// The section starts at `base` of the file.
  SectionStream(OutputFile &file, uint64_t base) : file(file), base(base) {}

  llvm::Error append(std::span<const std::byte> bytes);
  /// Zeros up to `offset` of the section.
  llvm::Error padTo(uint64_t offset);
  /// Writes what is left of the last chunk.
  llvm::Error finish();

  uint64_t offset() const { return written + pending.size(); }
  const std::vector<SectionChunk> &chunks() const { return list; }

private:
  llvm::Error flush();

  OutputFile &file;
  uint64_t base;
  std::vector<std::byte> pending;
  std::vector<SectionChunk> list;
  uint64_t written = 0;
};

/// Bytes of the section that the placed tensors of `module` need, in whole
/// pages.
uint64_t sectionBytes(ModuleOp module);

/// The chunks of a section of that size, not hashed yet.
std::vector<SectionChunk> emptyChunks(uint64_t sectionBytes);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_WEIGHTSECTION_H
