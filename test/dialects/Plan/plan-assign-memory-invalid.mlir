// RUN: llm-opt --split-input-file --plan-assign-memory --verify-diagnostics %s

plan.target @unwritten {
  plan.kernel @f "f" {}
  plan.program @append_1 append width 1 {
    %a = plan.scratch "hidden" bytes 1024
    // expected-error @below {{expects scratch value 'hidden' to be written before it is read}}
    plan.dispatch @f(in %a) groups [1, 1, 1]
  }
}

// -----

plan.target @twice {
  // expected-error @below {{expects no scratch buffer before memory is assigned; run plan-assign-memory once}}
  plan.buffer scratch @scratch bytes 1024
}
