#include "transforms/Quantize/PackedWeight.h"

#include "lib/Quant/Half.h"

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;

/// Codes of a row at `bits` bits each, low bits first; a row starts at a byte.
static void packCodes(ArrayRef<int8_t> codes, unsigned bits, MutableArrayRef<uint8_t> bytes) {
  const uint32_t mask = (1u << bits) - 1;
  for (auto [k, code] : llvm::enumerate(codes)) {
    const size_t bit = k * bits;
    const uint32_t value = (uint32_t(uint8_t(code)) & mask) << (bit % 8);
    bytes[bit / 8] |= uint8_t(value);
    if (value >> 8)
      bytes[bit / 8 + 1] |= uint8_t(value >> 8);
  }
}

FailureOr<Value> mlir::llm::writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        RankedTensorType like, const WeightScheme &scheme, const QuantizedRows &rows) {
  const int64_t N = rows.N, K = rows.K, groups = scheme.groups(K), rowBytes = (K * scheme.bits + 7) / 8;
  const auto shapeOf = [&](int64_t last) {
    SmallVector<int64_t> shape(like.getShape());
    shape.back() = last;
    return shape;
  };
  auto codesType = RankedTensorType::get(shapeOf(rowBytes), builder.getI8Type());
  FailureOr<Value> codes =
      spill.add(builder, loc, (name + ".codes").str(), codesType, [&](WeightSpill::Write write) -> llvm::Error {
        std::vector<uint8_t> bytes;
        for (int64_t n = 0; n < N; ++n) {
          bytes.assign(size_t(rowBytes), 0);
          packCodes(ArrayRef(rows.codes).slice(size_t(n * K), size_t(K)), scheme.bits, bytes);
          if (llvm::Error error = write(std::as_bytes(std::span(bytes))))
            return error;
        }
        return llvm::Error::success();
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
  auto type = RankedTensorType::get(like.getShape(), scheme.type(builder.getContext()),
                                    LayoutAttr::get(builder.getContext(), LayoutKind::Packed));
  Value assembled = AssembleOp::create(builder, loc, type, *codes, ValueRange{*scales}, zeros, /*codebook=*/Value(),
                                       /*patterns=*/Value(), /*order=*/Value());
  return DequantizeOp::create(builder, loc, RankedTensorType::get(like.getShape(), builder.getF32Type()), assembled)
      .getResult();
}

FailureOr<Value> mlir::llm::writeVector(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        ArrayRef<double> numbers) {
  return spill.add(builder, loc, name, RankedTensorType::get({int64_t(numbers.size())}, builder.getF64Type()),
                   std::as_bytes(std::span(numbers.data(), numbers.size())));
}
