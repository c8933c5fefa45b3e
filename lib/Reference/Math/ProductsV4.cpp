// For x86-64-v4: AVX-512.
#define SPRIG_PRODUCTS_LEVEL V4
#include "lib/Reference/Math/ProductKernels.inc"
