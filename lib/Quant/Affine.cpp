#include "lib/Quant/Affine.h"
#include "lib/Quant/Decoders.h"
#include "lib/Quant/Half.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sprig::quant {
namespace {

// A format's number spells its parameters: this bit, the group in units of 32, the type of scales, the kind, the bits.
constexpr uint16_t kAffineBit = 0x8000;

/// Numbers of bits that no code has stand for codes of sparse formats, and for floats.
struct OtherWidth {
  uint32_t number, bits, among;
  AffineFormat::Code code = AffineFormat::Code::Integer;
};
constexpr OtherWidth kOthers[] = {{7, 4, 4},
                                  {9, 8, 4},
                                  {10, 4, 8},
                                  {11, 8, 8},
                                  {12, 8, 0, AffineFormat::Code::E4M3},
                                  {13, 8, 0, AffineFormat::Code::E5M2}};

bool isPossible(const AffineFormat &affine) {
  const bool bits = affine.bits >= 2 && affine.bits <= 8 && affine.bits != 7;
  const bool sparse = (affine.among == 4 || affine.among == 8) && (affine.bits == 4 || affine.bits == 8) &&
                      affine.kind <= AffineFormat::Kind::Zero;
  const bool book = affine.kind != AffineFormat::Kind::Book ||
                    (affine.bits <= 4 && affine.group == 0 && affine.scale == AffineFormat::Scale::F16);
  const bool code = !affine.isFloat() || (affine.bits == 8 && affine.kind == AffineFormat::Kind::Symmetric && !affine.among);
  return bits && book && code && (sparse || affine.among == 0) && affine.group % kAffineUnit == 0 &&
         affine.group <= kLargestAffineGroup;
}

const char *floatName(const AffineFormat &affine) { return affine.code == AffineFormat::Code::E4M3 ? "8E4M3" : "8E5M2"; }

/// "U4S_G64", "U4Z_G128", "I8S_ROW", "F8E4M3_G128_F32", "U3M_G64_BF16", "U4S_2OF4_G64", "U4B_ROW": read back by
/// affineOfName.
std::string nameOf(const AffineFormat &affine) {
  std::string name = affine.isFloat() ? "F" : affine.isSigned() ? "I" : "U";
  name += affine.isFloat() ? floatName(affine) : std::to_string(affine.bits);
  if (!affine.isFloat())
    name += "SZMB"[uint32_t(affine.kind)];
  if (affine.among)
    name += "_" + std::to_string(affine.kept()) + "OF" + std::to_string(affine.among);
  name += affine.group ? "_G" + std::to_string(affine.group) : "_ROW";
  return name + (affine.scale == AffineFormat::Scale::F16    ? ""
                 : affine.scale == AffineFormat::Scale::BF16 ? "_BF16"
                                                             : "_F32");
}

std::string typeOf(const AffineFormat &affine) {
  const std::string scale = affine.scale == AffineFormat::Scale::F16    ? "f16"
                            : affine.scale == AffineFormat::Scale::BF16 ? "bf16"
                                                                        : "f32";
  const std::string bits = std::to_string(affine.bits);
  if (affine.kind == AffineFormat::Kind::Book)
    return "<cb<learned, " + bits + ">>";
  std::string type = (affine.kind == AffineFormat::Kind::Symmetric ? "<i" : "<u") + bits + ", ";
  if (affine.isFloat())
    type = std::string("<f") + floatName(affine) + ", ";
  if (affine.among)
    type += std::to_string(affine.kept()) + ":" + std::to_string(affine.among) + ", ";
  type += (affine.group ? std::to_string(affine.group) : "*") + ":" + scale;
  if (affine.kind == AffineFormat::Kind::Zero)
    type += " zero u" + bits;
  if (affine.kind == AffineFormat::Kind::Minimum)
    type += "+" + scale;
  return type + ">";
}

/// A row of the table, made when it is first asked for.
struct AffineRow {
  explicit AffineRow(const AffineFormat &affine) : name(nameOf(affine)), type(typeOf(affine)) {
    const uint32_t units = affine.group / kAffineUnit; // 0: all of a row
    const bool book = affine.kind == AffineFormat::Kind::Book;
    planes.push_back({"codes", 0, affine.codeBytes()});
    planes.push_back({book ? "book" : "scales", 0, affine.scaleBytes() * affine.numbersAGroup(), units});
    if (affine.kind == AffineFormat::Kind::Zero)
      planes.push_back({"zeros", 0, 1, affine.bits <= 4 ? 2 * units : units});
    if (affine.among)
      planes.push_back({"patterns", 0, 4});
    info = {*formatOf(affine), name, kAffineUnit, 0, planes, type, nullptr, nullptr};
    info.isPlanar = true;
  }
  std::string name, type;
  std::vector<Plane> planes;
  FormatInfo info;
};

float readScale(const std::byte *at, AffineFormat::Scale type) {
  switch (type) {
  case AffineFormat::Scale::F16:
    return half(at);
  case AffineFormat::Scale::BF16:
    return bfloatToFloat(load<uint16_t>(at));
  case AffineFormat::Scale::F32:
    return load<float>(at);
  }
  return 0;
}

void writeScale(std::byte *at, AffineFormat::Scale type, float value) {
  switch (type) {
  case AffineFormat::Scale::F16:
    return store(at, floatToHalf(value));
  case AffineFormat::Scale::BF16:
    return store(at, floatToBfloat(value));
  case AffineFormat::Scale::F32:
    return store(at, value);
  }
}

/// Where the planes of a row of K numbers begin.
struct RowParts {
  RowParts(const AffineFormat &affine, size_t K)
      : scales(K / kAffineUnit * affine.codeBytes()),
        stride(affine.scaleBytes() * affine.numbersAGroup()),
        zeros(scales + affine.groups(K) * stride), patterns(zeros) {
    if (affine.kind == AffineFormat::Kind::Zero)
      patterns += affine.bits <= 4 ? (affine.groups(K) + 1) / 2 : affine.groups(K);
  }
  size_t scales, stride, zeros, patterns;
};

/// Calls use(number, bit of its code) for the numbers of a unit that are kept; of more than the format has place for,
/// the first ones.
template <typename Use> void eachSurvivor(const AffineFormat &affine, uint32_t pattern, Use use) {
  for (uint32_t index = 0; index < kAffineUnit / affine.among; ++index)
    for (uint32_t place = 0, rank = 0; place < affine.among && rank < affine.kept(); ++place)
      if (const uint32_t number = index * affine.among + place; pattern >> number & 1)
        use(number, survivorBit(affine, index, rank++));
}

/// What a stored code stands for, before a zero point is taken off.
double numberOf(const AffineFormat &affine, uint32_t code) {
  switch (affine.code) {
  case AffineFormat::Code::E4M3:
    return e4m3ToFloat(uint8_t(code));
  case AffineFormat::Code::E5M2:
    return e5m2ToFloat(uint8_t(code));
  case AffineFormat::Code::Integer:
    break;
  }
  return affine.isSigned() ? double(int8_t(code)) : double(code);
}

uint32_t codeAt(const std::byte *codes, size_t bit, uint32_t bits) {
  uint32_t value = uint32_t(codes[bit / 8]);
  if (bit % 8 + bits > 8)
    value |= uint32_t(codes[bit / 8 + 1]) << 8;
  return value >> (bit % 8) & ((1u << bits) - 1);
}

} // namespace

