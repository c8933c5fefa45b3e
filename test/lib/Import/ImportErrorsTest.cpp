// What an import refuses, and how it says so: file, key or tensor, what was expected, what was there.
#include "test/lib/Import/ImportTesting.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;

namespace {

TEST_F(ImportTest, RefusesOtherArchitectures) {
  const std::string message = refusal(SmallModel("mamba"));
  EXPECT_MESSAGE(message, path("model.gguf"));
  EXPECT_MESSAGE(message, "general.architecture expects one of deepseek2, gemma2, gemma3, gpt2, granite, llama, minicpm, olmo2, "
                          "phi3, qwen2, qwen2moe, qwen3, qwen3moe, smollm3, stablelm, but got 'mamba'");
}

TEST_F(ImportTest, RefusesFilesThatAreNoModels) {
  EXPECT_MESSAGE(messageOf(importModel(&context, path("none.gguf"))), "none.gguf");
  EXPECT_MESSAGE(messageOf(importModel(&context, write("text.gguf", llvm::StringRef("hello, world")))), "text.gguf");
  EXPECT_MESSAGE(messageOf(importModel(&context, folder.string())), "config.json' cannot be read");
  SmallModel model;
  model.metadata.erase("general.architecture");
  EXPECT_MESSAGE(refusal(model), "general.architecture");
}

TEST_F(ImportTest, RefusesMissingKeys) {
  for (const char *key : {"context_length", "block_count", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    const std::string message = refusal(SmallModel().without(key));
    EXPECT_MESSAGE(message, path("model.gguf"));
    EXPECT_MESSAGE(message, "llama." + std::string(key));
  }
}

TEST_F(ImportTest, RefusesKeysOfAnotherType) {
  EXPECT_MESSAGE(refusal(SmallModel().key("block_count", "two")), "llama.block_count");
  EXPECT_MESSAGE(refusal(SmallModel().array("embedding_length", {32, 32})), "llama.embedding_length");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.freq_base", "big")), "llama.rope.freq_base");
  EXPECT_MESSAGE(refusal(SmallModel().array("attention.head_count", {4, 4, 4})), "llama.attention.head_count");
}

TEST_F(ImportTest, RefusesSizesOutOfRange) {
  EXPECT_MESSAGE(refusal(SmallModel().key("block_count", uint32_t(0))),
                 "llama.block_count expects a number from 1 to 16777216, but got 0");
  EXPECT_MESSAGE(refusal(SmallModel().key("block_count", uint32_t(5000))), "expects at most 4096 layers, but got 5000");
  EXPECT_MESSAGE(refusal(SmallModel().key("embedding_length", uint32_t(0xffffffff))), "but got 4294967295");
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.head_count", uint32_t(0x7fffffff))), "but got 2147483647");
  EXPECT_MESSAGE(refusal(SmallModel().key("context_length", int32_t(-1))), "but got -1");
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.layer_norm_rms_epsilon", -1.0f)), "expects a number of at least 0");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.freq_base", 0.0f)), "expects a number above 1, but got 0");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.scaling.factor", -2.0f)), "expects a positive number, but got -2");
}

TEST_F(ImportTest, RefusesHeadsThatDoNotFit) {
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.head_count_kv", uint32_t(3))),
                 "llama.attention.head_count_kv expects a divisor of the 4 heads of layer 0, but got 3");
  EXPECT_MESSAGE(refusal(SmallModel().array("attention.head_count_kv", {2, 0})),
                 "expects a divisor of the 4 heads of layer 1, but got 0");
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.head_count", uint32_t(6))),
                 "llama.attention.head_count expects a divisor of the width 32");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.dimension_count", uint32_t(3))),
                 "llama.rope.dimension_count expects an even number of at most the head size 8, but got 3");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.dimension_count", uint32_t(10))), "but got 10");
}

