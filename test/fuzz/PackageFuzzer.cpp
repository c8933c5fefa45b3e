// Packages: the input is the metadata; header and hashes are made to fit it. An
// input that begins as a zstd frame does is packed metadata, and its last eight
// bytes are what the header says of its length unpacked.
#include "MemoryFile.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Package/Package.h"
#include "test/runtime/Tiny/TinyPackage.h"

#include <zstd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<uint8_t> weights = sprig::test::tinyWeights();
  uint32_t magic = 0;
  uint64_t plainBytes = 0;
  if (size >= sizeof(magic) + sizeof(plainBytes)) {
    std::memcpy(&magic, data, sizeof(magic));
    if (magic == ZSTD_MAGICNUMBER) {
      size -= sizeof(plainBytes);
      std::memcpy(&plainBytes, data + size, sizeof(plainBytes));
    }
  }
  const std::vector<uint8_t> bytes = sprig::test::packageBytes(
      std::vector<uint8_t>(data, data + size), weights, plainBytes);
  auto package = sprig::Package::open(
      sprig::fuzz::MemoryFile::with(bytes.data(), bytes.size()));
  if (!package.ok())
    return 0;
  sprig::ModelText text(**package);
  auto tokenizer = text.tokenizer();
  if (tokenizer.ok())
    (void)(*tokenizer)->encode("Hello");
  return 0;
}
