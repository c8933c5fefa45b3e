#include "lib/Weights/WeightStore.h"
#include "lib/Weights/WeightSpill.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::llm;

namespace path = llvm::sys::path;

namespace {

/// Carries the store: a context keeps interfaces of its dialects.
class WeightStoreHolder final
    : public DialectInterface::Base<WeightStoreHolder> {
public:
  explicit WeightStoreHolder(Dialect *dialect) : Base(dialect) {}
  std::shared_ptr<WeightStore> store;
};

} // namespace

MLIR_DECLARE_EXPLICIT_TYPE_ID(WeightStoreHolder)
MLIR_DEFINE_EXPLICIT_TYPE_ID(WeightStoreHolder)

WeightStore::WeightStore(StringRef folder) : base(folder.str()) {}
WeightStore::~WeightStore() = default;

std::string WeightStore::absolute(StringRef name) const {
  llvm::SmallString<256> result(name);
  if (path::is_relative(result)) {
    result = base;
    path::append(result, name);
  }
  (void)llvm::sys::fs::make_absolute(result);
  path::remove_dots(result, /*remove_dot_dot=*/false);
  return result.str().str();
}

/// The source op that a symbol names, in the nearest table that has it: plans
/// nest symbol tables in the module that holds the sources.
static SourceOp lookUp(Operation *user, FlatSymbolRefAttr symbol) {
  Operation *table = SymbolTable::getNearestSymbolTable(user);
  while (table) {
    if (Operation *found = SymbolTable::lookupSymbolIn(table, symbol.getAttr()))
      return dyn_cast<SourceOp>(found);
    Operation *parent = table->getParentOp();
    table = parent ? SymbolTable::getNearestSymbolTable(parent) : nullptr;
  }
  return {};
}

/// Whether the file is the one that was imported.
static LogicalResult checkIdentity(SourceOp source, const WeightSource &file) {
  if (std::optional<uint64_t> bytes = source.getBytes();
      bytes && *bytes != file.fileBytes())
    return source.emitOpError("expects a file of ")
           << *bytes << " bytes, but '" << file.path() << "' has "
           << file.fileBytes() << "; it is not the file that was imported";
  if (!source.getHash())
    return success();
  const std::string hash =
      llvm::utohexstr(file.fingerprint(), /*LowerCase=*/true, 16);
  if (*source.getHash() != hash)
    return source.emitOpError("expects a file of hash ")
           << *source.getHash() << ", but '" << file.path() << "' has " << hash
           << "; it is not the file that was imported";
  return success();
}

FailureOr<const WeightSource *> WeightStore::source(Operation *user,
                                                    FlatSymbolRefAttr symbol) {
  SourceOp source = lookUp(user, symbol);
  if (!source)
    return user->emitOpError("expects an llm.source, but got ") << symbol;
  if (source.isRuntime())
    return user->emitOpError("expects a source with a file, but ")
           << symbol << " is filled at run time";
  const std::string name = absolute(*source.getPath());
  const std::lock_guard lock(mutex);
  for (const auto &made : {&newWeights, &trialWeights})
    if (*made && (*made)->path() == name)
      return made->get();
  std::unique_ptr<WeightSource> &file = files[name];
  if (!file) {
    auto opened = openWeightSource(name);
    if (!opened)
      return source.emitOpError() << llvm::toString(opened.takeError());
    file = std::move(*opened);
  }
  // Two modules may name one file, so compare for each distinct promise.
  const std::string promise = name + "\n" +
                              llvm::utostr(source.getBytes().value_or(0)) +
                              "\n" + source.getHash().value_or("").str();
  if (!checked.contains(promise)) {
    if (failed(checkIdentity(source, *file)))
      return failure();
    checked.insert(promise);
  }
  return file.get();
}

