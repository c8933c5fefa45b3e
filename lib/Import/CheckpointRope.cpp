#include "lib/Import/CheckpointRope.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

namespace {

/// One set of parameters. `top` is the whole configuration, where some of them
/// may stand.
class RopeReader {
public:
  RopeReader(ConfigKeys &top, ConfigKeys &keys, const ModelConfig &config)
      : top(top), keys(keys), config(config) {}

  RopeConfig read(double base) {
    rope.base = keys.real("rope_theta", top.real("rope_theta", base));
    if (rope.base <= 1.0)
      keys.fail("rope_theta", "expects a number above 1, but got " +
                                  std::to_string(rope.base));
    const double share = keys.positive(
        "partial_rotary_factor", top.positive("partial_rotary_factor", 1.0));
    rope.dimensions =
        config.rotated ? config.rotated : int64_t(double(config.keySize) * share);
    if (rope.dimensions < 2 || rope.dimensions % 2 != 0 ||
        rope.dimensions > config.keySize)
      keys.fail("partial_rotary_factor",
                "expects to choose an even number of the " +
                    Twine(config.keySize) + " elements of a head, but got " +
                    Twine(rope.dimensions));
    rope.originalContext =
        keys.size("original_max_position_embeddings",
                  top.size("original_max_position_embeddings", config.context));
    readScaling();
    return rope;
  }

private:
  void readScaling() {
    const std::string type =
        keys.text(keys.first({"rope_type", "type"}), "default");
    if (type == "default" || type == "none")
      return;
    if (type == "linear") {
      rope.scaling = RopeScaling::Linear;
      rope.factor = keys.positive("factor");
    } else if (type == "llama3") {
      readLlama3();
    } else if (type == "yarn") {
      readYarn();
    } else if (type == "longrope" || type == "su") {
      readLong();
    } else {
      keys.fail("rope_type", "expects default, linear, llama3, longrope or "
                             "yarn, but got '" +
                                 type + "', which is not supported");
    }
  }

  void readLlama3() {
    rope.scaling = RopeScaling::Llama3;
    rope.factor = keys.positive("factor");
    rope.lowFactor = keys.positive("low_freq_factor");
    rope.highFactor = keys.positive("high_freq_factor");
    if (rope.highFactor <= rope.lowFactor)
      keys.fail("high_freq_factor",
                "expects a number above the low_freq_factor of " +
                    std::to_string(rope.lowFactor) + ", but got " +
                    std::to_string(rope.highFactor));
  }

  void readYarn() {
    rope.scaling = RopeScaling::Yarn;
    rope.factor = keys.positive("factor");
    rope.betaFast = keys.positive("beta_fast", 32.0);
    rope.betaSlow = keys.positive("beta_slow", 1.0);
    rope.wholePairs = keys.flag("truncate", true);
    // What the configuration gives is the whole magnitude; ropeAngles puts in
    // the usual one.
    const double usual = magnitude(1.0);
    const double own = keys.real("mscale", 0.0),
                 ofAll = keys.real("mscale_all_dim", 0.0);
    const double stated =
        own != 0.0 && ofAll != 0.0 ? magnitude(own) / magnitude(ofAll) : usual;
    rope.attentionFactor = keys.positive("attention_factor", stated) / usual;
    if (ofAll != 0.0)
      rope.scoreFactor = magnitude(ofAll) * magnitude(ofAll);
  }
  double magnitude(double scale) const {
    return rope.factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(rope.factor) + 1.0;
  }

  void readLong() {
    rope.scaling = RopeScaling::Long;
    for (auto [key, divisors] :
         {std::pair("short_factor", &rope.shortDivisors),
          std::pair("long_factor", &rope.longDivisors)}) {
      for (double number : keys.reals(key))
        divisors->push_back(float(number));
      if (int64_t(divisors->size()) != rope.dimensions / 2)
        keys.fail(key, "expects " + Twine(rope.dimensions / 2) +
                           " numbers, one a rotated pair, but got " +
                           Twine(divisors->size()));
    }
    const double factor = keys.positive(
        "factor", double(config.context) / double(rope.originalContext));
    const double usual =
        factor <= 1.0 ? 1.0
                      : std::sqrt(1.0 + std::log(factor) /
                                            std::log(rope.originalContext));
    rope.attentionFactor = keys.positive("attention_factor", usual);
  }

  ConfigKeys &top, &keys;
  const ModelConfig &config;
  RopeConfig rope;
};

} // namespace

static RopeConfig readOne(ConfigKeys &top, ConfigKeys keys,
                          const ModelConfig &config, double base) {
  RopeConfig rope = RopeReader(top, keys, config).read(base);
  keys.ignore({"finetuned", "attn_factor"});
  keys.finish();
  return rope;
}

/// Layers without rotation: a list in which they are 0, or every so many.
static void readUnrotated(ConfigKeys &keys, const Family &family,
                          ModelConfig &config) {
  const std::vector<double> list = keys.reals("no_rope_layers");
  const int64_t every =
      keys.size("no_rope_layer_interval", family.unrotatedEvery, 0);
  if (!list.empty() && list.size() != config.layers.size())
    return keys.fail("no_rope_layers",
                     "expects one of " + Twine(config.layers.size()) +
                         " layers each, but got " + Twine(list.size()));
  for (auto [index, layer] : llvm::enumerate(config.layers)) {
    const bool turns = list.empty()
                           ? every == 0 || (int64_t(index) + 1) % every != 0
                           : list[index] != 0.0;
    layer.rope = turns ? 0 : -1;
  }
}

void mlir::llm::readCheckpointRope(ConfigKeys &keys, const Family &family,
                                   ModelConfig &config) {
  if (config.learnedPositions || config.alibi) {
    for (LayerConfig &layer : config.layers)
      layer.rope = -1;
    return;
  }
  static const json kNothing = json::object();
  const auto within = [&](ConfigKeys &of, StringRef key) {
    const json *child = of.child(key);
    return of.within(key, child ? *child : kNothing);
  };
  const StringRef key = keys.first({"rope_parameters", "rope_scaling"});
  ConfigKeys parameters = within(keys, key);
  const bool byLayer = parameters.has("full_attention");
  readUnrotated(keys, family, config);
  config.ropes.push_back(
      readOne(keys, byLayer ? within(parameters, "full_attention") : parameters,
              config, family.ropeBase));
  if (family.windowBase == 0.0) {
    if (byLayer)
      keys.fail(key, "expects one set of parameters, but got one for each kind "
                     "of layer");
    return;
  }
  // Layers with a window are never stretched in the old spelling.
  RopeConfig local;
  if (byLayer) {
    local = readOne(keys, within(parameters, "sliding_attention"), config,
                    family.windowBase);
  } else {
    local.base = keys.real("rope_local_base_freq", family.windowBase);
    local.dimensions = config.ropes.front().dimensions;
  }
  config.ropes.push_back(local);
  for (LayerConfig &layer : config.layers)
    layer.rope = layer.window ? 1 : 0;
}
