// A matrix that a quantised checkpoint splits into several tensors.
#ifndef SPRIG_LIB_IMPORT_QUANTISEDMATRIX_H
#define SPRIG_LIB_IMPORT_QUANTISEDMATRIX_H

#include "lib/Weights/WeightSource.h"

namespace mlir::llm {

enum class QuantMethod {
  None,
  CompressedTensors, ///< packed or plain codes, low bits first
  GPTQ,              ///< words along K
  AWQ,               ///< words along N, interleaved
  FP8,               ///< F8_E4M3 or F8_E5M2, a scale a block of rows and columns
};

/// What the configuration promises of every quantised matrix.
struct CheckpointQuantisation {
  QuantMethod method = QuantMethod::None;
  int64_t bits = 0;
  int64_t group = 0;          ///< columns that share a scale; 0: the whole row
  int64_t rows = 1;           ///< rows that share a scale; 0: all
  bool isFloat = false;       ///< floats of 8 bits instead of integers
  sprig::quant::Format floats = sprig::quant::Format::F8E4M3; ///< which ones
  bool symmetric = true;      ///< no zero points
  int64_t activationBits = 0; ///< of inputs, quantised a token; 0: not
};

/// The tensors of one quantised matrix.
struct QuantisedMatrix {
  int64_t rows = 0, columns = 0; ///< of the matrix
  const WeightTensor *codes = nullptr, *scales = nullptr;
  const WeightTensor *zeros = nullptr;  ///< null: none
  const WeightTensor *groups = nullptr; ///< of each column; null: in order
  bool packed = false; ///< codes lie in words, else one a number
  CheckpointQuantisation how;
};

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_QUANTISEDMATRIX_H
