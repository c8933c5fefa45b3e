// Packages: the input is the metadata; header and hashes are made to fit it.
#include "MemoryFile.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Package/Package.h"
#include "test/runtime/Tiny/TinyPackage.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<uint8_t> weights = sprig::test::tinyWeights();
  const std::vector<uint8_t> bytes =
      sprig::test::packageBytes(std::vector<uint8_t>(data, data + size), weights);
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
