#include "lib/Weights/WeightSpill.h"
#include "lib/Weights/WeightTypes.h"

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

llvm::Expected<std::unique_ptr<WeightSpill>>
WeightSpill::create(StringRef path, StringRef sourcePath) {
  auto writer = SafetensorsWriter::create(path);
  if (!writer)
    return writer.takeError();
  return std::unique_ptr<WeightSpill>(
      new WeightSpill(path, sourcePath, std::move(*writer)));
}

void WeightSpill::release(std::span<const std::byte> range) const {
  if (!maps.empty())
    maps.front().release(range); // pages have addresses, not owners
}

llvm::Error WeightSpill::write(StringRef key, RankedTensorType type,
                               llvm::function_ref<llvm::Error(Write)> fill) {
  if (finished)
    return llvm::createStringError("'" + path() +
                                   "' is complete and takes no new weights");
  const auto format = storageFormatOf(type);
  if (!format)
    return llvm::createStringError(
        "expects floats, integers or the gguf layout for new weights; other "
        "quantised types are stored in parts, for llm.assemble");
  // Blocks are kept as bytes: see checkPromise.
  const quant::FormatInfo &row = quant::info(*format);
  SmallVector<int64_t, 4> shape(type.getShape());
  if (!row.isPlain())
    shape.back() = int64_t(row.rowBytes(size_t(shape.back())));
  const quant::Format stored = row.isPlain() ? *format : quant::Format::U8;
  if (llvm::Error error = writer->begin(key, stored, shape))
    return error;
  if (llvm::Error error = fill([&](std::span<const std::byte> bytes) {
        return writer->write(bytes);
      }))
    return error;
  if (llvm::Error error = writer->end())
    return error;

  std::span<const std::byte> data;
  const auto [begin, end] = writer->lastRange();
  if (begin != end) {
    auto map = MappedFile::openRange(writer->temporaryPath(), begin,
                                     size_t(end - begin));
    if (!map)
      return map.takeError();
    data = map->bytes();
    maps.push_back(std::move(*map));
  }
  keys.push_back(std::make_unique<std::string>(key.str()));
  addTensor({*keys.back(), stored, std::move(shape), data});
  return llvm::Error::success();
}

FailureOr<StringRef> WeightSpill::symbolIn(Operation *at) {
  Operation *table = SymbolTable::getNearestSymbolTable(at);
  if (!table)
    return at->emitOpError("expects a module around it to hold the source of "
                           "new weights");
  Block &body = table->getRegion(0).front();
  for (SourceOp source : body.getOps<SourceOp>())
    if (source.getPath() && *source.getPath() == sourcePath)
      return source.getSymName();
  SymbolTable symbols(table);
  OpBuilder builder(at->getContext()); // nowhere yet: its name may change
  auto source = SourceOp::create(
      builder, at->getLoc(), builder.getStringAttr("weights"),
      builder.getStringAttr(sourcePath), builder.getStringAttr("safetensors"),
      /*bytes=*/nullptr, /*hash=*/nullptr);
  // IR that was made with new weights has a @weights already.
  symbols.insert(source, body.begin());
  return source.getSymName();
}

FailureOr<Value> WeightSpill::add(OpBuilder &builder, Location location,
                                  StringRef key, RankedTensorType type,
                                  llvm::function_ref<llvm::Error(Write)> fill) {
  std::string unique = key.str();
  for (unsigned i = 1; find(unique); ++i)
    unique = (key + "." + llvm::Twine(i)).str();
  if (llvm::Error error = write(unique, type, fill))
    return emitError(location, "cannot write the new weight '")
           << unique << "': " << llvm::toString(std::move(error));
  FailureOr<StringRef> symbol =
      symbolIn(builder.getInsertionBlock()->getParentOp());
  if (failed(symbol))
    return failure();
  return WeightOp::create(builder, location, type, *symbol, StringRef(unique))
      .getResult();
}

FailureOr<Value> WeightSpill::add(OpBuilder &builder, Location location,
                                  StringRef key, RankedTensorType type,
                                  std::span<const std::byte> bytes) {
  return add(builder, location, key, type,
             [&](Write write) { return write(bytes); });
}

llvm::Error WeightSpill::finish() {
  if (finished)
    return llvm::Error::success();
  finished = true;
  return writer->finish();
}
