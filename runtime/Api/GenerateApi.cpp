#include "runtime/Api/Boundary.h"
#include "runtime/Session/Generation.h"

using namespace sprig;
using namespace sprig::api;

namespace {

sprig_finish finishCode(Finish finish) {
  switch (finish) {
  case Finish::Stop:
    return SPRIG_FINISH_STOP;
  case Finish::Context:
    return SPRIG_FINISH_CONTEXT;
  case Finish::Length:
  case Finish::Running: // the callback ended it
    return SPRIG_FINISH_LENGTH;
  }
  return SPRIG_FINISH_LENGTH;
}

Status generate(sprig_session &held, const std::vector<uint32_t> &prompt,
                const sprig_generate_options *options, sprig_on_token on_token,
                void *user, sprig_generation *generation) {
  Session &session = *held.session;
  sprig_generate_options given =
      readOptions(options, sprig_generate_options_init);
  GenerationOptions wanted;
  wanted.most = given.max_tokens;
  wanted.ignoreEnd = given.ignore_end;
  for (size_t i = 0; i < given.stop_count; ++i) {
    if (Status status = needs(given.stops ? given.stops[i] : nullptr, "stops");
        !status.ok())
      return status;
    wanted.stops.push_back(given.stops[i]);
  }
  Result<const Tokenizer *> tokenizer = session.model().text().tokenizer();
  Generation run(session, tokenizer.ok() ? *tokenizer : nullptr,
                 std::move(wanted), held.speculator.get());
  if (Status status = run.start(prompt); !status.ok())
    return status;
  uint32_t token = 0;
  std::string text;
  while (true) {
    Result<bool> more = run.next(token, text);
    if (!more.ok())
      return more.status();
    bool shows = *more || !text.empty();
    bool enough = shows && on_token &&
                  on_token(user, *more ? token : UINT32_MAX, text.data(),
                           text.size()) != 0;
    if (!*more)
      break;
    if (!enough)
      continue;
    if (Status status = session.stop(); !status.ok())
      return status;
    break;
  }
  sprig_generation result{};
  result.finish = finishCode(run.finish());
  result.tokens = run.tokens().size();
  result.prompt_tokens = prompt.size();
  result.computed_tokens = run.times().prefilled;
  result.prefill_s = run.times().prefill;
  result.decode_s = run.times().decode;
  writeResult(generation, result);
  return {};
}

} // namespace

void sprig_generate_options_init(sprig_generate_options *options) {
  *options = sprig_generate_options{};
  options->struct_bytes = sizeof(*options);
  options->max_tokens = 128;
}

sprig_code sprig_generate(sprig_session *session, const uint32_t *prompt,
                          size_t count, const sprig_generate_options *options,
                          sprig_on_token on_token, void *user,
                          sprig_generation *generation) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    if (Status status = needs(prompt, "prompt"); !status.ok() && count != 0)
      return status;
    return generate(*session,
                    std::vector<uint32_t>(prompt, prompt + count), options,
                    on_token, user, generation);
  });
}

sprig_code sprig_generate_text(sprig_session *session, const char *prompt,
                               const sprig_generate_options *options,
                               sprig_on_token on_token, void *user,
                               sprig_generation *generation) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    if (Status status = needs(prompt, "prompt"); !status.ok())
      return status;
    ModelText &text = session->session->model().text();
    Result<const Tokenizer *> tokenizer = text.tokenizer();
    if (!tokenizer.ok())
      return tokenizer.status();
    Result<std::vector<uint32_t>> tokens = (*tokenizer)->encode(prompt);
    if (!tokens.ok())
      return tokens.status();
    text.addBegin(*tokens);
    return generate(*session, *tokens, options, on_token, user,
                    generation);
  });
}