uint32_t survivorBit(const AffineFormat &affine, uint32_t index, uint32_t rank) {
  const SparseLanes lanes(affine);
  const uint32_t inLane = lanes.bits / affine.bits; // ranks that share a lane
  const uint32_t word = rank / inLane * lanes.sets + index % lanes.sets;
  return 32 * word + index / lanes.sets * lanes.bits + rank % inLane * affine.bits;
}

std::optional<Format> formatOf(const AffineFormat &affine) {
  if (!isPossible(affine))
    return std::nullopt;
  uint32_t width = affine.bits;
  for (const OtherWidth &known : kOthers)
    if (affine.among == known.among && affine.bits == known.bits && affine.code == known.code)
      width = known.number;
  return Format(kAffineBit | affine.group / kAffineUnit << 8 | uint32_t(affine.scale) << 6 | uint32_t(affine.kind) << 4 |
                width);
}

std::optional<AffineFormat> affineOf(Format format) {
  const uint32_t number = uint32_t(format);
  AffineFormat affine;
  affine.bits = number & 15;
  for (const OtherWidth &other : kOthers)
    if (affine.bits == other.number) {
      affine.bits = other.bits, affine.among = other.among, affine.code = other.code;
      break;
    }
  affine.kind = AffineFormat::Kind(number >> 4 & 3);
  affine.scale = AffineFormat::Scale(number >> 6 & 3);
  affine.group = (number >> 8 & 127) * kAffineUnit;
  const bool known = affine.scale <= AffineFormat::Scale::F32;
  if (!(number & kAffineBit) || !known || !isPossible(affine))
    return std::nullopt;
  return affine;
}

const FormatInfo *affineInfo(Format format) {
  // Made rows stay where they are, so that reading needs no lock.
  static std::array<std::atomic<const AffineRow *>, 0x8000> rows;
  static std::mutex mutex;
  if (!(uint16_t(format) & kAffineBit))
    return nullptr;
  std::atomic<const AffineRow *> &place = rows[uint16_t(format) & 0x7fff];
  if (const AffineRow *known = place.load(std::memory_order_acquire))
    return &known->info;
  const auto affine = affineOf(format);
  if (!affine)
    return nullptr;
  const std::lock_guard lock(mutex);
  if (!place.load(std::memory_order_relaxed)) {
    static std::vector<std::unique_ptr<AffineRow>> owned;
    owned.push_back(std::make_unique<AffineRow>(*affine));
    place.store(owned.back().get(), std::memory_order_release);
  }
  return &place.load(std::memory_order_relaxed)->info;
}

