// Constant tables of the code-book formats: which numbers a code stands for.
// The values are facts of the file format, as published by ggml
// (https://github.com/ggml-org/ggml, MIT licence) and its Python package
// `gguf`.
#ifndef SPRIG_LIB_QUANT_CODETABLES_H
#define SPRIG_LIB_QUANT_CODETABLES_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace sprig::quant {

/// The 16 non-linear steps of IQ4_NL and IQ4_XS.
inline constexpr int8_t kIQ4Values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Twice the numbers of FP4 E2M1 (OCP Microscaling Formats 1.0, section 5.3.3).
inline constexpr int8_t kE2M1Doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

/// NF4 (QLoRA, arXiv 2305.14314, appendix E): quantiles of a normal
/// distribution scaled to [-1, 1].
inline constexpr float kNF4[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
    0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

template <size_t entries, size_t width>
using Grid = std::array<std::array<int8_t, width>, entries>;

// Unpacked on first use, then shared.
const Grid<256, 8> &gridIQ2_XXS();
const Grid<512, 8> &gridIQ2_XS();
const Grid<1024, 8> &gridIQ2_S();
const Grid<256, 4> &gridIQ3_XXS();
const Grid<512, 4> &gridIQ3_S();
const Grid<2048, 8> &gridIQ1(); ///< of IQ1_S and IQ1_M

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_CODETABLES_H
