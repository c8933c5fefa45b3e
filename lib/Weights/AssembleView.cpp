#include "lib/Weights/AssembleView.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/CodeTables.h"
#include "lib/Quant/Half.h"
#include "lib/Weights/PackedCodes.h"
#include "lib/Weights/SparseRow.h"
#include "lib/Weights/WeightTypes.h"

#include <cmath>
#include <mutex>

namespace mlir::llm::weights {

namespace quant = sprig::quant;

namespace {

float scaleValue(ScaleType type, Format stored, double value) {
  // A type without a tensor type of its own lies in the file as raw bits.
  const auto raw = uint32_t(int64_t(value));
  if (type.kind == ScaleKind::E8M0 && stored != Format::F8E8M0)
    return quant::e8m0ToFloat(uint8_t(raw));
  if (type.kind == ScaleKind::UE4M3 && stored != Format::F8E4M3)
    return quant::e4m3ToFloat(raw & 0x7f);
  if (type.kind == ScaleKind::Unsigned)
    return float(raw & ((1u << type.bits) - 1));
  return float(value);
}

/// The format of the assembled rows: codes and scales keep their bits where
/// there is a format for them.
Format rowFormat(RankedTensorType type, const AssembleParts &parts) {
  const auto format = affineFormatOf(type);
  if (!format)
    return Format::F32;
  // Columns that change places do not keep N of M.
  if (parts.patterns && !parts.order.empty())
    return Format::F32;
  static constexpr Format kStored[] = {Format::F16, Format::BF16, Format::F32};
  const quant::AffineFormat affine = *quant::affineOf(*format);
  const Format scale = kStored[size_t(affine.scale)];
  if (affine.kind == quant::AffineFormat::Kind::Book)
    return parts.codebook->format() == scale ? *format : Format::F32;
  bool exact = parts.scales.front()->format() == scale;
  if (affine.kind == quant::AffineFormat::Kind::Minimum)
    exact &= parts.zeros.front()->format() == scale;
  return exact ? *format : Format::F32;
}

std::vector<float> all(const WeightExpr &expr) {
  std::vector<float> values(size_t(expr.rows() * expr.columns()));
  expr.decode(0, expr.rows(), values.data());
  return values;
}

/// One scale that is not finite would make every logit NaN.
LogicalResult checkFinite(AssembleOp op, Value scale, const WeightExpr &expr) {
  const std::vector<float> values = all(expr);
  const auto bad =
      llvm::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad == values.end())
    return success();
  InFlightDiagnostic error = op.emitOpError("expects finite scales, but got ");
  error << (std::isnan(*bad) ? "NaN" : "an infinity") << " at "
        << (bad - values.begin());
  if (auto weight = scale.getDefiningOp<WeightOp>(); weight && weight.getKey())
    error << " of tensor '" << *weight.getKey() << "'";
  return error;
}

class Assembled final : public WeightExpr {
public:
  Assembled(RankedTensorType type, AssembleParts given)
      : WeightExpr(rowFormat(type, given), type.getShape()),
        parts(std::move(given)),
        element(getQuantizedElement(type)), code(element.getCode()),
        layout(cast<LayoutAttr>(type.getEncoding()).getKind()),
        N(size_t(rows())), K(size_t(columns())) {}

  LogicalResult check(AssembleOp op);

