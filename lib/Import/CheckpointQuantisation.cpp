#include "lib/Import/CheckpointQuantisation.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

static void expectBits(ConfigKeys &keys, StringRef key, int64_t bits,
                       std::initializer_list<int64_t> known) {
  if (llvm::is_contained(known, bits))
    return;
  std::string list;
  for (int64_t one : known)
    list += (list.empty() ? "" : ", ") + std::to_string(one);
  keys.fail(key, "expects one of " + list + " bits, but got " + Twine(bits));
}

/// How many rows and columns share a scale.
static void readBlock(ConfigKeys &keys, StringRef key,
                      CheckpointQuantisation &read) {
  const std::vector<double> sizes = keys.reals(key);
  const auto isSize = [](double size) {
    return size >= 1.0 && size <= 65536.0 && size == std::floor(size);
  };
  if (sizes.size() != 2 || !llvm::all_of(sizes, isSize))
    return keys.fail(key, "expects two whole numbers, of rows and of columns "
                          "that share a scale, but got others");
  read.rows = int64_t(sizes[0]);
  read.group = int64_t(sizes[1]);
}

/// The weights of a group of compressed-tensors.
static void readWeights(ConfigKeys keys, CheckpointQuantisation &read) {
  read.bits = keys.size("num_bits");
  const std::string type = keys.text("type", "int");
  read.isFloat = type == "float";
  if (type != "int" && type != "float")
    keys.fail("type", "expects int or float, but got '" + type + "'");
  else if (read.isFloat)
    expectBits(keys, "num_bits", read.bits, {8});
  else
    expectBits(keys, "num_bits", read.bits, {4, 8});
  const std::string strategy = keys.text("strategy");
  if (strategy == "group")
    read.group = keys.size("group_size");
  else if (strategy == "block")
    readBlock(keys, "block_structure", read);
  else if (strategy == "tensor")
    read.rows = 0;
  else if (strategy != "channel")
    keys.fail("strategy", "expects block, channel, group or tensor, but got '" +
                              strategy + "', which is not supported");
  keys.ignore({"group_size"});
  if (strategy != "block")
    keys.refuse("block_structure", "blocks of weights");
  read.symmetric = keys.flag("symmetric", true);
  if (!read.symmetric && read.isFloat)
    keys.fail("symmetric", "expects true, for zero points of floats are not "
                           "supported, but got false");
  keys.refuse("dynamic", "a scheme of weights that is made while it runs");
  // In which order columns were rounded; whether groups are mixed, the tensors
  // tell.
  keys.ignore({"actorder", "observer", "observer_kwargs", "scale_dtype",
               "zp_dtype"});
  keys.finish();
}

static void readActivations(ConfigKeys keys, CheckpointQuantisation &read) {
  // Inputs of floats in 8 bits are not rounded here: the numbers are those that
  // rounding would come near to.
  if (read.isFloat && keys.text("type", "int") == "float")
    return;
  read.activationBits = keys.size("num_bits");
  expectBits(keys, "num_bits", read.activationBits, {8});
  const std::string type = keys.text("type", "int"),
                    strategy = keys.text("strategy");
  if (type != "int" || strategy != "token" || !keys.flag("dynamic", false) ||
      !keys.flag("symmetric", true))
    keys.fail("strategy", "expects symmetric integers, a scale a token, found "
                          "while the model runs, but got strategy '" +
                              strategy + "' of type '" + type + "'");
  keys.ignore({"group_size", "observer", "observer_kwargs", "actorder",
               "block_structure", "scale_dtype", "zp_dtype"});
  keys.finish();
}

static void readCompressedTensors(ConfigKeys &keys,
                                  CheckpointQuantisation &read) {
  const json *groups = keys.child("config_groups");
  if (!groups || groups->size() != 1)
    return keys.fail("config_groups", "expects one group of layers, but got " +
                                          Twine(groups ? groups->size() : 0));
  ConfigKeys all = keys.within("config_groups", *groups);
  const std::string name = groups->begin().key();
  const json *group = all.child(name);
  if (!group)
    return all.fail(name, "expects an object");
  ConfigKeys one = all.within(name, *group);
  if (const json *weights = one.child("weights"))
    readWeights(one.within("weights", *weights), read);
  else
    one.fail("weights", "expects a scheme, but got none");
  if (const json *inputs = one.child("input_activations"))
    readActivations(one.within("input_activations", *inputs), read);
  one.refuse("output_activations", "quantised results");
  // Which layers: their tensors tell.
  one.ignore({"targets", "format"});
  one.finish();
  keys.refuse("kv_cache_scheme", "a quantised cache");
  keys.refuse("sparsity_config", "a sparse checkpoint");
  keys.refuse("transform_config", "a transform of weights");
  keys.ignore({"ignore", "global_compression_ratio"});
}

