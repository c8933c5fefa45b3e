#include "runtime/Speculation/Speculator.h"
#include "runtime/Speculation/ModelDraft.h"
#include "runtime/Speculation/NgramDraft.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {
namespace {

/// What a tree has to promise to take the place of plain steps: `auto` may not
/// lose where its estimates are a little off.
constexpr double kMargin = 1.08;
/// The first guess of a tree is at least so likely.
constexpr float kLikely = 0.15f;
/// A wait of less than this part of a step was none: the token was there
/// before it was asked for, so it says nothing about the step.
constexpr double kWaited = 0.1;
/// A second guess at each level of a tree that is drawn has to be about free:
/// it is right where the first was wrong, and then nothing follows it.
constexpr double kFree = 1.1;

/// While a tree brought something within so many tokens, and at the start where
/// drafts were asked for by name, plain steps come one by one: what is submitted
/// ahead cannot be a tree.
constexpr uint32_t kLively = 16;

double secondsBetween(std::chrono::steady_clock::time_point from,
                      std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

Result<std::unique_ptr<Speculator>>
Speculator::create(Session &session, const SpeculationOptions &options) {
  const uint32_t largest = session.largestTree();
  if (largest == 0)
    return Status(StatusCode::Unsupported,
                  "expects a package with programs for trees to speculate "
                  "with, but it has none; compile it with --tree=16");
  if (options.nodes > largest || options.nodes == 1)
    return Status(StatusCode::InvalidArgument,
                  concat("expects trees of 2 to ", largest,
                         " nodes (what the package was compiled for), but got ",
                         options.nodes));
  std::unique_ptr<Speculator> made(new Speculator(session, options));
  if (made->options.nodes == 0)
    made->options.nodes = largest;
  made->always = true;
  const format::Package &package = session.model().metadata();
  std::vector<std::string> names = options.drafts;
  if (names.size() == 1 && names[0] == "auto") {
    made->always = false;
    names = {"ngram"};
    if (package.drafts())
      for (const format::Draft *draft : *package.drafts())
        names.push_back(draft->name()->str());
    if (options.model)
      names.push_back("model");
  }
  for (const std::string &name : names)
    if (name == "ngram") {
      made->drafts.push_back(std::make_unique<NgramDraft>());
    } else if (name == "model") {
      Result<std::unique_ptr<ModelDraft>> draft =
          ModelDraft::create(session, options.model);
      if (!draft.ok())
        return draft.status();
      made->drafts.push_back(std::move(*draft));
    } else if (const format::Draft *draft = findDraft(package, name)) {
      auto added = std::make_unique<PackageDraft>(
          session, *draft, options.chain ? Growth::Chain : options.growth);
      made->drawing = options.drawn ? added.get() : nullptr;
      made->drafts.push_back(std::move(added));
    } else if (name == "self" || name == "heads") {
      return Status(StatusCode::InvalidArgument,
                    concat("expects a package with the draft '", name,
                           "', but it has none; compile it with --draft=",
                           name == "self" ? "skip:auto" : "heads:FILE"));
    } else {
      return Status(StatusCode::InvalidArgument,
                    concat("expects auto, or drafts of ngram, self, heads and "
                           "model, but got '",
                           name, "'"));
    }
  if (made->drafts.empty())
    return Status(StatusCode::InvalidArgument,
                  "expects the name of a draft, but got none");
  if (options.drawn && (names.size() != 1 || !made->drawing))
    return Status(StatusCode::InvalidArgument,
                  concat("expects one draft that knows a distribution, self or "
                         "heads, to draw guesses from, but got '",
                         names.front(), names.size() > 1 ? "' and others" : "'"));
  if (options.drawn && !session.namesGuesses())
    return Status(StatusCode::Unsupported,
                  "expects a package whose drafts say how likely their guesses "
                  "are, to draw them, but got one of an older compiler; compile "
                  "it again");
  for (auto &draft : made->drafts)
    draft->reserve(size_t(session.capacity()) + 1);
  return made;
}

Speculator::Speculator(Session &used, const SpeculationOptions &given)
    : session(used), options(given), spent(used.treeWidths()) {}

Speculator::~Speculator() { (void)session.stop(); }

Status Speculator::start(const uint32_t *tokens, size_t count,
                         uint64_t budget) {
  made = {};
  sinceGain = always ? 0 : UINT32_MAX;
  timed = fresh = false; // the first token takes as long as the prompt
  last = Clock::now();
  if (Status status = session.start(tokens, count, budget, /*held=*/true);
      !status.ok())
    return status;
  // While the device reads the prompt. Drafts that were asked for by name will
  // have their trees.
  if (always)
    if (Status status = prepare(); !status.ok())
      return status;
  return follow(/*sampled=*/false);
}

Status Speculator::prepare() {
  for (uint32_t width : session.treeWidths())
    if (width <= options.nodes)
      if (Status status = session.prepare(format::ProgramKind::verify, width);
          !status.ok())
        return status;
  for (auto &draft : drafts)
    if (Status status = draft->prepare(); !status.ok())
      return status;
  return {};
}

Status Speculator::follow(bool sampled) {
  for (auto &draft : drafts)
    if (Status status = draft->follow(session.tokens(), sampled); !status.ok())
      return status;
  return {};
}

Result<uint32_t> Speculator::take() {
  const Clock::time_point asked = Clock::now();
  const bool step = session.waitsForStep();
  Result<uint32_t> token = session.next();
  if (!token.ok())
    return token;
  ++made.tokens;
  sinceGain += sinceGain < UINT32_MAX;
  const Clock::time_point came = Clock::now();
  if (step) {
    ++made.steps;
    // The caller's own time lies between two tokens, but not where the step
    // was submitted in this call.
    const bool waited = fresh || secondsBetween(asked, came) >
                                     kWaited * secondsBetween(last, came);
    if (timed && waited)
      spent.plain(secondsBetween(last, came));
    timed = waited;
    fresh = false;
    last = came;
  }
  if (Status status = follow(/*sampled=*/true); !status.ok())
    return status;
  return token;
}

Result<uint32_t> Speculator::next() {
  if (session.waiting() == 0 && session.left() > 0) {
    Result<uint32_t> nodes = propose(/*ahead=*/false);
    if (!nodes.ok())
      return nodes;
    if (*nodes > 1) {
      if (Status status = stepTree(*nodes); !status.ok())
        return status;
    } else {
      last = Clock::now();
      timed = fresh = true;
      const bool lively = sinceGain <= kLively && session.held();
      if (Status status = lively ? session.stepOnce() : session.hold(false);
          !status.ok())
        return status;
    }
  }
  Result<uint32_t> token = take();
  if (!token.ok() || session.held() || session.left() == 0)
    return token;
  // Plain steps are under way. Where a tree is worth more, no others follow
  // them, and it is proposed again when their tokens are there.
  Result<uint32_t> nodes = propose(/*ahead=*/true);
  if (!nodes.ok())
    return nodes;
  if (*nodes > 1)
    if (Status status = session.hold(true); !status.ok())
      return status;
  return token;
}

Result<uint32_t> Speculator::propose(bool ahead) {
  // A tree has a token in the cache less than the sequence, and may bring one
  // more than it is deep.
  const uint64_t slots = session.room();
  const uint64_t depth = std::min<uint64_t>(session.left(), slots);
  if (!spent.known() || depth < 2)
    return 1u;
  const uint32_t most =
      uint32_t(std::min<uint64_t>({options.nodes, slots, spent.reach()}));
  if (drawing && session.sampled().temperature > 0)
    return proposeDrawn(std::min(most, uint32_t(depth)), ahead);
  rows = nullptr;
  tree.reset(session.tokens().back(),
             uint32_t(std::min<uint64_t>(depth, most) - 1));
  // Those that cost nothing first; the others where they promise more.
  for (auto &draft : drafts)
    if (!draft->costly())
      if (Status status = draft->propose(tree, most); !status.ok())
        return status;
  Choice choice = choose(most);
  for (auto &draft : drafts) {
    if (!draft->costly())
      continue;
    const uint32_t nodes =
        1 + draft->worth(spent, std::min(most, uint32_t(depth)), choice.rate);
    if (nodes < 2)
      continue;
    if (ahead)
      return nodes;
    if (Status status = draft->propose(tree, nodes); !status.ok())
      return status;
    choice = choose(most);
  }
  return choice.nodes;
}

Result<uint32_t> Speculator::proposeDrawn(uint32_t most, bool ahead) {
  const uint32_t guesses =
      drawing->worth(spent, most, always ? 0 : kMargin);
  if (guesses == 0 || ahead)
    return guesses + 1;
  // Before anything is drawn: what came out may not decide what is verified.
  const uint32_t twice = 2 * guesses + 1;
  const bool branches = !options.chain && twice <= most &&
                        spent.cost(twice) < kFree * spent.cost(guesses + 1);
  if (Status status = drawing->draw(drawn, guesses, branches ? 2 : 1);
      !status.ok())
    return status;
  cut = drawn.cut();
  rows = drawn.rows();
  return cut.count;
}

Speculator::Choice Speculator::choose(uint32_t most) {
  tree.rank();
  if (options.chain)
    tree.keepChain();
  Choice best{1, always ? 0 : kMargin};
  // Drafts that were asked for by name get their way, but not with nothing.
  if (tree.size() < 2 || tree.expected(2) < 1 + kLikely)
    return best;
  for (uint32_t width : session.treeWidths()) {
    const uint32_t nodes = std::min({width, tree.size(), most});
    if (nodes < 2)
      break;
    if (double gained = tree.expected(nodes) / spent.cost(nodes);
        gained > best.rate)
      best = {nodes, gained};
    if (width >= most)
      break;
  }
  return best;
}

Status Speculator::stepTree(uint32_t nodes) {
  if (!rows)
    tree.cut(nodes, cut);
  const std::vector<uint32_t> &widths = session.treeWidths();
  const uint32_t width = *std::lower_bound(widths.begin(), widths.end(), nodes);
  // Pipelines that are made now are no part of the step.
  if (Status status = session.prepare(format::ProgramKind::verify, width);
      !status.ok())
    return status;
  const Clock::time_point began = Clock::now();
  Result<uint32_t> brought =
      session.stepTree(cut.tokens.data(), cut.parents.data(), cut.count, rows);
  if (!brought.ok())
    return brought.status();
  spent.tree(width, secondsBetween(began, Clock::now()));
  ++made.steps;
  ++made.trees;
  made.drafted += cut.count - 1;
  made.accepted += *brought - 1;
  if (*brought > 1)
    sinceGain = 0;
  return {};
}

} // namespace sprig
