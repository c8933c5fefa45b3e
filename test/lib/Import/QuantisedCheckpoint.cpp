#include "test/lib/Import/QuantisedCheckpoint.h"

#include "lib/Quant/Format.h"
#include "lib/Quant/Half.h"
#include "lib/Weights/SafetensorsWriter.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace mlir::llm::testing {

using llvm::Error;
using llvm::StringRef;
using nlohmann::json;
using sprig::quant::Format;

static json configOf(StringRef folder) { return json::parse(std::ifstream((folder + "/config.json").str())); }

bool PlainTensor::isProduct() const {
  const StringRef name = key;
  const bool inLayer = name.contains("layers.") || name.contains("h.");
  return shape.size() == 2 && inLayer && name.ends_with(".weight") && !name.ends_with("gate.weight");
}

llvm::Expected<std::vector<PlainTensor>> readPlain(StringRef folder) {
  auto source = openWeightSource((folder + "/model.safetensors").str());
  if (!source)
    return source.takeError();
  const bool mixtral = configOf(folder)["model_type"] == "mixtral";
  std::vector<PlainTensor> tensors;
  for (const WeightTensor &tensor : (*source)->tensors()) {
    PlainTensor plain{tensor.key.str(), {tensor.shape.begin(), tensor.shape.end()}, {}};
    plain.numbers.resize(tensor.data.size() / sprig::quant::info(tensor.format).blockBytes);
    sprig::quant::decode(tensor.format, tensor.data.data(), plain.numbers.data(), plain.numbers.size());
    const auto [front, part] = tensor.key.rsplit('.');
    if (!front.ends_with("mlp.experts")) {
      if (mixtral && StringRef(plain.key).ends_with("mlp.gate.weight"))
        plain.key = front.drop_back(8).str() + "block_sparse_moe.gate.weight";
      tensors.push_back(std::move(plain));
      continue;
    }
    const bool both = part == "gate_up_proj";
    const std::string stem =
        mixtral ? front.drop_back(11).str() + "block_sparse_moe.experts." : (front + ".").str();
    const int64_t N = plain.shape[1] / (both ? 2 : 1), K = plain.shape[2];
    const float *at = plain.numbers.data();
    for (int64_t expert = 0; expert < plain.shape[0]; ++expert)
      for (int which = both ? 0 : 2; which < (both ? 2 : 3); ++which, at += N * K) {
        const char *name = mixtral ? std::array{"w1", "w3", "w2"}[size_t(which)]
                                   : std::array{"gate_proj", "up_proj", "down_proj"}[size_t(which)];
        tensors.push_back({stem + std::to_string(expert) + "." + name + ".weight", {N, K}, {at, at + N * K}});
      }
  }
  return tensors;
}

static Error makeFolder(StringRef folder) {
  const std::error_code error = llvm::sys::fs::create_directories(folder);
  return error ? llvm::errorCodeToError(error) : Error::success();
}

static Error add(SafetensorsWriter &writer, const PlainTensor &tensor) {
  return writer.add(tensor.key, Format::F32, tensor.shape, std::as_bytes(std::span(tensor.numbers)));
}

Error writePlain(const std::vector<PlainTensor> &tensors, StringRef like, StringRef folder) {
  if (Error error = makeFolder(folder))
    return error;
  json config = configOf(like);
  config.erase("quantization_config");
  std::ofstream((folder + "/config.json").str()) << config;
  auto writer = SafetensorsWriter::create((folder + "/model.safetensors").str());
  if (!writer)
    return writer.takeError();
  for (const PlainTensor &tensor : tensors)
    if (Error error = add(**writer, tensor))
      return error;
  return (*writer)->finish();
}

namespace {

constexpr int64_t kGroup = 32;

/// Rows of codes from 0 to 15, a scale and a zero point a group.
struct Codes {
  int64_t N, K, G;
  std::vector<int64_t> codes, zeros;
  std::vector<uint16_t> scales; // f16
  std::vector<int32_t> groupOf; // of a column

