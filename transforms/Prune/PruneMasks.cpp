// Masks that were learned elsewhere: what they call zero goes.
#include "mlir/Pass/PassManager.h"
#include "transforms/Passes.h"
#include "transforms/Prune/SiteKinds.h"
#include "transforms/Quantize/Products.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <numeric>

namespace mlir::llm {
#define GEN_PASS_DEF_PRUNEMASKSPASS
#include "transforms/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static constexpr StringLiteral kPass = "llm-prune-masks";
static constexpr StringLiteral kLayers = "layers";

namespace {

/// A list for each block, of a number for each of its parts; no list: the block stays as it is.
using Masks = std::vector<std::optional<std::vector<double>>>;

struct MaskKind {
  StringRef key;
  SiteKind kind;
};
/// In the order in which they are applied: the masks of query heads are of those that are left.
constexpr MaskKind kKinds[] = {
    {"kv_heads", SiteKind::KVHeads}, {"heads", SiteKind::QueryHeads}, {"channels", SiteKind::FeedForward}};

struct PruneMasksPass final : llm::impl::PruneMasksPassBase<PruneMasksPass> {
  using PruneMasksPassBase::PruneMasksPassBase;

  void runOnOperation() override {
    std::map<StringRef, Masks> masks;
    if (failed(checkUnit(getOperation(), kPass, unit)) || failed(read(masks)))
      return signalPassFailure();
    for (const MaskKind &each : kKinds)
      if (auto found = masks.find(each.key); found != masks.end() && failed(prune(each, found->second)))
        return signalPassFailure();
    // Last, so that all masks count the blocks that there were.
    if (layers && failed(pruneLayers(*layers)))
      return signalPassFailure();
  }

private:
  InFlightDiagnostic refuse() { return getOperation().emitError() << kPass << ": '" << file.getValue() << "' "; }

  LogicalResult read(std::map<StringRef, Masks> &masks) {
    auto buffer = ::llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      return refuse() << "cannot be read: " << buffer.getError().message();
    ::llvm::Expected<::llvm::json::Value> parsed = ::llvm::json::parse((*buffer)->getBuffer());
    if (!parsed)
      return refuse() << "expects JSON, but got " << toString(parsed.takeError());
    const ::llvm::json::Object *object = parsed->getAsObject();
    if (!object)
      return refuse() << "expects an object of layers, kv_heads, heads and channels";
    for (const auto &[key, value] : *object) {
      if (StringRef(key) == kLayers) {
        layers.emplace();
        if (failed(numbers(value, kLayers, *layers)))
          return failure();
        continue;
      }
      const auto *kind =
          ::llvm::find_if(kKinds, [name = StringRef(key)](const MaskKind &known) { return known.key == name; });
      if (kind == std::end(kKinds))
        return refuse() << "expects layers, kv_heads, heads and channels, but got '" << StringRef(key) << "'";
      const ::llvm::json::Array *blocks = value.getAsArray();
      if (!blocks)
        return refuse() << "expects a list for each block behind '" << StringRef(key) << "'";
      Masks &list = masks[kind->key];
      for (const ::llvm::json::Value &block : *blocks) {
        auto &mask = list.emplace_back();
        if (block.kind() == ::llvm::json::Value::Null)
          continue;
        mask.emplace();
        if (failed(numbers(block, kind->key, *mask)))
          return failure();
      }
    }
    return success();
  }

  LogicalResult numbers(const ::llvm::json::Value &value, StringRef key, std::vector<double> &list) {
    const ::llvm::json::Array *parts = value.getAsArray();
    if (!parts)
      return refuse() << "expects lists of numbers behind '" << key << "', or null";
    for (const ::llvm::json::Value &part : *parts) {
      const auto number = part.kind() == ::llvm::json::Value::Boolean ? std::optional(double(*part.getAsBoolean()))
                                                                      : part.getAsNumber();
      if (!number)
        return refuse() << "expects lists of numbers behind '" << key << "', or null";
      list.push_back(*number);
    }
    return success();
  }

  /// One number for each layer of the model.
  LogicalResult pruneLayers(ArrayRef<double> mask) {
    int64_t have = 0;
    getOperation().walk([&](LayerOp) { ++have; });
    if (int64_t(mask.size()) != have)
      return refuse() << "expects a mask of " << have << " layers, but got " << mask.size();
    std::string places;
    for (auto [place, value] : ::llvm::enumerate(mask))
      if (value == 0)
        places += (places.empty() ? "" : ",") + std::to_string(place);
    if (places.empty())
      return success();
    OpPassManager passes("builtin.module");
    if (failed(parsePassPipeline("llm-prune-layers{remove=" + places + " recover=" + (recover ? "true" : "false") +
                                     " tokens=" + std::to_string(tokens) + " window=" + std::to_string(window) +
                                     "},llm-remove-dead-state",
                                 passes)))
      return failure();
    return runPipeline(passes, getOperation());
  }

