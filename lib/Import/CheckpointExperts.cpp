#include "lib/Import/CheckpointExperts.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;

/// Layers without experts, and the width of those with them.
static void readDenseLayers(ConfigKeys &keys, ModelConfig &config) {
  // Every so many layers has experts, counted from one (Qwen) or from zero
  // (DeepSeek); the first ones may have none.
  const int64_t step = keys.size("decoder_sparse_step", 1);
  const int64_t frequency = keys.size("moe_layer_freq", 1);
  const int64_t first = keys.size("first_k_dense_replace", 0, 0);
  const std::vector<double> dense = keys.reals("mlp_only_layers");
  const int64_t width = keys.size("moe_intermediate_size", 0, 0);
  for (auto [number, layer] : llvm::enumerate(config.layers)) {
    const auto index = int64_t(number);
    layer.dense = (index + 1) % step != 0 || index % frequency != 0 ||
                  index < first || llvm::is_contained(dense, double(index));
    if (!layer.dense && width != 0)
      layer.feedForward = width;
  }
}

/// How a token's experts are chosen.
static void readRouting(ConfigKeys &keys, const Family &family,
                        ModelConfig &config) {
  config.expertScore = family.expertScore;
  const std::string score =
      keys.text("scoring_func", stringifyScoreKind(family.expertScore));
  if (const auto kind = symbolizeScoreKind(score))
    config.expertScore = *kind;
  else
    keys.fail("scoring_func",
              "expects softmax or sigmoid, but got '" + score + "'");

  // Their configurations name the method: the best, the best of the groups with
  // the one best expert, or of those with the best two, by numbers that balance
  // the experts' load.
  const StringRef usual = family.expertBias ? "noaux_tc" : "greedy";
  const std::string method = keys.text("topk_method", usual);
  config.expertBias = method == "noaux_tc";
  int64_t groups = keys.size("n_group", 0, 0);
  const int64_t best = keys.size("topk_group", groups, 0);
  if (method == "greedy")
    groups = 0;
  else if (method == "group_limited_greedy")
    config.expertGroupsByBest = true;
  else if (method != "noaux_tc")
    keys.fail("topk_method", "expects greedy, group_limited_greedy or "
                             "noaux_tc, but got '" +
                                 method + "'");
  if (groups <= 1)
    return;
  config.expertGroups = groups;
  config.expertTopGroups = best;
  if (config.experts % groups != 0 || config.experts / groups < 2)
    keys.fail("n_group", "expects groups of two experts or more, equal parts of "
                         "the " +
                             Twine(config.experts) + ", but got " +
                             Twine(groups));
  if (best < 1 || best > groups ||
      config.experts / groups * best < config.expertsUsed)
    keys.fail("topk_group", "expects 1 to " + Twine(groups) +
                                " groups that hold the " +
                                Twine(config.expertsUsed) +
                                " experts of a token, but got " + Twine(best));
}

void mlir::llm::readExperts(ConfigKeys &keys, const Family &family,
                            ModelConfig &config) {
  const std::initializer_list<StringRef> counts{
      "num_local_experts", "num_experts", "n_routed_experts"};
  if (!family.experts) {
    for (StringRef key : counts)
      keys.refuse(key, "a mixture of experts");
    return;
  }
  // A DeepSeek model may have none.
  const bool mayLack = family.latentAttention;
  config.experts = keys.size(keys.first(counts),
                             mayLack ? std::optional(0) : std::nullopt,
                             mayLack ? 0 : 1);
  config.expertsUsed = keys.size(
      "num_experts_per_tok",
      config.experts == 0 ? std::optional(0) : std::nullopt, 0);
  config.normaliseExperts =
      keys.flag("norm_topk_prob", family.normaliseExperts);
  config.expertScale = keys.positive("routed_scaling_factor", 1.0);
  readDenseLayers(keys, config);
  readRouting(keys, family, config);
  config.sharedFeedForward =
      keys.size("shared_expert_intermediate_size", 0, 0);
  config.sharedGate = config.sharedFeedForward != 0;
  if (const int64_t shared = keys.size("n_shared_experts", 0, 0))
    config.sharedFeedForward = shared * keys.size("moe_intermediate_size");
  if (config.experts != 0 &&
      (config.expertsUsed == 0 || config.expertsUsed > config.experts))
    keys.fail("num_experts_per_tok",
              "expects 1 to the " + Twine(config.experts) +
                  " experts, but got " + Twine(config.expertsUsed));
  if (family.latentAttention && !family.expertBias && config.normaliseExperts)
    keys.fail("norm_topk_prob",
              "expects false, for published DeepSeek-V2 models say so and "
              "software differs in what true means, but got true");
  keys.ignore({"aux_loss_alpha", "ep_size", "seq_aux"});
}
