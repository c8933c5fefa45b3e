//===- Process.h - what a tool asks the system about itself
//----------------------===//
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace sprig::tools {

/// The most memory this process has had resident, in bytes.
inline uint64_t peakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_maxrss) * 1024;
}

/// Seconds that all threads of this process have computed.
inline double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &time) {
    return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// `code`, or 1 with an error where the standard output did not take all that
/// was printed.
inline int flushed(const char *tool, int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  std::fprintf(stderr, "%s: error: cannot write to the standard output: %s\n",
               tool, std::strerror(errno));
  return code ? code : 1;
}

class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  double ofProcessor() const { return processorSeconds() - startComputing; }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  double startComputing = processorSeconds();
};

/// A line on a terminal that says what takes so long; gone when it is over.
class Progress {
public:
  void show(const std::string &what) {
    if (!isatty(2))
      return;
    std::fprintf(stderr, "\r\033[K%s", what.c_str());
    shown = true;
  }
  void clear() {
    if (shown)
      std::fprintf(stderr, "\r\033[K");
    shown = false;
  }
  ~Progress() { clear(); }

private:
  bool shown = false;
};

} // namespace sprig::tools
