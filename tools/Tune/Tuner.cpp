#include "tools/Tune/Tuner.h"

#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <cstring>

namespace mlir::llm {
namespace {

bool changesBits(llvm::StringRef choice) {
  return LinearSchedule::changesBits(choice);
}

bool sameBits(const ScheduleValues &a, const ScheduleValues &b) {
  return llvm::all_of(a, [&](const auto &choice) {
    auto other = b.find(choice.first);
    return !changesBits(choice.first) ||
           (other != b.end() && other->second == choice.second);
  });
}

/// What rounding in another order may do, and no more.
bool agree(const std::vector<float> &a, const std::vector<float> &b,
           bool bits) {
  if (a.size() != b.size())
    return false;
  if (bits)
    return std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  float largest = 0, apart = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    largest = std::max(largest, std::fabs(x));
    if (!(std::fabs(x - y) <= apart))
      apart = std::fabs(x - y);
  }
  return apart <= 1e-3f * largest; // false where either is no number
}

class KernelRace final : public ScheduleRace {
public:
  KernelRace(MLIRContext &context, const TargetProfile &profile,
             const TuneDevice &device, DictionaryAttr spec)
      : context(context), profile(profile), device(device), spec(spec) {}

  bool legal(const ScheduleValues &choices) override {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
    return succeeded(describeKernel(LinearSpec::kFamily, spec, with(choices),
                                    UnknownLoc::get(&context)));
  }

  std::vector<double> race(const ScheduleValues &first,
                           const ScheduleValues &second,
                           unsigned rounds) override {
    LoadedKernel *a = load(first);
    LoadedKernel *b = a ? load(second) : nullptr;
    if (!b)
      return {};
    std::vector<double> ratios;
    for (unsigned i = 0; i < rounds; ++i) {
      auto a1 = a->time();
      std::vector<float> expected = a->output();
      auto b1 = b->time();
      if (i == 0 && !agree(expected, b->output(), sameBits(first, second)))
        return {};
      auto b2 = b->time(), a2 = a->time();
      if (!a1 || !b1 || !b2 || !a2 || *a1 + *a2 <= 0)
        return {};
      ratios.push_back((*b1 + *b2) / (*a1 + *a2));
    }
    return ratios;
  }

  /// Why the last kernel that was asked for is not there.
  const std::string &why() const { return reason; }
  LoadedKernel *load(const ScheduleValues &choices);

private:
  TargetProfile with(const ScheduleValues &choices) const {
    TargetProfile made = profile;
    made.schedules[LinearSpec::kFamily.str()] = {{{}, choices}};
    return made;
  }

  MLIRContext &context;
  const TargetProfile &profile;
  const TuneDevice &device;
  DictionaryAttr spec;
  std::string reason;
  std::unique_ptr<KernelBench> bench;
  std::map<ScheduleValues, std::unique_ptr<LoadedKernel>> loaded;
};

LoadedKernel *KernelRace::load(const ScheduleValues &choices) {
  auto [it, isNew] = loaded.try_emplace(choices);
  if (!isNew)
    return it->second.get();
  ScopedDiagnosticHandler note(
      &context, [&](Diagnostic &diagnostic) { reason = diagnostic.str(); });
  FailureOr<CompiledKernel> kernel =
      compileKernel(LinearSpec::kFamily, spec, with(choices),
                    UnknownLoc::get(&context));
  if (failed(kernel))
    return nullptr;
  auto fail = [&](llvm::Error error) {
    reason = llvm::toString(std::move(error));
    return nullptr;
  };
  if (!bench) {
    auto made = KernelBench::create(device, kernel->interface);
    if (!made)
      return fail(made.takeError());
    bench = std::move(*made);
  }
  auto made = bench->load(*kernel);
  if (!made)
    return fail(made.takeError());
  it->second = std::move(*made);
  return it->second.get();
}

/// What is worth trying for a product: spans only where scales of several units
/// lie side by side.
ScheduleSpace spaceOf(const TargetProfile &profile, const Product &product) {
  ScheduleSpace space = profile.spaces.find(LinearSpec::kFamily)->second;
  const LinearSpec spec = product.withTokens(1);
  if (sprig::quant::describe(spec.format, 8, size_t(spec.k)).span == 1)
    space.erase("spans");
  return space;
}

} // namespace

Tuner::Tuner(MLIRContext &context, const TargetProfile &profile,
             const TuneDevice &device, TuneState &state, TuneOptions given)
    : context(context), profile(profile), device(device), state(state),
      options(std::move(given)), begin(std::chrono::steady_clock::now()) {
  if (options.tiles.empty())
    options.tiles = profile.tokenTiles;
}

