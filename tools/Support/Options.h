//===- Options.h - command lines of the small tools
//-----------------------------===//
//
// CLI11 would be a third of llm-run's size; these tools need no more than this.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sprig::tools {

/// Options are declared, then parsed: --name=VALUE, --name VALUE, -n VALUE,
/// --flag, and positional arguments. --help and --version are always there.
class Options {
public:
  /// `head`: what the tool does, in a line or two. `examples`: whole command
  /// lines, one a line.
  Options(std::string tool, std::string head, std::string examples);

  // `names`: "--name" or "--name,-n". A value that does not fit is an error
  // that names the option and the value.
  void flag(const std::string &names, bool &out, const std::string &help);
  void text(const std::string &names, std::string &out,
            const std::string &value, const std::string &help);
  /// Tells what is empty from what was not given.
  void text(const std::string &names, std::optional<std::string> &out,
            const std::string &value, const std::string &help);
  void texts(const std::string &names, std::vector<std::string> &out,
             const std::string &value, const std::string &help);
  void number(const std::string &names, uint64_t &out, const std::string &value,
              const std::string &help);
  void real(const std::string &names, double &out, const std::string &value,
            const std::string &help);
  /// Comma-separated; given again, it replaces what was there.
  void numbers(const std::string &names, std::vector<uint32_t> &out,
               const std::string &value, const std::string &help);
  /// Arguments without a name, in the order declared.
  void positional(const std::string &name, std::string &out,
                  const std::string &help);

  /// False: the program ends with `exitCode` (help was printed, or an error).
  bool parse(int argc, char **argv, int &exitCode);

private:
  struct Option {
    std::vector<std::string> names;
    std::string value; ///< what it is called in the help; empty: a flag
    std::string help;
    std::function<bool(const std::string &)> take;
  };
  struct Positional {
    std::string name, help;
    std::string *out;
  };

  void add(const std::string &names, std::string value, std::string help,
           std::function<bool(const std::string &)> take);
  const Option *find(const std::string &name) const;
  void printHelp() const;
  bool fail(const std::string &message, int &exitCode) const;

  std::string tool, head, examples;
  std::vector<Option> options;
  std::vector<Positional> positionals;
};

} // namespace sprig::tools
