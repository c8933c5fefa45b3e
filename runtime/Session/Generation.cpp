#include "runtime/Session/Generation.h"

#include <algorithm>

namespace sprig {
namespace {

double secondsBetween(std::chrono::steady_clock::time_point from,
                      std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

Generation::Generation(Session &usedSession, const Tokenizer *usedTokenizer,
                       GenerationOptions given, Speculator *usedSpeculator)
    : session(usedSession), tokenizer(usedTokenizer), options(std::move(given)),
      speculator(usedSpeculator), stops(options.stops) {
  if (tokenizer)
    stream.emplace(*tokenizer);
}

Status Generation::start(const std::vector<uint32_t> &prompt) {
  began = first = Clock::now();
  // At least one token is computed: its logits are what sampling starts from.
  size_t same = session.match(prompt.data(), prompt.size());
  if (same == prompt.size() && same > 0)
    --same;
  same = std::min<size_t>(same, session.cached());
  if (Status status = session.truncate(same); !status.ok())
    return status;
  spent.prefilled = uint32_t(prompt.size() - same);
  made.reserve(std::min<uint64_t>(options.most, session.capacity() + 1));
  if (options.most == 0) {
    endReason = Finish::Length;
    ending = true;
    return session.append(prompt.data() + same, prompt.size() - same);
  }
  const uint32_t *added = prompt.data() + same;
  return speculator
             ? speculator->start(added, prompt.size() - same, options.most)
             : session.start(added, prompt.size() - same, options.most);
}

Status Generation::end(Finish reason, std::string &text) {
  why = reason;
  if (stream && !stops.stopped()) {
    text += stops.push(stream->finish());
    text += stops.finish();
  }
  return session.stop();
}

Result<bool> Generation::next(uint32_t &token, std::string &text) {
  text.clear();
  if (why != Finish::Running)
    return false;
  if (ending) {
    if (Status status = end(endReason, text); !status.ok())
      return status;
    return false;
  }
  // A tree's tokens come one by one as well, so that whatever ends the answer
  // ends it where plain decoding would.
  Result<uint32_t> sampled = speculator ? speculator->next() : session.next();
  if (!sampled.ok() && sampled.status().code() == StatusCode::Context) {
    if (Status status = end(Finish::Context, text); !status.ok())
      return status;
    return false;
  }
  if (!sampled.ok())
    return sampled.status();
  token = *sampled;
  made.push_back(token);
  Clock::time_point now = Clock::now();
  if (made.size() == 1) {
    first = now;
    spent.prefill = secondsBetween(began, now);
  }
  spent.decode = secondsBetween(first, now);
  auto endAfterThis = [&](Finish reason) {
    endReason = reason;
    ending = true;
  };
  if (tokenizer && tokenizer->isEnd(token) && !options.ignoreEnd) {
    endAfterThis(Finish::Stop);
    return true;
  }
  if (stream)
    text = stops.push(stream->push(token));
  if (stops.stopped())
    endAfterThis(Finish::Stop);
  else if (made.size() >= options.most)
    endAfterThis(Finish::Length);
  return true;
}

Status Generation::stop() {
  if (why != Finish::Running)
    return {};
  why = ending ? endReason : Finish::Stop;
  return session.stop();
}

} // namespace sprig
