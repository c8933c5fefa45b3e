#include "transforms/Quantize/PackedWeight.h"

#include "lib/Quant/Half.h"
#include "lib/Quant/Patterns.h"
#include "lib/Weights/WeightTypes.h"

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

static RankedTensorType likeWith(RankedTensorType like, int64_t last, Type element) {
  SmallVector<int64_t> shape(like.getShape());
  shape.back() = last;
  return RankedTensorType::get(shape, element);
}

/// Writes N rows of `bits` bits that `fill(row, into)` gives; each starts at a byte.
static FailureOr<Value> writeRows(OpBuilder &builder, Location loc, WeightSpill &spill, const Twine &name,
                                  RankedTensorType like, int64_t N, int64_t bits,
                                  llvm::function_ref<void(int64_t, BitRow &)> fill) {
  return spill.add(builder, loc, name.str(), likeWith(like, (bits + 7) / 8, builder.getI8Type()),
                   [&](WeightSpill::Write write) -> llvm::Error {
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

static FailureOr<Value> writeHalves(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                    RankedTensorType like, int64_t last, ArrayRef<uint16_t> halves) {
  return spill.add(builder, loc, name, likeWith(like, last, builder.getF16Type()),
                   std::as_bytes(std::span(halves.data(), halves.size())));
}

/// The parts put together, in rows of K numbers.
static Value assembled(OpBuilder &builder, Location loc, RankedTensorType like, int64_t K, QuantizedType element,
                       Value codes, ValueRange scales, ValueRange zeros, Value codebook, Value patterns = Value()) {
  auto type = RankedTensorType::get(likeWith(like, K, element).getShape(), element,
                                    LayoutAttr::get(builder.getContext(), LayoutKind::Packed));
  return AssembleOp::create(builder, loc, type, codes, scales, zeros, codebook, patterns, /*order=*/Value());
}

/// What they stand for.
static Value dequantised(OpBuilder &builder, Location loc, Value whole) {
  auto type = cast<RankedTensorType>(whole.getType());
  return DequantizeOp::create(builder, loc, RankedTensorType::get(type.getShape(), builder.getF32Type()), whole);
}

FailureOr<Value> mlir::llm::writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        RankedTensorType like, const CodebookRows &rows) {
  std::vector<uint16_t> halves;
  for (float number : rows.books)
    halves.push_back(quant::floatToHalf(number));
  FailureOr<Value> codes = writeRows(builder, loc, spill, name + ".codes", like, rows.N, rows.K * rows.bits,
                                     [&](int64_t n, BitRow &row) {
                                       for (int64_t k = 0; k < rows.K; ++k)
                                         row.put(uint8_t(rows.codes[size_t(n * rows.K + k)]), rows.bits);
                                     });
  if (failed(codes))
    return failure();
  FailureOr<Value> book = writeHalves(builder, loc, spill, (name + ".book").str(), like, rows.entries(), halves);
  if (failed(book))
    return failure();
  auto element = QuantizedType::get(builder.getContext(), QuantCode::codebook(rows.bits), kLearnedCodebook, Sparsity(),
                                    ArrayRef<QuantLevel>());
  return dequantised(builder, loc, assembled(builder, loc, like, rows.K, element, *codes, {}, {}, *book));
}

FailureOr<Value> mlir::llm::writePacked(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        RankedTensorType like, const WeightScheme &scheme, const QuantizedRows &rows) {
  FailureOr<Value> whole = writeQuantised(builder, loc, spill, name, like, scheme, rows);
  if (failed(whole))
    return failure();
  return dequantised(builder, loc, *whole);
}

FailureOr<Value> mlir::llm::writeQuantised(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                           RankedTensorType like, const WeightScheme &scheme,
                                           const QuantizedRows &rows) {
  const int64_t N = rows.N, K = rows.K, groups = scheme.groups(K);
  const Sparsity sparsity = scheme.sparsity;
  const int64_t stored = sparsity.of ? K / sparsity.of * sparsity.kept : K;
  FailureOr<Value> codes = writeRows(builder, loc, spill, name + ".codes", like, N, stored * scheme.bits,
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
  FailureOr<Value> scales = writeHalves(builder, loc, spill, (name + ".scales").str(), like, groups, halves);
  if (failed(scales))
    return failure();
  SmallVector<Value> zeros;
  if (!scheme.symmetric) {
    FailureOr<Value> zero = spill.add(builder, loc, (name + ".zeros").str(),
                                      likeWith(like, groups, builder.getIntegerType(8, /*isSigned=*/false)),
                                      std::as_bytes(std::span(bytes)));
    if (failed(zero))
      return failure();
    zeros.push_back(*zero);
  }
  Value patterns;
  if (sparsity.of) {
    const unsigned bits = sparsity.patternBits();
    FailureOr<Value> written = writeRows(builder, loc, spill, name + ".patterns", like, N, K / sparsity.of * bits,
                                         [&](int64_t n, BitRow &row) {
                                           for (int64_t k = 0; k < K; k += sparsity.of)
                                             row.put(patternAt(rows, sparsity, n, k), bits);
                                         });
    if (failed(written))
      return failure();
    patterns = *written;
  }
  return assembled(builder, loc, like, K, scheme.type(builder.getContext()), *codes, *scales, zeros,
                   /*codebook=*/Value(), patterns);
}

FailureOr<Value> mlir::llm::writeVector(OpBuilder &builder, Location loc, WeightSpill &spill, StringRef name,
                                        ArrayRef<double> numbers) {
  return spill.add(builder, loc, name, RankedTensorType::get({int64_t(numbers.size())}, builder.getF64Type()),
                   std::as_bytes(std::span(numbers.data(), numbers.size())));
}
