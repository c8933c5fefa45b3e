// A package on a Vulkan device, through the public C API.
#include "runtime/Package/Package.h"
#include "runtime/sprig.h"
#include "tools/Eval/Model.h"

using namespace mlir;
using namespace mlir::llm;

namespace {

llvm::Error failed(llvm::StringRef path) {
  return llvm::createStringError("'" + path + "': " + llvm::StringRef(sprig_last_error()));
}

class DeviceModel final : public EvalModel {
public:
  explicit DeviceModel(llvm::StringRef path) : path(path.str()) {}
  ~DeviceModel() override {
    sprig_session_destroy(session);
    sprig_model_close(model);
  }

  llvm::Error open(const OpenOptions &given) {
    sprig_model_options options;
    sprig_model_options_init(&options);
    options.device = given.device.empty() ? nullptr : given.device.c_str();
    options.target = given.target.empty() ? nullptr : given.target.c_str();
    if (sprig_model_open(path.c_str(), &options, &model) != SPRIG_OK)
      return failed(path);
    info.struct_bytes = sizeof(info);
    if (sprig_model_get_info(model, &info) != SPRIG_OK || sprig_session_create(model, nullptr, &session) != SPRIG_OK)
      return failed(path);
    if (sprig_session_set_adapter(session, given.adapter.c_str()) != SPRIG_OK)
      return failed(path);
    return llvm::Error::success();
  }

  int64_t vocabulary() const override { return info.vocabulary; }
  uint64_t weightBytes() const override { return info.weight_bytes; }

  llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) override { return tokens(text, 0); }

  llvm::Expected<bool> addsBegin() override {
    auto begin = tokens("", SPRIG_ADD_BEGIN);
    return begin ? llvm::Expected<bool>(begin->size() == 1) : begin.takeError();
  }

  llvm::Expected<int32_t> beginToken() override {
    // The C API has it only where the model's metadata asks for one before a text.
    auto package = sprig::Package::open(path);
    if (!package.ok())
      return llvm::createStringError(package.status().message());
    const auto *tokenizer = (*package)->metadata().tokenizer();
    if (!tokenizer)
      return llvm::createStringError("'" + path + "' has no tokenizer, and so no begin token");
    if (tokenizer->bos() < 0)
      return llvm::createStringError("'" + path + "' has no begin token");
    return tokenizer->bos();
  }

  llvm::Error reset() override {
    return sprig_session_truncate(session, 0) == SPRIG_OK ? llvm::Error::success() : failed(path);
  }

  llvm::Expected<reference::Tensor> step(llvm::ArrayRef<int32_t> tokens) override {
    const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
    float *logits;
    auto result = reference::Tensor::make<float>({int64_t(ids.size()), vocabulary()}, logits);
    if (sprig_session_evaluate(session, ids.data(), ids.size(), logits) != SPRIG_OK)
      return failed(path);
    return result;
  }

private:
  llvm::Expected<std::vector<int32_t>> tokens(llvm::StringRef text, unsigned flags) {
    size_t count = 0;
    std::vector<uint32_t> ids(text.size() + 16);
    if (sprig_tokenize(model, text.data(), text.size(), flags, ids.data(), ids.size(), &count) != SPRIG_OK)
      return failed(path);
    if (count > ids.size()) {
      ids.resize(count);
      if (sprig_tokenize(model, text.data(), text.size(), flags, ids.data(), ids.size(), &count) != SPRIG_OK)
        return failed(path);
    }
    return std::vector<int32_t>(ids.begin(), ids.begin() + ptrdiff_t(count));
  }

  std::string path;
  sprig_model *model = nullptr;
  sprig_session *session = nullptr;
  sprig_model_info info = {};
};

} // namespace

llvm::Expected<std::unique_ptr<EvalModel>> mlir::llm::openDeviceModel(llvm::StringRef path,
                                                                      const OpenOptions &options) {
  auto model = std::make_unique<DeviceModel>(path);
  if (llvm::Error error = model->open(options))
    return error;
  return model;
}
