// IR or a model file on the CPU reference.
#include "dialects/LLM/LLM.h"
#include "lib/Import/ModelTokenizer.h"
#include "lib/Import/Import.h"
#include "lib/Weights/WeightStore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Text/Tokenizer.h"
#include "tools/Eval/Model.h"
#include "tools/Eval/WeightBytes.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <numeric>

using namespace mlir;
using namespace mlir::llm;

namespace {

class ReferenceModel final : public EvalModel {
public:
  explicit ReferenceModel(llvm::StringRef path)
      : path(path.str()), handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            messages += (messages.empty() ? "" : "; ") + diagnostic.str();
        }) {
    context.loadDialect<LLMDialect, func::FuncDialect, arith::ArithDialect>();
  }

  llvm::Error open(const OpenOptions &options) {
    if (llvm::Error error = load(options))
      return error;
    if (llvm::Error error = findFunction(options.function))
      return error;
    reference::Options settings;
    settings.precision = options.precision, settings.threads = options.threads;
    settings.cacheBytes = options.cacheBytes;
    if (!options.adapter.empty()) {
      std::string names;
      if (auto list = (*module)->getAttrOfType<ArrayAttr>("llm.adapters"))
        for (auto [i, name] : llvm::enumerate(list.getAsRange<StringAttr>())) {
          names += (i ? ", " : "") + name.str();
          if (name == options.adapter)
            settings.adapter = uint32_t(i) + 1;
        }
      if (settings.adapter == 0)
        return llvm::createStringError("'" + path + "' expects one of its adapters (" +
                                       (names.empty() ? "it has none" : names) + "), but got '" + options.adapter + "'");
    }
    evaluator = reference::Evaluator::create(*module, files, settings);
    return llvm::Error::success();
  }

  int64_t vocabulary() const override {
    return cast<RankedTensorType>(function.getResultTypes().front()).getShape().back();
  }
  uint64_t weightBytes() const override { return llm::weightBytes(function); }

  llvm::Expected<std::vector<int32_t>> tokenize(llvm::StringRef text) override {
    if (llvm::Error error = needTokenizer())
      return error;
    const auto ids = tokenizer->encode(std::string_view(text));
    if (!ids.ok())
      return llvm::createStringError("'" + path + "': " + ids.status().message());
    std::vector<int32_t> result;
    for (uint32_t id : *ids) {
      auto kept = newIds.find(int32_t(id));
      if (!newIds.empty() && kept == newIds.end())
        return llvm::createStringError("'" + path + "': the text needs token " + llvm::Twine(id) +
                                       ", which vocabulary pruning took away");
      result.push_back(newIds.empty() ? int32_t(id) : kept->second);
    }
    return result;
  }

  llvm::Expected<bool> addsBegin() override {
    if (llvm::Error error = needTokenizer())
      return error;
    return tables->tables.addBos && tables->tables.bos >= 0;
  }

  llvm::Expected<int32_t> beginToken() override {
    if (llvm::Error error = needTokenizer())
      return error;
    const int32_t begin = tables->tables.bos;
    if (begin < 0 || (!newIds.empty() && !newIds.count(begin)))
      return llvm::createStringError("'" + path + "' has no begin token");
    return newIds.empty() ? begin : newIds.lookup(begin);
  }

  llvm::Error reset() override {
    evaluator->resetState();
    position = 0;
    return llvm::Error::success();
  }

  llvm::Expected<reference::Tensor> step(llvm::ArrayRef<int32_t> tokens) override {
    std::vector<int32_t> positions(tokens.size()), rows(tokens.size());
    std::iota(positions.begin(), positions.end(), position);
    std::iota(rows.begin(), rows.end(), 0);
    using reference::Tensor;
    messages.clear();
    auto results =
        evaluator->run(function.getSymName(), {Tensor::ids(tokens), Tensor::ids(positions), Tensor::ids(rows)});
    if (failed(results))
      return failure();
    position += int32_t(tokens.size());
    return results->front();
  }

