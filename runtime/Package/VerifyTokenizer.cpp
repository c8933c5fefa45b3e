#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

namespace sprig {

Status verifyTokenizer(const format::Tokenizer &tokenizer,
                       uint32_t vocabulary) {
  auto corrupt = [](const auto &...parts) {
    return Status(StatusCode::Corrupt, concat(parts...));
  };
  if (tokenizer.kind() > format::TokenizerKind::MAX)
    return corrupt("expects a known kind, but got ", int(tokenizer.kind()));
  const auto &lengths = *tokenizer.token_lengths();
  const auto &types = *tokenizer.token_types();
  // A model may pad its vocabulary with rows that no token names, never the
  // other way round.
  if (types.size() == 0 || types.size() > vocabulary ||
      lengths.size() != types.size())
    return corrupt("expects 1 to ", vocabulary,
                   " tokens with a length each, but got ", types.size(),
                   " and ", lengths.size());
  uint32_t count = types.size();
  uint64_t bytes = 0;
  for (const uint16_t length : lengths)
    bytes += length;
  if (bytes != tokenizer.token_bytes()->size())
    return corrupt("expects lengths that add up to the ",
                   tokenizer.token_bytes()->size(), " token bytes, but got ",
                   bytes);
  if (tokenizer.scores() && tokenizer.scores()->size() != 0 &&
      tokenizer.scores()->size() != count)
    return corrupt("expects no scores or ", count, ", but got ",
                   tokenizer.scores()->size());
  if (tokenizer.added_flags() && tokenizer.added_flags()->size() != 0 &&
      tokenizer.added_flags()->size() != count)
    return corrupt("expects no flags of added tokens or ", count, ", but got ",
                   tokenizer.added_flags()->size());
  uint32_t left = tokenizer.merge_left() ? tokenizer.merge_left()->size() : 0;
  uint32_t right =
      tokenizer.merge_right() ? tokenizer.merge_right()->size() : 0;
  if (left != right)
    return corrupt("expects as many left as right halves of merges, but got ",
                   left, " and ", right);
  for (uint32_t i = 0; i < left; ++i)
    if (tokenizer.merge_left()->Get(i) >= count ||
        tokenizer.merge_right()->Get(i) >= count)
      return corrupt("merge ", i, ": expects token ids below ", count,
                     ", but got ", tokenizer.merge_left()->Get(i), " and ",
                     tokenizer.merge_right()->Get(i));
  if (const auto *splits = tokenizer.merge_splits();
      splits && splits->size() != 0) {
    const uint32_t first = tokenizer.merge_first();
    if (left != 0)
      return corrupt("expects merges as pairs or as splits, but got both");
    if (first > count || splits->size() > count - first)
      return corrupt("expects merges that make tokens below ", count,
                     ", but got ", splits->size(), " from ", first, " on");
    for (uint32_t i = 0; i < splits->size(); ++i)
      if (splits->Get(i) == 0 || splits->Get(i) >= lengths.Get(first + i))
        return corrupt("merge ", i, ": expects a split inside the ",
                       lengths.Get(first + i), " bytes of token ", first + i,
                       ", but got ", splits->Get(i));
  }
  const struct {
    const char *name;
    int32_t id;
  } specials[] = {{"begin", tokenizer.bos()},
                  {"unknown", tokenizer.unknown()},
                  {"padding", tokenizer.padding()}};
  for (const auto &special : specials)
    if (special.id < -1 || (special.id >= 0 && uint32_t(special.id) >= count))
      return corrupt("expects a ", special.name, " token of -1 to ", count - 1,
                     ", but got ", special.id);
  if (tokenizer.probe_tokens())
    for (uint32_t id : *tokenizer.probe_tokens())
      if (id >= count)
        return corrupt("expects tokens of the probe below ", count,
                       ", but got ", id);
  if (tokenizer.end_tokens())
    for (uint32_t id : *tokenizer.end_tokens())
      if (id >= count)
        return corrupt("expects end tokens below ", count, ", but got ", id);
  return {};
}

} // namespace sprig
