// What a config.json says of rotary position embedding, in its old and its new
// spelling.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINTROPE_H
#define SPRIG_LIB_IMPORT_CHECKPOINTROPE_H

#include "lib/Import/ConfigKeys.h"
#include "lib/Import/Family.h"

namespace mlir::llm {

/// Fills `config.ropes` and the rotation of each layer, whose windows are known
/// by now. Old: `rope_theta`, `rope_scaling`, `rope_local_base_freq`; new:
/// `rope_parameters`, for all layers or for each kind of layer.
void readCheckpointRope(ConfigKeys &keys, const Family &family,
                        ModelConfig &config);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINTROPE_H
