#include "lib/Reference/Math/Workers.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace mlir::llm::reference {

struct Workers::State {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(size_t)> *task = nullptr;
  std::atomic<size_t> next = 0;
  size_t tasks = 0;
  size_t busy = 0;
  uint64_t round = 0;
  bool stop = false;

  void drain(const std::function<void(size_t)> &body, size_t count) {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1))
      body(i);
  }

  void loop() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      start.wait(lock, [&] { return stop || round != seen; });
      if (stop)
        return;
      seen = round;
      const auto *body = task;
      const size_t count = tasks;
      lock.unlock();
      drain(*body, count);
      lock.lock();
      if (--busy == 0)
        done.notify_one();
    }
  }
};

Workers::Workers(unsigned threads) : state(std::make_unique<State>()) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < threads; ++i)
    state->threads.emplace_back([this] { state->loop(); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(state->mutex);
    state->stop = true;
  }
  state->start.notify_all();
  for (std::thread &thread : state->threads)
    thread.join();
}

unsigned Workers::size() const { return unsigned(state->threads.size()) + 1; }

void Workers::run(size_t tasks, const std::function<void(size_t)> &task) {
  // Waking threads costs some 10 µs: not for a single task.
  if (tasks <= 1 || state->threads.empty()) {
    for (size_t i = 0; i < tasks; ++i)
      task(i);
    return;
  }
  {
    std::lock_guard lock(state->mutex);
    state->task = &task;
    state->tasks = tasks;
    state->next = 0;
    state->busy = state->threads.size();
    ++state->round;
  }
  state->start.notify_all();
  state->drain(task, tasks);
  std::unique_lock lock(state->mutex);
  state->done.wait(lock, [&] { return state->busy == 0; });
}

void Workers::ranges(size_t count, size_t grain, const std::function<void(size_t, size_t)> &task) {
  if (count == 0)
    return;
  // Four ranges a thread even out the load when the cores are shared with
  // others.
  const size_t most = std::max<size_t>(1, count / std::max<size_t>(1, grain));
  const size_t pieces = std::min<size_t>(most, size() * 4);
  run(pieces, [&](size_t i) { task(count * i / pieces, count * (i + 1) / pieces); });
}

} // namespace mlir::llm::reference
