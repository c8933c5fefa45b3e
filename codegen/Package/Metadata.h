// The plan of a module as the FlatBuffer of a package.
#ifndef SPRIG_CODEGEN_PACKAGE_METADATA_H
#define SPRIG_CODEGEN_PACKAGE_METADATA_H

#include "codegen/Package/PackageWriter.h"
#include "codegen/Package/WeightSection.h"

namespace mlir::llm {

/// The metadata of `module`, whose plan is complete: places for all tensors and
/// buffers, words for all kernels. Its size does not depend on the hashes of
/// `chunks`. What is not complete is an error on the operation.
FailureOr<std::vector<uint8_t>> buildMetadata(ModuleOp module,
                                              const PackageExtras &extras,
                                              ArrayRef<SectionChunk> chunks);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_PACKAGE_METADATA_H
