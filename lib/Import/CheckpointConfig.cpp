#include "lib/Import/CheckpointConfig.h"

#include "lib/Import/CheckpointExperts.h"
#include "lib/Import/CheckpointQuantisation.h"
#include "lib/Import/CheckpointRope.h"
#include "lib/Import/ConfigKeys.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

static constexpr int64_t kMostLayers = 4096;

static void readSizes(ConfigKeys &keys, ModelConfig &config) {
  config.vocabulary = keys.size("vocab_size");
  config.width = keys.size(keys.first({"hidden_size", "n_embd"}));
  config.context = keys.size(
      keys.first({"max_position_embeddings", "n_positions", "n_ctx",
                  "model_max_length"}));

  const StringRef layersKey = keys.first({"num_hidden_layers", "n_layer"});
  const int64_t layers = keys.size(layersKey);
  if (layers > kMostLayers)
    return keys.fail(layersKey, "expects at most " + Twine(kMostLayers) +
                                    " layers, but got " + Twine(layers));
  const StringRef headsKey = keys.first({"num_attention_heads", "n_head"});
  const int64_t heads = keys.size(headsKey);
  const int64_t kvHeads = keys.size("num_key_value_heads", heads);
  if (heads % kvHeads != 0)
    keys.fail("num_key_value_heads", "expects a divisor of the " +
                                         Twine(heads) + " heads, but got " +
                                         Twine(kvHeads));
  if (config.latent == 0) {
    if (!keys.has("head_dim") && config.width % heads != 0)
      keys.fail(headsKey, "expects a divisor of the width " +
                              Twine(config.width) +
                              " or head_dim beside it, but got " +
                              Twine(heads));
    config.keySize =
        keys.size("head_dim", std::max<int64_t>(1, config.width / heads));
    config.valueSize = config.keySize;
  } else if (kvHeads != heads) {
    keys.fail("num_key_value_heads", "expects the " + Twine(heads) +
                                         " heads of latent attention, but got " +
                                         Twine(kvHeads));
  }
  // GPT-2 says null for four times the width.
  const StringRef feedKey = keys.first({"intermediate_size", "n_inner"});
  const bool mayLack = !keys.has("intermediate_size") && keys.has("n_embd");
  const int64_t feedForward = keys.size(
      feedKey, mayLack ? std::optional(4 * config.width) : std::nullopt);
  config.layers.assign(size_t(layers), {heads, kvHeads, feedForward});
}

/// Sizes of latent attention.
static void readLatents(ConfigKeys &keys, const Family &family,
                        ModelConfig &config) {
  if (!family.latentAttention) {
    keys.refuse("kv_lora_rank", "attention over latents");
    return;
  }
  config.latent = keys.size("kv_lora_rank");
  config.queryLatent = keys.size("q_lora_rank", 0, 0);
  config.rotated = keys.size("qk_rope_head_dim");
  config.keySize = keys.size("qk_nope_head_dim") + config.rotated;
  config.valueSize = keys.size("v_head_dim");
  config.latentEpsilon = 1e-6; // whatever that of the other norms is
  // They repeat what the others say.
  keys.ignore({"head_dim", "qk_head_dim"});
}

static void readActivation(ConfigKeys &keys, ModelConfig &config) {
  const StringRef key =
      keys.first({"hidden_activation", "hidden_act", "activation_function"});
  const std::string name = keys.text(key);
  const auto kind = llvm::StringSwitch<std::optional<ActivationKind>>(name)
                        .Cases({"silu", "swish"}, ActivationKind::Silu)
                        .Case("gelu", ActivationKind::Gelu)
                        .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
                               ActivationKind::GeluTanh)
                        .Case("relu", ActivationKind::Relu)
                        .Case("relu2", ActivationKind::Relu2)
                        .Default(std::nullopt);
  if (!kind)
    return keys.fail(key, "expects silu, gelu, gelu_new, gelu_pytorch_tanh, "
                          "relu or relu2, but got '" +
                              name + "', which is not supported");
  config.activation = *kind;
  // Gemma's early files say gelu beside it, and mean what the newer key says.
  keys.ignore({"hidden_act"});
}

