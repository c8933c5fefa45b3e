// llm-tokenize: text to tokens and back, and conversations through a chat
// template.
#include "lib/Import/ModelTokenizer.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/TokenStream.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

using namespace mlir;

static constexpr const char *kExamples = R"(Examples:
  llm-tokenize model.gguf --text "Hello world"
  llm-tokenize folder/ --text "Hello world"                  tokenizer.json or tokenizer.model
  llm-tokenize model.gguf --file notes.txt --json
  llm-tokenize model.gguf --text "<|im_end|>" --special      the control token itself
  llm-tokenize model.gguf --text "Hello world" --begin       as llm-run -p would
  llm-tokenize model.gguf --decode 19556,905
  llm-tokenize model.gguf --chat messages.json --json        [{"role": "user", "content": "Hi"}]
  llm-tokenize model.gguf --chat messages.json --tools tools.json --set enable_thinking=false)";

namespace {

struct Arguments {
  std::string model, text, file, chat, chatTemplate, tools;
  std::vector<uint32_t> tokens;
  std::vector<std::string> variables;
  bool special = false, begin = false, noGenerationPrompt = false,
       json = false;
};

llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(message);
}
llvm::Error error(const sprig::Status &status) {
  return error(status.message());
}

llvm::Expected<std::string> readFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return error("cannot read '" + path + "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

/// What a model's file says about text, and whatever the views look into.
struct Model {
  std::shared_ptr<const sprig::Package> package;
  std::optional<llm::ModelTokenizer> imported;
  std::vector<uint32_t> offsets;
  sprig::TokenizerData data;
  std::string chatTemplate;
};

llvm::Expected<Model> readPackage(const std::string &path) {
  auto package = sprig::Package::open(path);
  if (!package.ok())
    return error(package.status());
  Model model;
  model.package = std::move(*package);
  const sprig::format::Package &metadata = model.package->metadata();
  if (!metadata.tokenizer())
    return error("'" + path + "' has no tokenizer");
  model.offsets = sprig::tokenOffsets(*metadata.tokenizer());
  model.data = sprig::tokenizerData(*metadata.tokenizer(), model.offsets);
  if (metadata.chat_template())
    model.chatTemplate = metadata.chat_template()->str();
  return model;
}

llvm::Expected<Model> readModel(const std::string &path) {
  auto start =
      llvm::MemoryBuffer::getFileSlice(path, sizeof(sprig::format::kMagic), 0);
  const llvm::StringRef magicBytes(sprig::format::kMagic,
                                   sizeof(sprig::format::kMagic));
  if (start && (*start)->getBuffer() == magicBytes)
    return readPackage(path);
  llvm::Expected<std::optional<llm::ModelTokenizer>> read =
      llm::readModelTokenizer(path);
  if (!read)
    return read.takeError();
  if (!*read)
    return error("'" + path + "' has no tokenizer");
  Model model;
  model.imported = std::move(**read);
  model.chatTemplate = model.imported->chatTemplate;
  return model;
}

class Run {
public:
  Run(const Arguments &arguments, const Model &model,
      const sprig::Tokenizer &tokenizer)
      : arguments(arguments), model(model), tokenizer(tokenizer) {}

  llvm::Error run() {
    if (!arguments.chat.empty())
      return chat();
    if (!arguments.tokens.empty())
      return decode();
    std::string text = arguments.text;
    if (!arguments.file.empty()) {
      llvm::Expected<std::string> read = readFile(arguments.file);
      if (!read)
        return read.takeError();
      text = std::move(*read);
    }
    auto tokens = tokenizer.encode(text, arguments.special);
    if (!tokens.ok())
      return error(tokens.status());
    const sprig::TokenizerData &data = tokenizer.data();
    if (arguments.begin && data.addBos && data.bos >= 0)
      tokens->insert(tokens->begin(), uint32_t(data.bos));
    print(nullptr, &*tokens);
    return llvm::Error::success();
  }

private:
  llvm::Error decode() {
    for (const uint32_t token : arguments.tokens)
      if (token >= tokenizer.size())
        return error("--decode expects tokens below " +
                     llvm::Twine(tokenizer.size()) + ", but got " +
                     llvm::Twine(token));
    const std::string text =
        tokenizer.decode(arguments.tokens, {.control = true});
    print(&text, nullptr);
    return llvm::Error::success();
  }

  llvm::Error chat() {
    std::string source = model.chatTemplate;
    if (!arguments.chatTemplate.empty()) {
      llvm::Expected<std::string> read = readFile(arguments.chatTemplate);
      if (!read)
        return read.takeError();
      source = std::move(*read);
    } else if (source.empty()) {
      return error(
          "'" + arguments.model +
          "' has no chat template; give one with --template FILE.jinja");
    }
    llvm::Expected<sprig::ChatInput> input = readInput();
    if (!input)
      return input.takeError();
    const auto parsed = sprig::ChatTemplate::parse(source);
    if (!parsed.ok())
      return error(parsed.status());
    const auto segments = parsed->render(*input);
    if (!segments.ok())
      return error(segments.status());
    const auto tokens = tokenizer.encode(*segments);
    if (!tokens.ok())
      return error(tokens.status());
    const std::string text = sprig::joinText(*segments);
    print(&text, &*tokens);
    return llvm::Error::success();
  }

  llvm::Expected<sprig::ChatInput> readInput() {
    sprig::ChatInput input;
    input.addGenerationPrompt = !arguments.noGenerationPrompt;
    const std::pair<const std::string &, std::string &> files[] = {
        {arguments.chat, input.messages}, {arguments.tools, input.tools}};
    for (const auto &[path, out] : files) {
      if (path.empty())
        continue;
      llvm::Expected<std::string> read = readFile(path);
      if (!read)
        return read.takeError();
      out = std::move(*read);
    }
    const sprig::TokenizerData &data = tokenizer.data();
    if (data.bos >= 0)
      input.bosToken = tokenizer.bytes(uint32_t(data.bos));
    if (!data.endTokens.empty())
      input.eosToken = tokenizer.bytes(data.endTokens.front());
    for (const std::string &variable : arguments.variables) {
      const auto [name, value] = llvm::StringRef(variable).split('=');
      if (name.empty() || name.size() == variable.size())
        return error("--set expects NAME=JSON, but got '" + variable + "'");
      input.variables.emplace_back(name.str(), value.str());
    }
    return input;
  }

  /// Text and tokens with --json; without it the text if there is one, else the
  /// tokens.
  void print(const std::string *text, const std::vector<uint32_t> *tokens) {
    if (arguments.json) {
      llvm::json::OStream json(llvm::outs());
      json.object([&] {
        if (text)
          json.attribute("text", *text);
        if (tokens)
          json.attributeArray("tokens", [&] {
            for (const uint32_t token : *tokens)
              json.value(token);
          });
      });
      llvm::outs() << '\n';
    } else if (text) {
      llvm::outs() << *text << (arguments.chat.empty() ? "\n" : "");
    } else {
      llvm::interleave(*tokens, llvm::outs(), ",");
      llvm::outs() << '\n';
    }
  }

  const Arguments &arguments;
  const Model &model;
  const sprig::Tokenizer &tokenizer;
};

llvm::Error runTool(const Arguments &arguments) {
  llvm::Expected<Model> model = readModel(arguments.model);
  if (!model)
    return model.takeError();
  const auto tokenizer = sprig::Tokenizer::create(
      model->imported ? model->imported->tables.data() : model->data);
  if (!tokenizer.ok())
    return error(tokenizer.status());
  return Run(arguments, *model, *tokenizer).run();
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Shows how a model reads text: as tokens, and conversations "
               "through its chat template.",
               "llm-tokenize");
  app.footer(kExamples);
  app.set_version_flag("--version", "llm-tokenize (Sprig) " SPRIG_VERSION);
  app.add_option("model", arguments.model,
                 "A .gguf or a .sprig file, or a Hugging Face folder")
      ->required();
  auto *what = app.add_option_group("what", "One of");
  what->add_option("--text", arguments.text, "Text to tokenise");
  what->add_option("--file", arguments.file,
                   "A file of text to tokenise; - is the standard input");
  what->add_option("--decode", arguments.tokens,
                   "Token ids, comma-separated, to write as text")
      ->delimiter(',');
  auto *chat =
      what->add_option("--chat", arguments.chat,
                       "A JSON list of messages for the chat template");
  what->require_option(1);
  app.add_flag(
      "--special", arguments.special,
      "Control tokens in the text are parsed; otherwise they stay text");
  app.add_flag("--begin", arguments.begin,
               "With the begin token where prompts of the model have one")
      ->excludes(chat);
  app.add_option("--template", arguments.chatTemplate,
                 "A template of Jinja instead of the model's own")
      ->needs(chat);
  app.add_option("--tools", arguments.tools,
                 "A JSON list of tools for the template")
      ->needs(chat);
  app.add_option("--set", arguments.variables,
                 "NAME=JSON: a variable for the template; repeatable")
      ->needs(chat)
      ->allow_extra_args(false);
  app.add_flag("--no-generation-prompt", arguments.noGenerationPrompt,
               "Do not begin the assistant's turn")
      ->needs(chat);
  app.add_flag("--json", arguments.json, "Print one JSON object: tokens, text");
  CLI11_PARSE(app, argc, argv);

  if (llvm::Error failure = runTool(arguments)) {
    llvm::errs() << "llm-tokenize: error: "
                 << llvm::toString(std::move(failure)) << '\n';
    return 1;
  }
  return 0;
}
