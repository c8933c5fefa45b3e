// The block decoders and encoders behind the table of formats, grouped by
// family. Use quant::decode and quant::encode.
#ifndef SPRIG_LIB_QUANT_DECODERS_H
#define SPRIG_LIB_QUANT_DECODERS_H

#include "lib/Quant/Format.h"

#include <cstddef>

namespace sprig::quant {

#define SPRIG_DECODER(name)                                                    \
  void decode##name(const std::byte *src, float *dst, size_t blocks)
#define SPRIG_ENCODER(name)                                                    \
  void encode##name(const float *src, std::byte *dst, size_t blocks)

// DecodePlain.cpp
SPRIG_DECODER(F64);
SPRIG_DECODER(F32);
SPRIG_DECODER(F16);
SPRIG_DECODER(BF16);
SPRIG_DECODER(F8E4M3);
SPRIG_DECODER(F8E5M2);
SPRIG_DECODER(F8E8M0);
SPRIG_DECODER(I8);
SPRIG_DECODER(I16);
SPRIG_DECODER(I32);
SPRIG_DECODER(I64);
SPRIG_DECODER(U8);
SPRIG_DECODER(U16);
SPRIG_DECODER(U32);
SPRIG_DECODER(U64);

// DecodeLegacy.cpp: blocks of 32 and the four-bit floats
SPRIG_DECODER(Q4_0);
SPRIG_DECODER(Q4_1);
SPRIG_DECODER(Q5_0);
SPRIG_DECODER(Q5_1);
SPRIG_DECODER(Q8_0);
SPRIG_DECODER(IQ4_NL);
SPRIG_DECODER(MXFP4);
SPRIG_DECODER(NVFP4);

// DecodeK.cpp: blocks of 256 with scales of scales, and ternary blocks
SPRIG_DECODER(Q2_K);
SPRIG_DECODER(Q3_K);
SPRIG_DECODER(Q4_K);
SPRIG_DECODER(Q5_K);
SPRIG_DECODER(Q6_K);
SPRIG_DECODER(TQ1_0);
SPRIG_DECODER(TQ2_0);
SPRIG_DECODER(IQ4_XS);

// DecodeGrid.cpp: codes that index a grid of vectors
SPRIG_DECODER(IQ2_XXS);
SPRIG_DECODER(IQ2_XS);
SPRIG_DECODER(IQ2_S);
SPRIG_DECODER(IQ3_XXS);
SPRIG_DECODER(IQ3_S);
SPRIG_DECODER(IQ1_S);
SPRIG_DECODER(IQ1_M);

// Encode.cpp, EncodeK.cpp
SPRIG_ENCODER(F64);
SPRIG_ENCODER(F32);
SPRIG_ENCODER(F16);
SPRIG_ENCODER(BF16);
SPRIG_ENCODER(Q4_0);
SPRIG_ENCODER(Q4_1);
SPRIG_ENCODER(Q5_0);
SPRIG_ENCODER(Q5_1);
SPRIG_ENCODER(Q8_0);
SPRIG_ENCODER(Q4_K);
SPRIG_ENCODER(Q5_K);
SPRIG_ENCODER(Q6_K);

// Affine.cpp: the rows of the table for formats of groups, and their names
const FormatInfo *affineInfo(Format format);
std::optional<Format> affineOfName(std::string_view name);

#undef SPRIG_DECODER
#undef SPRIG_ENCODER

} // namespace sprig::quant

#endif // SPRIG_LIB_QUANT_DECODERS_H
