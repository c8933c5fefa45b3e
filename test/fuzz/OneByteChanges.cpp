// Every one-byte change of a small package is rejected, or the package is the
// same: what a reader takes from it does not differ. Under the sanitizers, so
// that none of the changed files makes the reader step outside.
//
// usage: OneByteChanges VALUES-EACH    (of 255 other values of each byte)
#include "MemoryFile.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Package/Package.h"
#include "runtime/Package/WeightCheck.h"
#include "test/runtime/Tiny/TinyPackage.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

/// Whether the file opens, its weights are whole and its tokenizer can be made.
sprig::Status check(const std::vector<uint8_t> &bytes) {
  auto package = sprig::Package::open(
      sprig::fuzz::MemoryFile::with(bytes.data(), bytes.size()));
  if (!package.ok())
    return package.status();
  if (sprig::Status weights = sprig::WeightCheck(*package, 0).wait();
      !weights.ok())
    return weights;
  sprig::ModelText text(**package);
  const auto tokenizer = text.tokenizer();
  return tokenizer.ok() ? sprig::Status() : tokenizer.status();
}

/// What a run depends on: metadata and weights.
std::vector<uint8_t> meaning(const std::vector<uint8_t> &bytes) {
  auto package = sprig::Package::open(
      sprig::fuzz::MemoryFile::with(bytes.data(), bytes.size()));
  const sprig::format::Header &head = (*package)->header();
  const uint8_t *metadata = (*package)->mapping().data() + head.metadataOffset;
  std::vector<uint8_t> all(metadata, metadata + head.metadataBytes);
  all.insert(all.end(), (*package)->weights(),
             (*package)->weights() + (*package)->weightBytes());
  return all;
}

/// Changes every byte of a package, by so many values each. False where a
/// change goes unnoticed.
bool change(const char *name, const std::vector<uint8_t> &good, int values) {
  if (sprig::Status status = check(good); !status.ok()) {
    std::fprintf(stderr, "the %s package is refused as it is: %s\n", name,
                 status.message().c_str());
    return false;
  }
  const std::vector<uint8_t> means = meaning(good);
  std::vector<uint8_t> bytes = good;
  size_t rejected = 0, same = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int i = 1; i <= values; ++i) {
      // All other values, or some that differ from byte to byte: 89 is prime
      // to 255.
      const auto change = uint8_t(1 + (size_t(i) * 89 + at * 7) % 255);
      bytes[at] = good[at] ^ change;
      if (!check(bytes).ok()) {
        ++rejected;
      } else if (meaning(bytes) == means) {
        ++same;
      } else {
        std::fprintf(stderr, "byte %zu of the %s package changed by 0x%02x goes "
                             "unnoticed\n",
                     at, name, change);
        return false;
      }
    }
    bytes[at] = good[at];
  }
  std::printf("OneByteChanges: %s package of %zu bytes, %d values each: %zu "
              "rejected, %zu the same\n",
              name, bytes.size(), values, rejected, same);
  return true;
}

} // namespace

int main(int count, char **arguments) {
  const int values = count == 2 ? std::atoi(arguments[1]) : 0;
  if (values < 1 || values > 255) {
    std::fprintf(stderr, "usage: %s VALUES-EACH   (1 to 255)\n", arguments[0]);
    return 2;
  }
  const std::vector<uint8_t> weights = sprig::test::tinyWeights();
  const std::vector<uint8_t> plain =
      sprig::test::metadataBytes(sprig::test::tinyMetadata(), weights);
  const bool good =
      change("plain", sprig::test::packageBytes(plain, weights), values) &&
      change("packed",
             sprig::test::packageBytes(sprig::test::frameOf(plain), weights,
                                       plain.size()),
             values);
  return good ? 0 : 1;
}
