// One case a constraint, named as in PlanOps.td.
// RUN: llm-opt --split-input-file --verify-diagnostics %s

// tensor C1
// expected-error @below {{expects its region to yield one value, but got 0}}
plan.tensor @w layout "raw" bytes 4 {
  plan.yield
}

// -----

// tensor C2
// expected-error @below {{expects at least 1 byte, but got 0}}
plan.tensor @w layout "raw" bytes 0 {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  plan.yield %0 : tensor<1xf32>
}

// -----

// tensor C3
// expected-error @below {{expects an offset that is a multiple of 256, but got 100}}
plan.tensor @w layout "raw" bytes 4 at 100 {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  plan.yield %0 : tensor<1xf32>
}

// -----

// target C1
plan.target @t {
  // expected-error @below {{expects kernels, buffers, caches and programs in a target, but got 'arith.constant'}}
  %0 = arith.constant 1 : i32
}

// -----

// target C2
plan.target @t {
  plan.program @a append width 4 {
  }
  // expected-error @below {{expects one program for each kind and width, but got a second one for 'append' of width 4 after @a}}
  plan.program @b append width 4 {
  }
}

// -----

// target C3
plan.target @t {
  plan.buffer control @a bytes 256
  // expected-error @below {{expects at most one buffer of kind 'control', but got one after @a}}
  plan.buffer control @b bytes 256
}

// -----

// kernel C1
plan.target @t {
  // expected-error @below {{expects one gpu.module or spirv.module in its region, but got 'func.func'}}
  plan.kernel @k "f" {} {
    func.func private @f()
  }
}

// -----

// kernel C1
plan.target @t {
  // expected-error @below {{expects one gpu.module or spirv.module in its region, but got 2 operations}}
  plan.kernel @k "f" {} {
    gpu.module @a {
    }
    gpu.module @b {
    }
  }
}

// -----

// kernel C2
plan.target @t {
  // expected-error @below {{expects device code in one form, but got a region and SPIR-V words}}
  plan.kernel @k "f" {} entry "main" access [1] workgroup [1, 1, 1] spirv dense<1> : tensor<1xi32> {
    gpu.module @a {
    }
  }
}

// -----

// kernel C3
plan.target @t {
  // expected-error @below {{expects entry, access and workgroup beside SPIR-V words, but got no access}}
  plan.kernel @k "f" {} entry "main" workgroup [1, 1, 1] spirv dense<1> : tensor<1xi32>
}

// -----

// kernel C4
plan.target @t {
  // expected-error @below {{expects three workgroup sizes of at least 1, but got array<i32: 8, 0, 1>}}
  plan.kernel @k "f" {} workgroup [8, 0, 1]
}

// -----

// kernel C5
plan.target @t {
  // expected-error @below {{expects a texel format for each binding in access, but got 2 for 1}}
  plan.kernel @k "f" {} access [1] attributes {texel_formats = array<i32: 107, 0>}
}

// -----

// buffer C1
plan.target @t {
  // expected-error @below {{expects at least 1 byte, but got 0}}
  plan.buffer scratch @s bytes 0
}

// -----

// buffer C2
plan.target @t {
  // expected-error @below {{expects no offset on a buffer of kind 'scratch', but got 4096}}
  plan.buffer scratch @s bytes 256 at 4096
}

// -----

// buffer C2
plan.target @t {
  // expected-error @below {{expects an offset that is a multiple of 4096, but got 256}}
  plan.buffer weights @s bytes 256 at 256
}

// -----

// buffer kind
plan.target @t {
  // expected-error @below {{expects a kind, but got 'texture'}}
  plan.buffer texture @s bytes 256
}

// -----

// kv_cache C1
plan.target @t {
  plan.buffer scratch @s bytes 256
  // expected-error @below {{expects a buffer of kind 'kv', but got @s}}
  plan.kv_cache @kv in @s at 0 bytes 256 {layers = 1 : i64, heads = 1 : i64, head_size = 2 : i64, capacity = 32 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0, 128>, slot_bytes = array<i64: 4, 4>}
}

// -----

// kv_cache C1
plan.target @t {
  plan.buffer kv @s bytes 256
  // expected-error @below {{expects its bytes inside @s of 256 bytes, but got 256 + 256}}
  plan.kv_cache @kv in @s at 256 bytes 256 {layers = 1 : i64, heads = 1 : i64, head_size = 2 : i64, capacity = 32 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0, 128>, slot_bytes = array<i64: 4, 4>}
}

// -----

// kv_cache C2
plan.target @t {
  plan.buffer kv @s bytes 256
  // expected-error @below {{expects heads of at least 1, but got 0}}
  plan.kv_cache @kv in @s at 0 bytes 256 {layers = 1 : i64, heads = 0 : i64, head_size = 2 : i64, capacity = 32 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0, 128>, slot_bytes = array<i64: 4, 4>}
}

// -----

// kv_cache C3
plan.target @t {
  plan.buffer kv @s bytes 256
  // expected-error @below {{expects planes inside the 256 bytes of a layer, but got 32 slots of 4 bytes at 129}}
  plan.kv_cache @kv in @s at 0 bytes 256 {layers = 1 : i64, heads = 1 : i64, head_size = 2 : i64, capacity = 32 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0, 129>, slot_bytes = array<i64: 4, 4>}
}

// -----

