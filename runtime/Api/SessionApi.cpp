#include "runtime/Api/Boundary.h"
#include "runtime/Session/SelfTest.h"

#include <algorithm>

using namespace sprig;
using namespace sprig::api;

namespace {

/// What every call on a session starts with.
template <class Body>
sprig_code onSession(sprig_session *session, Body &&body) noexcept {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    return body(*session->session);
  });
}

Status needsTokens(const uint32_t *tokens, size_t count) {
  return count == 0 ? Status() : needs(tokens, "tokens");
}

} // namespace

void sprig_session_options_init(sprig_session_options *options) {
  *options = sprig_session_options{};
  options->struct_bytes = sizeof(*options);
  options->ahead = 3;
}

sprig_code sprig_session_create(sprig_model *model,
                                const sprig_session_options *options,
                                sprig_session **session) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    sprig_session_options given =
        readOptions(options, sprig_session_options_init);
    SessionOptions wanted;
    wanted.ahead = given.ahead;
    if (given.poison)
      wanted.fill = kPoison;
    Result<std::unique_ptr<Session>> made =
        Session::create(model->model, wanted);
    if (!made.ok())
      return made.status();
    *session = new sprig_session{std::move(*made), {}, nullptr};
    return {};
  });
}

void sprig_session_destroy(sprig_session *session) { delete session; }

size_t sprig_session_length(const sprig_session *session) {
  return session ? session->session->tokens().size() : 0;
}

size_t sprig_session_match(const sprig_session *session, const uint32_t *tokens,
                           size_t count) {
  return session && tokens ? session->session->match(tokens, count) : 0;
}

sprig_code sprig_session_tokens(const sprig_session *session, uint32_t *tokens,
                                size_t capacity, size_t *count) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    if (Status status = needs(count, "count"); !status.ok())
      return status;
    const std::vector<uint32_t> &held = session->session->tokens();
    *count = held.size();
    if (capacity != 0 && tokens)
      std::copy_n(held.begin(), std::min(capacity, held.size()), tokens);
    return {};
  });
}

sprig_code sprig_session_save(sprig_session *session, const char *path,
                              const void *note, size_t note_bytes) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needs(path, "path"); !status.ok())
      return status;
    if (note_bytes != 0)
      if (Status status = needs(note, "note"); !status.ok())
        return status;
    return held.save(path,
                     {static_cast<const char *>(note_bytes ? note : ""),
                      note_bytes});
  });
}

sprig_code sprig_session_load(sprig_session *session, const char *path) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needs(path, "path"); !status.ok())
      return status;
    std::string note;
    Status status = held.load(path, note);
    if (status.ok())
      session->note = std::move(note);
    return status;
  });
}

const void *sprig_session_note(const sprig_session *session, size_t *bytes) {
  if (bytes)
    *bytes = session ? session->note.size() : 0;
  return session ? session->note.data() : nullptr;
}

sprig_code sprig_session_truncate(sprig_session *session, size_t length) {
  return onSession(session,
                   [&](Session &held) { return held.truncate(length); });
}

sprig_code sprig_session_set_adapter(sprig_session *session, const char *name) {
  return onSession(session, [&](Session &held) {
    return held.setAdapter(name ? name : "");
  });
}

uint64_t sprig_session_device_bytes(const sprig_session *session) {
  if (!session)
    return 0;
  return session->session->model().weightBytes() +
         session->session->deviceBytes();
}

void sprig_sampling_init(sprig_sampling *sampling) {
  Sampling plain;
  *sampling = sprig_sampling{
      sizeof(*sampling), plain.seed, plain.temperature,   plain.topK,
      plain.topP,        plain.minP, plain.repeatPenalty, plain.repeatLastN};
}

sprig_code sprig_session_set_sampling(sprig_session *session,
                                      const sprig_sampling *sampling) {
  return onSession(session, [&](Session &held) -> Status {
    sprig_sampling given = readOptions(sampling, sprig_sampling_init);
    return held.setSampling({given.seed, given.temperature, given.top_k,
                             given.top_p, given.min_p, given.repeat_penalty,
                             given.repeat_last_n});
  });
}

sprig_code sprig_session_append(sprig_session *session, const uint32_t *tokens,
                                size_t count) {
  return onSession(session, [&](Session &held) -> Status {
    Status status = needsTokens(tokens, count);
    return status.ok() ? held.append(tokens, count) : status;
  });
}

sprig_code sprig_session_evaluate(sprig_session *session,
                                  const uint32_t *tokens, size_t count,
                                  float *logits) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needsTokens(tokens, count); !status.ok())
      return status;
    if (Status status = needs(logits, "logits"); !status.ok())
      return status;
    return held.evaluate(tokens, count, logits);
  });
}

sprig_code sprig_session_evaluate_last(sprig_session *session,
                                       const uint32_t *tokens, size_t count,
                                       float *logits) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needsTokens(tokens, count); !status.ok())
      return status;
    if (Status status = needs(logits, "logits"); !status.ok())
      return status;
    return held.evaluateLast(tokens, count, logits);
  });
}

sprig_code sprig_session_start(sprig_session *session, const uint32_t *tokens,
                               size_t count, uint64_t budget) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needsTokens(tokens, count); !status.ok())
      return status;
    Speculator *speculator = session->speculator.get();
    return speculator ? speculator->start(tokens, count, budget)
                      : held.start(tokens, count, budget);
  });
}

sprig_code sprig_session_next(sprig_session *session, uint32_t *token) {
  return onSession(session, [&](Session &held) -> Status {
    if (Status status = needs(token, "token"); !status.ok())
      return status;
    Speculator *speculator = session->speculator.get();
    Result<uint32_t> next = speculator ? speculator->next() : held.next();
    if (next.ok())
      *token = *next;
    return next.status();
  });
}

sprig_code sprig_session_stop(sprig_session *session) {
  return onSession(session, [&](Session &held) { return held.stop(); });
}

sprig_code sprig_session_self_test(sprig_session *session, float margin) {
  return onSession(session,
                   [&](Session &held) { return selfTest(held, margin); });
}
