// Drafts that are part of the model: which functions guess, and the hidden
// states that lie between the programs of the model and those of its heads.
#include "codegen/Kernels/Elementwise.h"
#include "codegen/Kernels/HiddenRows.h"
#include "codegen/Kernels/Top.h"
#include "codegen/Lowering/Drafts.h"
#include "codegen/Lowering/OpLowerings.h"
#include "runtime/Format/Guesses.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::llm {
namespace {

uint64_t rowBytes(Value hidden) {
  return uint64_t(ProgramLowering::rowElements(hidden)) * 4;
}

/// One buffer for all of them: a row for what a guess leaves, then rows for what
/// the model's steps leave.
plan::BufferOp states(ProgramLowering &p, Value hidden) {
  const uint64_t own =
      uint64_t(plan::alignTo(int64_t(rowBytes(hidden)), plan::kAlignment));
  return p.target().buffer(
      plan::BufferKind::state, "state",
      own + uint64_t(p.target().mostNodes()) * rowBytes(hidden));
}
Value ownRow(ProgramLowering &p, Value hidden) {
  return p.bufferView(states(p, hidden), 0, rowBytes(hidden));
}
Value modelRows(ProgramLowering &p, Value hidden, int64_t rows) {
  return p.bufferView(
      states(p, hidden),
      uint64_t(plan::alignTo(int64_t(rowBytes(hidden)), plan::kAlignment)),
      uint64_t(rows) * rowBytes(hidden));
}

uint64_t aligned(uint64_t bytes) {
  return uint64_t(plan::alignTo(int64_t(bytes), plan::kAlignment));
}
/// Where the ring of HiddenRows.h is: behind those rows.
uint64_t ringOffset(ProgramLowering &p, Value hidden) {
  return aligned(aligned(rowBytes(hidden)) +
                 uint64_t(p.target().mostNodes()) * rowBytes(hidden));
}
Value ring(ProgramLowering &p, Value hidden, const HiddenRowsSpec &spec) {
  const uint64_t at = ringOffset(p, hidden);
  return p.bufferView(p.target().buffer(plan::BufferKind::state, "state",
                                        at + spec.ringBytes()),
                      at, spec.ringBytes());
}
/// What guesses at the nodes of a tree leave for those behind them, node by
/// node. Behind the ring, whether or not the heads need one.
Value nodeRows(ProgramLowering &p, Value hidden, int64_t rows) {
  HiddenRowsSpec spec;
  spec.width = ProgramLowering::rowElements(hidden);
  const uint64_t at = ringOffset(p, hidden) + aligned(spec.ringBytes()),
                 bytes = uint64_t(rows) * rowBytes(hidden);
  return p.bufferView(
      p.target().buffer(plan::BufferKind::state, "state", at + bytes), at,
      bytes);
}

PreviousRowsOp previousOf(ProgramLowering &p) {
  for (const FlatOp &entry : p.function().ops())
    if (auto previous = dyn_cast<PreviousRowsOp>(entry.op))
      return previous;
  return {};
}

/// The row of the token before each of the step's, and the step's rows for the
/// steps behind it; those of a tree once it is known which are accepted.
LogicalResult lowerPrevious(ProgramLowering &p, PreviousRowsOp op) {
  const bool tree = p.kind() == plan::ProgramKind::verify;
  FailureOr<Value> positions = treeOf(p, op, op.getPositions(), op.getBase());
  if (failed(positions))
    return failure();
  if (p.kind() == plan::ProgramKind::draft || previousOf(p) != op)
    return op.emitOpError("expects to stand once in the model's own function, "
                          "but got it elsewhere");
  HiddenRowsSpec spec;
  spec.op = tree ? "parents" : "previous";
  spec.width = ProgramLowering::rowElements(op.getInput());
  if (failed(p.dispatch(op, HiddenRowsSpec::kFamily, spec.toAttr(p.context()),
                        {{"x", p.view(op.getInput())},
                         {"ring", ring(p, op.getInput(), spec)},
                         {"control", p.controlView()},
                         {"y", p.allocate(op.getResult(), p.width())}},
                        p.width(), "hidden states before")))
    return failure();
  if (tree)
    return success();
  spec.op = "keep";
  return p.dispatch(op, HiddenRowsSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", p.view(op.getInput())},
                     {"control", p.controlView()},
                     {"ring", ring(p, op.getInput(), spec)}},
                    p.width(), "keep hidden states");
}

