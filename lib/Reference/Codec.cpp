#include "lib/Reference/Codec.h"

#include "lib/Quant/CodeTables.h"
#include "lib/Quant/Half.h"
#include <cmath>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;
namespace quant = sprig::quant;

ArrayRef<float> reference::knownCodebook(StringRef name) {
  static const std::vector<float> iq4(std::begin(quant::kIQ4Values), std::end(quant::kIQ4Values));
  if (name == "iq4nl")
    return iq4;
  if (name == "nf4")
    return quant::kNF4;
  return {};
}

double reference::meaningOfCode(QuantCode code, ArrayRef<float> codebook, uint32_t stored) {
  switch (code.kind) {
  case CodeKind::Signed:
    return double(llvm::SignExtend64(stored, code.bits));
  case CodeKind::Unsigned:
    return stored;
  case CodeKind::Offset:
    return double(stored) - code.offset;
  case CodeKind::Trit:
    return double(stored) - 1;
  case CodeKind::F4E2M1:
    return quant::kE2M1Doubled[stored & 15] / 2.0;
  case CodeKind::F8E4M3:
    return quant::e4m3ToFloat(uint8_t(stored));
  case CodeKind::F8E5M2:
    return quant::e5m2ToFloat(uint8_t(stored));
  case CodeKind::Codebook:
    return codebook[stored];
  case CodeKind::Grid:
    break;
  }
  return 0;
}

/// To the nearest integer, ties to even, of numbers that a code could be: adding leaves no bits behind the point. The
/// function of the C library is a call on most processors, and every activation passes here.
static double toInteger(double value) {
  constexpr double kMagic = 6755399441055744.0; // 1.5 * 2^52: its unit in the last place is 1
  return (value + kMagic) - kMagic;
}

/// Nearest number of `mantissa` explicit bits whose smallest normal exponent is `least`, ties to even.
static double roundToBits(double value, int mantissa, int least, double largest) {
  if (value == 0 || !std::isfinite(value))
    return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double unit = std::ldexp(1.0, exponent - mantissa);
  return std::clamp(std::nearbyint(value / unit) * unit, -largest, largest);
}

static double roundToInteger(ScaleType type, double value) {
  const bool isSigned = type.kind == ScaleKind::Signed;
  const double largest = double((1u << (type.bits - isSigned)) - 1);
  return std::clamp(std::nearbyint(value), isSigned ? -largest - 1 : 0, largest);
}

double reference::roundScale(ScaleType type, double value) {
  switch (type.kind) {
  case ScaleKind::F16:
    return quant::halfToFloat(quant::floatToHalf(float(value)));
  case ScaleKind::BF16:
    return quant::bfloatToFloat(quant::floatToBfloat(float(value)));
  case ScaleKind::F32:
    return float(value);
  case ScaleKind::E8M0:
    return value > 0 ? std::ldexp(1.0, std::clamp(std::ilogb(value), -127, 127)) : std::ldexp(1.0, -127);
  case ScaleKind::UE4M3:
    return roundToBits(std::max(value, 0.0), 3, -6, 448);
  case ScaleKind::Unsigned:
  case ScaleKind::Signed:
    return roundToInteger(type, value);
  }
  return value;
}

/// What the largest scale of a group of the next level should be stored as: the whole range of a small type is used.
static double largestOf(ScaleType type) {
  switch (type.kind) {
  case ScaleKind::UE4M3:
    return 448;
  case ScaleKind::Unsigned:
    return double((1u << type.bits) - 1);
  case ScaleKind::Signed:
    return double((1u << (type.bits - 1)) - 1);
  default:
    return 1;
  }
}

namespace {

/// The codes of a type as numbers.
struct CodeSet {
  QuantCode code;
  ArrayRef<float> codebook;
  double least, largest;

  CodeSet(QuantizedType type) : code(type.getCode()), codebook(knownCodebook(type.getCodebook())) {
    least = double(code.minimum()), largest = double(code.maximum());
    if (code.kind == CodeKind::F4E2M1)
      least = -6, largest = 6;
    if (code.kind == CodeKind::F8E4M3)
      least = -448, largest = 448;
    if (code.kind == CodeKind::F8E5M2)
      least = -57344, largest = 57344;
    if (code.kind == CodeKind::Codebook) {
      least = *std::min_element(codebook.begin(), codebook.end());
      largest = std::max(-least, double(*std::max_element(codebook.begin(), codebook.end())));
    }
  }

  double nearest(double value) const {
    if (code.kind == CodeKind::F4E2M1)
      return roundToBits(value, 1, 0, 6);
    if (code.kind == CodeKind::F8E4M3)
      return roundToBits(value, 3, -6, 448);
    if (code.kind == CodeKind::F8E5M2)
      return roundToBits(value, 2, -14, 57344);
    if (code.kind != CodeKind::Codebook)
      return toInteger(std::clamp(value, least, largest));
    double best = codebook[0];
    for (float entry : codebook)
      if (std::fabs(entry - value) < std::fabs(best - value))
        best = entry;
    return best;
  }
};

/// Scales and offsets of the inner groups of one row.
class RowCodec {
public:
  RowCodec(QuantizedType type, int64_t K, double clip)
      : codes(type), levels(type.getLevels()), sparsity(type.getSparsity()), K(K), clip(clip) {}

