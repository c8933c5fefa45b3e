//===- llm-run.cpp - generates text with a compiled model
//-------------------------===//
//
// Uses nothing but the public C API, so whatever this tool does, any program
// can.
//
//===----------------------------------------------------------------------===//
#include "runtime/sprig.h"
#include "tools/Run/Arguments.h"
#include "tools/Run/Devices.h"
#include "tools/Run/Report.h"
#include "tools/Support/Json.h"
#include "tools/Support/Process.h"

#include <cstring>
#include <iostream>
#include <memory>

using namespace sprig::tools;

namespace {

struct Closer {
  void operator()(sprig_model *model) const { sprig_model_close(model); }
  void operator()(sprig_session *session) const {
    sprig_session_destroy(session);
  }
};

int fail(const std::string &message) {
  std::fprintf(stderr, "llm-run: error: %s\n", message.c_str());
  return 1;
}
int failed() { return fail(sprig_last_error()); }

/// False with errno set where the file, or all of it, cannot be read.
bool readFile(const std::string &path, std::string &text) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return false;
  text.clear();
  char piece[1 << 16];
  while (size_t count = std::fread(piece, 1, sizeof(piece), file))
    text.append(piece, count);
  const int why = std::ferror(file) ? errno : 0;
  std::fclose(file);
  errno = why;
  return why == 0;
}

/// One run of the model: opened, fed, reported.
class Run {
public:
  explicit Run(const Arguments &given) : args(given) {}

  int main() {
    progress.show("loading " + args.model);
    if (!open())
      return failed();
    loadSeconds = clock.seconds();
    if (args.selfTest) {
      if (sprig_session_self_test(session.get(), 0.1f) != SPRIG_OK)
        return failed();
      progress.clear();
      std::puts(args.json ? "{\"self_test\": \"passed\"}"
                          : "self-test: the device agrees with the compiler's "
                            "reference");
      return 0;
    }
    if (!args.loadSession.empty() && !(resume() && changeAdapter()))
      return failed();
    if (args.chat && args.prompt.empty() && args.file.empty())
      return converse();
    std::vector<uint32_t> prompt;
    std::string why;
    if (!makePrompt(prompt, why))
      return why.empty() ? failed() : fail(why);
    sprig_generation result{};
    std::string text;
    if (!generate(prompt, text, result))
      return failed();
    if (args.chat)
      say("assistant", text);
    if (!saved())
      return failed();
    sprig_speculation_counts counts{};
    counts.struct_bytes = sizeof(counts);
    sprig_session_get_speculation(session.get(), &counts);
    const RunReport report = {args,  info,   result,      counts,
                              text,  generated, loadSeconds, firstTokenSeconds,
                              clock.ofProcessor() - firstTokenProcessor,
                              sprig_session_device_bytes(session.get()),
                              sprig_session_evicted(session.get())};
    if (args.json)
      std::puts(jsonReport(report).c_str());
    else
      std::printf("\n");
    if (args.stats)
      printSummary(report);
    return 0;
  }

private:
  static void printPlan(void *self, const sprig_memory_plan *plan) {
    static_cast<Run *>(self)->progress.clear();
    auto mib = [](uint64_t bytes) { return double(bytes) / (1 << 20); };
    std::fprintf(stderr,
                 "memory: weights %.1f MiB%s, KV cache of %u tokens %.1f MiB, "
                 "activations %.1f MiB, logits %.1f MiB; %.0f MiB are free\n",
                 mib(plan->weights),
                 plan->weights_in_place ? " (the file's own pages)" : "",
                 unsigned(plan->context), mib(plan->kv),
                 mib(plan->activations + plan->control), mib(plan->logits),
                 mib(plan->available));
  }

