#include "lib/Calibration/ActivationSource.h"

#include "dialects/LLM/LLM.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// Carries the source: a context keeps interfaces of its dialects.
class ActivationSourceHolder final : public DialectInterface::Base<ActivationSourceHolder> {
public:
  explicit ActivationSourceHolder(Dialect *dialect) : Base(dialect) {}
  std::shared_ptr<ActivationSource> source;
};
} // namespace

MLIR_DECLARE_EXPLICIT_TYPE_ID(ActivationSourceHolder)
MLIR_DEFINE_EXPLICIT_TYPE_ID(ActivationSourceHolder)

ActivationSource *ActivationSource::of(MLIRContext *context) {
  Dialect *dialect = context->getLoadedDialect<LLMDialect>();
  auto *holder = dialect ? dialect->getRegisteredInterface<ActivationSourceHolder>() : nullptr;
  return holder ? holder->source.get() : nullptr;
}

void ActivationSource::attach(MLIRContext *context, std::shared_ptr<ActivationSource> source) {
  Dialect *dialect = context->getOrLoadDialect<LLMDialect>();
  auto *holder = dialect->getRegisteredInterface<ActivationSourceHolder>();
  if (!holder)
    holder = &dialect->addInterface<ActivationSourceHolder>();
  holder->source = std::move(source);
}