TEST_F(ImportTest, RefusesFeaturesByName) {
  EXPECT_MESSAGE(refusal(SmallModel("qwen2").key("expert_count", uint32_t(8))),
                 "qwen2.expert_count expects 0, for a mixture of experts is not supported");
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.causal", false)), "llama.attention.causal expects true");
  EXPECT_MESSAGE(refusal(SmallModel().key("attention.clamp_kqv", 8.0f)), "llama.attention.clamp_kqv");
  EXPECT_MESSAGE(refusal(SmallModel().key("use_parallel_residual", true)), "a parallel residual");
  EXPECT_MESSAGE(refusal(SmallModel().key("final_logit_softcapping", -30.0f)), "expects a number of at least 0");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.scaling.type", "longrope")),
                 "llama.rope.scaling.type expects longrope, and tensors rope_factors_long.weight and "
                 "rope_factors_short.weight, but got 'longrope' without them");
  EXPECT_MESSAGE(refusal(SmallModel().key("rope.scaling.type", "ntk")),
                 "llama.rope.scaling.type expects none, linear, longrope or yarn, but got 'ntk'");
  EXPECT_MESSAGE(refusal(SmallModel("minicpm").key("embedding_scale", 12.0f).key("logit_scale", 9.0f)),
                 "minicpm.residual_scale expects a factor, which early files of this family lack, but got none");
  SmallModel divided;
  divided.tensors["rope_factors_long.weight"] = {4};
  EXPECT_MESSAGE(refusal(divided), "expects a tensor 'rope_factors_short.weight'");
  EXPECT_MESSAGE(refusal(SmallModel().key("new_trick", 1.0f)), "llama.new_trick");
  EXPECT_EQ(refusal(SmallModel().key("expert_count", uint32_t(0)).key("attention.causal", true)), "");
}

TEST_F(ImportTest, RefusesMissingTensors) {
  for (const char *name : {"token_embd.weight", "output_norm.weight", "blk.1.attn_v.weight", "blk.0.ffn_down.weight"}) {
    SmallModel model;
    model.tensors.erase(name);
    const std::string message = refusal(model);
    EXPECT_MESSAGE(message, path("model.gguf"));
    EXPECT_MESSAGE(message, "expects a tensor '" + std::string(name) + "'");
  }
}

TEST_F(ImportTest, RefusesTensorsOfAnotherShape) {
  SmallModel model;
  model.tensors["blk.1.ffn_up.weight"] = {32, 48};
  EXPECT_MESSAGE(refusal(model), "expects tensor 'blk.1.ffn_up.weight' to be 48x32 by the metadata, but got 32x48");
  model = SmallModel();
  model.tensors["blk.0.attn_q.bias"] = {16};
  EXPECT_MESSAGE(refusal(model), "expects tensor 'blk.0.attn_q.bias' to be 32 by the metadata, but got 16");
  model = SmallModel().key("vocab_size", uint32_t(17));
  EXPECT_MESSAGE(refusal(model), "expects tensor 'token_embd.weight' to be 17x32 by the metadata, but got 16x32");
}

TEST_F(ImportTest, RefusesTensorsThatNobodyReads) {
  SmallModel model;
  model.tensors["blk.0.attn_q_norm.weight"] = {8};
  EXPECT_MESSAGE(refusal(model), "but got 1 more: blk.0.attn_q_norm.weight");
  model = SmallModel();
  model.tensors["blk.0.attn_rot_embd.weight"] = {4};
  EXPECT_EQ(refusal(model), "") << "nobody ever read these";
}

TEST_F(ImportTest, RefusesMoreTokensThanRows) {
  SmallModel model;
  model.metadata["tokenizer.ggml.tokens"] = [](GGUFWriter &writer, llvm::StringRef key) {
    writer.addStrings(key, std::vector<std::string>(17, "a"));
  };
  EXPECT_MESSAGE(refusal(model), "expects at most the 16 rows of the embedding, but got 17");
}

} // namespace
