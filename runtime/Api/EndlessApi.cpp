#include "runtime/Api/Boundary.h"

using namespace sprig;
using namespace sprig::api;

void sprig_endless_init(sprig_endless *endless) {
  const Endless plain;
  *endless = sprig_endless{sizeof(*endless), plain.sinks, plain.window};
}

sprig_code sprig_session_set_endless(sprig_session *session,
                                     const sprig_endless *endless) {
  return guarded([&]() -> Status {
    if (Status status = needs(session, "session"); !status.ok())
      return status;
    if (!endless)
      return session->session->setEndless(nullptr);
    const sprig_endless given = readOptions(endless, sprig_endless_init);
    const Endless wanted{given.sinks, given.window};
    return session->session->setEndless(&wanted);
  });
}

size_t sprig_session_evicted(const sprig_session *session) {
  return session ? session->session->evicted() : 0;
}
