#include "tools/Eval/KeptLogits.h"

#include "lib/Weights/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace mlir;
using namespace mlir::llm;
using reference::Tensor;

namespace {

class KeptLogits final : public EvalModel {
public:
  KeptLogits(std::unique_ptr<EvalModel> model, std::string name, bool doubles, llvm::StringRef folder)
      : model(std::move(model)), name(std::move(name)), doubles(doubles), folder(folder) {}

  int64_t vocabulary() const override { return model->vocabulary(); }
  uint64_t weightBytes() const override { return model->weightBytes(); }
  llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) override { return model->tokenize(text); }
  llvm::Expected<int32_t> beginToken() override { return model->beginToken(); }
  llvm::Expected<bool> addsBegin() override { return model->addsBegin(); }

  llvm::Error reset() override {
    seen.clear();
    evaluated = 0;
    return model->reset();
  }

  llvm::Expected<Tensor> step(ArrayRef<int32_t> tokens) override {
    const size_t before = seen.size();
    seen.insert(seen.end(), tokens.begin(), tokens.end());
    const std::string path = fileOf(tokens.size());
    if (Tensor kept = doubles ? read<double>(path, tokens.size()) : read<float>(path, tokens.size()))
      return kept;
    // Steps that were found in files are made up for.
    if (evaluated < before) {
      auto skipped = model->step(ArrayRef(seen).slice(evaluated, before - evaluated));
      if (!skipped)
        return skipped.takeError();
    }
    auto logits = model->step(tokens);
    if (!logits)
      return logits.takeError();
    evaluated = seen.size();
    llvm::Error error = doubles ? write<double>(path, *logits) : write<float>(path, *logits);
    if (error)
      return std::move(error);
    return logits;
  }

private:
  /// Of the last `count` tokens behind all others.
  std::string fileOf(size_t count) const {
    std::string key = name + '\n' + std::to_string(count) + '\n';
    key.append(reinterpret_cast<const char *>(seen.data()), seen.size() * sizeof(int32_t));
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, llvm::utohexstr(llvm::xxh3_64bits(llvm::StringRef(key))) + ".logits");
    return path.str().str();
  }

  /// None where there is no such file, or one of another size.
  template <typename F> Tensor read(const std::string &path, size_t rows) const {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!buffer || (*buffer)->getBufferSize() != rows * size_t(vocabulary()) * sizeof(F))
      return {};
    F *numbers;
    Tensor result = Tensor::make<F>({int64_t(rows), vocabulary()}, numbers);
    std::memcpy(numbers, (*buffer)->getBufferStart(), (*buffer)->getBufferSize());
    return result;
  }

  template <typename F> llvm::Error write(const std::string &path, const Tensor &logits) const {
    auto file = OutputFile::create(path);
    if (!file)
      return file.takeError();
    const ArrayRef<F> numbers = logits.as<F>();
    if (llvm::Error error = (*file)->append(std::as_bytes(std::span(numbers.data(), numbers.size()))))
      return error;
    return (*file)->commit();
  }

  std::unique_ptr<EvalModel> model;
  std::string name; ///< of the model's file and precision
  bool doubles;
  std::string folder;
  std::vector<int32_t> seen;
  size_t evaluated = 0; ///< how many of them the model has seen
};

} // namespace

llvm::Expected<std::unique_ptr<EvalModel>> mlir::llm::keepLogits(std::unique_ptr<EvalModel> model,
                                                                 llvm::StringRef path, const OpenOptions &options,
                                                                 llvm::StringRef folder) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return llvm::createStringError("cannot make the folder '" + folder + "': " + code.message());
  llvm::SmallString<128> whole;
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::real_path(path, whole); code || (code = llvm::sys::fs::status(whole, status)))
    return llvm::createStringError("cannot read '" + path + "': " + code.message());
  const bool doubles = options.precision == reference::Precision::F64 && !path.ends_with(".sprig");
  std::string name = (whole.str() + "\n" + llvm::Twine(status.getSize()) + "\n" +
                      llvm::Twine(status.getLastModificationTime().time_since_epoch().count()) + "\n" +
                      (doubles ? "f64" : "f32") + "\n" + options.function + "\n" + options.adapter)
                         .str();
  return std::make_unique<KeptLogits>(std::move(model), std::move(name), doubles, folder);
}
