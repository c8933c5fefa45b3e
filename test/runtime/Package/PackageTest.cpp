#include "runtime/Package/Package.h"

#include "../Tiny/TinyPackage.h"
#include "runtime/Package/MemoryPlan.h"
#include "runtime/Package/Verify.h"
#include "runtime/Package/WeightCheck.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <zstd.h>

using namespace sprig;
using namespace sprig::test;

namespace {

/// Opens a file and hashes its weights.
Status load(const std::string &path) {
  Result<std::shared_ptr<const Package>> package = Package::open(path);
  if (!package.ok())
    return package.status();
  return WeightCheck(*package, 0).wait();
}

void expectError(const Status &status, StatusCode code,
                 const std::string &part) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(Package, OpensAndCountsMemory) {
  std::string path = tinyPackage("opens");
  Result<std::shared_ptr<const Package>> package = Package::open(path);
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ((*package)->metadata().model()->vocabulary(), 50u);
  EXPECT_TRUE(WeightCheck(*package, 2).wait().ok());
  MemoryPlan plan = MemoryPlan::of(*(*package)->metadata().targets()->Get(0));
  EXPECT_EQ(plan.weights, 256u + 300u);
  EXPECT_EQ(plan.kv, 4u * 64);
  EXPECT_EQ(plan.scratch, 256u);
  EXPECT_EQ(plan.logits, 4u * 4 * 50);
  EXPECT_EQ(plan.control, 256u + 4 * (64 + 16));
  EXPECT_EQ(plan.total(), plan.weights + plan.session());
}

TEST(Package, NamesWhatIsWrongWithAFile) {
  expectError(load("does/not/exist.sprig"), StatusCode::NotFound,
              "does/not/exist.sprig");
  expectError(load(writeFile("empty", {})), StatusCode::InvalidArgument,
              "magic");
  expectError(load(writeFile("gguf", {'G', 'G', 'U', 'F', 3, 0, 0, 0})),
              StatusCode::InvalidArgument, "llm-compile");
  expectError(
      load(writeFile("text", {'h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u'})),
      StatusCode::InvalidArgument, "0x68656c6c6f20796f");
  expectError(load("."), StatusCode::InvalidArgument, "folder");

  std::vector<uint8_t> good = packageBytes(tinyMetadata(), tinyWeights());
  std::vector<uint8_t> bytes = good;
  bytes[8] = 4;
  expectError(load(writeFile("version", bytes)), StatusCode::Unsupported,
              "expects package version 3, but got 4");
  bytes = good;
  bytes.resize(100);
  expectError(load(writeFile("short-header", bytes)), StatusCode::Corrupt,
              "cut short");
  bytes = good;
  bytes.resize(good.size() - 1);
  expectError(load(writeFile("short-weights", bytes)), StatusCode::Corrupt,
              "cut short");
  bytes = good;
  bytes.push_back(0);
  expectError(load(writeFile("long", bytes)), StatusCode::Corrupt, "bytes");
  bytes = good;
  bytes.back() ^= 1;
  expectError(load(writeFile("weights", bytes)), StatusCode::Corrupt,
              "the weights at bytes");
}

/// The metadata of the tests' package.
std::vector<uint8_t> plainMetadata() {
  return metadataBytes(tinyMetadata(), tinyWeights());
}

/// A frame that does not say how long it is unpacked.
std::vector<uint8_t> silentFrameOf(const std::vector<uint8_t> &plain) {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::vector<uint8_t> frame(ZSTD_compressBound(plain.size()));
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), plain.data(),
                              plain.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

Status loadPacked(const std::vector<uint8_t> &metadata, uint64_t plainBytes) {
  return load(
      writeFile("packed", packageBytes(metadata, tinyWeights(), plainBytes)));
}

/// Metadata may be a zstd frame, of just what the header says.
TEST(Package, MetadataMayBePacked) {
  const std::vector<uint8_t> plain = plainMetadata(), frame = frameOf(plain);
  EXPECT_TRUE(loadPacked(frame, plain.size()).ok());
  expectError(loadPacked(frame, plain.size() + 8), StatusCode::Corrupt,
              "bytes of metadata, but got one of ");
  std::vector<uint8_t> noise = frame;
  for (size_t i = noise.size() / 2; i < noise.size(); ++i)
    noise[i] = uint8_t(i * 37);
  EXPECT_FALSE(loadPacked(noise, plain.size()).ok());
  expectError(loadPacked({1, 2, 3, 4, 5, 6, 7, 8, 9}, 20), StatusCode::Corrupt,
              "expects metadata of one zstd frame of 9 bytes, but got none");
  std::vector<uint8_t> twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());
  expectError(loadPacked(twice, plain.size()), StatusCode::Corrupt,
              "expects metadata of one zstd frame of ");
  expectError(loadPacked(silentFrameOf(plain), plain.size()),
              StatusCode::Corrupt, "one that does not say how many");
  // A frame of what is no FlatBuffer is unpacked, and then refused like one.
  const std::vector<uint8_t> other(plain.rbegin(), plain.rend());
  expectError(loadPacked(frameOf(other), other.size()), StatusCode::Corrupt,
              "not a well-formed FlatBuffer");
}

