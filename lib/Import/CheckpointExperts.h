// Experts, as a config.json states them.
#ifndef SPRIG_LIB_IMPORT_CHECKPOINTEXPERTS_H
#define SPRIG_LIB_IMPORT_CHECKPOINTEXPERTS_H

#include "lib/Import/ConfigKeys.h"
#include "lib/Import/Family.h"

namespace mlir::llm {

/// Reads how many there are, which layers have them, and how a token chooses;
/// the layers of `config` have their dense widths before.
void readExperts(ConfigKeys &keys, const Family &family, ModelConfig &config);

} // namespace mlir::llm

#endif // SPRIG_LIB_IMPORT_CHECKPOINTEXPERTS_H