private:
  llvm::Error failure() const { return llvm::createStringError("'" + path + "': " + messages); }

  llvm::Error load(const OpenOptions &options) {
    const llvm::StringRef suffix = llvm::sys::path::extension(path);
    if (suffix == ".mlir" || suffix == ".mlirbc") {
      module = parseSourceFile<ModuleOp>(path, &context);
      files = std::make_shared<WeightStore>(llvm::sys::path::parent_path(path));
      return module ? llvm::Error::success() : failure();
    }
    ImportOptions import;
    // The importer's own choice suffices for short sequences.
    import.capacity = options.context > kDefaultCapacity ? options.context : 0;
    auto imported = importModel(&context, path, import);
    if (!imported)
      return imported.takeError();
    module = std::move(*imported);
    files = std::make_shared<WeightStore>("");
    return llvm::Error::success();
  }

  /// (ids, positions, rows) → logits.
  static bool isModel(func::FuncOp op) {
    auto ids = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.getRank() == 1 && tensor.getElementType().isInteger(32);
    };
    return op.getNumArguments() == 3 && llvm::all_of(op.getArgumentTypes(), ids) && op.getNumResults() == 1 &&
           isa<RankedTensorType>(op.getResultTypes().front());
  }

  llvm::Error findFunction(llvm::StringRef name) {
    auto functions = llvm::to_vector(module->getOps<func::FuncOp>());
    function = module->lookupSymbol<func::FuncOp>(name.empty() ? "forward" : name);
    if (!function && name.empty() && functions.size() == 1)
      function = functions.front();
    if (function && isModel(function))
      return llvm::Error::success();
    return llvm::createStringError("'" + path + "': expects a function @" + (name.empty() ? "forward" : name) +
                                   " of (ids, positions, rows) to logits, but the module has none");
  }

  /// The tokenizer that the module names; of a GGUF file.
  llvm::Error needTokenizer() {
    if (tokenizer)
      return llvm::Error::success();
    auto declarations = module->getOps<TokenizerOp>();
    if (declarations.empty())
      return llvm::createStringError("'" + path + "' has no tokenizer; give --tokens instead of a text");
    TokenizerOp declaration = *declarations.begin();
    messages.clear();
    auto source = files->source(declaration, declaration.getSourceAttr());
    if (failed(source))
      return failure();
    auto read = readModelTokenizer(**source);
    if (!read)
      return read.takeError();
    if (!*read)
      return llvm::createStringError("'" + (*source)->path() + "' has no tokenizer; give --tokens instead of a text");
    tables = std::move(**read);
    auto made = sprig::Tokenizer::create(tables->tables.data());
    if (!made.ok())
      return llvm::createStringError("'" + (*source)->path() + "': " + made.status().message());
    tokenizer = std::make_unique<sprig::Tokenizer>(std::move(*made));
    if (std::optional<ArrayRef<int32_t>> keep = declaration.getKeep())
      for (auto [now, before] : llvm::enumerate(*keep))
        newIds[before] = int32_t(now);
    return llvm::Error::success();
  }

  std::string path, messages;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  std::shared_ptr<WeightStore> files;
  mutable func::FuncOp function;
  std::unique_ptr<reference::Evaluator> evaluator;
  std::optional<ModelTokenizer> tables;
  std::unique_ptr<sprig::Tokenizer> tokenizer;
  llvm::DenseMap<int32_t, int32_t> newIds; ///< of a pruned vocabulary
  int32_t position = 0;
};

} // namespace

llvm::Expected<std::unique_ptr<EvalModel>> mlir::llm::openReferenceModel(llvm::StringRef path,
                                                                         const OpenOptions &options) {
  auto model = std::make_unique<ReferenceModel>(path);
  if (llvm::Error error = model->open(options))
    return error;
  return model;
}

llvm::Expected<std::unique_ptr<EvalModel>> EvalModel::open(llvm::StringRef path, const OpenOptions &options) {
  return path.ends_with(".sprig") ? openDeviceModel(path, options) : openReferenceModel(path, options);
}