/// A small file makes no reader allocate much.
TEST(Package, MetadataThatIsPackedTooWellIsRefused) {
  const std::vector<uint8_t> frame = frameOf(plainMetadata());
  expectError(loadPacked(frame, uint64_t(1) << 40), StatusCode::Corrupt,
              "expects packed metadata of at most 268435456 bytes");
  expectError(loadPacked(frame, uint64_t(200) << 20), StatusCode::Corrupt,
              "expects metadata that is packed to more than a 128th");
  const std::vector<uint8_t> zeros(1 << 20);
  expectError(loadPacked(frameOf(zeros), zeros.size()), StatusCode::Corrupt,
              "expects metadata that is packed to more than a 128th");
}

/// No byte of a file can change unnoticed.
TEST(Package, EveryChangedByteIsRejected) {
  std::vector<uint8_t> good = packageBytes(tinyMetadata(), tinyWeights());
  std::string path = writeFile("changed", good);
  ASSERT_TRUE(load(path).ok());
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  auto put = [&](size_t at, uint8_t byte) {
    file.seekp(std::streamoff(at));
    file.put(char(byte));
    file.flush();
  };
  for (size_t i = 0; i < good.size(); ++i) {
    put(i, good[i] ^ uint8_t(1u << (i % 8)));
    EXPECT_FALSE(load(path).ok()) << "byte " << i;
    put(i, good[i]);
  }
  EXPECT_TRUE(load(path).ok());
}

/// Hashes are no signature: metadata changed by someone who fixes them is
/// refused, or harmless to read.
TEST(Package, HostileMetadataIsRefusedOrHarmless) {
  format::PackageT tiny = tinyMetadata();
  flatbuffers::FlatBufferBuilder builder;
  format::FinishPackageBuffer(builder, format::Package::Pack(builder, &tiny));
  std::vector<uint8_t> metadata(builder.GetBufferPointer(),
                                builder.GetBufferPointer() + builder.GetSize());
  size_t refused = 0;
  for (size_t i = 0; i < metadata.size(); ++i) {
    for (uint8_t mask : {0x01, 0x80, 0xff}) {
      metadata[i] ^= mask;
      flatbuffers::Verifier verifier(metadata.data(), metadata.size());
      if (!format::VerifyPackageBuffer(verifier) ||
          !verifyMetadata(*format::GetPackage(metadata.data()),
                          tinyWeights().size())
               .ok())
        ++refused;
      else // what was accepted can be read without a step outside
        for (const format::Target *target :
             *format::GetPackage(metadata.data())->targets())
          (void)MemoryPlan::of(*target);
      metadata[i] ^= mask;
    }
  }
  // Names, labels, shader bodies and numbers of reports may change freely.
  EXPECT_GT(refused, metadata.size() / 2);
}

/// Moves the vector of a table's field behind everything else, four bytes from
/// where its structs may lie.
void misalign(std::vector<uint8_t> &bytes, const void *table,
              flatbuffers::voffset_t name, size_t structBytes) {
  const uint8_t *at =
      static_cast<const flatbuffers::Table *>(table)->GetAddressOf(name);
  const size_t field = size_t(at - bytes.data());
  uint32_t offset = 0, count = 0;
  std::memcpy(&offset, &bytes[field], 4);
  std::memcpy(&count, &bytes[field + offset], 4);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  const uint32_t moved = uint32_t(bytes.size() - field);
  const std::vector<uint8_t> copy(&bytes[field + offset],
                                  &bytes[field + offset] + 4 +
                                      count * structBytes);
  bytes.insert(bytes.end(), copy.begin(), copy.end());
  bytes.resize((bytes.size() + 7) / 8 * 8);
  std::memcpy(&bytes[field], &moved, 4);
}