  std::span<const std::byte>
  read(int64_t first, int64_t count,
       std::vector<std::byte> &buffer) const override {
    std::call_once(once, [&] { readParameters(); });
    buffer.resize(size_t(count) * rowBytes());
    const bool keepsCodes = quant::info(format()).isPlanar;
    std::vector<std::byte> own;
    const bool byRows = layout == LayoutKind::Packed;
    const auto codes = byRows ? parts.codes->read(first * codeRowsPerRow,
                                                  count * codeRowsPerRow, own)
                              : parts.codes->read(0, parts.codes->rows(), own);
    const size_t packedRow = codes.size() / size_t(count);
    std::vector<std::byte> ownPatterns;
    const auto patterns =
        parts.patterns ? parts.patterns->read(first * patternRowsPerRow,
                                              count * patternRowsPerRow, ownPatterns)
                       : std::span<const std::byte>();
    for (size_t i = 0; i < size_t(count); ++i) {
      const size_t n = size_t(first) + i;
      const std::byte *row = codes.data() + (byRows ? i * packedRow : 0);
      std::byte *to = buffer.data() + i * rowBytes();
      std::vector<uint32_t> codesOfRow(K), masks;
      if (parts.patterns)
        masks = readSparseRow(element.getSparsity(), bits(), row,
                              patterns.data() +
                                  i * (patterns.size() / size_t(count)),
                              codesOfRow);
      else
        for (size_t k = 0; k < K; ++k)
          codesOfRow[k] = codeAt(row, n, placeOf(k));
      if (keepsCodes) {
        writeCodes(codesOfRow, masks, n, to);
        continue;
      }
      auto *numbers = reinterpret_cast<float *>(to);
      for (size_t k = 0; k < K; ++k) {
        const size_t place = placeOf(k);
        if (!parts.patterns)
          numbers[k] = number(n, k, codesOfRow[k]);
        else
          numbers[k] = masks[place / 32] >> place % 32 & 1
                           ? number(n, k, codesOfRow[place])
                           : 0.0f;
      }
    }
    return buffer;
  }

private:
  /// Scale of each group of a level, or what is added or taken off.
  struct Level {
    size_t group, groups;
    std::vector<float> scales, offsets; ///< [N][groups], or one for all
  };

  unsigned bits() const { return code.kind == CodeKind::Trit ? 2 : code.bits; }

  size_t placeOf(size_t k) const {
    return parts.order.empty() ? k : size_t(parts.order[k]);
  }

  uint32_t codeAt(const std::byte *codes, size_t n, size_t k) const {
    switch (layout) {
    case LayoutKind::GPTQ: // words [K * bits / 32, N]
      return bitsAt(codes + 4 * n, N, k * bits(), bits());
    case LayoutKind::AWQ: // words [K, N * bits / 32]
      return bitsAt(codes + 4 * (k * (N * bits() / 32)), 1,
                    awqPlace(n) * bits(), bits());
    default:
      return bitsOfBytes(codes, k * bits(), bits());
    }
  }

  /// A row of codes, scales and offsets as a format of groups has them.
  void writeCodes(std::span<const uint32_t> codes,
                  const std::vector<uint32_t> &masks, size_t n,
                  std::byte *to) const {
    // Centred codes are stored above a half, those of 8 bits signed.
    uint32_t flip = 0;
    if (code.kind == CodeKind::Signed && bits() < 8)
      flip = 1u << (bits() - 1);
    if (code.kind == CodeKind::Offset && bits() == 8)
      flip = 128;
    std::vector<uint8_t> stored(K);
    for (size_t k = 0; k < K; ++k)
      stored[k] = uint8_t(codes[k] ^ flip);
    if (code.kind == CodeKind::Codebook)
      return quant::packAffineRow(format(), stored.data(), bookOf(n), nullptr,
                                  to, K);
    const Level &level = levels.front();
    const QuantLevel &spec = element.getLevels().front();
    std::vector<float> scales(level.groups), offsets(level.groups);
    for (size_t g = 0; g < level.groups; ++g) {
      scales[g] = pick(level.scales, level, n, g * level.group);
      if (spec.offsetKind == OffsetKind::None)
        continue;
      offsets[g] = pick(level.offsets, level, n, g * level.group);
      if (spec.offsetKind == OffsetKind::SubtractMin)
        offsets[g] = -offsets[g];
    }
    quant::packAffineRow(format(), stored.data(), scales.data(), offsets.data(),
                         to, K, masks.data());
  }

  float meaning(size_t n, uint32_t stored) const {
    switch (code.kind) {
    case CodeKind::Signed:
      return float(llvm::SignExtend64(stored, code.bits));
    case CodeKind::Offset:
      return float(int(stored) - int(code.offset));
    case CodeKind::Trit:
      return float(int(stored) - 1);
    case CodeKind::F4E2M1:
      return float(quant::kE2M1Doubled[stored]) * 0.5f;
    case CodeKind::F8E4M3:
      return quant::e4m3ToFloat(uint8_t(stored));
    case CodeKind::F8E5M2:
      return quant::e5m2ToFloat(uint8_t(stored));
    case CodeKind::Codebook:
      return bookOf(n)[stored];
    default:
      return float(stored);
    }
  }

