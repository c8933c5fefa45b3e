#include "transforms/Quantize/PackedWeight.h"

#include "lib/Quant/Half.h"
#include "lib/Quant/Patterns.h"

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

namespace {

/// Numbers of up to 8 bits one after another, low bits first; a row starts at a byte.
class BitRow {
public:
  void put(uint32_t number, unsigned bits) {
    if (filled % 8 == 0)
      bytes.push_back(0);
    const uint32_t value = (number & ((1u << bits) - 1)) << (filled % 8);
    bytes.back() |= uint8_t(value);
    if (filled % 8 + bits > 8)
      bytes.push_back(uint8_t(value >> 8));
    filled += bits;
  }
  std::vector<uint8_t> bytes;

private:
  size_t filled = 0;
};

} // namespace

/// Writes N rows that `fill(row, into)` gives.
static FailureOr<Value> writeRows(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                  RankedTensorType type, int64_t N, llvm::function_ref<void(int64_t, BitRow &)> fill) {
  return spill.add(builder, loc, name, type, [&](WeightSpill::Write write) -> llvm::Error {
    for (int64_t n = 0; n < N; ++n) {
      BitRow row;
      fill(n, row);
      if (llvm::Error error = write(std::as_bytes(std::span(row.bytes))))
        return error;
    }
    return llvm::Error::success();
  });
}

/// The number of the pattern of row `n` whose first column is `begin`.
static uint32_t patternAt(const QuantizedRows &rows, Sparsity sparsity, int64_t n, int64_t begin) {
  uint32_t mask = 0;
  for (unsigned place = 0; place < sparsity.of; ++place)
    mask |= uint32_t(rows.keeps(n, begin + place)) << place;
  return quant::numberOfPattern(sparsity.of, mask);
}

FailureOr<Value> mlir::llm::writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        RankedTensorType like, const WeightScheme &scheme, const QuantizedRows &rows) {
  const int64_t N = rows.N, K = rows.K, groups = scheme.groups(K);
  const Sparsity sparsity = scheme.sparsity;
  const auto shapeOf = [&](int64_t last) {
    SmallVector<int64_t> shape(like.getShape());
    shape.back() = last;
    return shape;
  };
  const auto bytesType = [&](int64_t bits) {
    return RankedTensorType::get(shapeOf((bits + 7) / 8), builder.getI8Type());
  };
  const int64_t stored = sparsity.of ? K / sparsity.of * sparsity.kept : K;
  FailureOr<Value> codes = writeRows(builder, loc, spill, (name + ".codes").str(), bytesType(stored * scheme.bits), N,
                                     [&](int64_t n, BitRow &row) {
                                       for (int64_t k = 0; k < K; ++k)
                                         if (!sparsity.of || rows.keeps(n, k))
                                           row.put(uint8_t(rows.codes[size_t(n * K + k)]), scheme.bits);
                                     });
  if (failed(codes))
    return failure();
  std::vector<uint16_t> halves;
  std::vector<uint8_t> bytes;
  for (const GroupGrid &grid : rows.grids) {
    halves.push_back(quant::floatToHalf(grid.scale));
    bytes.push_back(uint8_t(grid.zero));
  }
  FailureOr<Value> scales = spill.add(builder, loc, (name + ".scales").str(),
                                      RankedTensorType::get(shapeOf(groups), builder.getF16Type()),
                                      std::as_bytes(std::span(halves)));
  if (failed(scales))
    return failure();
  SmallVector<Value> zeros;
  if (!scheme.symmetric) {
    FailureOr<Value> zero =
        spill.add(builder, loc, (name + ".zeros").str(),
                  RankedTensorType::get(shapeOf(groups), builder.getIntegerType(8, /*isSigned=*/false)),
                  std::as_bytes(std::span(bytes)));
    if (failed(zero))
      return failure();
    zeros.push_back(*zero);
  }
  Value patterns;
  if (sparsity.of) {
    const unsigned bits = sparsity.patternBits();
    FailureOr<Value> written =
        writeRows(builder, loc, spill, (name + ".patterns").str(), bytesType(K / sparsity.of * bits), N,
                  [&](int64_t n, BitRow &row) {
                    for (int64_t k = 0; k < K; k += sparsity.of)
                      row.put(patternAt(rows, sparsity, n, k), bits);
                  });
    if (failed(written))
      return failure();
    patterns = *written;
  }
  auto type = RankedTensorType::get(like.getShape(), scheme.type(builder.getContext()),
                                    LayoutAttr::get(builder.getContext(), LayoutKind::Packed));
  Value assembled = AssembleOp::create(builder, loc, type, *codes, ValueRange{*scales}, zeros, /*codebook=*/Value(),
                                       patterns, /*order=*/Value());
  return DequantizeOp::create(builder, loc, RankedTensorType::get(like.getShape(), builder.getF32Type()), assembled)
      .getResult();
}

FailureOr<Value> mlir::llm::writeVector(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        ArrayRef<double> numbers) {
  return spill.add(builder, loc, name, RankedTensorType::get({int64_t(numbers.size())}, builder.getF64Type()),
                   std::as_bytes(std::span(numbers.data(), numbers.size())));
}
