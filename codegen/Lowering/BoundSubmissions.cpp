// plan-bound-submissions: see Passes.td.
#include "codegen/Lowering/Passes.h"
#include "codegen/Target/TargetProfile.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
#define GEN_PASS_DEF_BOUNDSUBMISSIONSPASS
#include "codegen/Lowering/Passes.h.inc"

namespace {

/// A part of a grid of workgroups.
struct Box {
  std::array<int32_t, 3> base = {0, 0, 0}, size;
  int64_t groups() const {
    return int64_t(size[0]) * int64_t(size[1]) * int64_t(size[2]);
  }
};

/// Cuts a grid into parts of at most `most` workgroups, or of one.
void cut(Box box, int64_t most, SmallVectorImpl<Box> &parts) {
  auto longest = size_t(llvm::max_element(box.size) - box.size.begin());
  const int64_t length = box.size[longest];
  if (box.groups() <= most || length == 1) {
    parts.push_back(box);
    return;
  }
  const int64_t thickness =
      std::max<int64_t>(1, most / (box.groups() / length));
  const int64_t count = llvm::divideCeilSigned(length, thickness);
  for (int64_t i = 0; i < count; ++i) {
    Box part = box;
    const auto begin = int32_t(length * i / count),
               end = int32_t(length * (i + 1) / count);
    part.base[longest] += begin;
    part.size[longest] = end - begin;
    cut(part, most, parts);
  }
}

struct BoundSubmissions final
    : impl::BoundSubmissionsPassBase<BoundSubmissions> {
  using BoundSubmissionsPassBase::BoundSubmissionsPassBase;

  void runOnOperation() override {
    plan::TargetOp target = getOperation();
    llvm::Expected<TargetProfile> profile =
        findProfile(target.getProfileName());
    if (!profile) {
      target.emitOpError() << llvm::toString(profile.takeError());
      return signalPassFailure();
    }
    const auto most = int64_t(profile->submissionSeconds() * 1e9);
    if (most == 0)
      return;
    for (auto program : target.getOps<plan::ProgramOp>()) {
      for (auto dispatch :
           llvm::make_early_inc_range(program.getOps<plan::DispatchOp>()))
        split(dispatch, most);
      submit(program, most);
    }
  }

  /// A dispatch that takes too long becomes several over parts of its grid.
  static void split(plan::DispatchOp dispatch, int64_t most) {
    const auto time = int64_t(dispatch.getNanoseconds());
    if (time <= most)
      return;
    Box whole;
    llvm::copy(dispatch.getGroups(), whole.size.begin());
    if (dispatch.getBase())
      llvm::copy(*dispatch.getBase(), whole.base.begin());
    SmallVector<Box> parts;
    cut(whole, int64_t(double(whole.groups()) * double(most) / double(time)),
        parts);
    OpBuilder builder(dispatch);
    auto share = [&](uint64_t of, const Box &part) {
      return int64_t(double(of) * double(part.groups()) /
                     double(whole.groups()));
    };
    for (const Box &part : parts) {
      auto piece = cast<plan::DispatchOp>(builder.clone(*dispatch));
      // Workgroups that the device would not have asked for find nothing to do.
      piece.getIndirectMutable().clear();
      piece.setGroups(part.size);
      if (parts.size() > 1)
        piece.setBase(part.base);
      piece.setMacs(share(dispatch.getMacs(), part));
      piece.setTouched(share(dispatch.getTouched(), part));
      piece.setNanoseconds(share(dispatch.getNanoseconds(), part));
      if (int64_t(piece.getNanoseconds()) > most)
        remark::missed(dispatch.getLoc(), remark::RemarkOpts::name("watchdog")
                                              .category(kLoweringRemarks))
            << "one workgroup takes longer than a submission may";
    }
    dispatch.erase();
  }

  /// Marks where the next submission starts.
  static void submit(plan::ProgramOp program, int64_t most) {
    int64_t sum = 0, submissions = 1;
    plan::BarrierOp before; // no dispatch since
    for (Operation &op :
         llvm::make_early_inc_range(program.getBody().front())) {
      if (auto barrier = dyn_cast<plan::BarrierOp>(op)) {
        barrier.setSubmit(false);
        before = barrier;
      }
      auto dispatch = dyn_cast<plan::DispatchOp>(op);
      if (!dispatch)
        continue;
      const auto time = int64_t(dispatch.getNanoseconds());
      if (sum > 0 && sum + time > most) {
        if (!before) {
          OpBuilder builder(dispatch);
          before = plan::BarrierOp::create(builder, dispatch.getLoc());
        }
        before.setSubmit(true);
        sum = 0;
        ++submissions;
      }
      sum += time;
      before = nullptr;
    }
    if (submissions > 1)
      remark::passed(program.getLoc(), remark::RemarkOpts::name("submissions")
                                           .category(kLoweringRemarks))
          << llvm::formatv("@{0}: {1} submissions", program.getSymName(),
                           submissions)
                 .str();
  }
};

} // namespace
} // namespace mlir::llm