  /// How many parts of a block stay; errors name what does not fit.
  FailureOr<int64_t> stay(const MaskKind &kind, const Masks &masks, const SiteSize &site) {
    if (site.index >= int64_t(masks.size()))
      return refuse() << "expects a mask of " << kind.key << " for each block, but has " << masks.size()
                      << " for more than that",
             failure();
    const auto &mask = masks[size_t(site.index)];
    if (!mask)
      return site.size;
    if (int64_t(mask->size()) != site.size)
      return refuse() << "expects masks of " << site.size << " " << site.what << ", but the one of block "
                      << site.index << " has " << mask->size(),
             failure();
    const int64_t kept = count(*mask, 0, site.size);
    if (kept == 0)
      return refuse() << "expects to keep some of the " << site.what << " of block " << site.index << ", but got none",
             failure();
    if (kind.kind == SiteKind::QueryHeads) {
      const int64_t shared = site.size / site.parts;
      const int64_t each = count(*mask, 0, shared);
      for (int64_t first = shared; first < site.size; first += shared)
        if (const int64_t here = count(*mask, first, first + shared); here != each)
          return refuse() << "expects as many query heads of each key-value head to stay, but block " << site.index
                          << " keeps " << each << " of those of head 0, and " << here << " of those of head "
                          << first / shared,
                 failure();
    }
    return kept;
  }

  static int64_t count(ArrayRef<double> mask, int64_t begin, int64_t end) {
    return ::llvm::count_if(mask.slice(size_t(begin), size_t(end - begin)), [](double value) { return value != 0; });
  }

  /// Weights that will be packed have rows of whole units.
  LogicalResult checkRows(const MaskKind &kind, const PruneSite &site, ArrayRef<double> mask) {
    const ChannelGroup &group = *site.groups[0];
    const int64_t each = group.size / int64_t(mask.size()), kept = count(mask, 0, int64_t(mask.size()));
    for (const ChannelUse &use : group.uses) {
      const int64_t columns = each * use.outer * use.inner;
      if (!use.isColumns() || kept * columns % unit == 0)
        continue;
      auto error = refuse() << "leaves \"" << weightName(use.operand->get()) << "\"";
      if (auto layer = site.at->getParentOfType<LayerOp>())
        error << " of layer " << layer.getIndex();
      return error << " rows of " << kept * columns
                   << " numbers, but weights that are quantised after it expect a multiple of " << int64_t(unit)
                   << ": keep a multiple of " << unit / std::gcd<int64_t>(unit, columns) << " of its " << kind.key;
    }
    return success();
  }

  std::optional<std::vector<double>> layers; ///< a number for each

  LogicalResult prune(const MaskKind &kind, const Masks &masks) {
    FailureOr<SitePruner> pruner = SitePruner::create(getOperation(), {kPass, kNoScore.str(), recover, tokens, window});
    if (failed(pruner))
      return failure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      const ChannelGroups groups(function);
      std::map<Operation *, int64_t> indices;
      FailureOr<std::vector<PruneSite>> sites =
          sitesOf(kind.kind, function, groups, /*unit=*/1, [&](const SiteSize &site) {
            indices[site.at] = site.index;
            return stay(kind, masks, site);
          });
      if (failed(sites))
        return failure();
      if (indices.size() != masks.size())
        return refuse() << "expects masks of " << kind.key << " for " << indices.size() << " blocks, but got "
                        << masks.size();
      for (PruneSite &site : *sites) {
        // The rule of the kind, with the mask for scores.
        const std::vector<double> &mask = *masks[size_t(indices[site.at])];
        if (failed(checkRows(kind, site, mask)))
          return failure();
        const size_t parts = size_t(site.groups[0]->size) / mask.size();
        std::vector<double> scores;
        for (double value : mask)
          scores.insert(scores.end(), parts, value != 0);
        site.choose = [rule = site.choose, scores](ArrayRef<std::vector<double>>, const LayerStatistics &inputs) {
          return rule({scores}, inputs);
        };
      }
      if (failed(pruner->run(function, *sites)))
        return failure();
    }
    describeShape(getOperation());
    return success();
  }
};

} // namespace
