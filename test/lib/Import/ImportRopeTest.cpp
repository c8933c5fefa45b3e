// Rotary embedding: what files say of it, and the frequencies that come of it.
#include "lib/Import/Rope.h"
#include "test/lib/Import/ImportTesting.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

TEST_F(ImportTest, RopeTurnsNeighboursByTheBase) {
  import(SmallModel().key("rope.freq_base", 100000.0f));
  RopeOp rope = all<RopeOp>().front();
  EXPECT_EQ(rope.getBase()->convertToFloat(), 100000.0f);
  EXPECT_TRUE(rope.getInterleaved());
  EXPECT_FALSE(rope.getDims()) << "the whole head turns";
  EXPECT_FALSE(rope.getScale());
  EXPECT_FALSE(rope.getFrequencies());
}

TEST_F(ImportTest, RopeOfAPartOfTheHead) {
  import(SmallModel().key("rope.dimension_count", uint32_t(4)));
  EXPECT_EQ(*all<RopeOp>().front().getDims(), 4u);
  EXPECT_EQ(all<RopeOp>().front().getBase()->convertToFloat(), 10000.0f) << "the default";
}

TEST_F(ImportTest, LinearScalingIsAFactorOnPositions) {
  import(SmallModel().key("rope.scaling.type", "linear").key("rope.scaling.factor", 4.0f));
  EXPECT_EQ(all<RopeOp>().front().getScale()->convertToFloat(), 0.25f);
  import(SmallModel().key("rope.scale_linear", 2.0f));
  EXPECT_EQ(all<RopeOp>().front().getScale()->convertToFloat(), 0.5f) << "the name in old files";
  import(SmallModel().key("rope.scaling.type", "none").key("rope.scaling.factor", 4.0f));
  EXPECT_FALSE(all<RopeOp>().front().getScale());
}

TEST_F(ImportTest, FactorsDivideFrequencies) {
  SmallModel model;
  model.tensors["rope_freqs.weight"] = {4};
  model.values["rope_freqs.weight"] = {1, 2, 4, 8};
  import(model);
  RopeOp rope = all<RopeOp>().front();
  EXPECT_FALSE(rope.getBase());
  auto weight = rope.getFrequencies().getDefiningOp<WeightOp>();
  ASSERT_TRUE(weight && weight.isInline());
  const std::vector<float> expected{1.0f, 0.05f, 0.0025f, 0.000125f}; // 10000^(-2i/8) / factor
  size_t pair = 0;
  for (float value : weight.getValueAttr().getValues<float>())
    EXPECT_FLOAT_EQ(value, expected[pair++]);
  EXPECT_EQ(pair, 4u);
  for (RopeOp other : all<RopeOp>())
    EXPECT_EQ(other.getFrequencies(), rope.getFrequencies()) << "one table for all layers";
}

TEST_F(ImportTest, YarnMakesFrequenciesAndAnAmplitude) {
  import(SmallModel()
             .key("rope.scaling.type", "yarn")
             .key("rope.scaling.factor", 4.0f)
             .key("rope.scaling.original_context_length", uint32_t(32)));
  RopeOp rope = all<RopeOp>().front();
  EXPECT_TRUE(rope.getFrequencies());
  EXPECT_FLOAT_EQ(rope.getAmplitude()->convertToFloat(), float(1 + 0.1 * std::log(4.0)));
}

// 32 turns over 2,048 positions belong to pair 8.06, one turn to pair 20.1: up to pair 8 frequencies are kept, from 21
// on divided.
TEST(Rope, YarnRampsBetweenKeptAndDivided) {
  RopeConfig config;
  config.dimensions = 64;
  config.scaling = RopeScaling::Yarn;
  config.factor = 8;
  config.originalContext = 2048;
  const RopeAngles angles = ropeAngles(config);
  ASSERT_EQ(angles.frequencies.size(), 32u);
  const auto trained = [](double pair) { return std::pow(10000.0, -2 * pair / 64); };
  EXPECT_FLOAT_EQ(angles.frequencies[0], 1.0f);
  EXPECT_FLOAT_EQ(angles.frequencies[8], float(trained(8)));
  EXPECT_FLOAT_EQ(angles.frequencies[14], float(trained(14) * (7.0 / 13 + 6.0 / 13 / 8))); // six steps of thirteen
  EXPECT_FLOAT_EQ(angles.frequencies[21], float(trained(21) / 8));
  EXPECT_FLOAT_EQ(angles.frequencies[31], float(trained(31) / 8));
  EXPECT_DOUBLE_EQ(angles.magnitude, 1 + 0.1 * std::log(8.0));
}

TEST(Rope, PlainFrequenciesAreRoundedOnce) {
  RopeConfig config;
  config.base = 100000;
  config.dimensions = 64;
  const RopeAngles angles = ropeAngles(config);
  for (int pair = 0; pair < 32; ++pair)
    EXPECT_EQ(angles.frequencies[size_t(pair)], float(std::pow(100000.0, -pair / 32.0)));
  EXPECT_EQ(angles.magnitude, 1.0);
}

} // namespace
