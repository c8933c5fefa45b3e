#include "lib/Import/GGUFConfig.h"

#include "lib/Import/FamilyKeys.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir::llm;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t kMostLayers = 4096;

static void readLayers(FamilyKeys &keys, ModelConfig &config) {
  const int64_t count = keys.size("block_count");
  if (count > kMostLayers)
    return keys.fail("block_count", "expects at most " + Twine(kMostLayers) +
                                        " layers, but got " + Twine(count));
  const size_t layers = size_t(count);
  const std::vector<int64_t> heads =
      keys.sizePerLayer("attention.head_count", layers);
  const std::vector<int64_t> kvHeads =
      keys.sizePerLayer("attention.head_count_kv", layers, heads);
  const std::vector<int64_t> feedForward =
      keys.sizePerLayer("feed_forward_length", layers);
  for (size_t layer = 0; layer < layers; ++layer) {
    // No query heads: a layer without attention. Queries without keys would be
    // another kind of layer.
    if (heads[layer] != 0 &&
        (kvHeads[layer] == 0 || heads[layer] % kvHeads[layer] != 0))
      keys.fail("attention.head_count_kv",
                "expects a divisor of the " + Twine(heads[layer]) +
                    " heads of layer " + Twine(layer) + ", but got " +
                    Twine(kvHeads[layer]));
    config.layers.push_back({heads[layer], kvHeads[layer], feedForward[layer]});
  }
}

/// Heads of the first layer that attends.
static int64_t headsOf(const ModelConfig &config) {
  const auto attends = [](const LayerConfig &layer) {
    return layer.heads != 0;
  };
  const auto layer = llvm::find_if(config.layers, attends);
  return layer == config.layers.end() ? 1 : layer->heads;
}

/// A size of a head; where the file does not state it, the width shared out
/// among the heads.
static int64_t headSize(FamilyKeys &keys, StringRef key,
                        const ModelConfig &config) {
  const int64_t heads = headsOf(config);
  if (!keys.has(key) && config.width % heads != 0)
    keys.fail("attention.head_count",
              "expects a divisor of the width " + Twine(config.width) + " or " +
                  key + " beside it, but got " + Twine(heads));
  return keys.size(key, std::max<int64_t>(1, config.width / heads));
}

static void readNorm(FamilyKeys &keys, ModelConfig &config) {
  const StringRef key = config.norm == NormKind::Rms
                            ? "attention.layer_norm_rms_epsilon"
                            : "attention.layer_norm_epsilon";
  config.normEpsilon = keys.real(key);
  if (config.normEpsilon < 0.0)
    keys.fail(key, "expects a number of at least 0, but got " +
                       std::to_string(config.normEpsilon));
}

/// Which layers have the window: by a pattern of the file or the family.
static void readWindow(FamilyKeys &keys, const Family &family,
                       ModelConfig &config) {
  constexpr llvm::StringLiteral key = "attention.sliding_window_pattern";
  const int64_t window = keys.size("attention.sliding_window", 0, 0);
  std::vector<int64_t> windowed(config.layers.size(), 1);
  if (keys.isArray(key)) {
    windowed = keys.flagPerLayer(key, config.layers.size());
  } else if (const int64_t every = keys.size(key, family.fullEvery, 0)) {
    for (size_t layer = 0; layer < windowed.size(); ++layer)
      windowed[layer] = (int64_t(layer) + 1) % every != 0;
  }
  for (auto [layer, has] : llvm::zip_equal(config.layers, windowed))
    layer.window = has ? window : 0;
}