// kv_cache C3
plan.target @t {
  plan.buffer kv @s bytes 256
  // expected-error @below {{expects as many plane_offsets as slot_bytes, but got 1 and 2}}
  plan.kv_cache @kv in @s at 0 bytes 256 {layers = 1 : i64, heads = 1 : i64, head_size = 2 : i64, capacity = 32 : i64, key_type = "f16", value_type = "f16", plane_offsets = array<i64: 0>, slot_bytes = array<i64: 4, 4>}
}

// -----

// program C1
plan.target @t {
  // expected-error @below {{expects a width of at least 1, but got 0}}
  plan.program @p append width 0 {
  }
}

// -----

// program C2
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects views, scratch values, dispatches and barriers in a program, but got 'arith.constant'}}
    %0 = arith.constant 1 : i32
  }
}

// -----

// view C1
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects a buffer of the target, but got @missing}}
    %0 = plan.view @missing at 0 bytes 4
  }
}

// -----

// view C2
plan.target @t {
  plan.buffer kv @s bytes 512
  plan.program @p append width 1 {
    // expected-error @below {{expects a range inside @s of 512 bytes, but got 300 bytes at 256}}
    %0 = plan.view @s at 256 bytes 300
  }
}

// -----

// view C3
plan.target @t {
  plan.buffer kv @s bytes 512
  plan.program @p append width 1 {
    // expected-error @below {{expects an offset that is a multiple of 256, but got 4}}
    %0 = plan.view @s at 4 bytes 4
  }
}

// -----

// weight C1
plan.target @t {
  plan.buffer kv @s bytes 512
  plan.program @p append width 1 {
    // expected-error @below {{expects a tensor of the module, but got @s}}
    %0 = plan.weight @s at 0 bytes 4
  }
}

// -----

// weight C2
plan.tensor @w layout "raw" bytes 4 {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  plan.yield %0 : tensor<1xf32>
}
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects a range inside @w of 4 bytes, but got 8 bytes at 0}}
    %0 = plan.weight @w at 0 bytes 8
  }
}

// -----

// weight C3
plan.tensor @w layout "raw" bytes 400 {
  %0 = arith.constant dense<1.0> : tensor<100xf32>
  plan.yield %0 : tensor<100xf32>
}
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects an offset that is a multiple of 256, but got 128}}
    %0 = plan.weight @w at 128 bytes 8
  }
}

// -----

// scratch C1
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects at least 1 byte, but got 0}}
    %0 = plan.scratch "x" bytes 0
  }
}

// -----

// slice C1
plan.target @t {
  plan.program @p append width 1 {
    %0 = plan.scratch "x" bytes 512
    // expected-error @below {{expects a range inside its source of 512 bytes, but got 512 bytes at 256}}
    %1 = plan.slice %0 at 256 bytes 512
  }
}

// -----

// slice C2
plan.target @t {
  plan.program @p append width 1 {
    %0 = plan.scratch "x" bytes 512
    // expected-error @below {{expects an offset that is a multiple of 256, but got 1}}
    %1 = plan.slice %0 at 1 bytes 4
  }
}

// -----

// dispatch C1
plan.target @t {
  plan.program @p append width 1 {
    // expected-error @below {{expects a kernel of the target, but got @missing}}
    plan.dispatch @missing() groups [1, 1, 1]
  }
}

// -----

// dispatch C2
plan.target @t {
  plan.kernel @k "f" {} access [1, 2]
  plan.program @p append width 1 {
    %0 = plan.scratch "x" bytes 512
    // expected-error @below {{expects the bindings of @k array<i32: 1, 2>, but got array<i32: 2>}}
    plan.dispatch @k(out %0) groups [1, 1, 1]
  }
}

// -----

// dispatch C3
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    // expected-error @below {{expects three group counts of at least 1, but got array<i32: 1, 0, 1>}}
    plan.dispatch @k() groups [1, 0, 1]
  }
}

// -----

// dispatch C4
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    %0 = plan.scratch "x" bytes 8
    // expected-error @below {{expects an indirect count of at least 12 bytes, but got 8}}
    plan.dispatch @k() groups [1, 1, 1] indirect %0
  }
}

// -----

// dispatch C5
plan.tensor @w layout "raw" bytes 4 {
  %0 = arith.constant dense<1.0> : tensor<1xf32>
  plan.yield %0 : tensor<1xf32>
}
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    %0 = plan.weight @w at 0 bytes 4
    // expected-error @below {{expects weights to be read only, but binding 0 writes one}}
    plan.dispatch @k(inout %0) groups [1, 1, 1]
  }
}

// -----

// dispatch bindings
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    %0 = plan.scratch "x" bytes 4
    // expected-error @below {{expects in, out or inout before a binding, but got 'read'}}
    plan.dispatch @k(read %0) groups [1, 1, 1]
  }
}

// -----

// dispatch C6
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    // expected-error @below {{expects a base of three numbers of at least 0, but got array<i32: 0, -1, 0>}}
    plan.dispatch @k() groups [1, 1, 1] base [0, -1, 0]
  }
}

// -----

// dispatch C6
plan.target @t {
  plan.kernel @k "f" {}
  plan.program @p append width 1 {
    %0 = plan.scratch "counts" bytes 12
    // expected-error @below {{expects either a base or an indirect count, but got both}}
    plan.dispatch @k() groups [1, 1, 1] base [0, 0, 0] indirect %0
  }
}