  /// The codebook of a row, or that of all.
  const float *bookOf(size_t n) const {
    const size_t entries = size_t(1) << code.bits;
    return codebook.data() + (codebook.size() > entries ? n * entries : 0);
  }

  static float pick(const std::vector<float> &values, const Level &level,
                    size_t n, size_t k) {
    return values.size() == 1 ? values[0]
                              : values[n * level.groups + k / level.group];
  }

  float number(size_t n, size_t k, uint32_t stored) const {
    double scale = 1, offset = 0, value = meaning(n, stored);
    bool first = true;
    for (const auto &[spec, level] :
         llvm::zip_equal(element.getLevels(), levels)) {
      scale *= pick(level.scales, level, n, k);
      if (spec.hasZero())
        value -= pick(level.offsets, level, n, k);
      if (!spec.hasMin())
        continue;
      const double minimum = pick(level.offsets, level, n, k);
      const bool subtract = spec.offsetKind == OffsetKind::SubtractMin;
      offset = first ? (subtract ? -minimum : minimum) : offset * minimum;
      first = false;
    }
    return float(scale * value + offset);
  }

  void readParameters() const {
    size_t nextZero = 0;
    for (auto [spec, given] :
         llvm::zip_equal(element.getLevels(), parts.scales)) {
      Level level;
      level.group = spec.group == kWholeRow ? K : size_t(spec.group);
      level.groups = (K + level.group - 1) / level.group;
      level.scales = groupValues(*given, spec.scale, level);
      if (spec.offsetKind != OffsetKind::None) {
        const WeightExpr &zeros = *parts.zeros[nextZero++];
        level.offsets = isPackedZeros(zeros, spec, level)
                            ? packedZeros(zeros, spec.offset.bits, level)
                            : groupValues(zeros, spec.offset, level);
      }
      levels.push_back(std::move(level));
    }
    if (parts.codebook)
      codebook = all(*parts.codebook);
    else if (element.hasCodebook() && element.getCodebook() == "nf4")
      codebook.assign(std::begin(quant::kNF4), std::end(quant::kNF4));
    else if (element.hasCodebook())
      codebook.assign(std::begin(quant::kIQ4Values),
                      std::end(quant::kIQ4Values));
  }

  /// GPTQ and AWQ store [groups, N]; packed checkpoints [N, groups].
  std::vector<float> groupValues(const WeightExpr &given, ScaleType type,
                                 const Level &level) const {
    std::vector<float> values = all(given);
    for (float &value : values)
      value = scaleValue(type, given.format(), value);
    if (layout == LayoutKind::Packed || values.size() == 1)
      return values;
    std::vector<float> turned(values.size());
    for (size_t n = 0; n < N; ++n)
      for (size_t g = 0; g < level.groups; ++g)
        turned[n * level.groups + g] = values[g * N + n];
    return turned;
  }

  bool isPackedZeros(const WeightExpr &zeros, const QuantLevel &spec,
                     const Level &level) const {
    const size_t count = size_t(zeros.rows() * zeros.columns());
    return spec.hasZero() && spec.offset.isInteger() && count != 1 &&
           count != N * level.groups;
  }

  /// Zero points packed along N, in 32-bit words: a row of words for each group
  /// (GPTQ, less one; AWQ, in its order), or a column of words.
  std::vector<float> packedZeros(const WeightExpr &zeros, unsigned zeroBits,
                                 const Level &level) const {
    std::vector<std::byte> own;
    const auto words = zeros.read(0, zeros.rows(), own);
    const size_t perGroup = words.size() / 4 / level.groups;
    std::vector<float> values(N * level.groups);
    for (size_t n = 0; n < N; ++n)
      for (size_t g = 0; g < level.groups; ++g) {
        const size_t place =
            (layout == LayoutKind::AWQ ? awqPlace(n) : n) * zeroBits;
        uint32_t zero =
            layout == LayoutKind::Packed
                ? bitsAt(words.data() + 4 * g, level.groups, place, zeroBits)
                : bitsAt(words.data() + 4 * g * perGroup, 1, place, zeroBits);
        if (layout == LayoutKind::GPTQ)
          zero = (zero + 1) & ((1u << zeroBits) - 1);
        values[n * level.groups + g] = float(zero);
      }
    return values;
  }

