// What the tests of weight expressions share: IR over a file of known tensors.
#ifndef SPRIG_TEST_LIB_WEIGHTS_EXPRTESTING_H
#define SPRIG_TEST_LIB_WEIGHTS_EXPRTESTING_H

#include "lib/Weights/GGUFWriter.h"
#include "lib/Weights/WeightExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <random>

namespace mlir::llm::testing {

class ExprTest : public Scratch {
protected:
  void SetUp() override {
    Scratch::SetUp();
    context.loadDialect<LLMDialect, func::FuncDialect, arith::ArithDialect>();
    store = std::make_unique<WeightStore>(folder.string());
  }

  /// Parses the body of a function. Sources are `@m` ("m.gguf") and `@run`,
  /// which is filled at run time.
  void parse(llvm::StringRef body) {
    const std::string text =
        ("llm.source @m {path = \"m.gguf\", format = \"gguf\"}\n"
         "llm.source @run\n"
         "func.func @f() {\n" +
         body + "\nreturn\n}\n")
            .str();
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << body.str();
  }

  /// What the last operation of the body defines.
  Value last() {
    auto function = *module->getOps<func::FuncOp>().begin();
    return function.front().back().getPrevNode()->getResult(0);
  }

  std::unique_ptr<WeightExpr> open(llvm::StringRef body) {
    parse(body);
    if (!module)
      return nullptr;
    auto expr = openWeightExpr(last(), *store);
    EXPECT_TRUE(succeeded(expr));
    return succeeded(expr) ? std::move(*expr) : nullptr;
  }

  /// The diagnostic that opening the last value gives.
  std::string refusal(llvm::StringRef body) {
    parse(body);
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    EXPECT_TRUE(failed(openWeightExpr(last(), *store)));
    return message;
  }

  static std::vector<std::byte> randomBytes(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::byte &byte : bytes)
      byte = std::byte(random());
    return bytes;
  }

  /// All numbers, read a few rows at a time.
  static std::vector<double> numbers(const WeightExpr &expr, int64_t step = 3) {
    std::vector<double> all(size_t(expr.rows() * expr.columns()));
    for (int64_t row = 0; row < expr.rows(); row += step)
      expr.decode(row, std::min(step, expr.rows() - row),
                  all.data() + row * expr.columns());
    return all;
  }

  static std::vector<std::byte> bytes(const WeightExpr &expr,
                                      int64_t step = 3) {
    std::vector<std::byte> all, buffer;
    for (int64_t row = 0; row < expr.rows(); row += step) {
      const auto part =
          expr.read(row, std::min(step, expr.rows() - row), buffer);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<WeightStore> store;
};

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_WEIGHTS_EXPRTESTING_H
