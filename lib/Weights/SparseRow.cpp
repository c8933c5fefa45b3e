#include "lib/Weights/SparseRow.h"

#include "lib/Quant/Patterns.h"

using namespace mlir;
using namespace mlir::llm;

uint32_t weights::bitsOfBytes(const std::byte *bytes, size_t from, unsigned count) {
  uint64_t value = 0;
  for (unsigned have = 0; have < from % 8 + count; have += 8)
    value |= uint64_t(bytes[from / 8 + have / 8]) << have;
  return uint32_t(value >> (from % 8) & ((uint64_t(1) << count) - 1));
}

static size_t pieces(size_t K, Sparsity sparsity) { return (K + sparsity.of - 1) / sparsity.of; }

size_t weights::packedBytes(size_t K, Sparsity sparsity, unsigned bits) {
  return ((sparsity.of ? pieces(K, sparsity) * sparsity.kept : K) * bits + 7) / 8;
}

size_t weights::patternBytes(size_t K, Sparsity sparsity) {
  return (pieces(K, sparsity) * sparsity.patternBits() + 7) / 8;
}

std::vector<uint32_t> weights::readSparseRow(Sparsity sparsity, unsigned bits, const std::byte *packed,
                                             const std::byte *patterns, MutableArrayRef<uint32_t> codes) {
  const size_t K = codes.size();
  const unsigned patternBits = sparsity.patternBits();
  std::vector<uint32_t> kept((K + 31) / 32);
  for (size_t piece = 0; piece < pieces(K, sparsity); ++piece) {
    const uint32_t mask = sprig::quant::patternOfNumber(sparsity.kept, sparsity.of,
                                                        bitsOfBytes(patterns, piece * patternBits, patternBits));
    size_t survivor = piece * sparsity.kept;
    for (size_t place = 0, k = piece * sparsity.of; place < sparsity.of && k < K; ++place, ++k)
      if (mask >> place & 1) {
        codes[k] = bitsOfBytes(packed, survivor++ * bits, bits);
        kept[k / 32] |= 1u << k % 32;
      }
  }
  return kept;
}
