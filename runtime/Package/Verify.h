//===- Verify.h - what the metadata means holds together
//---------------------===//
//
// The FlatBuffers verifier proves that the tables are well formed; these checks
// prove that every index, offset, size and count refers to something that is
// there. After them the runtime may follow any of them without looking again.
// Device limits are not known here: Vulkan/Requirements.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"
#include "runtime/Support/Status.h"

namespace sprig {

/// Everything below, and the tables they share.
Status verifyMetadata(const format::Package &package, uint64_t weightBytes);

Status verifyTokenizer(const format::Tokenizer &tokenizer, uint32_t vocabulary);
Status verifyTarget(const format::Target &target, const format::Model &model,
                    uint64_t weightBytes);
Status verifyKernel(const format::Kernel &kernel,
                    const format::Requirements &requirements);
/// Of a target whose buffers and kernels are verified.
Status verifyCommand(const format::Command &command,
                     const format::Target &target);
/// That its commands are some of the target's.
Status verifyProgram(const format::Program &program,
                     const format::Target &target);

} // namespace sprig
