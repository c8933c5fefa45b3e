// From the names of tensors to the parts they play, for every family and kind
// of file.
#include "lib/Import/ModelWeights.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::llm;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace {

class Finder {
public:
  Finder(const ModelConfig &config, const TensorNames &names,
         TensorTable &tensors)
      : config(config), names(names), tensors(tensors) {
    // Checkpoints of the bare model lack the name of the whole.
    if (tensors.has(names.root + names.embedding + ".weight") ||
        !tensors.has(names.embedding + ".weight"))
      root = names.root.str();
  }

  llvm::Expected<ModelWeights> find() {
    ModelWeights weights;
    findEnds(weights);
    for (const auto [index, layer] : llvm::enumerate(config.layers))
      weights.layers.push_back(
          findLayer(layer, root + names.layer + Twine(index) + "."));
    for (int64_t index = 0; index < config.predictLayers; ++index) {
      const std::string stem =
          names.predictLayer.empty()
              ? (root + names.layer + Twine(config.layers.size() + index)).str()
              : (root + names.predictLayer + Twine(index)).str();
      if (tensors.leaveOut(stem + "."))
        weights.leftOut.push_back(stem);
    }
    if (config.quantisation.method != QuantMethod::None && !anyQuantised)
      tensors.fail("expects weights that are quantised as quantization_config "
                   "says, but all are floats; without that key they are "
                   "imported as they are");
    if (llvm::Error error = tensors.finish(config.architecture))
      return error;
    return weights;
  }

  LayerWeights findLayer(const LayerConfig &layer, const Twine &at) {
    prefix = at.str();
    LayerWeights found;
    if (layer.heads != 0)
      findAttention(layer, found);
    if (layer.feedForward != 0)
      findFeedForward(layer, found);
    // Tables and masks that early software stored.
    for (const char *name :
         {"attn_rot_embd.weight", "self_attn.rotary_emb.inv_freq", "attn.bias",
          "attn.masked_bias"})
      tensors.ignore(prefix + name);
    return found;
  }

private:
  void findEnds(ModelWeights &weights) {
    const int64_t V = config.vocabulary, D = config.width;
    weights.embedding = {
        tensors.take(root + names.embedding + ".weight", {V, D})};
    if (config.learnedPositions)
      weights.positions = {tensors.take(root + names.positions + ".weight",
                                        {config.context, D})};
    weights.outputNorm = norm(root + names.outputNorm);
    if (config.tied.value_or(true))
      weights.output.weight = {
          tensors.takeOptional(names.head + ".weight", {V, D})};
    else
      weights.output.weight = {tensors.take(names.head + ".weight", {V, D})};
    weights.tied = !weights.output.weight ||
                   (isCopy(weights) && !config.normalisedHead);
    weights.output.weight.normalised = config.normalisedHead;
    weights.output.bias = {tensors.takeOptionalVector(names.head + ".bias", V)};
    if (!config.ropes.empty() &&
        config.ropes.front().scaling == RopeScaling::Long &&
        config.ropes.front().longDivisors.empty()) {
      const int64_t pairs = config.ropes.front().dimensions / 2;
      weights.shortFactors =
          tensors.takeVector("rope_factors_short.weight", pairs);
      weights.longFactors =
          tensors.takeVector("rope_factors_long.weight", pairs);
    } else if (!config.ropes.empty())
      weights.ropeFactors = tensors.takeOptionalVector(
          "rope_freqs.weight", config.ropes.front().dimensions / 2);
  }

  /// Whether the head holds what the embedding holds: files of tied models
  /// often have both.
  static bool isCopy(const ModelWeights &weights) {
    const WeightTensor *table = weights.embedding.tensor;
    const WeightTensor *head = weights.output.weight.tensor;
    return table && head && table->format == head->format &&
           table->data.size() == head->data.size() &&
           std::memcmp(table->data.data(), head->data.data(),
                       table->data.size()) == 0;
  }

  NormWeights norm(const Twine &stem) {
    NormWeights found{gamma(stem, config.width), {}};
    if (config.norm == NormKind::Layer)
      found.beta = {tensors.takeOptionalVector(stem + ".bias", config.width)};
    return found;
  }
  WeightRef gamma(const Twine &stem, int64_t size) {
    WeightRef found{tensors.takeVector(stem + ".weight", size)};
    found.offset = config.normOffset;
    return found;
  }

