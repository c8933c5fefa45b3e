#include "runtime/Text/MarkedText.h"

#include <algorithm>

namespace sprig {

bool MarkedText::trustedAt(size_t position) const {
  const auto run =
      std::upper_bound(runs.begin(), runs.end(), position,
                       [](size_t at, const Run &r) { return at < r.end; });
  return run != runs.end() && run->trusted;
}

void MarkedText::append(std::string_view text, bool trusted) {
  if (text.empty())
    return;
  bytes += text;
  if (!runs.empty() && runs.back().trusted == trusted)
    runs.back().end = bytes.size();
  else
    runs.push_back({bytes.size(), trusted});
}

void MarkedText::append(const MarkedText &other, size_t begin, size_t length) {
  const size_t end = std::min(begin + length, other.size());
  auto run =
      std::upper_bound(other.runs.begin(), other.runs.end(), begin,
                       [](size_t at, const Run &r) { return at < r.end; });
  for (; begin < end; ++run) {
    const size_t stop = std::min(run->end, end);
    append(std::string_view(other.bytes).substr(begin, stop - begin),
           run->trusted);
    begin = stop;
  }
}

MarkedText MarkedText::slice(size_t begin, size_t length) const {
  MarkedText out;
  out.append(*this, begin, length);
  return out;
}

std::vector<TextSegment> MarkedText::segments() const {
  std::vector<TextSegment> out;
  size_t begin = 0;
  for (const Run &run : runs) {
    out.push_back({bytes.substr(begin, run.end - begin), run.trusted});
    begin = run.end;
  }
  return out;
}

} // namespace sprig
