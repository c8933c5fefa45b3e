// What an import makes of the metadata and tensors of a file.
#include "test/lib/Import/ImportTesting.h"
#include "test/lib/Weights/TinyLlama.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

TEST_F(ImportTest, ModuleHoldsSymbolsAndForward) {
  import(SmallModel().text("general.name", "Small").text("general.license", "mit"));
  auto forward = module->lookupSymbol<func::FuncOp>("forward");
  ASSERT_TRUE(forward);
  std::string type;
  llvm::raw_string_ostream(type) << forward.getFunctionType();
  EXPECT_EQ(type, "(tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x16xf32>");

  auto source = module->lookupSymbol<SourceOp>("model");
  ASSERT_TRUE(source);
  EXPECT_EQ(*source.getPath(), "model.gguf");
  EXPECT_EQ(*source.getFormat(), "gguf");
  EXPECT_EQ(uint64_t(*source.getBytes()), std::filesystem::file_size(path("model.gguf")));
  EXPECT_FALSE(module->lookupSymbol<TokenizerOp>("tokenizer")) << "the file has no vocabulary";

  auto cache = module->lookupSymbol<KVCacheOp>("kv");
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache.getCount(), 2u);
  EXPECT_EQ(cache.getCacheType().getHeads(), 2);
  EXPECT_EQ(cache.getCacheType().getKeyWidth(), 8);
  EXPECT_EQ(cache.getCacheType().getCapacity(), 128);

  auto model = (*module)->getAttrOfType<DictionaryAttr>("llm.model");
  ASSERT_TRUE(model);
  EXPECT_EQ(model.getAs<StringAttr>("name").getValue(), "Small");
  EXPECT_EQ(model.getAs<StringAttr>("license").getValue(), "mit");
  EXPECT_EQ(model.getAs<IntegerAttr>("vocabulary").getInt(), 16);
  EXPECT_EQ(model.getAs<IntegerAttr>("layers").getInt(), 2);
  EXPECT_EQ(model.getAs<IntegerAttr>("parameters").getInt(),
            16 * 32 + 32 + 2 * (2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32));
}

TEST_F(ImportTest, HeadSharesTheEmbeddingWhereThereIsNoOutput) {
  import(SmallModel());
  EXPECT_EQ(all<LinearOp>().back().getWeight(), all<EmbeddingOp>().front().getTable());
}

TEST_F(ImportTest, HeadIsTheOutputWhereThereIsOne) {
  SmallModel model;
  model.tensors["output.weight"] = {16, 32};
  model.values["output.weight"] = std::vector<float>(16 * 32, 0.5f);
  model.tensors["output.bias"] = {16};
  import(model);
  LinearOp head = all<LinearOp>().back();
  EXPECT_EQ(*head.getWeight().getDefiningOp<WeightOp>().getKey(), "output.weight");
  EXPECT_EQ(*head.getBias().getDefiningOp<WeightOp>().getKey(), "output.bias");
}

TEST_F(ImportTest, AnOutputThatCopiesTheEmbeddingIsNotStoredTwice) {
  SmallModel model;
  model.tensors["output.weight"] = {16, 32};
  import(model);
  EXPECT_EQ(all<LinearOp>().back().getWeight(), all<EmbeddingOp>().front().getTable());
}

TEST_F(ImportTest, HeadSizeIsTheFilesNotTheWidthsShare) {
  SmallModel model;
  model.key("attention.key_length", uint32_t(24)).key("attention.value_length", uint32_t(24));
  for (const char *block : {"blk.0.", "blk.1."}) {
    model.tensors[block + std::string("attn_q.weight")] = {96, 32};
    model.tensors[block + std::string("attn_k.weight")] = {48, 32};
    model.tensors[block + std::string("attn_v.weight")] = {48, 32};
    model.tensors[block + std::string("attn_output.weight")] = {32, 96};
  }
  import(model);
  AttentionOp attention = all<AttentionOp>().front();
  EXPECT_EQ(attention.getType().getShape()[1], 4);
  EXPECT_EQ(attention.getType().getShape()[2], 24);
  EXPECT_FLOAT_EQ(attention.getScale().convertToFloat(), float(1 / std::sqrt(24.0)));
}