static void readRopeScaling(FamilyKeys &keys, const ModelConfig &config,
                            RopeConfig &rope) {
  // Files from before the type existed state only a linear factor, under one of
  // two names.
  const double factor =
      keys.factor("rope.scaling.factor", keys.factor("rope.scale_linear", 1.0));
  // Files of LongRoPE need not say so: they have tensors of divisors.
  const bool isLong = keys.hasTensor("rope_factors_long.weight");
  const std::string scaling =
      keys.text("rope.scaling.type", isLong          ? "longrope"
                                     : factor == 1.0 ? "none"
                                                     : "linear");
  if (factor <= 0.0)
    keys.fail("rope.scaling.factor",
              "expects a positive number, but got " + std::to_string(factor));
  if (isLong || scaling == "longrope") {
    rope.scaling = RopeScaling::Long;
    if (!isLong || scaling != "longrope")
      keys.fail("rope.scaling.type",
                "expects longrope, and tensors rope_factors_long.weight and "
                "rope_factors_short.weight, but got '" +
                    scaling + (isLong ? "'" : "' without them"));
  } else if (scaling == "linear")
    rope.scaling = RopeScaling::Linear;
  else if (scaling == "yarn")
    rope.scaling = RopeScaling::Yarn;
  else if (scaling != "none")
    keys.fail("rope.scaling.type",
              "expects none, linear, longrope or yarn, but got '" + scaling +
                  "'");
  rope.factor = rope.scaling == RopeScaling::None ? 1.0 : factor;
  rope.attentionFactor = keys.factor("rope.scaling.attn_factor", 1.0);
  rope.originalContext =
      keys.size("rope.scaling.original_context_length", config.context);
  rope.extrapolation = keys.real("rope.scaling.yarn_ext_factor", 1.0);
  rope.attentionFactor *= keys.factor("rope.scaling.yarn_attn_factor", 1.0);
  rope.betaFast = keys.factor("rope.scaling.yarn_beta_fast", 32.0);
  rope.betaSlow = keys.factor("rope.scaling.yarn_beta_slow", 1.0);
  keys.ignore("rope.scaling.finetuned");
  if (config.latent == 0)
    return keys.refuse("rope.scaling.yarn_log_multiplier",
                       "a multiplier of the logarithm in YaRN");
  if (rope.scaling != RopeScaling::Yarn || rope.factor <= 1.0)
    return keys.ignore("rope.scaling.yarn_log_multiplier");
  // Scores take the whole magnitude, and rotated vectors none.
  const double magnitude =
      1.0 +
      keys.real("rope.scaling.yarn_log_multiplier") * std::log(rope.factor);
  rope.scoreFactor = magnitude * magnitude;
  rope.attentionFactor /= 1.0 + 0.1 * std::log(rope.factor);
}

static double readBase(FamilyKeys &keys, StringRef key, double absent) {
  const double base = keys.real(key, absent);
  if (base <= 1.0)
    keys.fail(key, "expects a number above 1, but got " + std::to_string(base));
  return base;
}

/// Sizes of latent attention: where the file tells those of heads made from the
/// latent from those of the latent itself, the former count.
static void readLatents(FamilyKeys &keys, const Family &family,
                        ModelConfig &config) {
  if (!family.latentAttention)
    return;
  config.latent = keys.size("attention.kv_lora_rank");
  config.queryLatent = keys.size("attention.q_lora_rank", 0, 0);
  config.keySize = keys.size("attention.key_length_mla", config.keySize);
  config.valueSize = keys.size("attention.value_length_mla", config.valueSize);
  config.latentEpsilon = config.normEpsilon;
  config.rotated = keys.size("rope.dimension_count", std::nullopt, 2);
  if (config.rotated >= config.keySize)
    keys.fail("rope.dimension_count",
              "expects fewer than the " + Twine(config.keySize) +
                  " components of a key, but got " + Twine(config.rotated));
  for (LayerConfig &layer : config.layers)
    layer.kvHeads = layer.heads;
}