/// Which layers have the window: by a list, or by the family's habit.
static void readWindow(ConfigKeys &keys, const Family &family,
                       ModelConfig &config) {
  const bool used = keys.flag("use_sliding_window", !family.windowByFlag);
  int64_t window = keys.size("sliding_window", 0, 0);
  if (!used)
    window = 0;
  const int64_t first =
      family.windowByFlag ? keys.size("max_window_layers", 28, 0) : 0;
  keys.ignore({"max_window_layers"});
  const int64_t every = keys.size(
      keys.first({"sliding_window_pattern", "_sliding_window_pattern"}),
      family.fullEvery, 0);
  const std::vector<std::string> types = keys.texts("layer_types");
  const int64_t count = int64_t(config.layers.size());
  if (!types.empty() && int64_t(types.size()) != count)
    return keys.fail("layer_types", "expects one of " + Twine(count) +
                                        " layers each, but got " +
                                        Twine(types.size()));
  for (int64_t layer = 0; layer < count; ++layer) {
    bool windowed = layer >= first && (every == 0 || (layer + 1) % every != 0);
    if (!types.empty()) {
      const std::string &type = types[size_t(layer)];
      windowed = type == "sliding_attention";
      if (!windowed && type != "full_attention")
        return keys.fail("layer_types",
                         "expects full_attention or sliding_attention, but "
                         "got '" +
                             type + "' for layer " + Twine(layer));
      if (windowed && window == 0)
        return keys.fail("sliding_window",
                         "expects the window of layer " + Twine(layer) +
                             ", which layer_types says has one, but got none");
    }
    config.layers[size_t(layer)].window = windowed ? window : 0;
  }
}

static void readScales(ConfigKeys &keys, const Family &family,
                       ModelConfig &config) {
  const double scalar =
      keys.positive("query_pre_attn_scalar", double(config.keySize));
  config.attentionScale =
      keys.positive("attention_multiplier", 1.0 / std::sqrt(scalar));
  if (config.latent)
    config.attentionScale *= config.ropes.front().scoreFactor;
  config.embeddingScale = keys.positive(
      "embedding_multiplier",
      family.scaledEmbedding ? std::sqrt(double(config.width)) : 1.0);
  config.residualScale = keys.positive("residual_multiplier", 1.0);
  config.logitScale = 1.0 / keys.positive("logits_scaling", 1.0);
  // MiniCPM's names, of muP: the depth's factor is shared out over the layers.
  if (keys.has("scale_emb"))
    config.embeddingScale = keys.positive("scale_emb");
  if (keys.has("scale_depth"))
    config.residualScale =
        keys.positive("scale_depth") / std::sqrt(double(config.layers.size()));
  if (keys.has("dim_model_base"))
    config.logitScale = keys.positive("dim_model_base") / double(config.width);
  for (auto [key, cap] :
       {std::pair("attn_logit_softcapping", &config.attentionSoftcap),
        std::pair("final_logit_softcapping", &config.logitSoftcap)})
    if (keys.has(key))
      *cap = keys.positive(key);
}

/// What sets Baichuan's models apart: 13B states no positions to turn by and has
/// ALiBi, and 2 has a head whose rows are normalised, which is known by its
/// vocabulary or by a key that configurations of the first do not have.
static void readBaichuan(ConfigKeys &keys, ModelConfig &config) {
  constexpr int64_t kVocabularyOf2 = 125696;
  config.alibi = !keys.has("max_position_embeddings");
  config.normalisedHead =
      keys.size("vocab_size") == kVocabularyOf2 || keys.has("z_loss_weight");
  keys.ignore({"model_max_length", "z_loss_weight"});
}

static void readBiases(ConfigKeys &keys, const Family &family,
                       ModelConfig &config) {
  const bool attention = keys.flag("attention_bias", false);
  config.biasedQKV |= attention || keys.flag("qkv_bias", false) ||
                      keys.flag("use_qkv_bias", false);
  // Families whose queries, keys and values always have biases mean these.
  config.biasedOutput = attention && !family.biasedQKV;
  config.biasedFeedForward = keys.flag("mlp_bias", false);
}

static void refuseOthers(ConfigKeys &keys, const Family &family) {
  keys.refuse("is_encoder_decoder", "an encoder");
  keys.refuse("add_cross_attention", "attention to an encoder");
  keys.refuse("use_bidirectional_attention", "attention to later tokens");
  keys.refuse("scale_attn_by_inverse_layer_idx",
              "a scale of scores by the layer");
  keys.refuse("clip_qkv", "clamping of queries, keys and values");
  keys.refuse("use_parallel_residual", "a parallel residual");
  if (!family.predictLayers)
    keys.refuse("num_nextn_predict_layers", "multi-token prediction");
  keys.refuse("qk_layernorm", "a layer norm of queries and keys");
  keys.refuse("text_config", "a model of several modalities");
  keys.refuse("vision_config", "a model of several modalities");
  // What Phi 4 states and its software does not read.
  for (const char *key : {"full_attn_mod", "interpolate_factor"})
    if (keys.real(key, 1.0) != 1.0)
      keys.fail(key, "expects 1, for another attention is not supported, but "
                     "got " +
                         std::to_string(keys.real(key)));
  if (!keys.flag("scale_attn_weights", true))
    keys.fail("scale_attn_weights", "expects true, for scores without a scale "
                                    "are not supported, but got false");
}

