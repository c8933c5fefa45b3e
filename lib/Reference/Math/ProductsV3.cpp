// For x86-64-v3: AVX2 and fused multiply-add.
#define SPRIG_PRODUCTS_LEVEL V3
#include "lib/Reference/Math/ProductKernels.inc"
