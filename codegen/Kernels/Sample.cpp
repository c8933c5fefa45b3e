#include "codegen/Kernels/Sample.h"

#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "codegen/Kernels/TreeTable.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/Format/Guesses.h"

namespace mlir::llm {

/// Most lanes where they exchange through shared memory.
static constexpr uint32_t kMostLanes = 256;

FailureOr<SampleSpec> SampleSpec::fromAttr(DictionaryAttr attr,
                                           EmitError emitError) {
  SampleSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("vocabulary", spec.vocabulary, 1, (1 << 24) - 1);
  reader.maybe("tokens", spec.tokens, 1, spec.vocabulary);
  reader.read("capacity", spec.capacity, 1);
  reader.maybe("tree", spec.tree, 0, sprig::format::kMostNodes);
  reader.maybe("rounds", spec.rounds, 0, 1);
  if (spec.rounds && !spec.tree)
    reader.fail("expects rounds at the nodes of a tree alone, but got no tree");
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr SampleSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("vocabulary", vocabulary)
      .add("tokens", tokens)
      .add("capacity", capacity)
      .add("tree", tree)
      .add("rounds", rounds)
      .done();
}

FailureOr<KernelInterface> SampleSpec::interface(const TargetProfile &profile,
                                                 EmitError emitError) const {
  bool narrow = isNarrow(profile);
  uint32_t lanes =
      narrow ? profile.subgroupSize
             : std::min(kMostLanes, profile.limits.workgroupInvocations);
  KernelInterface interface;
  interface.key =
      llvm::formatv("sample {0} of {1} capacity {2} tree {3} lanes {4}",
                    drawable(), vocabulary, capacity, tree, lanes);
  if (rounds)
    interface.key += " rounds";
  interface.name = KernelInterface::nameFor(
      llvm::formatv("sample_{0}", vocabulary).str(), interface.key);
  interface.workgroup = {lanes, 1, 1};
  interface.bindings = {
      {"logits", Access::ReadWrite, uint64_t(vocabulary) * 4},
      {"control", Access::ReadWrite, StepControl::kBytes},
      {"history", Access::ReadWrite, uint64_t(capacity + 1) * 4}};
  if (tree) {
    interface.bindings[0].perToken = true;
    interface.bindings[1].access = interface.bindings[2].access = Access::Read;
    interface.bindings.push_back(
        {"tree", Access::Read, TreeTableSpec::bytes(tree)});
    interface.bindings.push_back({"drawn", Access::Write, 4, true});
    interface.groups[0] = {1, 1};
  }
  if (rounds)
    interface.bindings.push_back(
        {"guesses", Access::Read, sprig::format::kGuessBytes});
  if (profile.canShuffle())
    interface.subgroupSize = profile.subgroupSize;
  // Two thresholds of three reductions each, and the five around them; rounds
  // have three more.
  if (!narrow)
    interface.sharedBytes = lanes * 4 * (2 * 3 + 5 + (rounds ? 3 : 0));
  return interface;
}

} // namespace mlir::llm