static void readRope(FamilyKeys &keys, const Family &family,
                     ModelConfig &config) {
  if (config.learnedPositions) {
    for (LayerConfig &layer : config.layers)
      layer.rope = -1;
    return;
  }
  RopeConfig rope;
  rope.base = readBase(keys, "rope.freq_base", 10000.0);
  rope.dimensions = keys.size("rope.dimension_count", config.keySize, 2);
  if (rope.dimensions % 2 != 0 || rope.dimensions > config.keySize)
    keys.fail("rope.dimension_count",
              "expects an even number of at most the head size " +
                  Twine(config.keySize) + ", but got " +
                  Twine(rope.dimensions));
  readRopeScaling(keys, config, rope);
  config.ropes.push_back(rope);
  if (family.unrotatedEvery != 0)
    for (auto [index, layer] : llvm::enumerate(config.layers))
      layer.rope = (int64_t(index) + 1) % family.unrotatedEvery ? 0 : -1;
  if (family.windowBase == 0.0)
    return;
  RopeConfig local;
  local.base = readBase(keys, "rope.freq_base_swa", family.windowBase);
  local.dimensions = rope.dimensions;
  config.ropes.push_back(local);
  for (LayerConfig &layer : config.layers)
    layer.rope = layer.window ? 1 : 0;
}

static void readScales(FamilyKeys &keys, const Family &family,
                       ModelConfig &config) {
  const bool byWidth =
      family.layersThatScaleByWidth == int64_t(config.layers.size());
  const double scores =
      config.latent ? config.ropes.front().scoreFactor : 1.0;
  const double share = byWidth ? double(config.width) / double(headsOf(config))
                               : double(config.keySize);
  config.attentionScale =
      keys.factor("attention.scale", scores / std::sqrt(share));
  config.embeddingScale = keys.factor(
      "embedding_scale",
      family.scaledEmbedding ? std::sqrt(double(config.width)) : 1.0);
  config.residualScale = keys.factor("residual_scale", 1.0);
  // Early files leave it to software to know the factors of the one model there
  // was.
  if (config.architecture == "minicpm")
    for (const char *key : {"embedding_scale", "residual_scale", "logit_scale"})
      if (!keys.has(key))
        keys.fail(key, "expects a factor, which early files of this family "
                       "lack, but got none; convert the model again");
  // Files state the divisor.
  config.logitScale = 1.0 / keys.factor("logit_scale", 1.0);
  for (auto [key, cap] :
       {std::pair("attn_logit_softcapping", &config.attentionSoftcap),
        std::pair("final_logit_softcapping", &config.logitSoftcap)}) {
    *cap = keys.real(key, 0.0);
    if (*cap < 0.0)
      keys.fail(key, "expects a number of at least 0, but got " +
                         std::to_string(*cap));
  }
}

/// How a token of a DeepSeek model chooses its experts.
static void readRouting(FamilyKeys &keys, int64_t firstLayer,
                        ModelConfig &config) {
  // Files from before the key are of V2.
  const int64_t function = keys.size("expert_gating_func", 0, 0);
  if (function > 2)
    keys.fail("expert_gating_func",
              "expects 1 (softmax) or 2 (sigmoid), but got " + Twine(function));
  config.expertScore =
      function == 2 ? ScoreKind::Sigmoid : ScoreKind::Softmax;
  config.expertBias = keys.hasTensor("blk." + Twine(firstLayer) +
                                     ".exp_probs_b.bias");
  const int64_t groups = keys.size("expert_group_count", 0, 0);
  const int64_t best = keys.size("expert_group_used_count", groups, 0);
  if (groups <= 1)
    return;
  config.expertGroups = groups;
  // Files do not name the method; that of V2 goes with the softmax.
  config.expertGroupsByBest = config.expertScore == ScoreKind::Softmax;
  config.expertTopGroups = best;
  if (config.experts % groups != 0 || config.experts / groups < 2 || best < 1 ||
      best > groups || config.experts / groups * best < config.expertsUsed)
    keys.fail("expert_group_count",
              "expects equal groups of two experts or more, of which " +
                  Twine(best) + " hold the " + Twine(config.expertsUsed) +
                  " experts of a token, but got " + Twine(groups) +
                  " groups of " + Twine(config.experts) + " experts");
}