DictionaryAttr draftOf(ProgramLowering &p) {
  return p.function().function()->getAttrOfType<DictionaryAttr>(kDraftAttr);
}

LogicalResult copyRows(ProgramLowering &p, Operation *at, Value from, Value to,
                       int64_t width, int64_t rows) {
  ElementwiseSpec spec;
  spec.op = "scale";
  spec.number = 1;
  spec.width = width;
  return p.dispatch(at, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", from}, {"y", to}}, rows, "hidden state");
}

} // namespace

SmallVector<func::FuncOp> draftsOf(ModuleOp module) {
  return llvm::to_vector(llvm::make_filter_range(
      module.getOps<func::FuncOp>(),
      [](func::FuncOp function) { return function->hasAttr(kDraftAttr); }));
}

SmallVector<func::FuncOp> draftTreesOf(ModuleOp module) {
  return llvm::to_vector(llvm::make_filter_range(
      module.getOps<func::FuncOp>(),
      [](func::FuncOp function) { return function->hasAttr(kDraftTreeAttr); }));
}

FailureOr<ArrayAttr> describeDrafts(ModuleOp module) {
  Builder builder(module.getContext());
  SmallVector<NamedAttrList> list;
  for (auto [number, function] : llvm::enumerate(draftsOf(module))) {
    auto draft = function->getAttrOfType<DictionaryAttr>(kDraftAttr);
    auto name = draft ? draft.getAs<StringAttr>("name") : StringAttr();
    auto description =
        draft ? draft.getAs<StringAttr>("description") : StringAttr();
    auto repeats = draft ? draft.getAs<BoolAttr>("repeats") : BoolAttr();
    if (!name || !description || !repeats)
      return function.emitOpError("expects a name, a description and repeats "
                                  "in its ")
             << kDraftAttr << ", but got " << function->getAttr(kDraftAttr);
    if (list.empty() || list.back().get("name") != name) {
      list.emplace_back();
      list.back().set("name", name);
      list.back().set("description", description);
      list.back().set("repeats", repeats);
      list.back().set("first", builder.getI64IntegerAttr(int64_t(number)));
    }
    const int64_t first = cast<IntegerAttr>(list.back().get("first")).getInt();
    list.back().set("count",
                    builder.getI64IntegerAttr(int64_t(number) + 1 - first));
  }
  SmallVector<Attribute> drafts;
  ::llvm::StringSet<> names;
  for (NamedAttrList &draft : list) {
    if (StringRef name = cast<StringAttr>(draft.get("name")).getValue();
        !names.insert(name).second)
      return module.emitError("expects the guesses of draft '")
             << name << "' one after another, but others are between them";
    drafts.push_back(draft.getDictionary(module.getContext()));
  }
  return builder.getArrayAttr(drafts);
}

/// The hidden states that the nodes of a draft's tree go on from: of each its
/// parent's, which an earlier step of fewer nodes left, and at roots what the
/// guess before them did.
static LogicalResult takeNodes(ProgramLowering &p) {
  func::FuncOp function = p.function().function();
  if (function.getNumArguments() == 5)
    return success();
  if (function.getNumArguments() != 6 || !p.function().hiddenResult())
    return function.emitOpError("expects the arguments of @verify, and a hidden "
                                "state that it returns, too, but got ")
           << function.getFunctionType();
  Value hidden = function.getArgument(5);
  HiddenRowsSpec spec;
  spec.op = "above";
  spec.width = ProgramLowering::rowElements(hidden);
  spec.rows = p.target().mostNodes();
  Value y = p.scratch("hidden", uint64_t(p.paddedRows(p.width())) *
                                    rowBytes(hidden));
  p.setView(hidden, y, p.width());
  return p.dispatch(function, HiddenRowsSpec::kFamily,
                    spec.toAttr(p.context()),
                    {{"x", nodeRows(p, hidden, spec.rows)},
                     {"first", ownRow(p, hidden)},
                     {"control", p.controlView()},
                     {"y", y}},
                    p.width(), "hidden states above");
}

static bool leavesHidden(ProgramLowering &p) {
  if (p.kind() != plan::ProgramKind::sample &&
      p.kind() != plan::ProgramKind::verify)
    return false;
  auto module = p.function().function()->getParentOfType<ModuleOp>();
  return llvm::any_of(draftsOf(module), [](func::FuncOp function) {
    return function.getNumArguments() == 4;
  });
}

