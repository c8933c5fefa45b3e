//===- MarkedText.h - text that knows who wrote it -----------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sprig {

/// A stretch of text. Control tokens are looked for only inside trusted text:
/// what a template wrote, never what a user did.
struct TextSegment {
  std::string text;
  bool trusted = false;
};

/// Text of which every byte is trusted or not. Whatever a template does to a
/// string (cut, join, replace, change case), the mark stays with the bytes.
class MarkedText {
public:
  MarkedText() = default;
  MarkedText(std::string_view text, bool trusted) { append(text, trusted); }

  const std::string &str() const { return bytes; }
  size_t size() const { return bytes.size(); }
  bool empty() const { return bytes.empty(); }
  bool trustedAt(size_t position) const;

  void append(std::string_view text, bool trusted);
  void append(const MarkedText &other) { append(other, 0, other.size()); }
  /// Appends `length` bytes of `other`, from `begin`.
  void append(const MarkedText &other, size_t begin, size_t length);
  MarkedText slice(size_t begin, size_t length) const;

  std::vector<TextSegment> segments() const;

private:
  struct Run {
    size_t end;
    bool trusted;
  };
  std::string bytes;
  std::vector<Run> runs; // ascending ends, alternating marks
};

} // namespace sprig