TEST_F(ImportTest, ValuesMayBeOfAnotherSizeThanKeys) {
  SmallModel model;
  model.key("attention.key_length", uint32_t(24)).key("attention.value_length", uint32_t(16));
  for (const char *block : {"blk.0.", "blk.1."}) {
    model.tensors[block + std::string("attn_q.weight")] = {96, 32};
    model.tensors[block + std::string("attn_k.weight")] = {48, 32};
    model.tensors[block + std::string("attn_v.weight")] = {32, 32};
    model.tensors[block + std::string("attn_output.weight")] = {32, 64};
  }
  import(model);
  EXPECT_EQ(all<KVCacheOp>().front().getCacheType().getValueWidth(), 16);
  EXPECT_EQ(all<AttentionOp>().front().getType().getShape()[2], 16);
}

TEST_F(ImportTest, BiasesAreKept) {
  SmallModel model;
  model.tensors["blk.0.attn_q.bias"] = {32};
  model.tensors["blk.0.attn_k.bias"] = {16};
  model.tensors["blk.0.attn_v.bias"] = {16};
  model.tensors["blk.0.attn_output.bias"] = {32};
  model.tensors["blk.0.ffn_gate.bias"] = {48};
  model.tensors["blk.0.ffn_up.bias"] = {48};
  model.tensors["blk.0.ffn_down.bias"] = {32};
  import(model);
  std::vector<std::string> keys;
  for (LinearOp linear : all<LinearOp>())
    if (linear.getBias())
      keys.push_back(linear.getBias().getDefiningOp<WeightOp>().getKey()->str());
  EXPECT_EQ(keys, (std::vector<std::string>{"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias",
                                            "blk.0.attn_output.bias", "blk.0.ffn_gate.bias", "blk.0.ffn_up.bias",
                                            "blk.0.ffn_down.bias"}));
}

TEST_F(ImportTest, KeyHeadsAreAsManyAsQueryHeadsWhereNotStated) {
  SmallModel model;
  model.without("attention.head_count_kv");
  for (const char *block : {"blk.0.", "blk.1."}) {
    model.tensors[block + std::string("attn_k.weight")] = {32, 32};
    model.tensors[block + std::string("attn_v.weight")] = {32, 32};
  }
  import(model);
  EXPECT_EQ(all<KVCacheOp>().front().getCacheType().getHeads(), 4);
}

TEST_F(ImportTest, LayersMayDiffer) {
  SmallModel model;
  model.array("attention.head_count", {4, 2}).array("attention.head_count_kv", {2, 1});
  model.array("feed_forward_length", {48, 16});
  model.tensors["blk.1.attn_q.weight"] = {16, 32};
  model.tensors["blk.1.attn_k.weight"] = {8, 32};
  model.tensors["blk.1.attn_v.weight"] = {8, 32};
  model.tensors["blk.1.attn_output.weight"] = {32, 16};
  model.tensors["blk.1.ffn_gate.weight"] = {16, 32};
  model.tensors["blk.1.ffn_up.weight"] = {16, 32};
  model.tensors["blk.1.ffn_down.weight"] = {32, 16};
  import(model);
  ASSERT_EQ(all<KVCacheOp>().size(), 2u);
  EXPECT_EQ(all<KVCacheOp>()[1].getSymName(), "kv1");
  EXPECT_EQ(all<KVCacheOp>()[1].getCacheType().getHeads(), 1);
  EXPECT_EQ(all<KVOp>()[1].getCache(), "kv1");
  EXPECT_EQ(all<KVOp>()[1].getIndex(), 0u);
}

