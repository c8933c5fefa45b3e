// What meets the weights of products, and sums over it.
#ifndef SPRIG_LIB_REFERENCE_INPUTSUMS_H
#define SPRIG_LIB_REFERENCE_INPUTSUMS_H

#include "lib/Calibration/ActivationSource.h"
#include "lib/Reference/Math/Workers.h"
#include "mlir/IR/Value.h"
#include <map>
#include <optional>

namespace mlir::llm::reference {

/// llm.linear, llm.gated_linear or llm.expert_linear.
bool isProduct(Operation *op);
/// Length of the rows of a product's weight; 0 for other ops.
int64_t weightWidth(Operation *op);

/// The values that decide what meets the weight of a product: an input, and perhaps a folded norm.
struct ProductInput {
  Value input, gamma, rowScale;
  explicit ProductInput(Operation *product);
  bool operator<(const ProductInput &other) const;
};

/// Sums up the inputs of the wanted products of one op of a function's body at a time.
class InputSums final : public ActivationVisitor {
public:
  InputSums(Workers &workers, const StatisticsRequest &request) : workers(workers), request(request) {}

  bool wants(Operation *op) override { return isProduct(op) && (!request.wants || request.wants(op)); }
  LogicalResult visit(Operation *op, int64_t window, const ActivationRows &input, const ActivationRows &) override;

  /// Begins anew for the wanted products in `op`, in program order.
  void begin(Operation *op);
  /// Their statistics so far.
  LayerStatistics take();
  bool empty() const { return products.empty(); }
  size_t size() const { return products.size(); }

  /// The statistics of distinct inputs, in program order, and back: what a disk cache holds.
  static SmallVector<std::shared_ptr<const InputStatistics>> distinct(const LayerStatistics &statistics);
  /// Nothing where the numbers are of other products.
  std::optional<LayerStatistics> assign(std::vector<InputStatistics> distinct) const;

private:
  struct Entry {
    Operation *first; ///< of the products that share the input: it does the work
    std::shared_ptr<InputStatistics> sums = std::make_shared<InputStatistics>();
  };
  void add(InputStatistics &sums, const ActivationRows &x);

  Workers &workers;
  const StatisticsRequest &request;
  SmallVector<Operation *> products;
  std::map<ProductInput, Entry> entries;
};

} // namespace mlir::llm::reference

#endif // SPRIG_LIB_REFERENCE_INPUTSUMS_H
