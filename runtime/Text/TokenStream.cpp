#include "runtime/Text/TokenStream.h"
#include "runtime/Text/Utf8.h"

namespace sprig {

std::string TokenStream::push(uint32_t token) {
  if (tokenizer->isControl(token) && !options.control)
    return {};
  std::string_view bytes = tokenizer->bytes(token);
  if (options.start && !tokenizer->isControl(token) && !bytes.empty()) {
    if (tokenizer->data().addSpacePrefix && bytes.front() == ' ')
      bytes.remove_prefix(1);
    options.start = false;
  }
  held += bytes;

  std::string out;
  std::string_view rest = held;
  while (!rest.empty()) {
    const Utf8Char c = decodeUtf8(rest);
    if (c.truncated)
      break;
    appendUtf8(out, c.code);
    rest.remove_prefix(c.length);
  }
  held.erase(0, held.size() - rest.size());
  return out;
}

std::string TokenStream::finish() {
  options.start = false;
  std::string out = sanitizeUtf8(held);
  held.clear();
  return out;
}

} // namespace sprig