  float meaning(int64_t n, int64_t k) const {
    const size_t group = size_t(n * G + groupOf[size_t(k)]);
    return sprig::quant::halfToFloat(scales[group]) * float(codes[size_t(n * K + k)] - zeros[group]);
  }
};

bool isPacked(SplitMethod method) { return method >= SplitMethod::Packed; }

Codes rounded(const std::vector<float> &rows, int64_t N, int64_t K, SplitMethod method) {
  Codes made{N, K, (K + kGroup - 1) / kGroup, {}, {}, {}, {}};
  made.codes.resize(rows.size());
  std::vector<int64_t> order(static_cast<size_t>(K));
  std::iota(order.begin(), order.end(), 0);
  if (method == SplitMethod::GPTQActOrder || method == SplitMethod::PackedActOrder)
    std::shuffle(order.begin(), order.end(), std::mt19937(unsigned(N * 31 + K)));
  made.groupOf.resize(size_t(K));
  for (int64_t i = 0; i < K; ++i)
    made.groupOf[size_t(order[size_t(i)])] = int32_t(i / kGroup);
  const bool symmetric = method == SplitMethod::Packed || method == SplitMethod::PackedActOrder;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t g = 0; g < made.G; ++g) {
      float low = 0, high = 0;
      for (int64_t k = 0; k < K; ++k)
        if (made.groupOf[size_t(k)] == g) {
          low = std::min(low, rows[size_t(n * K + k)]);
          high = std::max(high, rows[size_t(n * K + k)]);
        }
      const float size = symmetric ? std::max(high, -low) / 7 : (high - low) / 15;
      made.scales.push_back(sprig::quant::floatToHalf(size));
      const float scale = sprig::quant::halfToFloat(made.scales.back());
      // GPTQ stores zero points less one.
      made.zeros.push_back(symmetric ? 8 : std::clamp<int64_t>(std::lround(-low / scale), 1, 15));
      for (int64_t k = 0; k < K; ++k)
        if (made.groupOf[size_t(k)] == g)
          made.codes[size_t(n * K + k)] =
              std::clamp<int64_t>(std::lround(rows[size_t(n * K + k)] / scale) + made.zeros.back(), 0, 15);
    }
  return made;
}

/// Words of eight codes each: code j of a word at bits 4 j. `at(i)` is code i of `count`.
template <typename At> void pack(std::vector<int32_t> &words, int64_t count, At at) {
  for (int64_t first = 0; first < count; first += 8) {
    uint32_t word = 0;
    for (int64_t j = 0; j < 8 && first + j < count; ++j)
      word |= uint32_t(at(first + j) & 15) << 4 * j;
    words.push_back(int32_t(word));
  }
}

template <typename T>
Error add(SafetensorsWriter &writer, const std::string &key, Format format, std::vector<int64_t> shape,
          const std::vector<T> &numbers) {
  return writer.add(key, format, shape, std::as_bytes(std::span(numbers)));
}