  template <typename F> void round(F *row) const {
    if (sparsity.of)
      prune(row);
    const int64_t group = levels.empty() ? K : groupOf(0);
    const int64_t groups = (K + group - 1) / group;
    std::vector<double> scales(size_t(groups), 1), offsets(size_t(groups), 0);
    if (!levels.empty()) {
      for (int64_t g = 0; g < groups; ++g)
        measure(row + g * group, std::min(group, K - g * group), scales[size_t(g)], offsets[size_t(g)]);
      store(scales, 0, /*offsets=*/false);
      if (levels[0].hasMin())
        store(offsets, 0, /*offsets=*/true);
      else if (levels[0].hasZero())
        for (int64_t g = 0; g < groups; ++g) // measured as the number that is added
          offsets[size_t(g)] = scales[size_t(g)] == 0 ? 0 : zeroPoint(offsets[size_t(g)] / scales[size_t(g)]);
    }
    for (int64_t k = 0; k < K; ++k)
      row[k] = F(roundOne(row[k], scales[size_t(k / group)], offsets[size_t(k / group)]));
  }

private:
  int64_t groupOf(size_t level) const { return levels[level].group == kWholeRow ? K : levels[level].group; }

  /// The scale a group wants, and the number to add to its scaled codes.
  template <typename F> void measure(const F *x, int64_t count, double &scale, double &offset) const {
    const auto [low, high] = std::minmax_element(x, x + count);
    double least = double(*low) * clip, most = double(*high) * clip;
    const OffsetKind kind = levels[0].offsetKind;
    if (kind == OffsetKind::None) {
      const double magnitude = codes.least < 0 ? std::max(-least, most) : std::max(most, 0.0);
      // A power-of-two scale matches the exponents of the largest number and the largest code (OCP MX, section 6.3).
      scale = levels[0].scale.kind == ScaleKind::E8M0 && magnitude > 0
                  ? std::ldexp(1.0, std::ilogb(magnitude) - std::ilogb(codes.largest))
                  : magnitude / codes.largest;
      return;
    }
    if (kind != OffsetKind::AddMin)
      least = std::min(least, 0.0), most = std::max(most, 0.0);
    scale = (most - least) / (codes.largest - codes.least);
    offset = least - scale * codes.least;
    if (kind == OffsetKind::SubtractMin)
      offset = -offset; // stored as what is taken away
  }

  /// Replaces the wanted scales of a level by what is stored, the scales of the levels outside included.
  void store(std::vector<double> &wanted, size_t level, bool offsets) const {
    const QuantLevel &here = levels[level];
    const ScaleType type = offsets ? here.offset : here.scale;
    std::vector<double> outer;
    size_t inside = wanted.size(); // groups of this level in one of the next
    if (level + 1 < levels.size() && (!offsets || levels[level + 1].hasMin())) {
      inside = size_t(groupOf(level + 1) / groupOf(level));
      if (inside == 0)
        inside = 1;
      outer.assign((wanted.size() + inside - 1) / inside, 0);
      for (size_t i = 0; i < wanted.size(); ++i)
        outer[i / inside] = std::max(outer[i / inside], wanted[i] / largestOf(type));
      store(outer, level + 1, offsets);
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double unit = outer.empty() ? 1 : outer[i / inside];
      wanted[i] = unit == 0 ? 0 : unit * roundScale(type, wanted[i] / unit);
    }
  }

  /// The stored zero point for codes that stand `shift` above their number.
  double zeroPoint(double shift) const { return roundScale(levels[0].offset, -shift); }

  double roundOne(double x, double scale, double offset) const {
    if (levels.empty())
      return codes.nearest(x);
    switch (levels[0].offsetKind) {
    case OffsetKind::None:
      return scale == 0 ? 0 : scale * codes.nearest(x / scale);
    case OffsetKind::AddMin:
      return scale == 0 ? offset : scale * codes.nearest((x - offset) / scale) + offset;
    case OffsetKind::SubtractMin:
      return scale == 0 ? -offset : scale * codes.nearest((x + offset) / scale) - offset;
    case OffsetKind::Zero:
      return scale == 0 ? 0 : scale * (codes.nearest(x / scale + offset) - offset);
    }
    return x;
  }

  /// Zeroes all but the N largest magnitudes of each M.
  template <typename F> void prune(F *row) const {
    for (int64_t begin = 0; begin < K; begin += sparsity.of) {
      auto order = llvm::to_vector(llvm::seq<int64_t>(begin, std::min<int64_t>(begin + sparsity.of, K)));
      llvm::sort(order, [&](int64_t a, int64_t b) {
        return std::fabs(row[a]) != std::fabs(row[b]) ? std::fabs(row[a]) > std::fabs(row[b]) : a < b;
      });
      for (int64_t k : llvm::drop_begin(order, std::min<size_t>(order.size(), sparsity.kept)))
        row[k] = 0;
    }
  }

  CodeSet codes;
  ArrayRef<QuantLevel> levels;
  Sparsity sparsity;
  int64_t K;
  double clip;
};

} // namespace

template <typename F>
LogicalResult reference::roundToCodes(Workers &workers, QuantizedType type, F *numbers, int64_t rows, int64_t K,
                                      double clip) {
  if (type.hasGrid() || (type.hasCodebook() && knownCodebook(type.getCodebook()).empty()))
    return failure();
  const RowCodec codec(type, K, clip);
  workers.ranges(size_t(rows), 8, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      codec.round(numbers + int64_t(row) * K);
  });
  return success();
}

template LogicalResult reference::roundToCodes<float>(Workers &, QuantizedType, float *, int64_t, int64_t, double);
template LogicalResult reference::roundToCodes<double>(Workers &, QuantizedType, double *, int64_t, int64_t, double);
