// GGUF files: structure, metadata, tensors, and the tokenizer in them.
#include "MemoryFile.h"
#include "lib/Import/GGUFTokenizer.h"
#include "runtime/Text/Tokenizer.h"

#include <vector>

using namespace mlir::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = GGUFFile::open(sprig::fuzz::MemoryFile::with(data, size));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  // What opens may be read without further checks.
  std::vector<float> row;
  for (const WeightTensor &tensor : (*file)->tensors()) {
    if (tensor.columns() > 1 << 16)
      continue;
    row.resize(size_t(tensor.columns()));
    for (int64_t at : {int64_t(0), tensor.rows() - 1})
      sprig::quant::decode(
          tensor.format,
          tensor.data.data() + size_t(at) * tensor.rowBytes(),
          row.data(), row.size());
  }
  (void)(*file)->fingerprint();
  auto tokenizer = readGGUFTokenizer(**file);
  if (!tokenizer) {
    llvm::consumeError(tokenizer.takeError());
    return 0;
  }
  if (!*tokenizer)
    return 0;
  auto made = sprig::Tokenizer::create((*tokenizer)->tables.data());
  if (made.ok())
    (void)made->encode("Hello, \xf0\x9f\x91\x8b w\xff" "orld 123", true);
  return 0;
}