WeightSpill *WeightStore::spill(Operation *user) {
  const std::lock_guard lock(mutex);
  std::unique_ptr<WeightSpill> &own = trying ? trialWeights : newWeights;
  if (own)
    return own.get();
  if (spillPath.empty()) {
    lacked = true;
    user->emitOpError("makes new weights, but no file was named for them");
    return nullptr;
  }
  const std::string path = spillPath + (trying ? ".trial" : "");
  auto created = WeightSpill::create(absolute(path), path);
  if (!created) {
    user->emitOpError() << llvm::toString(created.takeError());
    return nullptr;
  }
  own = std::move(*created);
  return own.get();
}

WeightTrial::WeightTrial(WeightStore &store) : store(store) {
  const std::lock_guard lock(store.mutex);
  assert(!store.trying && "one trial at a time");
  store.trying = true;
}

WeightTrial::~WeightTrial() {
  const std::lock_guard lock(store.mutex);
  store.trying = false;
  store.trialWeights.reset();
}

llvm::Error WeightStore::finish() {
  return newWeights ? newWeights->finish() : llvm::Error::success();
}

WeightStore *WeightStore::of(MLIRContext *context) {
  Dialect *dialect = context->getLoadedDialect<LLMDialect>();
  auto *holder =
      dialect ? dialect->getRegisteredInterface<WeightStoreHolder>() : nullptr;
  return holder ? holder->store.get() : nullptr;
}

void WeightStore::attach(MLIRContext *context,
                         std::shared_ptr<WeightStore> store) {
  Dialect *dialect = context->getOrLoadDialect<LLMDialect>();
  auto *holder = dialect->getRegisteredInterface<WeightStoreHolder>();
  if (!holder)
    holder = &dialect->addInterface<WeightStoreHolder>();
  holder->store = std::move(store);
}

/// From one folder to a file, both absolute and without dots: up to what they
/// have in common, then down.
static std::string wayTo(StringRef file, StringRef folder) {
  auto a = path::begin(folder), aEnd = path::end(folder);
  auto b = path::begin(file), bEnd = path::end(file);
  while (a != aEnd && b != bEnd && *a == *b)
    ++a, ++b;
  llvm::SmallString<256> relative;
  for (; a != aEnd; ++a)
    path::append(relative, "..");
  for (; b != bEnd; ++b)
    path::append(relative, *b);
  return relative.str().str();
}

static llvm::SmallString<256> absoluteOf(StringRef name) {
  llvm::SmallString<256> result(name);
  (void)llvm::sys::fs::make_absolute(result);
  path::remove_dots(result, /*remove_dot_dot=*/true);
  return result;
}

std::string mlir::llm::relativePath(StringRef file, StringRef folder) {
  return wayTo(absoluteOf(file), absoluteOf(folder));
}

void mlir::llm::rebaseSources(ModuleOp module, StringRef fromFolder,
                              StringRef toFolder) {
  const llvm::SmallString<256> from = absoluteOf(fromFolder),
                               to = absoluteOf(toFolder);
  if (from == to)
    return;
  module.walk([&](SourceOp source) {
    if (!source.getPath() || path::is_absolute(*source.getPath()))
      return;
    llvm::SmallString<256> file(from);
    path::append(file, *source.getPath());
    path::remove_dots(file, /*remove_dot_dot=*/true);
    source.setPath(wayTo(file, to));
  });
}

std::string mlir::llm::declareSource(ModuleOp module, StringRef name, const WeightSource &file, StringRef path,
                                     const WeightStore &store) {
  SymbolTable symbols(module);
  OpBuilder builder(module.getContext()); // nowhere yet, so that its name may still change
  auto source = SourceOp::create(builder, module.getLoc(), builder.getStringAttr(name),
                                 builder.getStringAttr(relativePath(path, store.folder().empty() ? "." : store.folder())),
                                 builder.getStringAttr(file.formatName()),
                                 builder.getI64IntegerAttr(int64_t(file.fileBytes())),
                                 builder.getStringAttr(::llvm::utohexstr(file.fingerprint(), true, 16)));
  return symbols.insert(source, module.getBody()->begin()).str();
}
