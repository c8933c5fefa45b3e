// Writes the metadata of the tests' tiny package: PackageFuzzer starts from it.
#include "test/runtime/Tiny/TinyPackage.h"

#include <fstream>

int main(int count, char **arguments) {
  if (count != 2)
    return 2;
  flatbuffers::FlatBufferBuilder builder;
  const sprig::format::PackageT metadata = sprig::test::tinyMetadata();
  sprig::format::FinishPackageBuffer(
      builder, sprig::format::Package::Pack(builder, &metadata));
  std::ofstream(arguments[1], std::ios::binary)
      .write(reinterpret_cast<const char *>(builder.GetBufferPointer()),
             std::streamsize(builder.GetSize()));
  return 0;
}