std::optional<Format> affineOfName(std::string_view name) {
  // Upper case as nameOf writes it; any other spelling is none.
  for (uint32_t number = kAffineBit; name.size() > 4 && number <= 0xffff; ++number) {
    const auto affine = affineOf(Format(number));
    if (affine && name[1] == char('0' + affine->bits) && nameOf(*affine) == name)
      return Format(number);
  }
  return std::nullopt;
}

void packAffineRow(Format format, const uint8_t *codes, const float *scales, const float *offsets, std::byte *row,
                   size_t K, const uint32_t *patterns) {
  const AffineFormat affine = *affineOf(format);
  const RowParts parts(affine, K);
  const size_t groups = affine.groups(K);
  std::memset(row, 0, info(format).rowBytes(K));
  const auto putCode = [&](size_t bit, uint8_t code) {
    const uint32_t value = uint32_t(code) << (bit % 8);
    row[bit / 8] |= std::byte(value & 0xff);
    if (value > 0xff)
      row[bit / 8 + 1] |= std::byte(value >> 8);
  };
  if (affine.among)
    for (size_t unit = 0; unit < K / kAffineUnit; ++unit) {
      store(row + parts.patterns + 4 * unit, patterns[unit]);
      eachSurvivor(affine, patterns[unit], [&](uint32_t number, uint32_t bit) {
        putCode(8 * affine.codeBytes() * unit + bit, codes[unit * kAffineUnit + number]);
      });
    }
  else
    for (size_t k = 0; k < K; ++k)
      putCode(k * affine.bits, codes[k]);
  for (uint32_t i = 0; i < affine.numbersAGroup() && affine.kind == AffineFormat::Kind::Book; ++i)
    writeScale(row + parts.scales + i * affine.scaleBytes(), affine.scale, scales[i]);
  for (size_t g = 0; g < groups && affine.kind != AffineFormat::Kind::Book; ++g) {
    std::byte *at = row + parts.scales + g * parts.stride;
    writeScale(at, affine.scale, scales[g]);
    if (affine.kind == AffineFormat::Kind::Minimum)
      writeScale(at + affine.scaleBytes(), affine.scale, offsets[g]);
    if (affine.kind == AffineFormat::Kind::Zero && affine.bits <= 4)
      row[parts.zeros + g / 2] |= std::byte(uint32_t(offsets[g]) << (g % 2 * 4));
    else if (affine.kind == AffineFormat::Kind::Zero)
      row[parts.zeros + g] = std::byte(uint32_t(offsets[g]));
  }
}

void decodeAffineRow(Format format, const std::byte *row, float *numbers, size_t K) {
  const AffineFormat affine = *affineOf(format);
  const RowParts parts(affine, K);
  const size_t group = affine.group ? affine.group : K;
  if (affine.kind == AffineFormat::Kind::Book) {
    for (size_t k = 0; k < K; ++k)
      numbers[k] = readScale(row + parts.scales + codeAt(row, k * affine.bits, affine.bits) * affine.scaleBytes(), affine.scale);
    return;
  }
  for (size_t begin = 0, g = 0; begin < K; begin += group, ++g) {
    const std::byte *at = row + parts.scales + g * parts.stride;
    const double scale = readScale(at, affine.scale);
    double zero = affine.half(), minimum = 0;
    if (affine.kind == AffineFormat::Kind::Minimum)
      minimum = readScale(at + affine.scaleBytes(), affine.scale);
    if (affine.kind == AffineFormat::Kind::Zero)
      zero = affine.bits <= 4 ? uint32_t(row[parts.zeros + g / 2]) >> (g % 2 * 4) & 15 : uint32_t(row[parts.zeros + g]);
    const size_t end = K - begin < group ? K : begin + group;
    const auto decoded = [&](size_t bit) {
      const uint32_t code = codeAt(row, bit, affine.bits);
      return float(scale * (numberOf(affine, code) - zero) + minimum);
    };
    for (size_t k = begin; k < end && !affine.among; ++k)
      numbers[k] = decoded(k * affine.bits);
    for (size_t k = begin; k < end && affine.among; k += kAffineUnit) {
      const size_t unit = k / kAffineUnit;
      std::fill_n(numbers + k, kAffineUnit, 0.0f);
      eachSurvivor(affine, load<uint32_t>(row + parts.patterns + 4 * unit), [&](uint32_t number, uint32_t bit) {
        numbers[k + number] = decoded(8 * affine.codeBytes() * unit + bit);
      });
    }
  }
}

} // namespace sprig::quant
