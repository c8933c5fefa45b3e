//===- Boundary.h - where C++ ends and C begins
//---------------------------------===//
#pragma once

#include "runtime/Speculation/Speculator.h"
#include "runtime/sprig.h"

#include <new>

/// The C API's handles.
struct sprig_model {
  std::shared_ptr<sprig::Model> model;
};
struct sprig_session {
  std::unique_ptr<sprig::Session> session;
  std::string note; ///< of the file that was loaded last
  std::unique_ptr<sprig::Speculator> speculator; ///< null: plain decoding
};

namespace sprig::api {

/// Keeps the message for sprig_last_error and returns the code.
sprig_code report(const Status &status);
/// A failure without a message of its own (memory ran out).
sprig_code reportPlain(sprig_code code, const char *message) noexcept;

/// Runs `body`, which returns a Status, and lets nothing out but a code.
template <class Body> sprig_code guarded(Body &&body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc &) {
    return reportPlain(SPRIG_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::exception &error) {
    return reportPlain(SPRIG_DEVICE_ERROR, error.what());
  }
}

/// InvalidArgument where a pointer that has to be given is null.
Status needs(const void *pointer, const char *name);

/// The caller's structure, or `fallback` cut to what an older caller knows.
template <class T> T readOptions(const T *given, void (*init)(T *)) {
  T options;
  init(&options);
  if (given) {
    size_t bytes =
        given->struct_bytes < sizeof(T) ? given->struct_bytes : sizeof(T);
    __builtin_memcpy(static_cast<void *>(&options), given, bytes);
  }
  options.struct_bytes = sizeof(T);
  return options;
}

/// Fills a caller's structure as far as the caller knows it.
template <class T> void writeResult(T *out, T result) {
  if (!out)
    return;
  size_t known = out->struct_bytes < sizeof(T) ? out->struct_bytes : sizeof(T);
  result.struct_bytes = out->struct_bytes;
  __builtin_memcpy(static_cast<void *>(out), &result, known);
}

} // namespace sprig::api
