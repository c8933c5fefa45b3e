// Writes the hand-made package of the tests, for tests of the tools:
//
//   sprig-tiny-package OUT.sprig [--damaged]      (--damaged: one byte of the weights is wrong)
#include "TinyPackage.h"

#include <cstdio>
#include <cstring>
#include <fstream>

int main(int argc, char **argv) {
  using namespace sprig::test;
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: sprig-tiny-package OUT.sprig [--damaged]\n");
    return 2;
  }
  std::vector<uint8_t> bytes = packageBytes(tinyMetadata(), tinyWeights());
  if (argc > 2 && std::strcmp(argv[2], "--damaged") == 0)
    bytes.back() ^= 1;
  std::ofstream file(argv[1], std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             std::streamsize(bytes.size()));
  return file ? 0 : 1;
}
