// What tests of the runtime use.
#include "SprigPchStd.h"

#include <gtest/gtest.h>
