#include "test/lib/Import/TinyCheckpoint.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::llm::testing {

namespace json = llvm::json;

static llvm::Expected<json::Object> readObject(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::errorCodeToError(buffer.getError());
  llvm::Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return value.takeError();
  return std::move(*value->getAsObject());
}

template <typename T> static std::vector<T> numbers(const json::Object &object, llvm::StringRef key) {
  std::vector<T> list;
  const json::Array *array = object.getArray(key);
  if (!array) // quantised checkpoints have no logits of the first token
    return list;
  for (const json::Value &value : *array)
    list.push_back(T(*value.getAsNumber()));
  return list;
}

llvm::Expected<ExpectedLogits> readExpectedLogits(llvm::StringRef folder) {
  llvm::Expected<json::Object> object = readObject(folder + "/expected.json");
  if (!object)
    return object.takeError();
  return ExpectedLogits{numbers<int32_t>(*object, "tokens"), numbers<double>(*object, "logits_first"),
                        numbers<double>(*object, "logits_last"), numbers<int32_t>(*object, "argmax")};
}

} // namespace mlir::llm::testing