TEST_F(ImportTest, LayersMayLackAttentionOrFeedForward) {
  SmallModel model;
  model.array("attention.head_count", {0, 4}).array("attention.head_count_kv", {0, 2});
  model.array("feed_forward_length", {48, 0});
  for (const char *name : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output"})
    model.tensors.erase("blk.0." + std::string(name) + ".weight");
  for (const char *name : {"ffn_norm", "ffn_gate", "ffn_up", "ffn_down"})
    model.tensors.erase("blk.1." + std::string(name) + ".weight");
  import(model);
  EXPECT_EQ(all<LayerOp>().size(), 2u);
  EXPECT_EQ(all<KVCacheOp>().front().getCount(), 1u);
  EXPECT_EQ(all<AttentionOp>().size(), 1u);
  EXPECT_EQ(all<GatedActivationOp>().size(), 1u);
}

TEST_F(ImportTest, ScalesOfGranite) {
  SmallModel model("granite");
  model.key("embedding_scale", 12.0f).key("residual_scale", 0.25f).key("logit_scale", 8.0f);
  model.key("attention.scale", 0.5f);
  import(model);
  EXPECT_EQ(all<EmbeddingOp>().front().getScale()->convertToFloat(), 12.0f);
  EXPECT_EQ(all<AttentionOp>().front().getScale().convertToFloat(), 0.5f);
  const std::vector<ScaleOp> scales = all<ScaleOp>();
  ASSERT_EQ(scales.size(), 5u); // two a layer, and the logits
  EXPECT_EQ(ScaleOp(scales[0]).getFactor().convertToFloat(), 0.25f);
  EXPECT_EQ(ScaleOp(scales[4]).getFactor().convertToFloat(), 0.125f);
  EXPECT_EQ(all<AddOp>().size(), 4u);
}

TEST_F(ImportTest, LayersWithoutRotationOfSmolLM3) {
  SmallModel model("smollm3");
  model.key("block_count", uint32_t(4));
  for (const auto &[name, shape] : std::map(model.tensors))
    for (int layer = 2; layer < 4 && name.starts_with("blk.1."); ++layer)
      model.tensors["blk." + std::to_string(layer) + name.substr(5)] = shape;
  import(model);
  EXPECT_EQ(all<RopeOp>().size(), 6u);
  EXPECT_TRUE(all<RopeOp>().front().getInterleaved());
}

TEST_F(ImportTest, LayerNormsOfStableLM) {
  SmallModel model("stablelm");
  model.without("attention.layer_norm_rms_epsilon").key("attention.layer_norm_epsilon", 1e-5f);
  model.key("rope.dimension_count", uint32_t(4));
  for (const char *name : {"blk.0.attn_norm", "blk.1.attn_norm", "output_norm"})
    model.tensors[std::string(name) + ".bias"] = {32};
  import(model);
  EXPECT_EQ(all<LayerNormOp>().size(), 5u);
  EXPECT_EQ(all<RopeOp>().front().getDims(), 4);
  EXPECT_FALSE(all<RopeOp>().front().getInterleaved());
}

// Norms before and after each block, of queries and keys; one layer in six without the window, and turned by a base of
// its own.
TEST_F(ImportTest, BlocksOfGemma3) {
  SmallModel model("gemma3");
  model.key("block_count", uint32_t(6)).key("attention.sliding_window", uint32_t(16));
  model.key("rope.freq_base", 1e6f).key("final_logit_softcapping", 30.0f);
  for (const auto &[name, shape] : std::map(model.tensors))
    for (int layer = 2; layer < 6 && name.starts_with("blk.1."); ++layer)
      model.tensors["blk." + std::to_string(layer) + name.substr(5)] = shape;
  for (int layer = 0; layer < 6; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    for (const char *name : {"attn_q_norm.weight", "attn_k_norm.weight"})
      model.tensors[block + name] = {8};
    for (const char *name : {"post_attention_norm.weight", "post_ffw_norm.weight"})
      model.tensors[block + name] = {32};
  }
  import(model);
  EXPECT_FLOAT_EQ(all<EmbeddingOp>().front().getScale()->convertToFloat(), std::sqrt(32.0f));
  EXPECT_EQ(all<RmsNormOp>().size(), 6u * 6 + 1);
  EXPECT_EQ(all<SoftcapOp>().size(), 1u);
  std::vector<AttentionOp> attentions = all<AttentionOp>();
  std::vector<RopeOp> ropes = all<RopeOp>();
  for (size_t layer = 0; layer < 6; ++layer) {
    EXPECT_EQ(attentions[layer].getWindow().value_or(0), layer == 5 ? 0u : 16u) << "layer " << layer;
    EXPECT_EQ(ropes[2 * layer].getBase()->convertToFloat(), layer == 5 ? 1e6f : 1e4f) << "layer " << layer;
  }
  EXPECT_EQ(all<KVCacheOp>().size(), 2u);
  EXPECT_EQ(all<GatedActivationOp>().front().getKind(), ActivationKind::GeluTanh);
}

// A file may say which layers have the window, by a number or for each.
TEST_F(ImportTest, PatternsOfWindows) {
  const auto windows = [&] {
    std::vector<uint64_t> found;
    for (AttentionOp attention : all<AttentionOp>())
      found.push_back(attention.getWindow().value_or(0));
    return found;
  };
  SmallModel model;
  model.key("attention.sliding_window", uint32_t(16)).key("attention.sliding_window_pattern", uint32_t(2));
  import(model);
  EXPECT_EQ(windows(), (std::vector<uint64_t>{16, 0}));
  model.array("attention.sliding_window_pattern", {0, 1});
  import(model);
  EXPECT_EQ(windows(), (std::vector<uint64_t>{0, 16}));
}

TEST_F(ImportTest, PackedProductsAreCut) {
  SmallModel model("phi3");
  for (const char *block : {"blk.0.", "blk.1."}) {
    for (const char *name : {"attn_q.weight", "attn_k.weight", "attn_v.weight", "ffn_gate.weight"})
      model.tensors.erase(block + std::string(name));
    model.tensors[block + std::string("attn_qkv.weight")] = {64, 32};
    model.tensors[block + std::string("ffn_up.weight")] = {96, 32};
  }
  import(model);
  std::vector<std::pair<int64_t, int64_t>> cuts;
  for (SliceOp slice : all<SliceOp>())
    cuts.push_back({slice.getBegin(), slice.getEnd()});
  cuts.resize(5); // of the first layer
  EXPECT_EQ(cuts, (std::vector<std::pair<int64_t, int64_t>>{{0, 32}, {32, 48}, {48, 64}, {0, 48}, {48, 96}}));
}

TEST_F(ImportTest, WindowReachesAttentionAndCache) {
  import(SmallModel().key("attention.sliding_window", uint32_t(16)));
  EXPECT_EQ(*all<AttentionOp>().front().getWindow(), 16u);
  EXPECT_EQ(all<KVCacheOp>().front().getCacheType().getWindow(), 16);
}

TEST_F(ImportTest, ContextIsTheCachesCapacity) {
  ImportOptions options;
  options.capacity = 64;
  import(SmallModel(), options);
  EXPECT_EQ(all<KVCacheOp>().front().getCacheType().getCapacity(), 64);
  import(SmallModel().key("context_length", uint32_t(1 << 20)));
  EXPECT_EQ(all<KVCacheOp>().front().getCacheType().getCapacity(), kDefaultCapacity);
  options.capacity = 129;
  EXPECT_MESSAGE(refusal(SmallModel(), options), "expects a context of 1 to 128, but got 129");
}

TEST_F(ImportTest, ExplicitDequantizeHasOneOpAUse) {
  ImportOptions options;
  options.explicitDequantize = true;
  import(SmallModel(), options);
  EXPECT_TRUE(all<DequantizeOp>().empty()) << "floats need none";

  ASSERT_FALSE(bool(writeTinyLlama(path("tiny.gguf"))));
  llvm::Expected<OwningOpRef<ModuleOp>> imported = importModel(&context, path("tiny.gguf"), options);
  ASSERT_TRUE(bool(imported));
  module = std::move(*imported);
  // Seven products a layer, the embedding and the head, which share one weight.
  EXPECT_EQ(all<DequantizeOp>().size(), 2u * 7 + 2);
  for (DequantizeOp dequantize : all<DequantizeOp>())
    EXPECT_TRUE(dequantize->hasOneUse());
  EXPECT_EQ(all<EmbeddingOp>()[0].getTable().getDefiningOp<DequantizeOp>().getInput(),
            all<LinearOp>().back().getWeight().getDefiningOp<DequantizeOp>().getInput());
}

TEST_F(ImportTest, VersionsAndAlignmentsOfTheFileDoNotMatter) {
  const auto text = [&](uint32_t version, uint64_t alignment) {
    TinyLlamaOptions options;
    options.version = version;
    options.alignment = alignment;
    EXPECT_FALSE(bool(writeTinyLlama(path("tiny.gguf"), options)));
    llvm::Expected<OwningOpRef<ModuleOp>> imported = importModel(&context, path("tiny.gguf"));
    EXPECT_TRUE(bool(imported));
    auto source = (*imported)->lookupSymbol<SourceOp>("model");
    source.removeBytesAttr(); // the one thing that differs
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    (*imported)->print(stream);
    return printed;
  };
  const std::string expected = text(3, 32);
  EXPECT_EQ(text(2, 32), expected);
  EXPECT_EQ(text(3, 64), expected);
}

} // namespace
