// Evaluates IR given as text, for tests.
#ifndef SPRIG_TEST_LIB_REFERENCE_EVALUATE_H
#define SPRIG_TEST_LIB_REFERENCE_EVALUATE_H

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Evaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace mlir::llm::reference {

/// A module and its evaluator. Diagnostics are kept as text.
class Program {
public:
  explicit Program(const std::string &text, const Options &options = {}, StringRef folder = "")
      : handler(&context, [this](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; }) {
    context.loadDialect<LLMDialect, func::FuncDialect, arith::ArithDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
    if (module)
      evaluator = Evaluator::create(*module, folder, options);
    else
      ADD_FAILURE() << messages;
  }

  /// Results of a function, or none with a failure recorded.
  SmallVector<Tensor> run(ArrayRef<Tensor> inputs, StringRef function = "f") {
    if (!evaluator)
      return {};
    auto results = evaluator->run(function, inputs);
    if (succeeded(results))
      return *results;
    ADD_FAILURE() << messages;
    return {};
  }

  /// The message of a run that must fail.
  std::string fail(ArrayRef<Tensor> inputs, StringRef function = "f") {
    messages.clear();
    if (evaluator && succeeded(evaluator->run(function, inputs)))
      ADD_FAILURE() << "expected an error";
    return messages;
  }

  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Evaluator> evaluator;
};

inline Tensor numbers(ArrayRef<int64_t> shape, const std::vector<double> &values) {
  return Tensor::of<double>(shape, values);
}

inline void expectNear(const Tensor &got, const std::vector<double> &expected, double tolerance) {
  const std::vector<double> values = got.toDoubles();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

inline void expectInts(const Tensor &got, const std::vector<int32_t> &expected) {
  EXPECT_EQ(std::vector<int32_t>(got.as<int32_t>().begin(), got.as<int32_t>().end()), expected);
}

/// Evaluates `text` in both precisions and compares the only result. Attributes are f32, whatever the precision.
inline void expectResult(const std::string &text, ArrayRef<Tensor> inputs, ArrayRef<int64_t> shape,
                         const std::vector<double> &expected, double tolerance = 1e-5) {
  for (Precision precision : {Precision::F32, Precision::F64}) {
    SCOPED_TRACE(precision == Precision::F32 ? "f32" : "f64");
    Options options;
    options.precision = precision;
    options.threads = 2;
    Program program(text, options);
    const auto results = program.run(inputs);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].shape(), shape);
    expectNear(results[0], expected, precision == Precision::F32 ? tolerance : std::min(tolerance, 5e-7));
  }
}

} // namespace mlir::llm::reference

#endif // SPRIG_TEST_LIB_REFERENCE_EVALUATE_H
