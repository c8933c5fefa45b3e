//===- SessionFile.h - the form of a saved session -----------------------------===//
//
// Little endian:
//
//   Header
//   evicted     of version 2: what went from the cache to make room
//   tokens      `tokens` words
//   note        `noteBytes` bytes of the application
//   cache       for each cache of the target, layer and plane: the first
//               `cached` slots
//
// Nothing in a file is trusted: all sizes are checked against the package and
// the file before the session changes, and a hash covers everything after the
// header. Keys and values are only numbers to the device, never indices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"
#include "runtime/Support/Status.h"

#include <vector>

namespace sprig::session_file {

inline constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'G', 'S', 'E', 'S'};
/// Of a sequence of which nothing went, and of one of which something did.
inline constexpr uint32_t kVersion = 1, kVersionEvicted = 2;
inline constexpr uint64_t kMostNoteBytes = 16u << 20;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t tokens; ///< of the sequence
  uint32_t cached; ///< tokens whose keys and values are in the file
  uint32_t adapter; ///< of the package's, from 1; 0: none
  uint64_t package; ///< hash of the metadata of the package
  uint64_t target;  ///< hash of the target's name
  uint64_t noteBytes;
  uint64_t cacheBytes;
  uint64_t bodyHash;   ///< XXH3-64 of what follows the header
  uint64_t headerHash; ///< XXH3-64 of the bytes before this field
};
static_assert(sizeof(Header) == 72);

/// Tokens [sinks, sinks + gone) of the sequence are not in the cache.
struct Evicted {
  uint32_t sinks, gone;
};

/// A run of bytes of one of the target's buffers.
struct Region {
  uint32_t buffer = 0; ///< index in the target
  uint64_t offset = 0, bytes = 0;
};

/// Where the first `slots` slots of every cache are, in the order of the file.
std::vector<Region> cacheRegions(const format::Target &target, uint32_t slots);

uint64_t bytesOf(const std::vector<Region> &regions);

} // namespace sprig::session_file
