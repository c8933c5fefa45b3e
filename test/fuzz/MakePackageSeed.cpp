// Writes the metadata of the tests' tiny package into a folder, as it is and
// packed, in the form that PackageFuzzer reads: it starts from them.
#include "test/runtime/Tiny/TinyPackage.h"

#include <cstring>
#include <fstream>

int main(int count, char **arguments) {
  if (count != 2)
    return 2;
  const auto write = [&](const char *name, const std::vector<uint8_t> &bytes) {
    std::ofstream(std::string(arguments[1]) + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               std::streamsize(bytes.size()));
  };
  const std::vector<uint8_t> plain = sprig::test::metadataBytes(
      sprig::test::tinyMetadata(), sprig::test::tinyWeights());
  write("tiny", plain);
  std::vector<uint8_t> packed = sprig::test::frameOf(plain);
  const uint64_t said = plain.size();
  packed.resize(packed.size() + sizeof(said));
  std::memcpy(packed.data() + packed.size() - sizeof(said), &said, sizeof(said));
  write("packed", packed);
  return 0;
}
