#include "runtime/Session/StopStrings.h"

#include <algorithm>

namespace sprig {

StopStrings::StopStrings(std::vector<std::string> given)
    : strings(std::move(given)) {
  strings.erase(std::remove(strings.begin(), strings.end(), std::string()),
                strings.end());
}

std::string StopStrings::push(std::string_view piece) {
  if (found)
    return {};
  held += piece;
  size_t first = std::string::npos;
  for (const std::string &stop : strings)
    first = std::min(first, held.find(stop));
  if (first != std::string::npos) {
    found = true;
    std::string shown = held.substr(0, first);
    held.clear();
    return shown;
  }
  // The longest end of the text that begins some stop string stays.
  size_t keep = 0;
  for (const std::string &stop : strings)
    for (size_t length = std::min(stop.size() - 1, held.size()); length > keep;
         --length)
      if (held.compare(held.size() - length, length, stop, 0, length) == 0) {
        keep = length;
        break;
      }
  std::string shown = held.substr(0, held.size() - keep);
  held.erase(0, held.size() - keep);
  return shown;
}

std::string StopStrings::finish() {
  std::string rest;
  if (!found)
    rest.swap(held);
  return rest;
}

} // namespace sprig
