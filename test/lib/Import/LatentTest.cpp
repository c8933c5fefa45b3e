// Latent attention, routing in groups, and layers that predict further tokens:
// what an import makes of them, and what it refuses.
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/ImportTesting.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using nlohmann::json;

namespace {

class LatentTest : public ImportTest {
protected:
  /// The variant with changed keys; null takes a key away.
  std::string change(StringRef variant, const json &changes) {
    EXPECT_FALSE(bool(writeVariant(variant, folder.string())));
    json config = json::parse(std::ifstream(path("config.json")));
    config.update(changes);
    for (const auto &[key, value] : changes.items())
      if (value.is_null())
        config.erase(key);
    std::ofstream(path("config.json")) << config;
    ImportOptions options;
    options.folder = folder.string();
    auto imported = importModel(&context, folder.string(), options);
    if (!imported)
      return llvm::toString(imported.takeError());
    module = std::move(*imported);
    return "";
  }
};

TEST_F(LatentTest, HeadsAreMadeBeforeTheCache) {
  ASSERT_EQ(change("deepseek-v2", json::object()), "");
  const KVType cache = all<KVCacheOp>().front().getCacheType();
  EXPECT_EQ(cache.getHeads(), 4);
  EXPECT_EQ(cache.getKeyWidth(), 24);
  EXPECT_EQ(cache.getValueWidth(), 12);
  for (RopeOp rope : all<RopeOp>()) {
    EXPECT_EQ(rope.getRotatedDims(), 8);
    EXPECT_TRUE(rope.getInterleaved());
  }
}

TEST_F(LatentTest, RoutesAsTheConfigurationSays) {
  ASSERT_EQ(change("deepseek-v3", json::object()), "");
  RouteOp route = all<RouteOp>().front();
  EXPECT_EQ(route.getScore(), ScoreKind::Sigmoid);
  EXPECT_TRUE(route.getBias() && route.getNormalise());
  EXPECT_EQ(route.getGroups().value_or(0), 4u);
  EXPECT_EQ(route.getTopGroups().value_or(0), 2u);
  EXPECT_FLOAT_EQ(route.getScale()->convertToFloat(), 2.5f);
  // The keys that published configurations have, and transformers leaves out.
  ASSERT_EQ(change("deepseek-v2", {{"scoring_func", "softmax"},
                                   {"topk_method", "greedy"},
                                   {"moe_layer_freq", 1},
                                   {"ep_size", 1},
                                   {"seq_aux", true},
                                   {"aux_loss_alpha", 0.001}}),
            "");
  route = all<RouteOp>().front();
  EXPECT_EQ(route.getScore(), ScoreKind::Softmax);
  EXPECT_FALSE(route.getBias() || route.getNormalise() || route.getGroups());
  // DeepSeek-V2, unlike its lite sister.
  ASSERT_EQ(change("deepseek-v2", {{"topk_method", "group_limited_greedy"},
                                   {"n_group", 3},
                                   {"topk_group", 2}}),
            "");
  route = all<RouteOp>().front();
  EXPECT_EQ(route.getGroups().value_or(0), 3u);
  EXPECT_TRUE(route.getByBest());
}

TEST_F(LatentTest, RefusesByName) {
  EXPECT_MESSAGE(change("deepseek-v2", {{"topk_method", "random"}}),
                 "topk_method expects greedy, group_limited_greedy or noaux_tc, "
                 "but got 'random'");
  EXPECT_MESSAGE(change("deepseek-v2", {{"norm_topk_prob", true}}),
                 "norm_topk_prob expects false");
  EXPECT_MESSAGE(change("deepseek-v2", {{"scoring_func", "relu"}}),
                 "scoring_func expects softmax or sigmoid, but got 'relu'");
  EXPECT_MESSAGE(change("deepseek-v3", {{"n_group", 3}}),
                 "n_group expects groups of two experts or more, equal parts of "
                 "the 8, but got 3");
  EXPECT_MESSAGE(change("deepseek-v3", {{"topk_group", 1}}),
                 "topk_group expects 1 to 4 groups that hold the 3 experts of a "
                 "token, but got 1");
  EXPECT_MESSAGE(change("deepseek-v3", {{"num_key_value_heads", 2}}),
                 "expects the 4 heads of latent attention, but got 2");
  EXPECT_MESSAGE(change("deepseek-v3", {{"kv_lora_rank", 31}}),
                 "kv_a_proj_with_mqa.weight' to be 39x64 by the metadata");
  EXPECT_MESSAGE(change("llama", {{"kv_lora_rank", 32}}),
                 "kv_lora_rank expects to be absent, for attention over latents "
                 "is not supported");
}

TEST_F(LatentTest, LayersThatPredictFurtherTokensAreLeftOutAndNamed) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
  });
  ASSERT_EQ(change("mimo-two-heads-on", json::object()), "");
  EXPECT_NE(said.find("holds 'model.mtp_layers.0', a layer that predicts "
                      "further tokens; it is left out"),
            std::string::npos)
      << said;
  auto about = (*module)->getAttrOfType<DictionaryAttr>("llm.model");
  EXPECT_EQ(about.getAs<StringAttr>("left_out"),
            "model.mtp_layers.0, model.mtp_layers.1");
  // What is not announced is a part of the model that would be lost.
  EXPECT_MESSAGE(change("mimo-two-heads-on", {{"num_nextn_predict_layers", 1}}),
                 "but got 16 more: model.mtp_layers.1");
  EXPECT_MESSAGE(change("llama", {{"num_nextn_predict_layers", 1}}),
                 "multi-token prediction is not supported");
}

} // namespace
