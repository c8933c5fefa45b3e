//===- SelfTest.h - does this device compute what the compiler expects?
//---------===//
#pragma once

#include "runtime/Session/Session.h"

namespace sprig {

/// Feeds the package's golden vectors and compares the likeliest token at every
/// position whose margin is above `margin`. Leaves the session empty.
Status selfTest(Session &session, float margin);

} // namespace sprig
