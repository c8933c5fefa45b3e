#include "runtime/Api/Boundary.h"

#include <algorithm>
#include <cstring>

using namespace sprig;
using namespace sprig::api;

namespace {

/// The pattern of every function that fills a caller's array.
template <class T>
Status giveOut(std::span<const T> values, T *out, size_t capacity,
               size_t *count) {
  if (Status status = needs(count, "count"); !status.ok())
    return status;
  *count = values.size();
  if (out)
    std::copy_n(values.data(), std::min(capacity, values.size()), out);
  return {};
}

Result<std::vector<uint32_t>> encode(Model &model, std::string_view text,
                                     unsigned flags) {
  Result<const Tokenizer *> tokenizer = model.text().tokenizer();
  if (!tokenizer.ok())
    return tokenizer.status();
  Result<std::vector<uint32_t>> tokens =
      (*tokenizer)->encode(text, flags & SPRIG_PARSE_SPECIAL);
  if (tokens.ok() && (flags & SPRIG_ADD_BEGIN))
    model.text().addBegin(*tokens);
  return tokens;
}

} // namespace

sprig_code sprig_tokenize(sprig_model *model, const char *text, size_t bytes,
                          unsigned flags, uint32_t *tokens, size_t capacity,
                          size_t *count) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    if (Status status = needs(text, "text"); !status.ok() && bytes != 0)
      return status;
    Result<std::vector<uint32_t>> made =
        encode(*model->model, {text ? text : "", bytes}, flags);
    if (!made.ok())
      return made.status();
    return giveOut<uint32_t>(*made, tokens, capacity, count);
  });
}

sprig_code sprig_detokenize(sprig_model *model, const uint32_t *tokens,
                            size_t count, unsigned flags, char *text,
                            size_t capacity, size_t *bytes) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    if (Status status = needs(tokens, "tokens"); !status.ok() && count != 0)
      return status;
    Result<const Tokenizer *> tokenizer = model->model->text().tokenizer();
    if (!tokenizer.ok())
      return tokenizer.status();
    DecodeOptions options;
    options.control = flags & SPRIG_SHOW_SPECIAL;
    std::string made = (*tokenizer)->decode({tokens, count}, options);
    return giveOut<char>(made, text, capacity, bytes);
  });
}

sprig_code sprig_chat_tokens(sprig_model *model, const char *messages_json,
                             const char *tools_json, unsigned flags,
                             uint32_t *tokens, size_t capacity, size_t *count) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    if (Status status = needs(messages_json, "messages_json"); !status.ok())
      return status;
    Result<std::vector<uint32_t>> made =
        model->model->text().chat(messages_json, tools_json ? tools_json : "",
                                  !(flags & SPRIG_NO_GENERATION_PROMPT));
    if (!made.ok())
      return made.status();
    return giveOut<uint32_t>(*made, tokens, capacity, count);
  });
}

int sprig_is_end_token(sprig_model *model, uint32_t token) {
  int answer = 0;
  guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    Result<const Tokenizer *> tokenizer = model->model->text().tokenizer();
    if (tokenizer.ok())
      answer = (*tokenizer)->isEnd(token);
    return {};
  });
  return answer;
}