  /// Rows [begin, begin + rows) of a product that has `all`.
  LinearWeights part(StringRef name, int64_t all, int64_t columns,
                     int64_t begin, int64_t rows, bool biased) {
    const std::string stem = prefix + name.str();
    LinearWeights found;
    found.weight.transposed = names.transposed;
    found.weight.quantised =
        findQuantised(config.quantisation, stem, all, columns, tensors);
    anyQuantised |= bool(found.weight.quantised);
    if (found.weight.quantised)
      found.weight.tensor = found.weight.quantised->codes;
    else if (names.transposed)
      found.weight.tensor = tensors.take(stem + ".weight", {columns, all});
    else
      found.weight.tensor = tensors.take(stem + ".weight", {all, columns});
    found.bias.tensor = biased
                            ? tensors.takeVector(stem + ".bias", all)
                            : tensors.takeOptionalVector(stem + ".bias", all);
    if (rows != all)
      for (WeightRef *ref : {&found.weight, &found.bias}) {
        ref->begin = begin;
        ref->end = begin + rows;
      }
    return found;
  }
  LinearWeights linear(StringRef name, int64_t rows, int64_t columns,
                       bool biased = false) {
    return part(name, rows, columns, 0, rows, biased);
  }

  using StringRefs = std::initializer_list<StringRef>;
  bool has(StringRef name) {
    return !name.empty() &&
           llvm::any_of(
               StringRefs{".weight", ".weight_packed", ".qweight"},
               [&](StringRef end) { return tensors.has(prefix + name + end); });
  }

  void findAttention(const LayerConfig &layer, LayerWeights &found) {
    if (config.normBefore && !names.beforeAttention.empty())
      found.beforeAttention = norm(prefix + names.beforeAttention);
    if (config.normAfter)
      found.afterAttention = norm(prefix + names.afterAttention);
    const int64_t D = config.width, queries = layer.heads * config.keySize,
                  keys = layer.kvHeads * config.keySize,
                  values = layer.kvHeads * config.valueSize;
    const bool biased = config.biasedQKV;
    if (config.latent)
      return findLatents(layer, found);
    if (has(names.packedQKV) && !has(names.query)) {
      const int64_t all = queries + keys + values;
      found.q = part(names.packedQKV, all, D, 0, queries, biased);
      found.k = part(names.packedQKV, all, D, queries, keys, biased);
      found.v = part(names.packedQKV, all, D, queries + keys, values, biased);
    } else {
      found.q = linear(names.query, queries, D, biased);
      found.k = linear(names.key, keys, D, biased);
      found.v = linear(names.value, values, D, biased);
    }
    found.o = linear(names.output, D, layer.heads * config.valueSize,
                     config.biasedOutput);
    if (config.qkNorm == QKNorm::None)
      return;
    const bool whole = config.qkNorm == QKNorm::Row;
    found.queryNorm =
        gamma(prefix + names.queryNorm, whole ? queries : config.keySize);
    found.keyNorm =
        gamma(prefix + names.keyNorm, whole ? keys : config.keySize);
  }

  void findLatents(const LayerConfig &layer, LayerWeights &found) {
    const int64_t H = layer.heads, E = config.keySize, EV = config.valueSize,
                  R = config.rotated, D = config.width, latent = config.latent;
    const bool biased = config.biasedQKV;
    StringRef query = names.query;
    int64_t from = D;
    if (config.queryLatent) {
      from = config.queryLatent;
      found.queryLatent = linear(names.queryLatent, from, D, biased);
      found.queryLatentNorm = gamma(prefix + names.queryLatentNorm, from);
      query = names.latentQuery;
    }
    found.q = linear(query, H * E, from);
    found.q.weight.heads = H;
    found.q.weight.lastFirst = R;
    found.latent = part(names.latent, latent + R, D, 0, latent, biased);
    found.rotatedKey = part(names.latent, latent + R, D, latent, R, biased);
    found.latentNorm = gamma(prefix + names.latentNorm, latent);
    const int64_t own = E - R;
    if (!has(names.latentKeyValue) && has(names.latentKey)) {
      found.k.weight.tensor = tensors.take(prefix + names.latentKey + ".weight",
                                           {H, latent, own});
      found.k.weight.turnedHeads = true;
      found.v.weight.tensor = tensors.take(
          prefix + names.latentValue + ".weight", {H, EV, latent});
    } else {
      found.k = found.v = linear(names.latentKeyValue, H * (own + EV), latent);
      found.k.weight.end = own;
      found.v.weight.begin = own;
      found.v.weight.end = own + EV;
    }
    found.k.weight.heads = found.v.weight.heads = H;
    found.o = linear(names.output, D, H * EV, config.biasedOutput);
  }