FailureOr<ScheduleValues> Tuner::standard(const Product &product,
                                          int64_t tokens) {
  FailureOr<LinearSchedule> schedule = product.withTokens(tokens).schedule(
      profile, [&] { return emitError(UnknownLoc::get(&context)); });
  if (failed(schedule))
    return failure();
  return schedule->values();
}

llvm::Expected<std::optional<TileResult>>
Tuner::search(const Product &product, int64_t tokens,
              const ScheduleValues &start, const ScheduleValues &standard) {
  TuneState::Key key{product.name(), tokens, start};
  if (const std::optional<TileResult> *known = state.find(key))
    return *known;
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  late |= options.minutes > 0 && spent.count() > 60 * options.minutes;
  if (late)
    return std::nullopt;
  if (options.progress)
    options.progress(product.name() + ", tokens " + std::to_string(tokens) +
                     ", " + describeChange(standard, start));
  KernelRace race(context, profile, device,
                  product.withTokens(tokens).toAttr(&context));
  if (!race.load(standard))
    return llvm::createStringError(product.name() +
                                   " does not run by default: " + race.why());
  std::optional<TileResult> found =
      searchTile(spaceOf(profile, product), start, standard, changesBits, race,
                 options.search);
  if (llvm::Error error = state.add(key, found))
    return std::move(error);
  return found;
}

llvm::Expected<TunedProduct> Tuner::tune(const Product &product) {
  TunedProduct tuned{product, {}};
  for (int64_t tokens : options.tiles) {
    FailureOr<ScheduleValues> choices = standard(product, tokens);
    if (failed(choices))
      return llvm::createStringError(product.name() +
                                     " has no schedule by default");
    tuned.tiles.push_back({tokens, *choices, {*choices, 1}});
  }
  const ScheduleSpace space = spaceOf(profile, product);
  std::vector<ScheduleValues> classes =
      classesOf(space, tuned.tiles[0].standard, changesBits);
  // Tiles that are left out keep their order of additions, and so do the rest.
  if (options.tiles != profile.tokenTiles)
    classes.resize(1);
  std::vector<std::vector<std::optional<TileResult>>> found;
  for (const ScheduleValues &each : classes) {
    auto &results = found.emplace_back();
    for (auto [i, tile] : llvm::enumerate(tuned.tiles)) {
      // Other classes begin where the default's ended.
      ScheduleValues start =
          found.size() == 1 ? tile.standard : found[0][i]->choices;
      for (const auto &[choice, value] : each)
        if (changesBits(choice))
          start[choice] = value;
      auto result = search(product, tile.tokens, start, tile.standard);
      if (!result)
        return result.takeError();
      results.push_back(found.size() == 1 && !*result
                            ? TileResult{tile.standard, 1}
                            : *result);
      if (!results.back())
        break; // one tile is enough to rule a class out
    }
    results.resize(tuned.tiles.size());
  }
  const auto &best = found[bestClass(found)];
  for (auto [tile, result] : llvm::zip_equal(tuned.tiles, best))
    tile.result = *result;
  return tuned;
}

TargetProfile tunedProfile(const TargetProfile &profile,
                           ArrayRef<TunedProduct> products, StringRef name,
                           StringRef device) {
  TargetProfile made = profile;
  made.name = name.str();
  made.description = (profile.description + "; tuned on " + device).str();
  std::vector<ScheduleRule> rules;
  for (const TunedProduct &tuned : products) {
    std::map<ScheduleValues, std::vector<ScheduleValue>> byChoices;
    for (const TunedTile &tile : tuned.tiles)
      if (tile.result.choices != tile.standard)
        byChoices[tile.result.choices].push_back(tile.tokens);
    for (const auto &[choices, tokens] : byChoices) {
      ScheduleRule &rule = rules.emplace_back();
      rule.choices = choices;
      for (const auto &[fact, value] : tuned.product.facts())
        rule.when[fact].anyOf = {value};
      rule.when["tokens"].anyOf = tokens;
    }
  }
  std::vector<ScheduleRule> &all = made.schedules[LinearSpec::kFamily.str()];
  all.insert(all.begin(), rules.begin(), rules.end());
  return made;
}

std::string describeChange(const ScheduleValues &from,
                           const ScheduleValues &to) {
  auto text = [](const ScheduleValue &value) {
    const int64_t *number = std::get_if<int64_t>(&value);
    return number ? std::to_string(*number) : std::get<std::string>(value);
  };
  std::string changes;
  for (const auto &[choice, value] : to) {
    auto before = from.find(choice);
    if (before != from.end() && before->second == value)
      continue;
    changes += (changes.empty() ? "" : ", ") + choice + " " +
               (before == from.end() ? "-" : text(before->second)) + " -> " +
               text(value);
  }
  return changes.empty() ? "the default" : changes;
}

} // namespace mlir::llm
