#include "dialects/LLM/LLM.h"

using namespace mlir;
using namespace mlir::llm;

#include "dialects/LLM/LLMDialect.cpp.inc"

namespace {
/// Short names in printed IR: `!Q4_1_t` for the element types of GGUF, `!kv`
/// for caches, `#gguf` for layouts.
struct LLMAsmInterface final : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (isa<KVType>(type)) {
      os << "kv";
      return AliasResult::FinalAlias;
    }
    if (auto quantized = dyn_cast<QuantizedType>(type)) {
      const GGUFFormat *format = lookupGGUF(quantized);
      if (!format)
        return AliasResult::NoAlias;
      // An alias may not end in a digit.
      os << format->name << "_t";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    auto layout = dyn_cast<LayoutAttr>(attribute);
    if (!layout)
      return AliasResult::NoAlias;
    os << stringifyLayoutKind(layout.getKind());
    return AliasResult::FinalAlias;
  }
};
} // namespace

void LLMDialect::initialize() {
  registerTypes();
  registerAttributes();
  registerOps();
  addInterfaces<LLMAsmInterface>();
}