/// GPTQ and AWQ.
static void readPacked(ConfigKeys &keys, CheckpointQuantisation &read) {
  const bool awq = read.method == QuantMethod::AWQ;
  const StringRef bits = keys.first({"bits", "w_bit"});
  read.bits = keys.size(bits);
  expectBits(keys, bits, read.bits,
             awq ? std::initializer_list<int64_t>{4}
                 : std::initializer_list<int64_t>{2, 4, 8});
  const StringRef group = keys.first({"group_size", "q_group_size"});
  // -1: the whole row.
  const double size = keys.real(group);
  read.group = size == -1.0 ? 0 : keys.size(group);
  read.symmetric = false; // zero points are stored whatever they are
  if (awq) {
    const std::string version = keys.text("version", "gemm");
    if (!StringRef(version).equals_insensitive("gemm"))
      keys.fail("version", "expects gemm, but got '" + version +
                               "', which is not supported");
    if (!keys.flag("zero_point", true))
      keys.fail("zero_point", "expects true, but got false");
  } else {
    const std::string format = keys.text("checkpoint_format", "gptq");
    if (format != "gptq")
      keys.fail("checkpoint_format", "expects gptq, but got '" + format +
                                         "', which is not supported");
  }
  // Which modules were left out, their tensors tell.
  keys.ignore({"backend",
               "damp_percent",
               "dataset",
               "desc_act",
               "do_fuse",
               "lm_head",
               "sym",
               "true_sequential",
               "static_groups",
               "meta",
               "model_name_or_path",
               "model_file_base_name",
               "quant_method",
               "fuse_max_seq_len",
               "exllama_config",
               "cache_block_outputs",
               "module_name_preceding_first_block",
               "use_cuda_fp16",
               "use_exllama",
               "max_input_length",
               "batch_size",
               "block_name_to_quantize",
               "model_seqlen",
               "pad_token_id",
               "tokenizer",
               "modules_in_block_to_quantize",
               "modules_to_not_convert"});
}

/// The scheme of DeepSeek-V3 and of others after it.
static void readFP8(ConfigKeys &keys, CheckpointQuantisation &read) {
  read.bits = 8;
  read.isFloat = true;
  const std::string format = keys.text("fmt", "e4m3");
  if (format == "e5m2")
    read.floats = sprig::quant::Format::F8E5M2;
  else if (format != "e4m3")
    keys.fail("fmt", "expects e4m3 or e5m2, but got '" + format +
                         "', which is not supported");
  if (keys.has("weight_block_size"))
    readBlock(keys, "weight_block_size", read);
  else
    read.rows = 0;
  // Inputs are not rounded, as above; which layers are left out, their tensors
  // tell.
  keys.ignore({"activation_scheme", "modules_to_not_convert", "dequantize",
               "ignored_layers", "kv_cache_scheme"});
}

CheckpointQuantisation mlir::llm::readQuantisation(ConfigKeys keys) {
  CheckpointQuantisation read;
  const std::string method = keys.text("quant_method");
  if (method == "compressed-tensors") {
    read.method = QuantMethod::CompressedTensors;
    readCompressedTensors(keys, read);
  } else if (method == "gptq" || method == "awq") {
    read.method = method == "awq" ? QuantMethod::AWQ : QuantMethod::GPTQ;
    readPacked(keys, read);
  } else if (method == "fp8") {
    read.method = QuantMethod::FP8;
    readFP8(keys, read);
  } else {
    keys.fail("quant_method",
              "expects awq, compressed-tensors, fp8 or gptq, but got '" +
                  method +
                  "', which is not supported");
  }
  keys.finish();
  return read;
}
