// A fixed set of threads that share out the tasks of one loop at a time.
#ifndef SPRIG_LIB_REFERENCE_MATH_WORKERS_H
#define SPRIG_LIB_REFERENCE_MATH_WORKERS_H

#include <cstddef>
#include <functional>
#include <memory>

namespace mlir::llm::reference {

class Workers {
public:
  /// `threads` = 0 takes one a core. The calling thread counts as one of them.
  explicit Workers(unsigned threads = 0);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  unsigned size() const;

  /// Calls `task(i)` for i in [0, tasks), in any order, and returns when all
  /// are done. Tasks must not call `run` of the same object, and must not
  /// throw.
  void run(size_t tasks, const std::function<void(size_t)> &task);

  /// Cuts [0, count) into ranges of at least `grain` and calls `task(begin,
  /// end)` for each.
  void ranges(size_t count, size_t grain, const std::function<void(size_t, size_t)> &task);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_MATH_WORKERS_H