static void readExperts(FamilyKeys &keys, const Family &family,
                        ModelConfig &config) {
  if (!family.expertsInGGUF) {
    keys.refuse("expert_count", "a mixture of experts");
    keys.refuse("expert_used_count", "a mixture of experts");
    return;
  }
  config.experts = keys.size("expert_count", 0, 0);
  config.expertsUsed = keys.size("expert_used_count", 0, 0);
  if (config.experts != 0 &&
      (config.expertsUsed == 0 || config.expertsUsed > config.experts))
    keys.fail("expert_used_count", "expects 1 to the " + Twine(config.experts) +
                                       " experts, but got " +
                                       Twine(config.expertsUsed));
  config.normaliseExperts = family.normaliseExpertsInGGUF;
  std::vector<int64_t> dense;
  for (const LayerConfig &layer : config.layers)
    dense.push_back(layer.feedForward);
  const int64_t width = keys.size("expert_feed_forward_length", 0, 0);
  if (width != 0 && config.experts != 0)
    for (LayerConfig &layer : config.layers)
      layer.feedForward = width;
  if (!family.latentAttention) {
    // With a gate, as Qwen's has.
    config.sharedFeedForward =
        keys.size("expert_shared_feed_forward_length", 0, 0);
    config.sharedGate = config.sharedFeedForward != 0;
    keys.refuse("expert_shared_count", "experts that all tokens share");
    return;
  }
  config.normaliseExperts = keys.flag("expert_weights_norm", false);
  config.expertScale = keys.factor("expert_weights_scale", 1.0);
  config.sharedFeedForward = keys.size("expert_shared_count", 0, 0) * width;
  const int64_t leading = keys.size("leading_dense_block_count", 0, 0);
  for (int64_t index = 0; index < std::min(leading, int64_t(dense.size()));
       ++index) {
    LayerConfig &layer = config.layers[size_t(index)];
    layer.dense = true;
    layer.feedForward = dense[size_t(index)];
  }
  readRouting(keys, leading, config);
}

static void refuseOthers(FamilyKeys &keys) {
  keys.refuse("attention.clamp_kqv", "clamping of queries, keys and values");
  keys.refuse("use_parallel_residual", "a parallel residual");
  keys.ignore("tensor_data_layout");
  keys.ignore("pooling_type");
}

Expected<ModelConfig> mlir::llm::readGGUFConfig(const GGUFFile &file) {
  ModelConfig config;
  const GGUFMetadata &metadata = file.metadata();
  StringRef architecture, name, license;
  if (Error error =
          metadata.getString("general.architecture").moveInto(architecture))
    return error;
  if (Error error =
          metadata.getString("general.name", architecture).moveInto(name))
    return error;
  if (Error error = metadata.getString("general.license", "").moveInto(license))
    return error;
  const Family *family = findFamily(architecture);
  if (!family)
    return llvm::createStringError(
        "'" + file.path() + "' general.architecture expects one of " +
        familyNames(&Family::gguf) + ", but got '" + architecture + "'");
  config.name = name.str();
  config.architecture = architecture.str();
  config.license = license.str();
  applyFamily(*family, config);
  config.interleavedPairs = family->interleavedInGGUF;

  FamilyKeys keys(file, family->gguf);
  config.context = keys.size("context_length");
  config.width = keys.size("embedding_length");
  readLayers(keys, config);
  config.keySize = headSize(keys, "attention.key_length", config);
  config.valueSize = headSize(keys, "attention.value_length", config);
  readNorm(keys, config);
  readLatents(keys, *family, config);
  const WeightTensor *embedding = file.find("token_embd.weight");
  config.vocabulary =
      keys.size("vocab_size", embedding ? embedding->rows() : 1);
  if (const GGUFValue *causal =
          metadata.find((architecture + ".attention.causal").str());
      causal && causal->type == GGUFType::Bool &&
      causal->bytes[0] == std::byte(0))
    keys.fail("attention.causal", "expects true, for attention to later tokens "
                                  "is not supported, but got false");
  keys.ignore("attention.causal");
  readWindow(keys, *family, config);
  readRope(keys, *family, config);
  readScales(keys, *family, config);
  readExperts(keys, *family, config);
  refuseOthers(keys);
  if (Error error = keys.finish())
    return error;
  return config;
}
