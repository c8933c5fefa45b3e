// Tokenizers: tables that a file may hold, and texts.
#include "runtime/Text/TokenStream.h"
#include "runtime/Text/Tokenizer.h"

#include <fuzzer/FuzzedDataProvider.h>

using namespace sprig;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider input(data, size);
  TokenizerTables tables;
  tables.kind = TokenizerKind(input.ConsumeIntegralInRange<int>(0, 3));
  tables.pre = input.PickValueInArray({"smollm", "gpt-2", "llama-bpe", "qwen2", "default", "nothing"});
  const size_t vocabulary = input.ConsumeIntegralInRange<size_t>(0, 300);
  const bool bytes = input.ConsumeBool();
  for (size_t i = 0; i < vocabulary; ++i) {
    // Bytes first, so that most texts have tokens.
    std::string token = bytes && i < 256 ? std::string(1, char(i))
                                         : input.ConsumeRandomLengthString(8);
    tables.tokenBytes.insert(tables.tokenBytes.end(), token.begin(), token.end());
    tables.tokenOffsets.push_back(uint32_t(tables.tokenBytes.size()));
    tables.tokenTypes.push_back(
        bytes && i < 256 ? uint8_t(1) : input.ConsumeIntegralInRange<uint8_t>(0, 7));
    tables.scores.push_back(float(input.ConsumeIntegral<int8_t>()));
  }
  for (size_t i = input.ConsumeIntegralInRange<size_t>(0, 40); i-- > 0;) {
    tables.mergeLeft.push_back(input.ConsumeIntegralInRange<uint32_t>(0, 310));
    tables.mergeRight.push_back(input.ConsumeIntegralInRange<uint32_t>(0, 310));
  }
  tables.bos = input.ConsumeIntegralInRange<int32_t>(-2, 310);
  tables.unknown = input.ConsumeIntegralInRange<int32_t>(-2, 310);
  tables.addSpacePrefix = input.ConsumeBool();
  tables.removeExtraWhitespace = input.ConsumeBool();
  if (input.ConsumeBool() && !tables.tokenOffsets.empty()) // a hostile index
    tables.tokenOffsets[input.ConsumeIntegralInRange<size_t>(0, tables.tokenOffsets.size() - 1)] =
        input.ConsumeIntegral<uint32_t>();
  auto tokenizer = Tokenizer::create(tables.data());
  if (!tokenizer.ok())
    return 0;
  const bool special = input.ConsumeBool();
  const std::string text = input.ConsumeRemainingBytesAsString();
  auto ids = tokenizer->encode(std::string_view(text), special);
  if (!ids.ok())
    return 0;
  TokenStream stream(*tokenizer);
  std::string streamed;
  for (uint32_t id : *ids) {
    if (id >= vocabulary)
      __builtin_trap();
    if (!special && tokenizer->isControl(id) && int32_t(id) != tables.unknown)
      __builtin_trap(); // text became a control token
    streamed += stream.push(id);
  }
  streamed += stream.finish();
  (void)tokenizer->decode(*ids);
  return 0;
}