  void findFeedForward(const LayerConfig &layer, LayerWeights &found) {
    if (config.normBefore)
      found.beforeFeedForward = norm(prefix + names.beforeFeedForward);
    if (config.normAfter)
      found.afterFeedForward = norm(prefix + names.afterFeedForward);
    const int64_t D = config.width, F = layer.feedForward;
    const bool biased = config.biasedFeedForward;
    if (config.experts != 0 && !layer.dense)
      return findExperts(F, found);
    if (config.gated && !has(names.gate) && has(names.packedGateUp)) {
      found.gate = part(names.packedGateUp, 2 * F, D, 0, F, biased);
      found.up = part(names.packedGateUp, 2 * F, D, F, F, biased);
    } else {
      if (config.gated)
        found.gate = linear(names.gate, F, D, biased);
      found.up = linear(names.up, F, D, biased);
    }
    found.down = linear(names.down, D, F, biased);
  }

  void findExperts(int64_t F, LayerWeights &found) {
    const int64_t D = config.width, X = config.experts;
    const bool apart =
        !names.oneExpert.empty() &&
        has((names.oneExpert + "0." + names.oneUp).str());
    found.router = linear(apart ? names.oneRouter : names.router, X, D);
    if (config.expertBias)
      found.routerBias = {tensors.takeVector(prefix + names.routerBias, X)};
    if (const int64_t shared = config.sharedFeedForward) {
      found.sharedGate = linear(names.sharedGate, shared, D);
      found.sharedUp = linear(names.sharedUp, shared, D);
      found.sharedDown = linear(names.sharedDown, D, shared);
      if (config.sharedGate)
        found.sharedRouter = oneRow(names.sharedRouter, D);
    }
    if (apart) {
      found.gate.weight = stacked(names.oneGate, F, D);
      found.up.weight = stacked(names.oneUp, F, D);
      found.down.weight = stacked(names.oneDown, D, F);
      return;
    }
    const auto all = [&](StringRef name, int64_t rows, int64_t columns) {
      return tensors.take(prefix + name + names.expertSuffix,
                          {X, rows, columns});
    };
    found.down.weight = {all(names.expertDown, D, F)};
    if (names.packedExpertGateUp.empty()) {
      found.gate.weight = {all(names.expertGate, F, D)};
      found.up.weight = {all(names.expertUp, F, D)};
      return;
    }
    found.gate.weight = {all(names.packedExpertGateUp, 2 * F, D)};
    found.up.weight = found.gate.weight;
    found.gate.weight.end = F;
    found.up.weight.begin = F;
    found.up.weight.end = 2 * F;
  }

  /// A product of one row, which GGUF files have as a vector.
  LinearWeights oneRow(StringRef name, int64_t columns) {
    const std::string key = (prefix + name + ".weight").str();
    const WeightTensor *tensor = tensors.find(key);
    if (!tensor || tensor->shape.size() != 1)
      return linear(name, 1, columns);
    LinearWeights found;
    found.weight.tensor = tensors.takeVector(key, columns);
    found.weight.oneRow = true;
    return found;
  }

  /// One matrix an expert.
  WeightRef stacked(StringRef name, int64_t rows, int64_t columns) {
    WeightRef found;
    for (int64_t expert = 0; expert < config.experts; ++expert) {
      const std::string stem =
          (prefix + names.oneExpert + Twine(expert) + "." + name).str();
      if (std::optional<QuantisedMatrix> quantised = findQuantised(
              config.quantisation, stem, rows, columns, tensors)) {
        anyQuantised = true;
        if (expert != 0) {
          found.otherQuantised.push_back(*quantised);
          continue;
        }
        found.tensor = quantised->codes;
        found.quantised = std::move(quantised);
        continue;
      }
      const WeightTensor *tensor =
          tensors.take(stem + ".weight", {rows, columns});
      if (expert == 0)
        found.tensor = tensor;
      else
        found.others.push_back(tensor);
    }
    return found;
  }

  const ModelConfig &config;
  const TensorNames &names;
  TensorTable &tensors;
  std::string root, prefix;
  bool anyQuantised = false;
};

} // namespace

llvm::Expected<ModelWeights>
mlir::llm::findWeights(const ModelConfig &config, const TensorNames &names,
                       const WeightSource &source) {
  TensorTable tensors(source);
  return Finder(config, names, tensors).find();
}

LayerWeights mlir::llm::findLayer(const ModelConfig &config,
                                  const TensorNames &names,
                                  const LayerConfig &layer, const Twine &prefix,
                                  TensorTable &tensors) {
  return Finder(config, names, tensors).findLayer(layer, prefix);
}
