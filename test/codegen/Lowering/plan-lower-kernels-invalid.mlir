// RUN: llm-opt --split-input-file --plan-lower-kernels --verify-diagnostics %s
// RUN: llm-opt --split-input-file --plan-lower-kernels --verify-diagnostics --mlir-disable-threading %s

// expected-error @below {{expects a target among adreno, generic, lavapipe, matrix, nvidia, rdna3, or a profile file ending in .json, but got 'riscv'}}
plan.target @riscv {
}

// -----

plan.target @lavapipe {
  // expected-error @below {{expects a kernel family among}}
  plan.kernel @k "ray_tracing" {}
}

// -----

plan.target @lavapipe {
  // expected-error @below {{rms_factor kernel expects a whole number from 1 to 2147483647 for 'width', but got nothing}}
  plan.kernel @k "rms_factor" {eps = 1.0e-5}
}

// -----

// A capability that the profile lacks, in a kernel that was built by hand.
plan.target @generic {
  plan.kernel @k "rms_factor" {eps = 1.0e-5, width = 576} {
    gpu.module @kernels {
      // expected-error @below {{needs the capability StorageBuffer16BitAccess (feature storage_16bit), which target 'generic' lacks}}
      gpu.func @main(%x: memref<?xf16, #spirv.storage_class<StorageBuffer>>) kernel
          attributes {spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [1, 1, 1]>} {
        gpu.return
      }
    }
  }
}
