// Quantised Hugging Face checkpoints: what `quantization_config` says.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINTQUANTISATION_H
#define SPRIG_LIB_IMPORT_CHECKPOINTQUANTISATION_H

#include "lib/Import/ConfigKeys.h"
#include "lib/Import/QuantisedMatrix.h"

namespace mlir::llm {

/// Reads the object under `quantization_config`. A method, a strategy or a
/// number of bits that is not supported is an error that names it.
CheckpointQuantisation readQuantisation(ConfigKeys keys);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINTQUANTISATION_H
