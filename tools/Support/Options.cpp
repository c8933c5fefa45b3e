#include "tools/Support/Options.h"

#include "runtime/sprig.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace sprig::tools {
namespace {

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(by, begin)) != std::string::npos;
       begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

bool readNumber(const std::string &text, uint64_t &out) {
  if (text.empty() || text[0] < '0' || text[0] > '9')
    return false;
  char *end = nullptr;
  errno = 0;
  out = std::strtoull(text.c_str(), &end, 10);
  return errno == 0 && *end == 0;
}

} // namespace

Options::Options(std::string name, std::string what, std::string commands)
    : tool(std::move(name)), head(std::move(what)),
      examples(std::move(commands)) {}

void Options::add(const std::string &names, std::string value, std::string help,
                  std::function<bool(const std::string &)> take) {
  options.push_back(
      {split(names, ','), std::move(value), std::move(help), std::move(take)});
}

void Options::flag(const std::string &names, bool &out,
                   const std::string &help) {
  add(names, "", help, [&out](const std::string &) { return out = true; });
}

void Options::text(const std::string &names, std::string &out,
                   const std::string &value, const std::string &help) {
  // A path that a shell variable left empty would be taken for none.
  const bool isPath = value == "FILE" || value == "FOLDER";
  add(names, value, help, [&out, isPath](const std::string &given) {
    out = given;
    return !isPath || !given.empty();
  });
}

void Options::text(const std::string &names, std::optional<std::string> &out,
                   const std::string &value, const std::string &help) {
  add(names, value, help, [&out](const std::string &given) {
    out = given;
    return true;
  });
}

void Options::texts(const std::string &names, std::vector<std::string> &out,
                    const std::string &value, const std::string &help) {
  add(names, value, help, [&out](const std::string &given) {
    out.push_back(given);
    return true;
  });
}

void Options::number(const std::string &names, uint64_t &out,
                     const std::string &value, const std::string &help) {
  add(names, value, help,
      [&out](const std::string &given) { return readNumber(given, out); });
}

void Options::real(const std::string &names, double &out,
                   const std::string &value, const std::string &help) {
  add(names, value, help, [&out](const std::string &given) {
    char *end = nullptr;
    out = std::strtod(given.c_str(), &end);
    return !given.empty() && *end == 0;
  });
}

void Options::numbers(const std::string &names, std::vector<uint32_t> &out,
                      const std::string &value, const std::string &help) {
  add(names, value, help, [&out](const std::string &given) {
    out.clear();
    for (const std::string &part : split(given, ',')) {
      uint64_t number = 0;
      if (!readNumber(part, number) || number > UINT32_MAX)
        return false;
      out.push_back(uint32_t(number));
    }
    return true;
  });
}

void Options::positional(const std::string &name, std::string &out,
                         const std::string &help) {
  positionals.push_back({name, help, &out});
}

const Options::Option *Options::find(const std::string &name) const {
  for (const Option &option : options)
    for (const std::string &known : option.names)
      if (known == name)
        return &option;
  return nullptr;
}

void Options::printHelp() const {
  std::printf("%s\n\nusage: %s", head.c_str(), tool.c_str());
  for (const Positional &positional : positionals)
    std::printf(" %s", positional.name.c_str());
  std::printf(" [options]\n\n");
  for (const Positional &positional : positionals)
    std::printf("  %-26s %s\n", positional.name.c_str(),
                positional.help.c_str());
  auto line = [](const std::string &names, const std::string &help) {
    std::printf("  %-26s %s\n", names.c_str(), help.c_str());
  };
  for (const Option &option : options) {
    std::string names;
    for (const std::string &name : option.names) {
      bool longName = name.compare(0, 2, "--") == 0;
      names += (names.empty() ? "" : ", ") + name;
      if (!option.value.empty())
        names += (longName ? "=" : " ") + option.value;
    }
    line(names, option.help);
  }
  line("--help, -h", "This text");
  line("--version", "The version");
  std::printf("\nexamples:\n");
  for (const std::string &example : split(examples, '\n'))
    std::printf("  %s\n", example.c_str());
}

bool Options::fail(const std::string &message, int &exitCode) const {
  std::fprintf(stderr, "%s: error: %s (see %s --help)\n", tool.c_str(),
               message.c_str(), tool.c_str());
  exitCode = 2;
  return false;
}

bool Options::parse(int argc, char **argv, int &exitCode) {
  exitCode = 0;
  size_t placed = 0;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      printHelp();
      return false;
    }
    if (word == "--version") {
      std::printf("%s %s\n", tool.c_str(), sprig_version());
      return false;
    }
    if (word.size() < 2 || word[0] != '-') {
      if (placed == positionals.size())
        return fail("unexpected argument '" + word + "'", exitCode);
      *positionals[placed++].out = word;
      continue;
    }
    size_t equals =
        word.compare(0, 2, "--") == 0 ? word.find('=') : std::string::npos;
    std::string name = word.substr(0, equals);
    const Option *option = find(name);
    if (!option)
      return fail("unknown option '" + name + "'", exitCode);
    std::string value;
    if (equals != std::string::npos) {
      if (option->value.empty())
        return fail("option " + name + " takes no value", exitCode);
      value = word.substr(equals + 1);
    } else if (!option->value.empty()) {
      if (i + 1 == argc)
        return fail("option " + name + " expects a value (" + option->value +
                        ")",
                    exitCode);
      value = argv[++i];
    }
    if (!option->take(value))
      return fail("option " + name + " expects " + option->value +
                      ", but got '" + value + "'",
                  exitCode);
  }
  return true;
}

} // namespace sprig::tools