Value hiddenToLeave(ProgramLowering &p) {
  if (!leavesHidden(p))
    return {};
  PreviousRowsOp previous = previousOf(p);
  return previous ? previous.getInput() : p.function().lastOutput();
}

LogicalResult leaveHidden(ProgramLowering &p) {
  Value hidden = hiddenToLeave(p);
  Operation *at = p.resolve(hidden).getDefiningOp();
  const int64_t width = ProgramLowering::rowElements(hidden);
  const bool all = p.kind() == plan::ProgramKind::verify;
  const int64_t rows = all ? p.width() : 1;
  Value to = modelRows(p, hidden, rows);
  if (all)
    return copyRows(p, at, p.view(hidden), to, width, rows);
  ElementwiseSpec spec;
  spec.op = "last";
  spec.width = width;
  return p.dispatch(at, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", p.view(hidden)},
                     {"control", p.controlView()},
                     {"y", to}},
                    1, "hidden state");
}

LogicalResult takeHidden(ProgramLowering &p) {
  func::FuncOp function = p.function().function();
  if (function->hasAttr(kDraftTreeAttr))
    return takeNodes(p);
  if (function.getNumArguments() == 3)
    return success();
  auto from = draftOf(p).getAs<StringAttr>("hidden");
  if (function.getNumArguments() != 4 || !from ||
      (from != "target" && from != "own"))
    return function.emitOpError("expects (ids, positions, rows, hidden) and a "
                                "hidden state of \"target\" or \"own\", but "
                                "got ")
           << function.getFunctionType() << " and " << draftOf(p);
  Value hidden = function.getArgument(3);
  if (from == "own") {
    p.setView(hidden, ownRow(p, hidden), 1);
    return success();
  }
  // The row of the last token that was accepted.
  ElementwiseSpec spec;
  spec.op = "accepted";
  spec.width = ProgramLowering::rowElements(hidden);
  spec.rows = p.target().mostNodes();
  Value y = p.scratch("hidden", rowBytes(hidden));
  p.setView(hidden, y, 1);
  return p.dispatch(
      function, ElementwiseSpec::kFamily, spec.toAttr(p.context()),
      {{"x", modelRows(p, hidden, spec.rows)},
       {"control", p.controlView()},
       {"y", y}},
      1, "hidden state");
}

Value guessesView(ProgramLowering &p) {
  using namespace sprig::format;
  return p.bufferView(p.target().buffer(plan::BufferKind::control, "control",
                                        kGuessOffset + kGuessBytes),
                      kGuessOffset, kGuessBytes);
}

LogicalResult lowerGuesses(ProgramLowering &p, Operation *at, Value logits) {
  TopSpec spec;
  spec.vocabulary = p.rowElements(logits);
  spec.tokens = drawableTokens(at, spec.vocabulary);
  spec.tree = p.width() > 1;
  return p.dispatch(at, TopSpec::kFamily, spec.toAttr(p.context()),
                    {{"logits", p.view(logits)},
                     {"control", p.controlView()},
                     {"guesses", guessesView(p)}},
                    p.width(), "likeliest");
}

LogicalResult passHidden(ProgramLowering &p) {
  Value hidden = p.function().hiddenResult();
  if (!hidden)
    return success();
  Value to = p.width() > 1 ? nodeRows(p, hidden, p.width()) : ownRow(p, hidden);
  return copyRows(p, p.function().function(), p.view(hidden), to,
                  ProgramLowering::rowElements(hidden), p.width());
}

LogicalResult keepAccepted(ProgramLowering &p) {
  PreviousRowsOp previous = previousOf(p);
  if (!previous || p.kind() != plan::ProgramKind::verify)
    return success();
  HiddenRowsSpec spec;
  spec.op = "accepted";
  spec.width = ProgramLowering::rowElements(previous.getInput());
  spec.rows = p.target().mostNodes();
  // The verify program has left the rows of all nodes there.
  return p.dispatch(previous, HiddenRowsSpec::kFamily, spec.toAttr(p.context()),
                    {{"x", modelRows(p, previous.getInput(), spec.rows)},
                     {"control", p.controlView()},
                     {"ring", ring(p, previous.getInput(), spec)}},
                    spec.rows, "keep hidden states");
}

ArrayRef<OpLoweringRow> draftLowerings() {
  static const OpLoweringRow rows[] = {
      loweringOf<PreviousRowsOp, lowerPrevious>(),
  };
  return rows;
}

} // namespace mlir::llm
