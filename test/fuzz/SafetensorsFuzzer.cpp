// Safetensors files: the header's JSON and the tensors' ranges.
#include "MemoryFile.h"
#include "lib/Weights/SafetensorsFile.h"

using namespace mlir::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = SafetensorsFile::open(sprig::fuzz::MemoryFile::with(data, size));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  unsigned sum = 0;
  for (const WeightTensor &tensor : (*file)->tensors())
    for (std::byte byte : tensor.data)
      sum += unsigned(byte);
  (void)(*file)->fingerprint();
  return sum == 1; // reads are not optimised away
}
