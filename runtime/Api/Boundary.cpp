#include "runtime/Api/Boundary.h"
#include "runtime/Support/Strings.h"

#include <cstring>

namespace sprig::api {
namespace {

static_assert(int(StatusCode::InvalidArgument) == SPRIG_INVALID_ARGUMENT);
static_assert(int(StatusCode::NotFound) == SPRIG_NOT_FOUND);
static_assert(int(StatusCode::Unsupported) == SPRIG_UNSUPPORTED);
static_assert(int(StatusCode::Corrupt) == SPRIG_CORRUPT);
static_assert(int(StatusCode::OutOfMemory) == SPRIG_OUT_OF_MEMORY);
static_assert(int(StatusCode::DeviceError) == SPRIG_DEVICE_ERROR);
static_assert(int(StatusCode::Context) == SPRIG_CONTEXT);
static_assert(int(StatusCode::IoError) == SPRIG_IO_ERROR);

/// Fixed, so that even running out of memory can be said.
thread_local char lastError[2048];

} // namespace

sprig_code reportPlain(sprig_code code, const char *message) noexcept {
  std::strncpy(lastError, message, sizeof(lastError) - 1);
  return code;
}

sprig_code report(const Status &status) {
  if (status.ok())
    return SPRIG_OK;
  return reportPlain(sprig_code(status.code()), status.message().c_str());
}

Status needs(const void *pointer, const char *name) {
  if (pointer)
    return {};
  return {StatusCode::InvalidArgument,
          concat("expects a `", name, "`, but got NULL")};
}

} // namespace sprig::api

const char *sprig_version(void) { return SPRIG_VERSION; }

const char *sprig_last_error(void) { return sprig::api::lastError; }
