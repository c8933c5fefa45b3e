// Checkpoints of any family in the layouts that GPTQ, AWQ and compressed-tensors write, made from one in floats.
#ifndef SPRIG_TEST_LIB_IMPORT_QUANTISEDCHECKPOINT_H
#define SPRIG_TEST_LIB_IMPORT_QUANTISEDCHECKPOINT_H

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::llm::testing {

/// A tensor of a checkpoint as numbers.
struct PlainTensor {
  std::string key;
  std::vector<int64_t> shape;
  std::vector<float> numbers;

  /// Whether it is the matrix of a product within a layer that quantisers take.
  bool isProduct() const;
};

/// The tensors of `folder`; those of experts are one matrix each, under the names of published checkpoints.
llvm::Expected<std::vector<PlainTensor>> readPlain(llvm::StringRef folder);
/// Tensors as F32 in `folder` (which is made), beside the configuration of the folder `like`.
llvm::Error writePlain(const std::vector<PlainTensor> &tensors, llvm::StringRef like, llvm::StringRef folder);

enum class SplitMethod { GPTQ, GPTQActOrder, AWQ, Packed, PackedActOrder, PackedZeros };

/// Writes the checkpoint `from` twice, its products in codes of 4 bits and groups of 32: the codes to `coded`, and the
/// numbers that they mean to `plain`.
llvm::Error writeSplit(llvm::StringRef from, SplitMethod method, llvm::StringRef coded, llvm::StringRef plain);

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_QUANTISEDCHECKPOINT_H
