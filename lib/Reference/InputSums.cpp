#include "lib/Reference/InputSums.h"

#include "dialects/LLM/LLM.h"
#include "lib/Reference/Math/Gram.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

bool reference::isProduct(Operation *op) { return isa<LinearOp, GatedLinearOp, ExpertLinearOp>(op); }

int64_t reference::weightWidth(Operation *op) {
  if (!isProduct(op))
    return 0;
  Value weight = op->getOperand(isa<ExpertLinearOp>(op) ? 2 : 1);
  return cast<RankedTensorType>(weight.getType()).getShape().back();
}

ProductInput::ProductInput(Operation *product) : input(product->getOperand(0)) {
  if (auto linear = dyn_cast<LinearOp>(product))
    gamma = linear.getGamma(), rowScale = linear.getRowScale();
  if (auto gated = dyn_cast<GatedLinearOp>(product))
    gamma = gated.getGamma(), rowScale = gated.getRowScale();
}

bool ProductInput::operator<(const ProductInput &other) const {
  auto key = [](const ProductInput &in) {
    return std::make_tuple(in.input.getAsOpaquePointer(), in.gamma.getAsOpaquePointer(),
                           in.rowScale.getAsOpaquePointer());
  };
  return key(*this) < key(other);
}

void InputSums::begin(Operation *op) {
  products.clear();
  entries.clear();
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    if (!wants(inner))
      return;
    products.push_back(inner);
    entries.try_emplace(ProductInput(inner), Entry{inner});
  });
}

LogicalResult InputSums::visit(Operation *op, int64_t, const ActivationRows &input, const ActivationRows &) {
  auto entry = entries.find(ProductInput(op));
  if (entry != entries.end() && entry->second.first == op)
    add(*entry->second.sums, input);
  return success();
}

void InputSums::add(InputStatistics &sums, const ActivationRows &x) {
  const size_t T = size_t(x.rows), K = size_t(x.width);
  if (sums.rows == 0) {
    sums.width = x.width;
    sums.largest.resize(K), sums.sums.resize(K), sums.magnitudes.resize(K), sums.squares.resize(K);
    sums.gram.resize(request.gram ? K * K : 0);
  }
  sums.rows += x.rows;
  workers.ranges(K, 64, [&](size_t begin, size_t end) {
    for (size_t t = 0; t < T; ++t)
      for (size_t k = begin; k < end; ++k) {
        const float value = x.numbers[t * K + k], magnitude = std::fabs(value);
        sums.largest[k] = std::max(sums.largest[k], magnitude);
        sums.sums[k] += value, sums.magnitudes[k] += magnitude, sums.squares[k] += double(value) * value;
      }
  });
  if (request.gram)
    addGram(workers, x.numbers.data(), T, K, sums.gram.data());
}

LayerStatistics InputSums::take() {
  if (request.gram)
    for (auto &[input, entry] : entries)
      mirrorGram(size_t(entry.sums->width), entry.sums->gram.data());
  LayerStatistics result;
  for (Operation *product : products)
    result.insert({product, entries.at(ProductInput(product)).sums});
  return result;
}

SmallVector<std::shared_ptr<const InputStatistics>> InputSums::distinct(const LayerStatistics &statistics) {
  SmallVector<std::shared_ptr<const InputStatistics>> result;
  for (const auto &[product, sums] : statistics)
    if (!llvm::is_contained(result, sums))
      result.push_back(sums);
  return result;
}

std::optional<LayerStatistics> InputSums::assign(std::vector<InputStatistics> distinct) const {
  std::map<ProductInput, std::shared_ptr<const InputStatistics>> shared;
  LayerStatistics result;
  size_t next = 0;
  for (Operation *product : products) {
    auto &sums = shared[ProductInput(product)];
    if (!sums) {
      if (next == distinct.size() || distinct[next].width != weightWidth(product))
        return std::nullopt;
      sums = std::make_shared<const InputStatistics>(std::move(distinct[next++]));
    }
    result.insert({product, sums});
  }
  if (next != distinct.size())
    return std::nullopt;
  return result;
}