  bool open() {
    sprig_model_options options;
    sprig_model_options_init(&options);
    options.device = args.device.empty() ? nullptr : args.device.c_str();
    options.target = args.target.empty() ? nullptr : args.target.c_str();
    if (args.noCache)
      options.cache_folder = "";
    else if (!args.cache.empty())
      options.cache_folder = args.cache.c_str();
    options.robust = !args.fragile;
    options.memory_limit = uint64_t(args.memoryLimit * (1 << 20));
    if (args.stats) {
      options.plan = printPlan;
      options.plan_user = this;
    }
    const char *placements[] = {"auto", "in-place", "mapped", "staged"};
    for (int i = 0; i < 4; ++i)
      if (args.weights == placements[i])
        options.weights = sprig_weights(i);
    sprig_model *opened = nullptr;
    if (sprig_model_open(args.model.c_str(), &options, &opened) != SPRIG_OK)
      return false;
    model.reset(opened);
    info.struct_bytes = sizeof(info);
    sprig_model_get_info(opened, &info);
    sprig_session_options sessionOptions;
    sprig_session_options_init(&sessionOptions);
    sessionOptions.poison = args.poison;
    sprig_session *created = nullptr;
    if (sprig_session_create(opened, &sessionOptions, &created) != SPRIG_OK)
      return false;
    session.reset(created);
    sprig_sampling sampling;
    sprig_sampling_init(&sampling);
    sampling.seed = args.seed;
    sampling.temperature = float(args.temperature);
    sampling.top_k = uint32_t(std::min<uint64_t>(args.topK, UINT32_MAX));
    sampling.top_p = float(args.topP);
    sampling.min_p = float(args.minP);
    sampling.repeat_penalty = float(args.penalty);
    sampling.repeat_last_n =
        uint32_t(std::min<uint64_t>(args.lastN, UINT32_MAX));
    sprig_speculation speculation;
    sprig_speculation_init(&speculation);
    speculation.drafts = args.speculate.c_str();
    speculation.nodes = uint32_t(std::min<uint64_t>(args.tree, UINT32_MAX));
    speculation.chain = args.chain;
    speculation.tree_rule = args.treeRule.c_str();
    speculation.draft_sampling = args.draftSampling;
    if (!args.draftModel.empty()) {
      options.plan = nullptr; // the session's own was printed
      if (sprig_model_open(args.draftModel.c_str(), &options, &opened) !=
          SPRIG_OK)
        return false;
      draftModel.reset(opened);
      speculation.draft_model = opened;
    }
    sprig_endless endless;
    sprig_endless_init(&endless);
    endless.sinks = uint32_t(std::min<uint64_t>(args.sinks, UINT32_MAX));
    endless.window = uint32_t(std::min<uint64_t>(args.window, UINT32_MAX));
    return (!args.endless ||
            sprig_session_set_endless(created, &endless) == SPRIG_OK) &&
           (!args.adapter ||
            sprig_session_set_adapter(created, args.adapter->c_str()) ==
                SPRIG_OK) &&
           sprig_session_set_sampling(created, &sampling) == SPRIG_OK &&
           sprig_session_set_speculation(created, &speculation) == SPRIG_OK;
  }

  /// A chat goes on from its messages, which lie beside the tokens.
  bool resume() {
    progress.show("loading " + args.loadSession);
    if (sprig_session_load(session.get(), args.loadSession.c_str()) != SPRIG_OK)
      return false;
    size_t bytes = 0;
    const void *note = sprig_session_note(session.get(), &bytes);
    messages.assign(static_cast<const char *>(note), bytes);
    return true;
  }

  /// A saved session has an adapter of its own. Under another one its text
  /// stays, to be computed again.
  bool changeAdapter() {
    return collect(savedTokens,
                   [&](uint32_t *tokens, size_t capacity, size_t *count) {
                     return sprig_session_tokens(session.get(), tokens,
                                                 capacity, count);
                   }) &&
           (!args.adapter ||
            sprig_session_set_adapter(session.get(), args.adapter->c_str()) ==
                SPRIG_OK);
  }

  bool saved() {
    return args.saveSession.empty() ||
           sprig_session_save(session.get(), args.saveSession.c_str(),
                              messages.data(), messages.size()) == SPRIG_OK;
  }

  /// Calls an API function that fills an array twice: for the size, for the
  /// content.
  template <class Call> bool collect(std::vector<uint32_t> &out, Call &&call) {
    size_t count = 0;
    if (call(nullptr, 0, &count) != SPRIG_OK)
      return false;
    out.resize(count);
    return call(out.data(), out.size(), &count) == SPRIG_OK;
  }

  bool chatTokens(std::vector<uint32_t> &out) {
    std::string all = "[" + messages + "]";
    return collect(out, [&](uint32_t *tokens, size_t capacity, size_t *count) {
      return sprig_chat_tokens(model.get(), all.c_str(), nullptr, 0, tokens,
                               capacity, count);
    });
  }

  void say(const char *role, const std::string &content) {
    messages += (messages.empty() ? "" : ", ");
    messages += std::string("{\"role\": \"") + role +
                "\", \"content\": " + jsonString(content) + "}";
  }

  /// `why` stays empty where the API has the message.
  bool makePrompt(std::vector<uint32_t> &prompt, std::string &why) {
    std::vector<uint32_t> before, added;
    if (!args.chat)
      before = savedTokens;
    if (!newTokens(added, !before.empty(), why))
      return false;
    prompt = std::move(before);
    prompt.insert(prompt.end(), added.begin(), added.end());
    if (prompt.empty())
      why = "expects a prompt: -p TEXT, -f FILE or --tokens 1,2,3";
    return !prompt.empty();
  }

  /// What the command line adds; with `resumed`, to a text that has begun.
  bool newTokens(std::vector<uint32_t> &prompt, bool resumed,
                 std::string &why) {
    if (!args.tokens.empty()) {
      prompt = args.tokens;
      return true;
    }
    std::string text = args.prompt;
    if (!args.file.empty() && !readFile(args.file, text)) {
      why = args.file + ": cannot read the prompt: " + std::strerror(errno);
      return false;
    }
    if (args.chat) {
      say("user", text);
      return chatTokens(prompt);
    }
    if (resumed && text.empty())
      return true;
    unsigned flags = (resumed ? 0 : SPRIG_ADD_BEGIN) |
                     (args.special ? SPRIG_PARSE_SPECIAL : 0);
    return collect(prompt,
                   [&](uint32_t *tokens, size_t capacity, size_t *count) {
                     return sprig_tokenize(model.get(), text.data(),
                                           text.size(), flags, tokens, capacity,
                                           count);
                   });
  }

