#include "codegen/Package/WeightSection.h"

#include "runtime/Format/Header.h"
#include "llvm/Support/xxhash.h"

namespace mlir::llm {

using namespace sprig::format;

llvm::Error SectionStream::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto part = bytes.first(
        std::min<size_t>(bytes.size(), kChunkBytes - pending.size()));
    pending.insert(pending.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (pending.size() == kChunkBytes)
      if (llvm::Error error = flush())
        return error;
  }
  return llvm::Error::success();
}

llvm::Error SectionStream::padTo(uint64_t target) {
  static constexpr std::byte zeros[kPageBytes] = {};
  while (offset() < target)
    if (llvm::Error error = append(
            std::span(zeros).first(std::min(target - offset(), kPageBytes))))
      return error;
  return llvm::Error::success();
}

llvm::Error SectionStream::flush() {
  auto data = reinterpret_cast<const uint8_t *>(pending.data());
  list.push_back({written, pending.size(),
                  llvm::xxh3_64bits(ArrayRef<uint8_t>(data, pending.size()))});
  if (llvm::Error error = file.writeAt(base + written, pending))
    return error;
  written += pending.size();
  pending.clear();
  return llvm::Error::success();
}

llvm::Error SectionStream::finish() {
  return pending.empty() ? llvm::Error::success() : flush();
}

uint64_t sectionBytes(ModuleOp module) {
  uint64_t end = 0;
  for (plan::TensorOp tensor : module.getOps<plan::TensorOp>())
    if (auto offset = tensor.getOffset())
      end = std::max<uint64_t>(
          end, plan::alignTo(*offset + tensor.getBytes(), plan::kPageBytes));
  return end;
}

std::vector<SectionChunk> emptyChunks(uint64_t sectionBytes) {
  std::vector<SectionChunk> chunks;
  for (uint64_t offset = 0; offset < sectionBytes; offset += kChunkBytes)
    chunks.push_back({offset, std::min(kChunkBytes, sectionBytes - offset), 0});
  return chunks;
}

} // namespace mlir::llm
