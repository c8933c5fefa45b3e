#include "tools/Run/Arguments.h"

#include "tools/Support/Options.h"

namespace sprig::tools {

bool parseArguments(int argc, char **argv, Arguments &args, int &exitCode) {
  Options options(
      "llm-run", "Generates text with a model compiled by llm-compile.",
      "llm-run model.sprig -p \"Once upon a time\" -n 64\n"
      "llm-run model.sprig --chat --temperature=0.8 --top-p=0.95 --seed=7\n"
      "llm-run model.sprig --tokens 1,2,3 --json\n"
      "llm-run model.sprig -f letter.txt --speculate=auto --stats\n"
      "llm-run model.sprig -p Hello --speculate=model --draft-model=small.sprig\n"
      "llm-run model.sprig -p Hello --speculate=self --tree-rule=eagle\n"
      "llm-run model.sprig -p \"Once upon a time\" -n 100000 --endless --window=1024\n"
      "llm-run model.sprig -f rules.txt -n 0 --save-session rules.session\n"
      "llm-run model.sprig --load-session rules.session -p \"May I?\"\n"
      "llm-run --list-devices");
  options.positional("MODEL", args.model, "A .sprig package");
  options.text("--prompt,-p", args.prompt, "TEXT", "The prompt");
  options.text("--file,-f", args.file, "FILE", "Reads the prompt from a file");
  options.numbers("--tokens", args.tokens, "IDS",
                  "The prompt as token ids, separated by commas");
  options.flag("--chat", args.chat,
               "Talks, by the model's chat template; with -p, one turn");
  options.flag("--special", args.special,
               "Control tokens spelled in the prompt are control tokens");
  options.number("--count,-n", args.count, "N", "Tokens to generate (128)");
  options.real("--temperature", args.temperature, "T",
               "0: always the likeliest token (0)");
  options.number("--top-k", args.topK, "K", "Only the K likeliest; 0: all (0)");
  options.real("--top-p", args.topP, "P",
               "Only the likeliest that sum to P (1)");
  options.real("--min-p", args.minP, "P",
               "Only those at least P times as likely as the likeliest (0)");
  options.real("--repeat-penalty", args.penalty, "R",
               "Makes recent tokens less likely; 1: not (1)");
  options.number("--repeat-last-n", args.lastN, "N",
                 "Tokens that count as recent (64)");
  options.number("--seed", args.seed, "N", "Of the random choices (0)");
  options.texts("--stop", args.stops, "TEXT",
                "Ends before this text; may be given again");
  options.flag("--ignore-eos", args.ignoreEnd, "End tokens do not end");
  options.text("--speculate", args.speculate, "DRAFT",
               "Guesses ahead, for the same tokens in fewer steps: off, auto, "
               "ngram, self, heads, model, or several with commas (off)");
  options.text("--draft-model", args.draftModel, "FILE",
               "A smaller package with the same vocabulary, for --speculate=model "
               "or auto");
  options.number("--tree", args.tree, "N",
                 "Guesses of a step at most, with the token before them; 0: as "
                 "many as the package takes (0)");
  options.text("--tree-rule", args.treeRule, "RULE",
               "How trees grow of what self and heads say: comb, clover or "
               "eagle (comb)");
  options.flag("--draft-sampling", args.draftSampling,
               "self or heads draw their guesses: tokens distributed as without "
               "them, but not the same");
  options.flag("--chain", args.chain, "Guesses in a row, without branches");
  options.text("--adapter", args.adapter, "NAME",
               "Uses one of the package's adapters (llm-compile "
               "--switch-adapter; llm-inspect lists them), or none where NAME "
               "is empty; another than a saved text had reads that text again");
  options.flag("--endless", args.endless,
               "Goes on when the context is full: the first tokens and the "
               "last ones stay (packages of llm-compile --endless)");
  options.number("--sinks", args.sinks, "N",
                 "With --endless: first tokens that stay (4)");
  options.number("--window", args.window, "N",
                 "With --endless: last tokens that stay; 0: half of the rest (0)");
  options.text("--save-session", args.saveSession, "FILE",
               "At the end, saves the text so far with all that was computed");
  options.text("--load-session", args.loadSession, "FILE",
               "Goes on from a saved text (or chat); the prompt is added to it");
  options.text("--device", args.device, "NAME|INDEX",
               "The device, by index or a part of its name");
  options.flag("--list-devices", args.listDevices, "Lists the devices");
  options.text("--target", args.target, "NAME",
               "The package's target, instead of the best that fits");
  options.text("--weights", args.weights, "HOW",
               "auto, in-place, mapped or staged (auto)");
  options.real("--memory-limit", args.memoryLimit, "MIB",
                 "Device memory to take at most, weights in the file's own "
                 "pages not counted (all that is free)");
  options.text("--cache", args.cache, "FOLDER", "Of the pipeline cache");
  options.flag("--no-cache", args.noCache, "Neither reads nor writes it");
  options.flag("--self-test", args.selfTest,
               "Compares the device with the package's golden vectors");
  options.flag("--poison", args.poison,
               "Memory starts as NaN, to find reads of what was not written");
  options.flag("--no-robust", args.fragile,
               "Without robust buffer access, to see what it costs");
  options.flag("--stats", args.stats,
               "Prints the memory plan first and tokens per second last, to the "
               "standard error");
  options.flag("--json", args.json, "Prints one JSON object at the end");
  return options.parse(argc, argv, exitCode);
}

} // namespace sprig::tools
