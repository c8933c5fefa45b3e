//===- Status.h - how the runtime reports errors -------------------------===//
//
// The runtime never throws across a library border, prints, exits or aborts: a
// function that can fail returns a Status, or a Result<T> when it also makes
// something. Messages speak to the person: "expects X, but got Y", with the
// file, object or call named.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sprig {

enum class StatusCode {
  Ok,
  InvalidArgument, // the caller asked for something that makes no sense
  NotFound,        // a file, device, driver or name that is not there
  Unsupported,     // well formed, but this build or device cannot do it
  Corrupt,         // a file or table that contradicts itself
  OutOfMemory,
  DeviceError, // the Vulkan device refused or was lost
  Context,     // the context is full
  IoError,
};

/// The name of `code` as written above.
inline const char *statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "Ok";
  case StatusCode::InvalidArgument:
    return "InvalidArgument";
  case StatusCode::NotFound:
    return "NotFound";
  case StatusCode::Unsupported:
    return "Unsupported";
  case StatusCode::Corrupt:
    return "Corrupt";
  case StatusCode::OutOfMemory:
    return "OutOfMemory";
  case StatusCode::DeviceError:
    return "DeviceError";
  case StatusCode::Context:
    return "Context";
  case StatusCode::IoError:
    return "IoError";
  }
  return "Unknown";
}

/// Success, or a code with a message. `if (!status.ok()) return status;`
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : kind(code), text(std::move(message)) {
    assert(code != StatusCode::Ok && "success carries no message");
  }

  bool ok() const { return kind == StatusCode::Ok; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return kind; }
  const std::string &message() const { return text; }

  /// The same status with "prefix: " before its message; success stays success.
  Status within(std::string_view prefix) const {
    return ok() ? *this : Status(kind, std::string(prefix) + ": " + text);
  }

private:
  StatusCode kind = StatusCode::Ok;
  std::string text;
};

/// A value, or the Status that says why there is none.
///
///   Result<Tokenizer> made = Tokenizer::create(data);
///   if (!made.ok())
///     return made.status();
///   Tokenizer tokenizer = std::move(*made);
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : held(std::move(value)) {}
  Result(Status status) : why(std::move(status)) {
    assert(!why.ok() && "a Result without a value expects an error");
  }
  Result(StatusCode code, std::string message)
      : why(code, std::move(message)) {}

  bool ok() const { return held.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const { return why; }

  T &operator*() & { return *held; }
  const T &operator*() const & { return *held; }
  T &&operator*() && { return std::move(*held); }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

private:
  std::optional<T> held;
  Status why;
};

} // namespace sprig
