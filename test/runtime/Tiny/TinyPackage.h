//===- TinyPackage.h - a hand-made package for tests
//---------------------------===//
//
// A model that can be computed on paper: the "key-value" of a token is
// 3 · token + 7, and the next token is the sum of all of them modulo the
// vocabulary. It exercises what real packages do: several kernels, uniform and
// storage weights in two buffers, push constants, an indirect dispatch, all
// three kinds of program at several widths.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"

#include <string>
#include <vector>

namespace sprig::test {

struct TinyOptions {
  uint32_t vocabulary = 50;
  uint32_t context = 64;
  std::vector<uint32_t> appendWidths = {1, 4, 16};
  std::vector<uint32_t> sampleWidths = {1, 4, 16};
  std::vector<uint32_t> logitsWidths = {1, 4};
  /// Every first dispatch in two parts, each in a submission of its own.
  bool parts = false;
};

/// The metadata, to be changed by the test.
format::PackageT tinyMetadata(const TinyOptions &options = {});
/// The weight section that goes with it.
std::vector<uint8_t> tinyWeights();

/// The bytes of a package file: header, metadata, weights, hashes of both (the
/// chunks of `metadata` are replaced by those of `weights`).
std::vector<uint8_t> packageBytes(format::PackageT metadata,
                                  const std::vector<uint8_t> &weights);
/// The metadata alone of such a file.
std::vector<uint8_t> metadataBytes(format::PackageT metadata,
                                   const std::vector<uint8_t> &weights);
/// A zstd frame of metadata.
std::vector<uint8_t> frameOf(const std::vector<uint8_t> &plain);
/// The same around metadata that is finished already, or packed: then its bytes
/// before that are `plainBytes`.
std::vector<uint8_t> packageBytes(const std::vector<uint8_t> &metadata,
                                  const std::vector<uint8_t> &weights,
                                  uint64_t plainBytes = 0);

/// Writes a file in the folder of the tests' outputs; returns its path.
std::string writeFile(const std::string &name,
                      const std::vector<uint8_t> &bytes);
/// A tiny package on disk, of this process alone.
std::string tinyPackage(const std::string &name,
                        const TinyOptions &options = {});

/// What the model says after `tokens`.
uint32_t tinyNext(const std::vector<uint32_t> &tokens, uint32_t vocabulary);
/// `count` tokens after `tokens`.
std::vector<uint32_t> tinyGenerate(std::vector<uint32_t> tokens, size_t count,
                                   uint32_t vocabulary);

} // namespace sprig::test
