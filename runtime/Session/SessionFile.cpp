#include "runtime/Session/SessionFile.h"
#include "runtime/Session/Session.h"
#include "runtime/Support/MappedFile.h"
#include "runtime/Support/OutputFile.h"
#include "runtime/Support/Strings.h"

#include <cstring>
#include <filesystem>
#include <xxhash.h>

namespace sprig {
namespace session_file {

std::vector<Region> cacheRegions(const format::Target &target, uint32_t slots) {
  std::vector<Region> regions;
  for (const format::KvCache *cache : *target.kv_caches())
    for (uint32_t layer = 0; layer < cache->layers(); ++layer)
      for (const format::KvPlane *plane : *cache->planes())
        if (slots != 0)
          regions.push_back(
              {cache->buffer(),
               cache->offset() + cache->bytes() / cache->layers() * layer +
                   plane->offset(),
               uint64_t(slots) * plane->slot_bytes()});
  return regions;
}

uint64_t bytesOf(const std::vector<Region> &regions) {
  uint64_t bytes = 0;
  for (const Region &region : regions)
    bytes += region.bytes;
  return bytes;
}

} // namespace session_file

using namespace session_file;

namespace {

uint64_t nameHash(const format::Target &target) {
  return XXH3_64bits(target.name()->data(), target.name()->size());
}

/// The header of a file that belongs to this package and target, whole.
Status readHeader(const MappedFile &file, const Package &package,
                  const format::Target &target, Header &head) {
  auto refuse = [&](StatusCode code, auto &&...parts) {
    return Status(code, concat(file.path(), ": ", parts...));
  };
  if (file.size() < sizeof(head))
    return refuse(StatusCode::Corrupt, "expects a saved session, but got ",
                  file.size(), " bytes");
  std::memcpy(&head, file.data(), sizeof(head));
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0)
    return refuse(StatusCode::Corrupt,
                  "expects a saved session (magic 'SPRIGSES')");
  if (head.version != kVersion && head.version != kVersionEvicted)
    return refuse(StatusCode::Unsupported,
                  "expects a session of version ", kVersion, ", but got ",
                  head.version, "; save it again with this version");
  if (head.headerHash != XXH3_64bits(&head, offsetof(Header, headerHash)))
    return refuse(StatusCode::Corrupt, "the header does not match its hash");
  if (head.package != package.identity())
    return refuse(StatusCode::InvalidArgument,
                  "expects a session of this package, but it was saved with "
                  "another (or with another compilation of the model)");
  if (head.target != nameHash(target))
    return refuse(StatusCode::InvalidArgument, "expects a session of target '",
                  target.name()->string_view(),
                  "', but it was saved with another");
  const auto *adapters = package.metadata().adapters();
  if (const uint32_t count = adapters ? adapters->size() : 0;
      head.adapter > count)
    return refuse(StatusCode::Corrupt, "expects one of ", count,
                  " adapters, but got ", head.adapter);
  return {};
}

uint64_t evictedBytes(const Header &head) {
  return head.version == kVersionEvicted ? sizeof(Evicted) : 0;
}

/// The body's sizes, against the package and the file.
Status checkSizes(const MappedFile &file, const Header &head,
                  const Evicted &went, uint32_t capacity, uint64_t cacheBytes) {
  auto refuse = [&](auto &&...parts) {
    return Status(StatusCode::Corrupt, concat(file.path(), ": ", parts...));
  };
  const uint64_t live = uint64_t(head.tokens) - went.gone;
  if (went.gone > head.tokens || live > uint64_t(capacity) + 1 ||
      head.cached > live || head.cached > capacity)
    return refuse("expects at most ", capacity, " tokens, but got ",
                  head.tokens, ", of which ", head.cached, " are cached",
                  went.gone ? concat(" and ", went.gone, " went") : "");
  if (went.sinks > head.cached || (evictedBytes(head) && went.gone == 0))
    return refuse("expects tokens that went behind sinks which are cached, but "
                  "got ",
                  went.gone, " behind ", went.sinks);
  if (head.noteBytes > kMostNoteBytes)
    return refuse("expects a note of at most ", kMostNoteBytes,
                  " bytes, but got ", head.noteBytes);
  if (head.cacheBytes != cacheBytes)
    return refuse("expects ", cacheBytes, " bytes of keys and values, but got ",
                  head.cacheBytes);
  const uint64_t expected = sizeof(Header) + evictedBytes(head) +
                            4 * uint64_t(head.tokens) + head.noteBytes +
                            cacheBytes;
  if (file.size() != expected)
    return refuse("expects ", expected, " bytes, but got ", file.size());
  if (XXH3_64bits(file.data() + sizeof(head), file.size() - sizeof(head)) !=
      head.bodyHash)
    return refuse("the content does not match its hash");
  return {};
}

} // namespace