  AssembleParts parts;
  QuantizedType element;
  QuantCode code;
  LayoutKind layout;
  size_t N, K;
  /// Rows of the tensors of codes and of patterns for one of ours.
  int64_t codeRowsPerRow = 1, patternRowsPerRow = 1;
  mutable std::once_flag once;
  mutable std::vector<Level> levels;
  mutable std::vector<float> codebook;
};

LogicalResult Assembled::check(AssembleOp op) {
  if (element.hasGrid())
    return op.emitOpError("expects a type without a grid, but got ") << element;
  const quant::FormatInfo &stored = quant::info(parts.codes->format());
  const size_t codeBytes =
      size_t(parts.codes->rows()) * parts.codes->rowBytes();
  const bool packed = layout == LayoutKind::Packed;
  // Bytes of a row of codes, or of the words that a column of them fills.
  const size_t needed = packed ? N * packedBytes(K, element.getSparsity(), bits())
                        : layout == LayoutKind::GPTQ
                            ? 4 * N * ((K * bits() + 31) / 32)
                            : 4 * K * (N * bits() / 32);
  const bool fits = packed ? codeBytes >= needed && codeBytes % N == 0 &&
                                 parts.codes->rows() % int64_t(N) == 0
                           : codeBytes == needed && stored.blockBytes == 4;
  if (!stored.isPlain() || !fits ||
      (layout == LayoutKind::AWQ && (bits() != 4 || N % 8)))
    return op.emitOpError("expects ")
           << needed << " bytes of codes, but got " << op.getCodes().getType();
  codeRowsPerRow = parts.codes->rows() / int64_t(N);
  if (parts.patterns) {
    const WeightExpr &patterns = *parts.patterns;
    const size_t rowOfPatterns = patternBytes(K, element.getSparsity());
    if (!quant::info(patterns.format()).isPlain() ||
        patterns.rows() % int64_t(N) != 0 ||
        size_t(patterns.rows()) / N * patterns.rowBytes() < rowOfPatterns)
      return op.emitOpError("expects ")
             << N * rowOfPatterns << " bytes of patterns, but got "
             << op.getPatterns().getType();
    patternRowsPerRow = patterns.rows() / int64_t(N);
  }
  for (int64_t column : parts.order)
    if (column < 0 || column >= int64_t(K))
      return op.emitOpError("expects columns from 0 to ")
             << K - 1 << " in the order, but got " << column;

  size_t nextZero = 0;
  for (auto [spec, given, scale] :
       llvm::zip_equal(element.getLevels(), parts.scales, op.getScales())) {
    const size_t group = spec.group == kWholeRow ? K : size_t(spec.group);
    const size_t groups = (K + group - 1) / group;
    const auto count = [](const Expr &expr) {
      return size_t(expr->rows() * expr->columns());
    };
    if (count(given) != 1 && count(given) != N * groups)
      return op.emitOpError("expects ")
             << N * groups << " scales, but got " << count(given);
    if (failed(checkFinite(op, scale, *given)))
      return failure();
    if (spec.offsetKind == OffsetKind::None)
      continue;
    const Expr &zeros = parts.zeros[nextZero++];
    if (count(zeros) == 1 || count(zeros) == N * groups)
      continue;
    const size_t words = (N * spec.offset.bits + 31) / 32;
    if (!spec.hasZero() || quant::info(zeros->format()).blockBytes != 4 ||
        count(zeros) != words * groups)
      return op.emitOpError("expects ")
             << N * groups << " minima or zero points, or " << words * groups
             << " words of them, but got " << count(zeros);
  }
  const size_t entries = size_t(1) << code.bits;
  if (parts.codebook) {
    const size_t count =
        size_t(parts.codebook->rows() * parts.codebook->columns());
    if (count != entries && count != N * entries)
      return op.emitOpError("expects a codebook of ")
             << entries << " numbers, or one for each of " << N
             << " rows, but got " << count;
  }
  return success();
}

} // namespace

FailureOr<Expr> assemble(AssembleOp op, AssembleParts parts) {
  auto view =
      std::make_unique<Assembled>(op.getResult().getType(), std::move(parts));
  if (failed(view->check(op)))
    return failure();
  return Expr(std::move(view));
}

} // namespace mlir::llm::weights
