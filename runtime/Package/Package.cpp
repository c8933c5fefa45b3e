#include "runtime/Package/Package.h"
#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <xxhash.h>
#include <zstd.h>

namespace sprig {
namespace {

using format::Header;
using format::kPageBytes;

Status corrupt(std::string message) {
  return {StatusCode::Corrupt, std::move(message)};
}

/// Checks what can be said before anything in the header may be trusted.
Status checkIdentity(const MappedFile &file) {
  if (file.size() >= 4 && std::memcmp(file.data(), "GGUF", 4) == 0)
    return {StatusCode::InvalidArgument,
            "expects a .sprig package, but got a GGUF model; compile it first: "
            "llm-compile MODEL.gguf -o MODEL.sprig"};
  if (file.size() < sizeof(format::kMagic) ||
      std::memcmp(file.data(), format::kMagic, sizeof(format::kMagic)) != 0)
    return {StatusCode::InvalidArgument,
            concat("expects a .sprig package (magic 'SPRIGPKG'), but the file "
                   "starts with 0x",
                   hex(file.data(), std::min<uint64_t>(8, file.size())))};
  if (file.size() < kPageBytes)
    return corrupt(concat("expects a header of ", kPageBytes,
                          " bytes, but the file ends after ", file.size(),
                          ": it was cut short"));
  return {};
}

Status checkHeader(const Header &head, const MappedFile &file) {
  // Another version may lay out its header differently: this check is first.
  if (head.version != format::kVersion)
    return {StatusCode::Unsupported,
            concat("expects package version ", format::kVersion, ", but got ",
                   head.version,
                   "; compile the model again with the llm-compile of this "
                   "runtime's version")};
  if (XXH3_64bits(&head, offsetof(Header, headerHash)) != head.headerHash)
    return corrupt("the header does not match its hash: the file is damaged");
  if (head.requiredFeatures != 0)
    return {StatusCode::Unsupported,
            concat("needs reader features 0x",
                   hex(&head.requiredFeatures, sizeof(uint64_t)),
                   " that this runtime does not have; use a newer one")};
  if (head.reserved != 0)
    return corrupt(concat("expects 0 in the reserved header field, but got ",
                          head.reserved));
  auto inside = [](uint64_t offset, uint64_t bytes, uint64_t total) {
    return offset <= total && bytes <= total - offset;
  };
  if (head.weightsOffset % kPageBytes != 0)
    return corrupt(concat("expects the weight section on a page of ",
                          kPageBytes, " bytes, but got offset ",
                          head.weightsOffset));
  if (!inside(head.weightsOffset, head.weightsBytes, UINT64_MAX) ||
      head.weightsOffset + head.weightsBytes != file.size())
    return corrupt(concat("expects a file of ",
                          head.weightsOffset + head.weightsBytes,
                          " bytes, but got ", file.size(),
                          head.weightsOffset + head.weightsBytes > file.size()
                              ? ": it was cut short"
                              : ""));
  if (head.metadataOffset < kPageBytes || head.metadataOffset % 8 != 0 ||
      !inside(head.metadataOffset, head.metadataBytes, head.weightsOffset))
    return corrupt(concat("expects the metadata between the header and offset ",
                          head.weightsOffset, ", but got ", head.metadataBytes,
                          " bytes at ", head.metadataOffset));
  return {};
}

/// Bytes outside header, metadata and weights are zero, so that no changed
/// byte of a file goes unnoticed.
Status checkPadding(const Header &head, const MappedFile &file) {
  auto zero = [&](uint64_t begin, uint64_t end) {
    return std::all_of(file.data() + begin, file.data() + end,
                       [](uint8_t byte) { return byte == 0; });
  };
  if (!zero(sizeof(Header), head.metadataOffset) ||
      !zero(head.metadataOffset + head.metadataBytes, head.weightsOffset))
    return corrupt("expects zeros between header, metadata and weights, but "
                   "got something else: the file is damaged");
  return {};
}

/// The FlatBuffer of a file that holds a zstd frame of it. All that the header
/// and the frame say is checked before anything is allocated; the frame is
/// unpacked at once into memory of its size, so that the window it asks for
/// takes none.
Status unpack(const Header &head, const uint8_t *stored,
              std::vector<uint8_t> &plain) {
  const uint64_t packed = head.metadataBytes, said = head.metadataPlainBytes;
  if (said > format::kMostPackedMetadataBytes)
    return corrupt(concat("expects packed metadata of at most ",
                          format::kMostPackedMetadataBytes, " bytes, but got ",
                          said));
  if (said / format::kMostMetadataRatio >= packed)
    return corrupt(concat("expects metadata that is packed to more than a ",
                          format::kMostMetadataRatio, "th, but got ", packed,
                          " bytes for ", said));
  // Just one frame: what follows the first would not be looked at.
  const size_t frame = ZSTD_findFrameCompressedSize(stored, packed);
  if (ZSTD_isError(frame) || frame != packed)
    return corrupt(concat("expects metadata of one zstd frame of ", packed,
                          " bytes, but got ",
                          ZSTD_isError(frame) ? "none" : concat("one of ", frame)));
  if (const unsigned long long inside = ZSTD_getFrameContentSize(stored, packed);
      inside != said)
    return corrupt(concat("expects a frame of ", said,
                          " bytes of metadata, but got ",
                          inside == ZSTD_CONTENTSIZE_UNKNOWN ||
                                  inside == ZSTD_CONTENTSIZE_ERROR
                              ? "one that does not say how many"
                              : concat("one of ", inside)));
  plain.resize(said);
  const size_t got = ZSTD_decompress(plain.data(), plain.size(), stored, packed);
  if (ZSTD_isError(got))
    return corrupt(concat("the metadata cannot be unpacked: ",
                          ZSTD_getErrorName(got)));
  if (got != plain.size())
    return corrupt(concat("expects a frame of ", said,
                          " bytes of metadata, but got ", got));
  return {};
}

} // namespace

Result<std::shared_ptr<const Package>> Package::open(const std::string &path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped.ok())
    return mapped.status();
  auto package = std::make_shared<Package>();
  package->file = std::move(*mapped);
  const MappedFile &file = package->file;
  if (Status status = checkIdentity(file); !status.ok())
    return status.within(path);
  Header &head = package->head;
  std::memcpy(&head, file.data(), sizeof(Header));
  if (Status status = checkHeader(head, file); !status.ok())
    return status.within(path);

  const uint8_t *metadata = file.data() + head.metadataOffset;
  if (XXH3_64bits(metadata, head.metadataBytes) != head.metadataHash)
    return corrupt("the metadata does not match its hash: the file is damaged")
        .within(path);
  if (Status status = checkPadding(head, file); !status.ok())
    return status.within(path);
  if (head.metadataPlainBytes != head.metadataBytes) {
    if (Status status = unpack(head, metadata, package->unpacked); !status.ok())
      return status.within(path);
    metadata = package->unpacked.data();
  }
  flatbuffers::Verifier verifier(metadata, head.metadataPlainBytes,
                                 /*max_depth=*/32, /*max_tables=*/16'000'000);
  if (head.metadataPlainBytes < 8 || !format::VerifyPackageBuffer(verifier))
    return corrupt("the metadata is not a well-formed FlatBuffer of a package")
        .within(path);
  package->root = format::GetPackage(metadata);
  if (Status status = verifyMetadata(*package->root, head.weightsBytes);
      !status.ok())
    return status.within(concat(path, ": metadata"));
  return std::shared_ptr<const Package>(std::move(package));
}

} // namespace sprig
