// Configurations as families are published with: keys of the software that wrote them, which say nothing of the model,
// change nothing.
#include "lib/Reference/Evaluator.h"
#include "test/lib/Import/GeneratedCheckpoint.h"
#include "test/lib/Import/ImportTesting.h"
#include "test/lib/Import/QuantisedCheckpoint.h"

#include <nlohmann/json.hpp>
#include <numeric>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using nlohmann::json;
using reference::Tensor;

namespace {

class PublishedConfigs : public ImportTest {
protected:
  void write(StringRef variant) {
    std::filesystem::create_directories(path("model"));
    ASSERT_FALSE(::llvm::errorToBool(writeVariant(variant, path("model"))));
  }
  void change(const char *changes) {
    json config = json::parse(std::ifstream(path("model/config.json")));
    config.merge_patch(json::parse(changes)); // null takes a key away
    std::ofstream(path("model/config.json")) << config;
  }
  std::vector<double> logits() {
    ImportOptions options;
    options.folder = folder.string();
    auto imported = importModel(&context, path("model"), options);
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      return {};
    }
    auto evaluator = reference::Evaluator::create(**imported, folder.string());
    const std::vector<int32_t> ids{3, 14, 15, 9, 2, 6};
    std::vector<int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    auto results = evaluator->run("forward", {Tensor::ids(ids), Tensor::ids(positions), Tensor::ids(positions)});
    return succeeded(results) ? results->front().toDoubles() : std::vector<double>();
  }
};

struct Published {
  const char *variant, *keys;
};

const Published kPublished[] = {
    // SmolLM2, and Llama 2 and 3
    {"llama", R"({"is_llama_config": true, "neftune_noise_alpha": null, "rope_interleaved": false, "rope_scaling": null,
      "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}}, "transformers_version": "4.42.3"})"},
    {"llama", R"({"_name_or_path": "x", "max_length": 4096, "temperature": 0.6, "top_p": 0.9, "do_sample": true,
      "pad_token_id": 0, "eos_token_id": [2, 3, 4]})"},
    {"qwen2", R"({"use_mrope": false, "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 21})"},
    {"qwen3", R"({"use_sliding_window": false, "sliding_window": null, "max_window_layers": 28})"},
    {"gemma2", R"({"cache_implementation": "hybrid", "eos_token_id": [1, 107]})"},
    {"gemma3", R"({"cache_implementation": "hybrid", "_sliding_window_pattern": 6})"},
    // Phi 3 and Phi 4
    {"phi3", R"({"embd_pdrop": 0.0, "resid_pdrop": 0.0, "auto_map": {"AutoConfig": "x"}, "attention_bias": false})"},
    {"phi3", R"({"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false})"},
    {"stablelm", R"({"qk_layernorm": false, "use_parallel_residual": false, "hidden_dropout": 0.0})"},
    {"gpt2", R"({"attn_pdrop": 0.1, "summary_type": "cls_index", "summary_use_proj": true, "n_ctx": 128,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}})"},
    {"mixtral", R"({"output_router_logits": false, "router_aux_loss_coef": 0.02})"},
    {"deepseek-v2", R"({"aux_loss_alpha": 0.001, "seq_aux": true, "ep_size": 1, "pretraining_tp": 1})"},
    {"baichuan", R"({"_from_model_config": true, "tokenizer_class": "BaichuanTokenizer", "model_max_length": 4096})"},
    {"baichuan-alibi", R"({"gradient_checkpointing": [false]})"},
    {"minicpm", R"({"model_type": null})"}, // "MiniCPMForCausalLM" says it
    {"mimo", R"({"use_mrope": false, "auto_map": {"AutoConfig": "x"}})"},
    {"smollm3", R"({"transformers.js_config": {}, "max_window_layers": 28, "use_sliding_window": false})"},
};

TEST_F(PublishedConfigs, KeysThatSayNothing) {
  for (const Published &one : kPublished) {
    write(one.variant);
    const std::vector<double> plain = logits();
    change(one.keys);
    EXPECT_EQ(logits(), plain) << one.variant << " with " << one.keys;
    EXPECT_FALSE(plain.empty());
  }
}

TEST_F(PublishedConfigs, MiniCpmSharesItsTableUnlessItSaysOtherwise) {
  write("minicpm");
  auto tensors = readPlain(path("model"));
  ASSERT_TRUE(bool(tensors));
  llvm::erase_if(*tensors, [](const PlainTensor &tensor) { return tensor.key == "lm_head.weight"; });
  ASSERT_FALSE(::llvm::errorToBool(writePlain(*tensors, path("model"), path("model"))));
  change(R"({"tie_word_embeddings": null})");
  EXPECT_FALSE(logits().empty());
}

TEST_F(PublishedConfigs, ModelsOfSeveralModalitiesAreRefusedByName) {
  write("gemma3");
  change(R"({"model_type": "gemma3", "text_config": {"hidden_size": 64}, "vision_config": {}})");
  EXPECT_MESSAGE(messageOf(importModel(&context, path("model"), {})),
                 "model_type expects a model of text alone, but got 'gemma3', which is one of several modalities");
}

} // namespace
