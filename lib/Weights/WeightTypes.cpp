#include "lib/Weights/WeightTypes.h"
#include "lib/Quant/Affine.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::llm;
namespace quant = sprig::quant;
using quant::Format;

static std::optional<Format> integerFormat(IntegerType type) {
  const bool isUnsigned = type.isUnsigned();
  switch (type.getWidth()) {
  case 8:
    return isUnsigned ? Format::U8 : Format::I8;
  case 16:
    return isUnsigned ? Format::U16 : Format::I16;
  case 32:
    return isUnsigned ? Format::U32 : Format::I32;
  case 64:
    return isUnsigned ? Format::U64 : Format::I64;
  default:
    return std::nullopt;
  }
}

std::optional<Format> mlir::llm::storageFormatOf(RankedTensorType type) {
  Type element = type.getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    return integerFormat(integer);
  if (element.isF64())
    return Format::F64;
  auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding());
  if (layout && layout.getKind() != LayoutKind::GGUF)
    return std::nullopt;
  const GGUFFormat *format = lookupGGUF(element);
  return format ? quant::formatOfGGUF(format->typeId) : std::nullopt;
}

static std::optional<quant::AffineFormat::Scale> affineScale(ScaleType type) {
  switch (type.kind) {
  case ScaleKind::F16:
    return quant::AffineFormat::Scale::F16;
  case ScaleKind::BF16:
    return quant::AffineFormat::Scale::BF16;
  case ScaleKind::F32:
    return quant::AffineFormat::Scale::F32;
  default:
    return std::nullopt;
  }
}

double mlir::llm::storedBits(Type element) {
  if (auto quantised = dyn_cast<QuantizedType>(element))
    return quantised.bitsPerElement();
  return element.getIntOrFloatBitWidth();
}

std::optional<Format> mlir::llm::affineFormatOf(RankedTensorType type) {
  using Kind = quant::AffineFormat::Kind;
  auto element = dyn_cast<QuantizedType>(type.getElementType());
  if (!element || type.getRank() == 0 ||
      type.getShape().back() % quant::kAffineUnit)
    return std::nullopt;
  const QuantCode code = element.getCode();
  if (element.hasCodebook() && element.getCodebook() == kLearnedCodebook &&
      element.getLevels().empty() && !element.isSparse())
    return quant::formatOf({code.bits, Kind::Book});
  if (element.getLevels().size() != 1)
    return std::nullopt;
  const QuantLevel &level = element.getLevels().front();
  const auto scale = affineScale(level.scale);
  if (!scale || level.group > int64_t(quant::kLargestAffineGroup))
    return std::nullopt;
  const bool isFloat = code.kind == CodeKind::F8E4M3 || code.kind == CodeKind::F8E5M2;
  const bool centred =
      code.kind == CodeKind::Signed || isFloat ||
      (code.kind == CodeKind::Offset && code.offset == 1u << (code.bits - 1));
  const ScaleType zero = ScaleType::unsignedInt(code.bits);
  quant::AffineFormat affine{
      code.bits, Kind::Symmetric, *scale,
      level.group == kWholeRow ? 0 : uint32_t(level.group)};
  if (level.hasZero() && code.kind == CodeKind::Unsigned && level.offset == zero)
    affine.kind = Kind::Zero;
  else if (level.hasMin() && code.kind == CodeKind::Unsigned &&
           level.offset == level.scale)
    affine.kind = Kind::Minimum;
  else if (!centred || level.offsetKind != OffsetKind::None)
    return std::nullopt;
  if (isFloat)
    affine.code = code.kind == CodeKind::F8E4M3
                      ? quant::AffineFormat::Code::E4M3
                      : quant::AffineFormat::Code::E5M2;
  if (element.isSparse()) {
    affine.among = element.getSparsity().of;
    if (element.getSparsity().kept != affine.kept())
      return std::nullopt;
  }
  return quant::formatOf(affine);
}

std::optional<Format> mlir::llm::deviceFormatOf(RankedTensorType type) {
  const auto format = storageFormatOf(type);
  return format ? format : affineFormatOf(type);
}

/// Whether `tensor` holds the blocks of a quantised type as plain bytes.
static bool holdsBlocks(const WeightTensor &tensor, RankedTensorType type,
                        Format format) {
  ArrayRef<int64_t> shape = tensor.shape;
  return tensor.format == Format::U8 && !quant::info(format).isPlain() &&
         int64_t(shape.size()) == type.getRank() &&
         shape.drop_back() == type.getShape().drop_back() &&
         size_t(shape.back()) ==
             quant::info(format).rowBytes(size_t(type.getShape().back()));
}

FailureOr<Format> mlir::llm::checkPromise(Operation *op, RankedTensorType type,
                                          const WeightTensor &tensor,
                                          StringRef file) {
  const std::optional<Format> declared = storageFormatOf(type);
  const quant::FormatInfo &stored = quant::info(tensor.format);
  if (declared && ArrayRef<int64_t>(tensor.shape) == type.getShape()) {
    if (*declared == tensor.format)
      return tensor.format;
    if (isa<IntegerType>(type.getElementType()) && stored.isPlain() &&
        stored.blockBytes * 8 == type.getElementTypeBitWidth() &&
        (stored.blockBytes == 1 || stored.name[0] != 'F'))
      return *declared;
  }
  if (declared && type.getRank() > 0 && holdsBlocks(tensor, type, *declared))
    return *declared;
  InFlightDiagnostic error = op->emitOpError("expects '")
                             << tensor.key << "' to be " << type << ", but "
                             << file << " holds ";
  llvm::interleave(
      tensor.shape, error, [&](int64_t size) { error << size; }, "x");
  return error << (tensor.shape.empty() ? "one " : " of ")
               << StringRef(stored.name);
}
