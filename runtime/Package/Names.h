//===- Names.h - names of the format's enumerations
//--------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"

#include <string>

namespace sprig {

// `EnumName…` of the generated header answers "" for values outside the
// enumeration; that is checked once, in Package/Verify.h.
inline std::string nameOf(format::BufferKind kind) {
  return format::EnumNameBufferKind(kind);
}
inline std::string nameOf(format::ProgramKind kind) {
  return format::EnumNameProgramKind(kind);
}
inline std::string nameOf(format::Feature feature) {
  return format::EnumNameFeature(feature);
}

/// "sample at width 4".
inline std::string nameOf(const format::Program &program) {
  return nameOf(program.kind()) + " at width " +
         std::to_string(program.width());
}

} // namespace sprig
