#include "test/lib/Import/Fp8Checkpoint.h"

#include "lib/Weights/SafetensorsWriter.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/Support/FileSystem.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace mlir::llm::testing {

using llvm::Error;
using llvm::StringRef;
using nlohmann::json;
using sprig::quant::Format;

namespace {

class Writer {
public:
  Writer(const Fp8Scheme &scheme, bool scales, SafetensorsWriter &coded, SafetensorsWriter &plain)
      : scheme(scheme), withScales(scales), coded(coded), plain(plain) {}

  Error add(const WeightTensor &tensor) {
    const StringRef key = tensor.key;
    // Experts are one tensor each in checkpoints of this kind.
    if (key.ends_with("experts.gate_up_proj") || key.ends_with("experts.down_proj")) {
      const bool both = key.ends_with("gate_up_proj");
      const int64_t N = tensor.shape[1] / (both ? 2 : 1);
      for (int64_t expert = 0; expert < tensor.shape[0]; ++expert)
        for (const char *part : {"gate_proj", "up_proj", "down_proj"})
          if ((part == StringRef("down_proj")) != both)
            if (Error error = addMatrix(key.rsplit('.').first.str() + "." + std::to_string(expert) + "." + part, N,
                                        tensor.shape[2]))
              return error;
      return Error::success();
    }
    if (key.ends_with("_proj.weight"))
      return addMatrix(key.drop_back(7).str(), tensor.shape[0], tensor.shape[1]);
    for (SafetensorsWriter *writer : {&coded, &plain})
      if (Error error = writer->add(key.str(), tensor.format, tensor.shape, tensor.data))
        return error;
    return Error::success();
  }

private:
  Error addMatrix(const std::string &stem, int64_t N, int64_t K) {
    const int64_t rows = scheme.rows ? scheme.rows : N, columns = scheme.columns ? scheme.columns : K;
    const int64_t R = (N + rows - 1) / rows, C = (K + columns - 1) / columns;
    std::vector<std::byte> codes(size_t(N * K));
    for (size_t i = 0; i < codes.size(); ++i) // below the codes of NaN and infinity
      codes[i] = std::byte((i * 37 + stem.size() * 11) % 100 + 128 * (i % 3 == 0));
    // Numbers of about the same size in every row, whatever the type.
    const float scale = (scheme.floats == Format::F8E4M3 ? 0.02f : 0.001f) * (K > 128 ? 0.25f : 1.0f);
    std::vector<float> scales(size_t(R * C)), numbers(codes.size());
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = scale * (1.0f + 0.15f * float(i % 7));
    sprig::quant::decode(scheme.floats, codes.data(), numbers.data(), codes.size());
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        numbers[size_t(n * K + k)] *= scales[size_t(n / rows * C + k / columns)];
    if (Error error = coded.add(stem + ".weight", scheme.floats, {N, K}, codes))
      return error;
    if (withScales)
      if (Error error =
              coded.add(stem + "." + scheme.name, Format::F32, scheme.shape(R, C), std::as_bytes(std::span(scales))))
        return error;
    return plain.add(stem + ".weight", Format::F32, {N, K}, std::as_bytes(std::span(numbers)));
  }

  const Fp8Scheme &scheme;
  bool withScales;
  SafetensorsWriter &coded, &plain;
};

} // namespace

Error writeFp8(StringRef from, const Fp8Scheme &scheme, StringRef coded, StringRef plain, bool scales) {
  for (StringRef folder : {coded, plain})
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return llvm::errorCodeToError(error);
  json config = json::parse(std::ifstream((from + "/config.json").str()));
  std::ofstream((plain + "/config.json").str()) << config;
  config["quantization_config"] = json::parse(scheme.config);
  std::ofstream((coded + "/config.json").str()) << config;
  auto source = openWeightSource((from + "/model.safetensors").str());
  if (!source)
    return source.takeError();
  auto codes = SafetensorsWriter::create((coded + "/model.safetensors").str()),
       numbers = SafetensorsWriter::create((plain + "/model.safetensors").str());
  if (!codes || !numbers)
    return llvm::joinErrors(codes.takeError(), numbers.takeError());
  Writer writer(scheme, scales, **codes, **numbers);
  for (const WeightTensor &tensor : (*source)->tensors())
    if (Error error = writer.add(tensor))
      return error;
  if (Error error = (*codes)->finish())
    return error;
  return (*numbers)->finish();
}

} // namespace mlir::llm::testing
