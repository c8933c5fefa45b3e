// For any processor.
#define SPRIG_PRODUCTS_LEVEL Baseline
#include "lib/Reference/Math/ProductKernels.inc"
