// Files that hold tokenizers: the first byte says which ('j': tokenizer.json,
// 'm': a map of characters alone, else sentence pieces), the second how much of
// the rest is a text to encode.
#include "lib/Import/TokenizerJson.h"
#include "runtime/Text/CharsMap.h"
#include "runtime/Text/Tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const llvm::StringRef all(reinterpret_cast<const char *>(data) + 2, size - 2);
  const size_t length = std::min<size_t>(data[1], all.size());
  const llvm::StringRef text = all.take_back(length),
                        file = all.drop_back(length);
  if (data[0] == 'm') {
    const auto map =
        sprig::CharsMap::create(std::string_view(file.data(), file.size()));
    for (size_t at = 0; map.ok() && at < text.size(); ++at)
      for (const bool longest : {false, true})
        if (const auto match = map->match(
                std::string_view(text.data(), text.size()).substr(at), longest);
            match && (match->length == 0 || match->length > text.size() - at))
          __builtin_trap();
    return 0;
  }
  auto tables = data[0] == 'j'
                    ? mlir::llm::readTokenizerJson(file, "file")
                    : mlir::llm::readSentencePieceModel(file, "file");
  if (!tables) {
    llvm::consumeError(tables.takeError());
    return 0;
  }
  const auto tokenizer = sprig::Tokenizer::create(tables->data());
  if (!tokenizer.ok())
    return 0;
  const auto ids =
      tokenizer->encode(std::string_view(text.data(), text.size()));
  if (!ids.ok())
    return 0;
  for (const uint32_t id : *ids)
    if (id >= tokenizer->size() ||
        (tokenizer->type(id) == sprig::TokenType::Control &&
         int32_t(id) != tokenizer->data().unknown))
      __builtin_trap(); // text became a control token
  (void)tokenizer->decode(*ids);
  return 0;
}
