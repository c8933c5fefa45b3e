#include "lib/Reference/Decode.h"

#include "lib/Quant/Format.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;
namespace quant = sprig::quant;

/// Decodes whole blocks to F.
template <typename F> static void decodeTo(quant::Format format, const std::byte *from, F *to, size_t elements) {
  if (format == quant::Format::F64) {
    for (size_t i = 0; i < elements; ++i) {
      double number;
      std::memcpy(&number, from + 8 * i, 8);
      to[i] = F(number);
    }
    return;
  }
  if constexpr (std::is_same_v<F, float>) {
    quant::decode(format, from, to, elements);
  } else {
    std::vector<float> numbers(elements);
    quant::decode(format, from, numbers.data(), elements);
    std::copy(numbers.begin(), numbers.end(), to);
  }
}

template <typename F>
static void decodeBlocks(quant::Format format, const std::byte *from, F *to, size_t elements, Workers &workers) {
  const quant::FormatInfo &info = quant::info(format);
  workers.ranges(elements / info.blockElements, 256, [&](size_t begin, size_t end) {
    for (size_t block = begin; block < end;) { // a few thousand numbers at a time stay in the first cache
      const size_t count = std::min<size_t>(end - block, std::max<size_t>(1, 4096 / info.blockElements));
      decodeTo<F>(format, from + block * info.blockBytes, to + block * info.blockElements, count * info.blockElements);
      block += count;
    }
  });
}

/// Little-endian integers of 8 to 64 bits to i32. Returns false where one does not fit.
static bool decodeIntegers(const std::byte *from, int32_t *to, size_t count, unsigned bits, bool isUnsigned) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t raw = 0;
    std::memcpy(&raw, from + i * (bits / 8), bits / 8);
    const int64_t value = isUnsigned ? int64_t(raw) : llvm::SignExtend64(raw, bits);
    if (bits == 64 && value != int32_t(value))
      return false;
    to[i] = int32_t(value); // 32-bit words of either sign keep their bits
  }
  return true;
}

template <typename F>
FailureOr<Tensor> reference::decodeTensor(WeightOp op, const WeightTensor &tensor, quant::Format format,
                                          Workers &workers) {
  auto type = cast<RankedTensorType>(op.getType());
  if (auto integer = dyn_cast<IntegerType>(type.getElementType())) {
    int32_t *data;
    Tensor result = Tensor::make<int32_t>(type.getShape(), data);
    if (!decodeIntegers(tensor.data.data(), data, size_t(result.elements()), integer.getWidth(), integer.isUnsigned()))
      return op.emitOpError("expects integers that fit in 32 bits in \"") << tensor.key << "\"", failure();
    return result;
  }
  F *data;
  Tensor result = Tensor::make<F>(type.getShape(), data);
  decodeBlocks<F>(format, tensor.data.data(), data, size_t(result.elements()), workers);
  return result;
}

template <typename F>
FailureOr<Tensor> reference::decodeRows(WeightOp op, const WeightTensor &tensor, quant::Format format,
                                        ArrayRef<int32_t> ids) {
  auto type = cast<RankedTensorType>(op.getType());
  const int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
  const size_t rowBytes = quant::info(format).rowBytes(size_t(columns));
  F *data;
  Tensor result = Tensor::make<F>({int64_t(ids.size()), columns}, data);
  for (auto [i, id] : llvm::enumerate(ids))
    decodeTo<F>(format, tensor.data.data() + size_t(std::clamp<int64_t>(id, 0, rows - 1)) * rowBytes,
                data + int64_t(i) * columns, size_t(columns));
  return result;
}

template <typename F> FailureOr<Tensor> reference::decodeElements(Operation *op, ElementsAttr value) {
  SmallVector<int64_t> shape(value.getShapedType().getShape());
  if (auto floats = dyn_cast<DenseFPElementsAttr>(value)) {
    F *data;
    Tensor result = Tensor::make<F>(shape, data);
    for (const APFloat &number : floats) {
      bool exact;
      APFloat wide = number;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &exact);
      *data++ = F(wide.convertToDouble());
    }
    return result;
  }
  if (auto integers = dyn_cast<DenseIntElementsAttr>(value)) {
    const bool isUnsigned = integers.getElementType().isUnsignedInteger();
    int32_t *data;
    Tensor result = Tensor::make<int32_t>(shape, data);
    for (const APInt &number : integers)
      *data++ = int32_t(isUnsigned ? int64_t(number.getZExtValue()) : number.getSExtValue());
    return result;
  }
  return op->emitOpError("expects dense floats or integers, but got ") << value, failure();
}

template <typename F> FailureOr<Tensor> reference::decodeInline(WeightOp op, Workers &workers) {
  auto type = cast<RankedTensorType>(op.getType());
  FailureOr<Tensor> value = decodeElements<F>(op, op.getValueAttr());
  if (failed(value) || !isQuantized(type))
    return value;
  // A blob of bytes in the order that the layout says.
  auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding());
  const GGUFFormat *format = lookupGGUF(type.getElementType());
  if (!format || (layout && layout.getKind() != LayoutKind::GGUF))
    return op.emitOpError("expects bytes in the gguf layout of a GGUF type, but got ") << type, failure();
  const quant::Format stored = *quant::formatOfGGUF(format->typeId);
  const size_t expected = size_t(type.getNumElements()) / format->blockElements * format->blockBytes;
  if (type.getShape().back() % format->blockElements != 0 || size_t(value->elements()) != expected)
    return op.emitOpError("expects ") << expected << " bytes for " << type << ", but got " << value->elements(),
           failure();
  std::vector<std::byte> bytes(expected);
  for (auto [to, from] : llvm::zip(bytes, value->as<int32_t>()))
    to = std::byte(uint8_t(from));
  F *data;
  Tensor result = Tensor::make<F>(type.getShape(), data);
  decodeBlocks<F>(stored, bytes.data(), data, size_t(type.getNumElements()), workers);
  return result;
}

template <typename F> FailureOr<Tensor> reference::convertGiven(WeightOp op, const Tensor &given) {
  auto type = cast<RankedTensorType>(op.getType());
  if (given.shape() != type.getShape() || given.is<int32_t>() != isa<IntegerType>(type.getElementType()))
    return op.emitOpError("expects a tensor of type ") << type << ", but another was set at run time", failure();
  if (given.is<int32_t>() || given.is<F>())
    return given;
  F *data;
  Tensor result = Tensor::make<F>(given.shape(), data);
  const std::vector<double> numbers = given.toDoubles();
  std::copy(numbers.begin(), numbers.end(), data);
  return result;
}

#define SPRIG_INSTANTIATE(F)                                                                                           \
  template FailureOr<Tensor> reference::decodeTensor<F>(WeightOp, const WeightTensor &, quant::Format, Workers &);     \
  template FailureOr<Tensor> reference::decodeRows<F>(WeightOp, const WeightTensor &, quant::Format,                   \
                                                      ArrayRef<int32_t>);                                              \
  template FailureOr<Tensor> reference::decodeInline<F>(WeightOp, Workers &);                                          \
  template FailureOr<Tensor> reference::convertGiven<F>(WeightOp, const Tensor &);                                     \
  template FailureOr<Tensor> reference::decodeElements<F>(Operation *, ElementsAttr);
SPRIG_INSTANTIATE(float)
SPRIG_INSTANTIATE(double)
