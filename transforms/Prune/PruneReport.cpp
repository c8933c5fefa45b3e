#include "transforms/Prune/PruneReport.h"

#include "dialects/LLM/LLM.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// Carries the report: a context keeps interfaces of its dialects.
class PruneReportHolder final : public DialectInterface::Base<PruneReportHolder> {
public:
  explicit PruneReportHolder(Dialect *dialect) : Base(dialect) {}
  std::shared_ptr<PruneReport> report;
};
} // namespace

MLIR_DECLARE_EXPLICIT_TYPE_ID(PruneReportHolder)
MLIR_DEFINE_EXPLICIT_TYPE_ID(PruneReportHolder)

PruneReport *PruneReport::of(MLIRContext *context) {
  Dialect *dialect = context->getLoadedDialect<LLMDialect>();
  auto *holder = dialect ? dialect->getRegisteredInterface<PruneReportHolder>() : nullptr;
  return holder ? holder->report.get() : nullptr;
}

void PruneReport::attach(MLIRContext *context, std::shared_ptr<PruneReport> report) {
  Dialect *dialect = context->getOrLoadDialect<LLMDialect>();
  auto *holder = dialect->getRegisteredInterface<PruneReportHolder>();
  if (!holder)
    holder = &dialect->addInterface<PruneReportHolder>();
  holder->report = std::move(report);
}
