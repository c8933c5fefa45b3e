//===- Spirv.h - is this module the kernel that the tables describe?
//---------===//
//
// Walks a module's instructions (SPIR-V specification, sections 2.3 and 3) far
// enough to know that a driver may be given it: the stream is whole, the entry
// point is there with the workgroup size of the tables, every capability is
// covered by a feature that the target requires, and every resource is a
// binding that the dispatches fill. Full validation happened at compile time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"
#include "runtime/Support/Status.h"

namespace sprig {

Status checkSpirv(const format::Kernel &kernel,
                  const format::Requirements &requirements);

} // namespace sprig