Status Session::save(const std::string &path, std::string_view note) {
  if (note.size() > kMostNoteBytes)
    return {StatusCode::InvalidArgument,
            concat("expects a note of at most ", kMostNoteBytes,
                   " bytes, but got ", note.size())};
  std::error_code absent;
  if (std::filesystem::equivalent(path, owner->package().path(), absent))
    return {StatusCode::InvalidArgument,
            concat(path, ": expects another file for the session than the "
                         "package, which it would overwrite")};
  if (Status status = stop(); !status.ok())
    return status;
  if (Status status = owner->ready(); !status.ok())
    return status;
  const format::Target &target = owner->target();
  const std::vector<Region> regions = cacheRegions(target, slots());
  Header head{};
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.version = gone ? kVersionEvicted : kVersion;
  head.tokens = uint32_t(known.size());
  head.cached = slots();
  head.adapter = adapter;
  head.package = owner->package().identity();
  head.target = nameHash(target);
  head.noteBytes = note.size();
  head.cacheBytes = bytesOf(regions);

  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.status();
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  auto write = [&](const void *bytes, uint64_t count) {
    XXH3_64bits_update(&hash, bytes, count);
    return file->write(bytes, count);
  };
  // The header goes in last, when the hash is known.
  Status status = file->write(&head, sizeof(head));
  if (const Evicted went{kept, gone}; status.ok() && gone)
    status = write(&went, sizeof(went));
  if (status.ok())
    status = write(known.data(), 4 * known.size());
  if (status.ok())
    status = write(note.data(), note.size());
  if (status.ok())
    status = buffers.copyOut(*pool, regions, write);
  if (!status.ok())
    return status;
  head.bodyHash = XXH3_64bits_digest(&hash);
  head.headerHash = XXH3_64bits(&head, offsetof(Header, headerHash));
  if (status = file->rewrite(0, &head, sizeof(head)); !status.ok())
    return status;
  return file->commit();
}

Status Session::load(const std::string &path, std::string &note) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  const format::Target &target = owner->target();
  Header head;
  if (Status status = readHeader(*file, owner->package(), target, head);
      !status.ok())
    return status;
  const std::vector<Region> regions =
      cacheRegions(target, std::min(head.cached, capacity()));
  Evicted went{};
  if (file->size() >= sizeof(head) + evictedBytes(head))
    std::memcpy(&went, file->data() + sizeof(head), evictedBytes(head));
  if (Status status =
          checkSizes(*file, head, went, capacity(), bytesOf(regions));
      !status.ok())
    return status;
  const uint8_t *at = file->data() + sizeof(head) + evictedBytes(head);
  std::vector<uint32_t> tokens(head.tokens);
  std::memcpy(tokens.data(), at, 4 * tokens.size());
  at += 4 * tokens.size();
  const uint32_t vocabulary = owner->metadata().model()->vocabulary();
  for (uint32_t token : tokens)
    if (token >= vocabulary)
      return {StatusCode::Corrupt,
              concat(path, ": expects token ids below ", vocabulary,
                     ", but got ", token)};

  // From here on the session changes: empty until all is in place.
  if (Status status = truncate(0); !status.ok())
    return status;
  note.assign(reinterpret_cast<const char *>(at), head.noteBytes);
  at += head.noteBytes;
  if (Status status = buffers.copyIn(*pool, regions, at); !status.ok())
    return status;
  known.assign(tokens.begin(), tokens.end());
  kept = went.sinks, gone = went.gone;
  // Penalties of repetition look back into the history.
  const std::vector<uint32_t> past = live();
  if (Status status = buffers.copyIn(
          *pool, {{buffers.historyBuffer(), 0, 4 * uint64_t(past.size())}},
          reinterpret_cast<const uint8_t *>(past.data()));
      !status.ok()) {
    known.clear();
    kept = gone = 0;
    return status;
  }
  filled = head.cached + gone;
  adapter = head.adapter;
  return {};
}

} // namespace sprig