// The FlatBuffers verifier lets them pass.
TEST(Package, MisalignedStructsAreRefused) {
  const std::vector<uint8_t> good =
      metadataBytes(tinyMetadata(), tinyWeights());
  std::vector<uint8_t> bytes = good;
  misalign(bytes, format::GetPackage(bytes.data()),
           format::Package::VT_CHUNKS, sizeof(format::Chunk));
  expectError(load(writeFile("chunks", packageBytes(bytes, tinyWeights()))),
              StatusCode::Corrupt,
              "weight hashes: expects a vector at a multiple of 8 bytes");
  bytes = good;
  const format::Dispatch *dispatch = format::GetPackage(bytes.data())
                                         ->targets()
                                         ->Get(0)
                                         ->commands()
                                         ->Get(0)
                                         ->dispatch();
  misalign(bytes, dispatch, format::Dispatch::VT_BINDINGS,
           sizeof(format::Binding));
  expectError(load(writeFile("bindings", packageBytes(bytes, tinyWeights()))),
              StatusCode::Corrupt,
              "expects vectors of bindings at multiples of 8 bytes");
}

/// Metadata of a target with `programs` programs and as many `kernels`, which
/// share a vector of 2^20 numbers and one of as many bytes.
std::vector<uint8_t> sharing(uint32_t programs, uint32_t kernels) {
  using namespace format;
  using flatbuffers::Offset;
  flatbuffers::FlatBufferBuilder builder;
  constexpr size_t kCount = size_t(1) << 20;
  auto name = builder.CreateString("tiny");
  auto numbers = builder.CreateVector(std::vector<uint32_t>(kCount));
  auto code = builder.CreateVector(std::vector<uint8_t>(kCount));
  std::vector<Offset<Program>> programList;
  for (uint32_t width = 1; width <= programs; ++width)
    programList.push_back(
        CreateProgram(builder, ProgramKind::sample, width, numbers));
  std::vector<Offset<Kernel>> kernelList;
  for (uint32_t i = 0; i < kernels; ++i)
    kernelList.push_back(CreateKernel(builder, name, name, name, name, code));
  auto needs = CreateRequirements(builder);
  auto programVector = builder.CreateVector(programList);
  auto kernelVector = builder.CreateVector(kernelList);
  auto buffers = builder.CreateVector(std::vector<Offset<Buffer>>());
  auto caches = builder.CreateVector(std::vector<Offset<KvCache>>());
  auto commands = builder.CreateVector(std::vector<Offset<Command>>());
  auto target = CreateTarget(builder, name, needs, kernelVector, buffers,
                             programVector, caches, /*drivers=*/0, commands);
  auto targets = builder.CreateVector(&target, 1);
  auto tensors = builder.CreateVector(std::vector<Offset<Tensor>>());
  auto chunks = builder.CreateVectorOfStructs(std::vector<Chunk>());
  auto model = CreateModel(builder, name, name, 0, /*vocabulary=*/1,
                           /*context=*/1);
  FinishPackageBuffer(builder,
                      CreatePackage(builder, name, model, /*tokenizer=*/0,
                                    /*chat_template=*/0, tensors, chunks,
                                    targets));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

// A vector that many tables point at would be looked at as many times.
TEST(Package, WhatManyTablesShareIsCountedForEach) {
  expectError(load(writeFile("programs", packageBytes(sharing(16, 0), {}))),
              StatusCode::Corrupt,
              "programs: expects at most 16000000 commands in all, but got "
              "16777216");
  expectError(load(writeFile("kernels", packageBytes(sharing(0, 65537), {}))),
              StatusCode::Corrupt,
              "kernels: expects at most 65536 in all, but got 65537");
  expectError(load(writeFile("code", packageBytes(sharing(0, 1025), {}))),
              StatusCode::Corrupt,
              "kernels: expects at most 1073741824 bytes of code in all, but "
              "got 1074790400");
}

} // namespace
