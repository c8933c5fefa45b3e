//===- Grid.h - which workgroups a dispatch runs
//------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"

namespace sprig {

/// Whether it runs a part of a grid that does not start at its first workgroup.
inline bool hasBase(const format::Dispatch &dispatch) {
  return dispatch.base_x() != 0 || dispatch.base_y() != 0 ||
         dispatch.base_z() != 0;
}

} // namespace sprig