  static int onToken(void *self, uint32_t token, const char *text,
                     size_t bytes) {
    Run &run = *static_cast<Run *>(self);
    if (run.generated.empty()) {
      run.progress.clear();
      run.firstTokenSeconds = run.clock.seconds();
      run.firstTokenProcessor = run.clock.ofProcessor();
    }
    if (token != UINT32_MAX)
      run.generated.push_back(token);
    run.answer.append(text, bytes);
    if (!run.args.json) {
      std::fwrite(text, 1, bytes, stdout);
      std::fflush(stdout);
    }
    return 0;
  }

  bool generate(const std::vector<uint32_t> &prompt, std::string &text,
                sprig_generation &result) {
    std::vector<const char *> stops;
    for (const std::string &stop : args.stops)
      stops.push_back(stop.c_str());
    sprig_generate_options options;
    sprig_generate_options_init(&options);
    options.max_tokens = args.count;
    options.ignore_end = args.ignoreEnd;
    options.stops = stops.data();
    options.stop_count = stops.size();
    generated.clear();
    answer.clear();
    result.struct_bytes = sizeof(result);
    progress.show("reading " + std::to_string(prompt.size()) + " tokens");
    bool done = sprig_generate(session.get(), prompt.data(), prompt.size(),
                               &options, onToken, this, &result) == SPRIG_OK;
    progress.clear();
    text = answer;
    return done;
  }

  /// Turns from the standard input; ends with it.
  int converse() {
    progress.clear();
    bool terminal = isatty(0), refused = false;
    while (true) {
      if (terminal)
        std::fputs("> ", stdout), std::fflush(stdout);
      std::string line;
      if (!std::getline(std::cin, line))
        return saved() ? refused : failed();
      if (line.empty())
        continue;
      const std::string before = messages;
      say("user", line);
      std::vector<uint32_t> prompt;
      sprig_generation result{};
      std::string text;
      if (!chatTokens(prompt) || !generate(prompt, text, result)) {
        // The conversation goes on without that line.
        refused = failed();
        messages = before;
        continue;
      }
      std::printf("\n");
      say("assistant", text);
      if (result.finish == SPRIG_FINISH_CONTEXT) {
        if (!saved())
          return failed();
        return fail("the context of " + std::to_string(info.context) +
                    " tokens is full");
      }
    }
  }

  const Arguments &args;
  Stopwatch clock;
  Progress progress;
  std::unique_ptr<sprig_model, Closer> model, draftModel;
  std::unique_ptr<sprig_session, Closer> session; // goes before the model
  sprig_model_info info{};
  double loadSeconds = 0, firstTokenSeconds = 0, firstTokenProcessor = 0;
  std::string messages; ///< of a chat, JSON without the brackets
  std::string answer;
  std::vector<uint32_t> generated;
  std::vector<uint32_t> savedTokens; ///< of --load-session
};

} // namespace

int main(int argc, char **argv) {
  Arguments args;
  int exitCode = 0;
  if (!parseArguments(argc, argv, args, exitCode))
    return exitCode;
  if (args.listDevices) {
    const std::string why = listDevices(args.json);
    return why.empty() ? 0 : fail(why);
  }
  if (args.model.empty())
    return fail("expects a .sprig package (see llm-run --help)");
  if (args.weights != "auto" && args.weights != "in-place" &&
      args.weights != "mapped" && args.weights != "staged")
    return fail("option --weights expects auto, in-place, mapped or staged, "
                "but got '" +
                args.weights + "'");
  if (!(args.memoryLimit >= 0 && args.memoryLimit <= 1e9))
    return fail("option --memory-limit expects MiB from 0 to 1e+09, but got " +
                Json().value(args.memoryLimit).text());
  const int prompts =
      !args.prompt.empty() + !args.file.empty() + !args.tokens.empty();
  if (prompts > 1)
    return fail("expects one of -p, -f and --tokens, but got several");
  if (!args.endless && (args.sinks != 4 || args.window != 0))
    return fail("expects --endless with --sinks or --window, but got none");
  if (!args.draftModel.empty() && args.speculate == "off")
    return fail("expects --speculate=model or auto with --draft-model, but got "
                "off");
  if (args.chat && !args.tokens.empty())
    return fail("expects a text with --chat, but got --tokens");
  if (args.chat && args.json && prompts == 0)
    return fail("expects -p or -f with --chat --json, but got neither");
  if (args.selfTest && (prompts || args.chat || !args.saveSession.empty() ||
                        !args.loadSession.empty()))
    return fail("expects --self-test without a prompt or a session");
  for (const std::string &stop : args.stops)
    if (stop.empty())
      return fail("option --stop expects a text, but got an empty one");
  return flushed("llm-run", Run(args).main());
}
