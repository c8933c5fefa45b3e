//===- Error.h - a mistake in a template, and where ----------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace sprig::jinja {

/// A place in a template's source, counted from 1.
struct Place {
  uint32_t line = 0, column = 0;
};

/// Thrown inside the engine, and caught at its border (ChatTemplate), where it
/// becomes a Status: "template:3:14: …".
struct Error {
  std::string message;
  Place place;
};

} // namespace sprig::jinja
