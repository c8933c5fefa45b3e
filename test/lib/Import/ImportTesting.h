// A small llama model in a GGUF file, each part of which a test may change before it is written. Its weights are zeros:
// these tests look at structure.
#ifndef SPRIG_TEST_LIB_IMPORT_IMPORTTESTING_H
#define SPRIG_TEST_LIB_IMPORT_IMPORTTESTING_H

#include "lib/Import/Import.h"
#include "lib/Weights/GGUFWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "test/lib/Weights/WeightsTesting.h"

#include <functional>
#include <map>

namespace mlir::llm::testing {

class SmallModel {
public:
  /// D = 32, H = 4, G = 2, E = 8, F = 48, L = 2, V = 16.
  explicit SmallModel(std::string family = "llama") : family(std::move(family)) {
    text("general.architecture", this->family);
    key("context_length", uint32_t(128));
    key("block_count", uint32_t(2));
    key("embedding_length", uint32_t(32));
    key("feed_forward_length", uint32_t(48));
    key("attention.head_count", uint32_t(4));
    key("attention.head_count_kv", uint32_t(2));
    key("attention.layer_norm_rms_epsilon", 1e-5f);
    tensors["token_embd.weight"] = {16, 32};
    tensors["output_norm.weight"] = {32};
    for (int layer = 0; layer < 2; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      tensors[block + "attn_norm.weight"] = {32};
      tensors[block + "attn_q.weight"] = {32, 32};
      tensors[block + "attn_k.weight"] = {16, 32};
      tensors[block + "attn_v.weight"] = {16, 32};
      tensors[block + "attn_output.weight"] = {32, 32};
      tensors[block + "ffn_norm.weight"] = {32};
      tensors[block + "ffn_gate.weight"] = {48, 32};
      tensors[block + "ffn_up.weight"] = {48, 32};
      tensors[block + "ffn_down.weight"] = {32, 48};
    }
  }

  /// A number or a truth of the family; replaces the one that is there.
  template <typename T> SmallModel &key(const std::string &name, T value) {
    metadata[family + "." + name] = [value](GGUFWriter &writer, llvm::StringRef full) { writer.add(full, value); };
    return *this;
  }
  SmallModel &key(const std::string &name, const char *value) { return text(family + "." + name, value); }
  SmallModel &array(const std::string &name, std::vector<uint32_t> values) {
    metadata[family + "." + name] = [values](GGUFWriter &writer, llvm::StringRef full) {
      writer.addArray<uint32_t>(full, values);
    };
    return *this;
  }
  /// A text under a full name.
  SmallModel &text(const std::string &name, const std::string &value) {
    metadata[name] = [value](GGUFWriter &writer, llvm::StringRef full) { writer.add(full, llvm::StringRef(value)); };
    return *this;
  }
  SmallModel &without(const std::string &name) {
    metadata.erase(family + "." + name);
    return *this;
  }

  void write(const std::string &path) const {
    GGUFWriter writer;
    for (const auto &[name, add] : metadata)
      add(writer, name);
    for (const auto &[name, shape] : tensors) {
      size_t count = 1;
      for (int64_t size : shape)
        count *= size_t(size);
      const auto found = values.find(name);
      const std::vector<float> numbers = found == values.end() ? std::vector<float>(count) : found->second;
      ASSERT_FALSE(bool(writer.addTensor(name, sprig::quant::Format::F32, shape, numbers)));
    }
    ASSERT_FALSE(bool(writer.write(path)));
  }

  std::string family;
  std::map<std::string, std::function<void(GGUFWriter &, llvm::StringRef)>> metadata;
  std::map<std::string, std::vector<int64_t>> tensors;
  std::map<std::string, std::vector<float>> values; ///< of tensors that are not zeros
};

class ImportTest : public Scratch {
protected:
  /// The module of a model; a failed import fails the test.
  ModuleOp import(const SmallModel &model, ImportOptions options = {}) {
    model.write(path("model.gguf"));
    options.folder = folder.string();
    llvm::Expected<OwningOpRef<ModuleOp>> imported = importModel(&context, path("model.gguf"), options);
    if (!imported) {
      ADD_FAILURE() << llvm::toString(imported.takeError());
      module = ModuleOp::create(UnknownLoc::get(&context));
    } else {
      module = std::move(*imported);
    }
    return *module;
  }
  /// Why a model is refused.
  std::string refusal(const SmallModel &model, const ImportOptions &options = {}) {
    model.write(path("model.gguf"));
    return messageOf(importModel(&context, path("model.gguf"), options));
  }
  /// All ops of a kind, in order.
  template <typename OpT> std::vector<OpT> all() {
    std::vector<OpT> found;
    module->walk([&](OpT op) { found.push_back(op); });
    return found;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_LIB_IMPORT_IMPORTTESTING_H
