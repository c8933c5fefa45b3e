#include "tools/Bench/Startup.h"
#include "tools/Support/Process.h"

#include <cstdlib>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

namespace sprig::tools {
namespace {

/// Seconds until the probe says something; negative where it failed.
double probe(std::vector<std::string> command, const std::string &cache,
             bool cold) {
  command.push_back("--cache=" + cache);
  std::vector<char *> arguments;
  for (std::string &word : command)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables;
  for (char **variable = environ; *variable; ++variable)
    variables.push_back(*variable);
  // Mesa keeps compiled shaders itself, beside every pipeline cache.
  variables.push_back(cold ? "MESA_SHADER_CACHE_DISABLE=true"
                           : "MESA_SHADER_CACHE_DIR=" + cache);
  std::vector<char *> environment;
  for (std::string &variable : variables)
    environment.push_back(variable.data());
  environment.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0)
    return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  Stopwatch clock;
  pid_t child = 0;
  bool started = posix_spawn(&child, arguments[0], &actions, nullptr,
                             arguments.data(), environment.data()) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char byte = 0;
  bool heard = started && read(ends[0], &byte, 1) == 1;
  double seconds = clock.seconds();
  close(ends[0]);
  int status = 0;
  if (started)
    waitpid(child, &status, 0);
  return heard && status == 0 ? seconds : -1;
}

} // namespace

bool measureStartup(const std::vector<std::string> &command, Startup &startup) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "sprig-startup-XXXXXX")
          .string();
  if (!mkdtemp(folder.data()))
    return false;
  // The probe itself says why it failed: once is enough.
  startup.cold = probe(command, folder + "/cold", true);
  const bool works = startup.cold >= 0 && probe(command, folder + "/warm", false) >= 0;
  startup.warm = works ? probe(command, folder + "/warm", false) : -1;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return startup.warm >= 0;
}

} // namespace sprig::tools
