#include "lib/Calibration/ActivationSource.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::llm;

namespace {
class Empty final : public ActivationSource {
public:
  int64_t available() const override { return 7; }
  LogicalResult visit(func::FuncOp, const CalibrationOptions &, ActivationVisitor &) override { return failure(); }
  LogicalResult statistics(func::FuncOp, const CalibrationOptions &, const StatisticsRequest &,
                           LayerCallback) override {
    return failure();
  }
};
} // namespace

TEST(ActivationSource, AContextHasOneOrNone) {
  MLIRContext context;
  EXPECT_EQ(ActivationSource::of(&context), nullptr);
  ActivationSource::attach(&context, std::make_shared<Empty>());
  ASSERT_NE(ActivationSource::of(&context), nullptr);
  EXPECT_EQ(ActivationSource::of(&context)->available(), 7);
  ActivationSource::attach(&context, nullptr);
  EXPECT_EQ(ActivationSource::of(&context), nullptr);
}
