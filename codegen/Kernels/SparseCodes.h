// Codes of 32 numbers from the 16 that a sparse unit stores (lib/Quant/Affine.h).
//
// All lanes of a word are worked on at once. Let V0, V1, … be the words of the codes of rank 0, 1, …: lane i of each
// belongs to neighbours i. With masks M_k, all ones in the lanes whose number k is kept, the word of the numbers k is
//
//   D_k = V_rank & M_k      rank: how many of the numbers before k are kept
//
// Of 2:4, D0 = V0 & M0, D1 = (M0 ? V1 : V0) & M1 and, counted from the other end, D3 = V1 & M3, D2 = (M3 ? V0 : V1) & M2:
// 20 instructions for 32 numbers of 4 bits, whatever was pruned where.
#ifndef SPRIG_CODEGEN_KERNELS_SPARSECODES_H
#define SPRIG_CODEGEN_KERNELS_SPARSECODES_H

#include "codegen/Kernels/KernelBuilder.h"
#include "lib/Quant/Affine.h"

namespace mlir::llm {

/// A code within the words of a unit: `at` is its lowest bit.
struct CodePlace {
  unsigned word, at;
};

/// Where the code of number `k` lies in what spreadCodes() gives back.
CodePlace placeOfSparse(const sprig::quant::AffineFormat &affine, unsigned k);

/// The codes of all numbers of a unit. `words` are its stored codes, `zero` (an i32; null: 0) is what numbers get that
/// are not kept.
Values spreadCodes(KernelBuilder &b, const sprig::quant::AffineFormat &affine, ArrayRef<Value> words, Value pattern,
                   Value zero);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_SPARSECODES_H
