//===- Package.h - a verified .sprig file
//------------------------------------===//
//
// Opening maps the file, checks the header, the hash of the metadata, the
// FlatBuffer's structure and then the meaning of every number in it
// (Package/Verify.h). The weight section is hashed separately, beside other
// work: Package/WeightCheck.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Header.h"
#include "runtime/Format/Package_generated.h"
#include "runtime/Support/MappedFile.h"

#include <memory>
#include <vector>

namespace sprig {

class Package {
public:
  /// Errors name the file, what was expected and what is there.
  static Result<std::shared_ptr<const Package>> open(const std::string &path);

  const format::Package &metadata() const { return *root; }
  /// Every table of the metadata may be trusted: required fields are there,
  /// indices and ranges are inside what they refer to.
  const format::Header &header() const { return head; }
  const uint8_t *weights() const { return file.data() + head.weightsOffset; }
  uint64_t weightBytes() const { return head.weightsBytes; }
  const MappedFile &mapping() const { return file; }
  const std::string &path() const { return file.path(); }
  /// Tells packages apart: a hash over the metadata, which holds the hashes of
  /// the weights.
  uint64_t identity() const { return head.metadataHash; }

  /// Tells the system that weights [offset, offset + bytes) are not needed in
  /// memory any more (they were copied to a device).
  void releaseWeights(uint64_t offset, uint64_t bytes) const {
    file.release(head.weightsOffset + offset, bytes);
  }

private:
  MappedFile file;
  format::Header head;
  std::vector<uint8_t> unpacked; ///< the metadata, where the file has it packed
  const format::Package *root = nullptr;
};

} // namespace sprig
