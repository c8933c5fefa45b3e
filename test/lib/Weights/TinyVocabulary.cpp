#include "test/lib/Weights/TinyVocabulary.h"
#include "test/lib/Weights/TinyLlama.h"

#include <cassert>

namespace mlir::llm::testing {
namespace {

// Values of tokenizer.ggml.token_type.
constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;

/// Byte-level BPE writes a byte as a printable letter: itself where it is
/// printable Latin-1, else the next letter from U+0100 on. "Ġ" is the space.
std::vector<std::string> byteLetters() {
  std::vector<std::string> letters(256);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') ||
                           (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const uint32_t code = printable ? byte : next++;
    std::string &letter = letters[byte];
    if (code >= 0x80)
      letter += static_cast<char>(0xc0 | code >> 6);
    letter += static_cast<char>(code >= 0x80 ? 0x80 | (code & 63) : code);
  }
  return letters;
}

/// Frequent pairs of English, each made of tokens that exist before it.
constexpr const char *kMerges[] = {
    "Ġ t",  "Ġ a", "i n", "h e", "r e", "o n",   "e r", "Ġt he", "a t", "Ġ s",
    "Ġ o",  "e n", "Ġ c", "e s", "Ġ w", "n d",   "i t", "o r",   "i s", "a l",
    "in g", "Ġ f", "a n", "e d", "Ġ b", "Ġa nd", "o u", "Ġ in",  "Ġo f"};

constexpr const char *kTemplate =
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

} // namespace

void addTinyVocabulary(GGUFWriter &writer, size_t padding) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>",
                                     "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), kControl);
  for (const std::string &letter : byteLetters())
    tokens.push_back(letter);
  std::vector<std::string> merges;
  for (const char *merge : kMerges) {
    merges.push_back(merge);
    std::string &token = tokens.emplace_back(merge);
    token.erase(token.find(' '), 1);
  }
  assert(tokens.size() == size_t(kTinyVocabulary));
  types.resize(tokens.size(), kNormal);
  for (size_t i = 0; i < padding; ++i)
    tokens.push_back("[PAD" + std::to_string(i) + "]");
  types.resize(tokens.size(), kUnused);

  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "smollm");
  writer.addStrings("tokenizer.ggml.tokens", tokens);
  writer.addArray<int32_t>("tokenizer.ggml.token_type", types);
  writer.addStrings("tokenizer.ggml.merges", merges);
  writer.add("tokenizer.ggml.bos_token_id", uint32_t(1));
  writer.add("tokenizer.ggml.eos_token_id", uint32_t(2));
  writer.add("tokenizer.ggml.unknown_token_id", uint32_t(0));
  writer.add("tokenizer.ggml.padding_token_id", uint32_t(2));
  writer.add("tokenizer.ggml.add_bos_token", false);
  writer.add("tokenizer.ggml.add_space_prefix", false);
  writer.add("tokenizer.chat_template", kTemplate);
}

} // namespace mlir::llm::testing