Error addCodes(SafetensorsWriter &writer, const std::string &stem, const Codes &made, SplitMethod method) {
  const auto [N, K, G] = std::tuple(made.N, made.K, made.G);
  const auto code = [&](int64_t n, int64_t k) { return made.codes[size_t(n * K + k)]; };
  std::vector<int32_t> codes, zeros;
  if (isPacked(method)) {
    for (int64_t n = 0; n < N; ++n)
      pack(codes, K, [&](int64_t k) { return code(n, k); });
    Error error = add(writer, stem + ".weight_packed", Format::I32, {N, (K + 7) / 8}, codes);
    error = llvm::joinErrors(std::move(error), add(writer, stem + ".weight_scale", Format::F16, {N, G}, made.scales));
    if (method == SplitMethod::PackedActOrder)
      error = llvm::joinErrors(std::move(error), add(writer, stem + ".weight_g_idx", Format::I32, {K}, made.groupOf));
    if (method == SplitMethod::PackedZeros) { // words along N
      for (int64_t first = 0; first < N; first += 8)
        for (int64_t g = 0; g < G; ++g)
          pack(zeros, std::min<int64_t>(8, N - first), [&](int64_t j) { return made.zeros[size_t((first + j) * G + g)]; });
      error = llvm::joinErrors(std::move(error),
                               add(writer, stem + ".weight_zero_point", Format::I32, {(N + 7) / 8, G}, zeros));
    }
    return llvm::joinErrors(std::move(error),
                            add(writer, stem + ".weight_shape", Format::I64, {2}, std::vector<int64_t>{N, K}));
  }
  const bool awq = method == SplitMethod::AWQ;
  const int64_t order[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto place = [&](int64_t n) { return awq ? n / 8 * 8 + order[n % 8] : n; };
  std::vector<uint16_t> scales;
  for (int64_t g = 0; g < G; ++g) {
    pack(zeros, N, [&](int64_t n) { return made.zeros[size_t(place(n) * G + g)] - (awq ? 0 : 1); });
    for (int64_t n = 0; n < N; ++n)
      scales.push_back(made.scales[size_t(n * G + g)]);
  }
  if (awq) { // words along N
    for (int64_t k = 0; k < K; ++k)
      pack(codes, N, [&](int64_t n) { return code(place(n), k); });
  } else { // along K
    codes.resize(size_t((K + 7) / 8 * N));
    for (int64_t n = 0; n < N; ++n) {
      std::vector<int32_t> column;
      pack(column, K, [&](int64_t k) { return code(n, k); });
      for (size_t i = 0; i < column.size(); ++i)
        codes[i * size_t(N) + size_t(n)] = column[i];
    }
  }
  const std::vector<int64_t> shape = awq ? std::vector{K, N / 8} : std::vector{(K + 7) / 8, N};
  Error error = add(writer, stem + ".qweight", Format::I32, shape, codes);
  error = llvm::joinErrors(std::move(error), add(writer, stem + ".qzeros", Format::I32, {G, (N + 7) / 8}, zeros));
  error = llvm::joinErrors(std::move(error), add(writer, stem + ".scales", Format::F16, {G, N}, scales));
  if (awq)
    return error;
  return llvm::joinErrors(std::move(error), add(writer, stem + ".g_idx", Format::I32, {K}, made.groupOf));
}

/// As the usual software of each method writes it, keys that say nothing included.
std::string schemeOf(SplitMethod method) {
  if (method == SplitMethod::PackedActOrder || method == SplitMethod::PackedZeros) {
    json scheme = json::parse(schemeOf(SplitMethod::Packed));
    json &weights = scheme["config_groups"]["group_0"]["weights"];
    if (method == SplitMethod::PackedZeros)
      weights["symmetric"] = false;
    else
      weights["actorder"] = "group";
    return scheme.dump();
  }
  switch (method) {
  case SplitMethod::AWQ:
    return R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": true,
               "modules_to_not_convert": ["gate"]})";
  case SplitMethod::Packed:
    return R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
               "ignore": ["lm_head"], "kv_cache_scheme": null, "sparsity_config": {}, "transform_config": {},
               "version": "0.12.3", "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
               "output_activations": null, "format": "pack-quantized", "weights": {"num_bits": 4, "type": "int",
               "strategy": "group", "group_size": 32, "symmetric": true, "dynamic": false, "actorder": null,
               "block_structure": null, "observer": "minmax", "observer_kwargs": {}, "scale_dtype": null}}}})";
  default:
    return R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true, "sym": false, "lm_head": false,
               "checkpoint_format": "gptq", "pack_dtype": "int32", "dynamic": null, "damp_percent": 0.01,
               "meta": {"quantizer": ["x:1.4"], "damp_auto_increment": 0.0025}})";
  }
}

} // namespace

Error writeSplit(StringRef from, SplitMethod method, StringRef coded, StringRef plain) {
  auto tensors = readPlain(from);
  if (!tensors)
    return tensors.takeError();
  if (Error error = makeFolder(coded))
    return error;
  json config = configOf(from);
  const bool turned = config["model_type"] == "gpt2"; // matrices lie KxN
  config["quantization_config"] = json::parse(schemeOf(method));
  std::ofstream((coded + "/config.json").str()) << config;
  auto writer = SafetensorsWriter::create((coded + "/model.safetensors").str());
  if (!writer)
    return writer.takeError();
  for (PlainTensor &tensor : *tensors) {
    const int64_t N = tensor.isProduct() ? tensor.shape[turned ? 1 : 0] : 0;
    if (N == 0 || (method == SplitMethod::AWQ && N % 8 != 0)) {
      if (Error error = add(**writer, tensor))
        return error;
      continue;
    }
    const int64_t K = tensor.shape[turned ? 0 : 1];
    const auto place = [&](int64_t n, int64_t k) { return size_t(turned ? k * N + n : n * K + k); };
    std::vector<float> rows(tensor.numbers.size());
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        rows[size_t(n * K + k)] = tensor.numbers[place(n, k)];
    const Codes made = rounded(rows, N, K, method);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        tensor.numbers[place(n, k)] = made.meaning(n, k);
    if (Error error = addCodes(**writer, StringRef(tensor.key).drop_back(7).str(), made, method))
      return error;
  }
  if (Error error = (*writer)->finish())
    return error;
  return writePlain(*tensors, from, plain);
}

} // namespace mlir::llm::testing
