#include "lib/Import/AdapterFile.h"

#include "lib/Weights/WeightTypes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::llm;
using Json = nlohmann::json;

std::string AdapterFile::inside(StringRef name) const {
  ::llvm::SmallString<256> path(folder);
  ::llvm::sys::path::append(path, name);
  return path.str().str();
}

double AdapterFile::factor() const {
  return scale * alpha / (byRoot ? std::sqrt(double(ranks)) : double(ranks));
}

LogicalResult AdapterFile::readConfig() {
  const std::string path = inside("adapter_config.json");
  auto buffer = ::llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return module.emitError() << "cannot read '" << path << "': " << buffer.getError().message();
  const Json config = Json::parse((*buffer)->getBuffer().str(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    return module.emitError() << "'" << path << "' expects a JSON object";
  const auto refuse = [&](StringRef key, StringRef expected) {
    return module.emitError() << "'" << path << "' expects " << expected << " in \"" << key << "\", but got "
                              << (config.contains(key.str()) ? config[key.str()].dump() : std::string("nothing"));
  };
  if (config.value("peft_type", Json()) != Json("LORA"))
    return refuse("peft_type", "\"LORA\"");
  if (config.value("bias", Json("none")) != Json("none"))
    return refuse("bias", "\"none\"");
  const Json dora = config.value("use_dora", Json(false));
  if (dora.is_boolean() && dora.get<bool>())
    return refuse("use_dora", "false");
  for (const char *key : {"modules_to_save", "alpha_pattern", "rank_pattern", "layer_replication"})
    if (config.contains(key) && !config[key].empty() && !config[key].is_null())
      return refuse(key, "nothing");
  const Json alphaKey = config.value("lora_alpha", Json()), rankKey = config.value("r", Json());
  if (!alphaKey.is_number())
    return refuse("lora_alpha", "a number");
  if (!rankKey.is_number_integer() || rankKey.get<int64_t>() < 1)
    return refuse("r", "a number above 0");
  alpha = alphaKey.get<double>(), ranks = rankKey.get<int64_t>();
  const Json rooted = config.value("use_rslora", Json(false));
  byRoot = rooted.is_boolean() && rooted.get<bool>();
  if (!std::isfinite(alpha))
    return refuse("lora_alpha", "a finite number");
  if (!std::isfinite(scale))
    return module.emitError() << "expects a finite scale of the adapter in '" << folder << "', but got " << scale;
  if (std::abs(factor()) > double(std::numeric_limits<float>::max()))
    return module.emitError() << "'" << path << "' expects a factor within what f32 holds, but a scale of " << scale
                              << " times \"lora_alpha\" " << alpha << " over " << (byRoot ? "the root of " : "") << "\"r\" "
                              << ranks << " is " << factor();
  return success();
}

LogicalResult AdapterFile::openWeights() {
  const std::string path = inside("adapter_model.safetensors");
  auto opened = openWeightSource(path);
  if (!opened)
    return module.emitError() << ::llvm::toString(opened.takeError());
  file = std::move(*opened);
  for (const WeightTensor &tensor : file->tensors()) {
    StringRef name = tensor.key;
    name.consume_front("base_model.model.");
    const bool down = name.consume_back(".lora_A.weight"), up = !down && name.consume_back(".lora_B.weight");
    if (!down && !up)
      return module.emitError() << "'" << path << "' expects tensors called …lora_A.weight and …lora_B.weight, but got '"
                                << tensor.key << "'";
    (down ? pairs[name.str()].down : pairs[name.str()].up) = &tensor;
  }
  for (auto &[name, pair] : pairs)
    if (!pair.down || !pair.up || pair.down->shape.size() != 2 || pair.up->shape.size() != 2 ||
        pair.down->shape[0] != ranks || pair.up->shape[1] != ranks)
      return module.emitError() << "'" << path << "' expects matrices " << ranks << "xK and Nx" << ranks << " for '"
                                << name << "', as its adapter_config.json says";
  symbol = declareSource(module, "adapter", *file, path, store);
  return success();
}

StringRef AdapterFile::find(ArrayRef<std::string> names) const {
  for (const std::string &name : names)
    if (const auto found = pairs.find(name); found != pairs.end())
      return found->first;
  return "";
}

const AdapterPair *AdapterFile::use(ArrayRef<std::string> names) {
  const StringRef name = find(names);
  if (name.empty())
    return nullptr;
  used.insert(name.str());
  return &pairs.find(name.str())->second;
}

LogicalResult AdapterFile::checkUse() {
  for (auto &[name, pair] : pairs)
    if (!used.count(name))
      return module.emitError() << "'" << folder << "' changes '" << name
                                << "', which this model does not have; is it an adapter for another model, or the IR fused already?";
  return success();
}

Value AdapterFile::read(OpBuilder &builder, Location loc, const WeightTensor &tensor) const {
  Type element = tensor.format == sprig::quant::Format::F32    ? Type(builder.getF32Type())
                 : tensor.format == sprig::quant::Format::BF16 ? Type(builder.getBF16Type())
                                                               : Type(builder.getF16Type());
  return WeightOp::create(builder, loc, RankedTensorType::get(tensor.shape, element), symbol, tensor.key);
}
