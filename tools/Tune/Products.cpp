#include "tools/Tune/Products.h"

#include "codegen/Kernels/BlockCodec.h"
#include "dialects/Plan/Plan.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

std::string Product::name() const {
  return llvm::formatv("{0}:{1}x{2}{3}", sprig::quant::info(spec.format).name,
                       spec.n, spec.k, spec.gate.empty() ? "" : ":gated");
}

LinearSpec Product::withTokens(int64_t tokens) const {
  LinearSpec made = spec;
  made.tokens = tokens;
  return made;
}

ScheduleValues Product::facts() const {
  return {{"format", std::string(sprig::quant::info(spec.format).name)},
          {"n", spec.n},
          {"k", spec.k},
          {"gated", int64_t(!spec.gate.empty())}};
}

llvm::Expected<Product> parseProduct(StringRef text) {
  auto [format, rest] = text.split(':');
  auto [shape, gated] = rest.split(':');
  auto [n, k] = shape.split('x');
  Product product;
  auto known = sprig::quant::formatOfName(format.str());
  const BlockCodec *codec = known ? BlockCodec::find(*known) : nullptr;
  if (!codec || n.getAsInteger(10, product.spec.n) ||
      k.getAsInteger(10, product.spec.k) || product.spec.n < 1 ||
      product.spec.k < 1 || product.spec.n > 1 << 24 ||
      product.spec.k > 1 << 24 || (!gated.empty() && gated != "gated"))
    return llvm::createStringError(
        "expects FORMAT:NxK or FORMAT:NxK:gated, such as Q4_1:1536x576:gated, "
        "but got '" +
        text + "'");
  unsigned block = codec->format().blockElements;
  if (product.spec.k % block)
    return llvm::createStringError("expects K to be a multiple of " +
                                   llvm::Twine(block) + ", but got '" + text +
                                   "'");
  product.spec.format = *known;
  if (!gated.empty())
    product.spec.gate = "silu";
  return product;
}

std::vector<Product> productsOf(ModuleOp plan) {
  std::vector<Product> products;
  llvm::StringMap<size_t> known;
  plan.walk([&](plan::KernelOp kernel) {
    if (kernel.getFamily() != LinearSpec::kFamily)
      return;
    FailureOr<LinearSpec> spec = LinearSpec::fromAttr(
        kernel.getSpec(), [&] { return kernel.emitOpError(); });
    if (failed(spec))
      return;
    Product product{*spec};
    if (known.try_emplace(product.name(), products.size()).second)
      products.push_back(std::move(product));
  });
  return products;
}

ArrayRef<StringRef> usualProducts() {
  static constexpr StringRef kNames[] = {
      "Q4_1:960x576",       "Q4_1:576x576",        "Q4_1:1536x576:gated",
      "Q4_1:576x1536",      "Q8_0:49152x576",      "Q4_0:2048x2048",
      "Q4_0:8192x2048:gated", "Q4_0:2048x8192",    "Q4_K:4096x4096",
      "Q4_K:14336x4096:gated", "Q4_K:4096x14336",  "Q6_K:32000x4096"};
  return kNames;
}

} // namespace mlir::llm
