// The first page of a .sprig file. Little endian. Everything after it is located from here:
//
//   0                 Header, zero padded to 4,096 bytes
//   metadataOffset    FlatBuffer `sprig.format.Package` (Format/Package.fbs), metadataBytes long;
//                     a zstd frame of it where that is shorter (metadataPlainBytes)
//   weightsOffset     weight section, page aligned, weightsBytes long; ends the file
#ifndef SPRIG_RUNTIME_FORMAT_HEADER_H
#define SPRIG_RUNTIME_FORMAT_HEADER_H

#include <cstdint>

namespace sprig::format {

inline constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'G', 'P', 'K', 'G'};
inline constexpr uint32_t kVersion = 3;
inline constexpr uint64_t kPageBytes = 4096;
/// Every tensor plane starts at a multiple of this in the weight section, every buffer slice at a multiple in its
/// buffer: the largest minStorageBufferOffsetAlignment that Vulkan allows.
inline constexpr uint64_t kAlignment = 256;
/// Bytes of one entry of `Package.chunks`; the last chunk may be shorter.
inline constexpr uint64_t kChunkBytes = 4u << 20;
/// Packed metadata of more is refused, and so is a frame that says it is more than so many times as long unpacked: a
/// reader makes room for what a small file says it holds. A writer stores such metadata as it is.
inline constexpr uint64_t kMostPackedMetadataBytes = uint64_t(256) << 20;
inline constexpr uint64_t kMostMetadataRatio = 128;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  /// Bits of features a reader must know; none is defined in version 3, so it must be zero.
  uint64_t requiredFeatures;
  uint64_t metadataOffset;
  uint64_t metadataBytes;
  uint64_t metadataHash; ///< XXH3-64 of the metadata, as it lies in the file
  /// Of the FlatBuffer; where it is metadataBytes, the file holds that itself.
  uint64_t metadataPlainBytes;
  uint64_t weightsOffset;
  uint64_t weightsBytes;
  uint64_t headerHash; ///< XXH3-64 of the bytes before this field
};
static_assert(sizeof(Header) == 80);

} // namespace sprig::format

#endif // SPRIG_RUNTIME_FORMAT_HEADER_H