static void ignoreOthers(ConfigKeys &keys) {
  // How the model was made, how software runs it, and what its tokens mean,
  // which is read elsewhere.
  keys.ignore({"architectures",
               "attention_dropout",
               "attn_pdrop",
               "auto_map",
               "bos_token_id",
               "chunk_size_feed_forward",
               "dtype",
               "embd_pdrop",
               "eos_token_id",
               "id2label",
               "initializer_range",
               "is_decoder",
               "label2id",
               "output_attentions",
               "output_hidden_states",
               "output_router_logits",
               "pad_token_id",
               "pretraining_tp",
               "reorder_and_upcast_attn",
               "resid_pdrop",
               "return_dict",
               "router_aux_loss_coef",
               "router_jitter_noise",
               "summary_first_dropout",
               "summary_proj_to_labels",
               "summary_use_proj",
               "task_specific_params",
               "torch_dtype",
               "transformers.js_config",
               "use_cache",
               "n_ctx",
               "unsloth_fixed",
               "embedding_dropout",
               "hidden_dropout",
               "tokenizer_class",
               "rope_local_base_freq",
               "gradient_checkpointing",
               "is_llama_config",
               "use_bfloat16",
               "torchscript"});
  // How text was to be generated, which old software wrote here.
  keys.ignore({"max_length", "max_new_tokens", "min_length", "do_sample", "early_stopping", "num_beams",
               "num_beam_groups", "num_return_sequences", "diversity_penalty", "temperature", "top_k", "top_p",
               "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
               "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
               "forced_bos_token_id", "forced_eos_token_id", "sep_token_id", "decoder_start_token_id",
               "output_scores", "remove_invalid_values"});
}

static Expected<json> readJson(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(
        "'" + path + "' cannot be read: " + buffer.getError().message());
  const StringRef text = (*buffer)->getBuffer();
  json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object())
    return llvm::createStringError(
        "'" + path + "' expects a JSON object, but got " +
        (root.is_discarded() ? "no valid JSON" : root.type_name()));
  return root;
}

/// `model_type`; early files of families that software did not carry itself name
/// the class of the model alone.
static std::string modelType(ConfigKeys &keys) {
  if (!keys.has("model_type"))
    for (const std::string &name : keys.texts("architectures")) {
      StringRef family = name;
      if (family.consume_back("ForCausalLM") &&
          findCheckpointFamily(family.lower()))
        return family.lower();
    }
  return keys.text("model_type");
}

Expected<CheckpointConfig>
mlir::llm::readCheckpointConfig(StringRef path,
                                llvm::ArrayRef<StringRef> others) {
  Expected<json> root = readJson(path);
  if (!root)
    return root.takeError();
  std::string failure;
  ConfigKeys keys(path, *root, "", failure);
  const std::string type = modelType(keys);
  const Family *family = findCheckpointFamily(type);
  if (!family && (root->contains("text_config") || root->contains("vision_config")))
    keys.fail("model_type", "expects a model of text alone, but got '" + type +
                                "', which is one of several modalities");
  if (failure.empty() && !family)
    keys.fail("model_type", "expects one of " +
                                familyNames(&Family::checkpoint) +
                                ", but got '" + type + "'");
  if (!failure.empty())
    return llvm::createStringError(failure);
  for (const std::string &name : keys.texts("architectures"))
    if (!StringRef(name).ends_with("ForCausalLM") &&
        !StringRef(name).ends_with("LMHeadModel"))
      keys.fail("architectures",
                "expects a model that predicts the next token, but got '" +
                    name + "'");

  CheckpointConfig result;
  result.family = family;
  ModelConfig &config = result.config;
  const StringRef folder = llvm::sys::path::parent_path(path);
  config.name = llvm::sys::path::filename(folder).str();
  if (config.name.empty() || config.name == ".")
    config.name = type;
  config.architecture = type;
  applyFamily(*family, config);
  config.normOffset = family->gammaLessOne ? 1.0 : 0.0;
  config.tied = keys.flag("tie_word_embeddings", family->tied);
  config.interleavedPairs = family->interleavedInCheckpoint &&
                            keys.flag("rope_interleave", true);

  result.castAsAWhole = root->contains("dtype") && !keys.has("dtype");
  if (type == "baichuan")
    readBaichuan(keys, config);
  readLatents(keys, *family, config);
  readSizes(keys, config);
  config.normEpsilon = keys.real(
      keys.first({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"}));
  if (config.normEpsilon < 0.0)
    keys.fail("rms_norm_eps", "expects a number of at least 0, but got " +
                                  std::to_string(config.normEpsilon));
  readActivation(keys, config);
  readWindow(keys, *family, config);
  readCheckpointRope(keys, *family, config);
  readScales(keys, *family, config);
  readExperts(keys, *family, config);
  readBiases(keys, *family, config);
  if (const json *quantised = keys.child("quantization_config"))
    config.quantisation =
        readQuantisation(keys.within("quantization_config", *quantised));
  if (family->predictLayers)
    config.predictLayers = keys.size("num_nextn_predict_layers", 0, 0);
  refuseOthers(keys, *family);
  ignoreOthers(keys);
  for (StringRef key : others)
    keys.ignore({key});
  keys.finish();
  if (!failure.empty())
    return llvm::createStringError(failure);
  return result;
}
