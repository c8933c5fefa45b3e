// A linear kernel's inputs, what double precision makes of them, and what the
// device does.
#ifndef SPRIG_TEST_CODEGEN_KERNELS_LINEARPROBLEM_H
#define SPRIG_TEST_CODEGEN_KERNELS_LINEARPROBLEM_H

#include "Harness.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/Linear.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Layout.h"
#include "lib/Quant/Patterns.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <map>

namespace mlir::llm::test {

namespace quant = sprig::quant;
using quant::Format;

/// Random rows of a format of groups, with a scale of zero now and then.
inline std::vector<std::byte> randomGroups(Format format, int64_t n, int64_t k,
                                    Random &random) {
  const quant::AffineFormat affine = *quant::affineOf(format);
  const size_t row = quant::info(format).rowBytes(size_t(k));
  const size_t groups = affine.groups(size_t(k));
  std::vector<std::byte> bytes(size_t(n) * row);
  std::vector<uint8_t> codes(size_t(k), 0);
  for (int64_t i = 0; i < n; ++i) {
    for (uint8_t &code : codes)
      code = uint8_t(random.below(1u << affine.bits));
    const bool book = affine.kind == quant::AffineFormat::Kind::Book;
    std::vector<float> scales =
        random.numbers(book ? affine.numbersAGroup() : groups);
    if (affine.isFloat()) { // sane numbers, subnormal ones among them
      for (uint8_t &code : codes)
        code = uint8_t((code & 0x80) | (code & 0x7f) % 0x58);
      for (float &scale : scales)
        scale /= 32;
    }
    std::vector<float> offsets = random.numbers(groups);
    scales[random.below(uint32_t(groups))] *= float(random.below(8) != 0);
    if (affine.kind == quant::AffineFormat::Kind::Zero)
      for (float &zero : offsets)
        zero = float(random.below(1u << affine.bits));
    std::vector<uint32_t> patterns(size_t(k) / 32);
    for (uint32_t place = 0; affine.among && place < k; place += affine.among)
      patterns[place / 32] |=
          quant::patternOfNumber(affine.kept(), affine.among,
                                 random.below(affine.among == 4 ? 6 : 70))
          << place % 32;
    quant::packAffineRow(format, codes.data(), scales.data(), offsets.data(),
                         bytes.data() + size_t(i) * row, size_t(k),
                         patterns.data());
  }
  return bytes;
}

/// Random weights of a format: encoded where the format has an encoder, else
/// random bytes with sane scales.
inline std::vector<std::byte> randomWeight(Format format, int64_t n, int64_t k,
                                    Random &random) {
  const quant::FormatInfo &info = quant::info(format);
  if (info.isPlanar)
    return randomGroups(format, n, k, random);
  std::vector<std::byte> bytes(size_t(n) * info.rowBytes(size_t(k)));
  std::vector<float> values = random.numbers(size_t(n * k));
  if (quant::encode(format, values.data(), bytes.data(), values.size()))
    return bytes;
  for (std::byte &byte : bytes)
    byte = std::byte(random.bits());
  for (size_t block = 0; block < bytes.size(); block += info.blockBytes)
    for (const quant::Plane &plane : info.planes) {
      // The top digits of its four words are an f16 scale, the first one last.
      if (format == Format::IQ1_M && plane.name == "subscales")
        bytes[block + plane.offset + 7] =
            std::byte(0x20 | (uint8_t(bytes[block + plane.offset + 7]) & 15));
      if (plane.name != "scales")
        continue;
      // f16 scales of about 1/64 (subnormal now and then), or exponents and
      // E4M3 numbers near it.
      for (uint32_t i = 0; i < plane.bytes; i += 2) {
        uint16_t half = random.below(16)
                            ? uint16_t(0x2000 + random.below(0x400))
                            : uint16_t(random.below(0x400));
        bytes[block + plane.offset + i] = std::byte(half & 0xff);
        if (i + 1 < plane.bytes)
          bytes[block + plane.offset + i + 1] = std::byte(half >> 8);
      }
      if (format == Format::MXFP4)
        bytes[block + plane.offset] = std::byte(120 + random.below(4));
      if (format == Format::NVFP4)
        for (uint32_t i = 0; i < 4; ++i)
          bytes[block + plane.offset + i] = std::byte(random.below(0x40));
    }
  return bytes;
}

struct Weight {
  std::vector<std::byte> source, tiled;
  std::vector<float> values;
};

inline Weight tileWeight(Format format, int64_t n, int64_t k,
                         std::vector<std::byte> source) {
  Weight weight;
  weight.source = std::move(source);
  auto layout = quant::describe(format, size_t(n), size_t(k));
  weight.tiled.resize(layout.bytes);
  quant::relayout(layout, weight.source.data(), weight.tiled.data());
  weight.values.resize(size_t(n * k));
  const quant::FormatInfo &info = quant::info(format);
  for (int64_t row = 0; row < n; ++row)
    quant::decode(format,
                  weight.source.data() + size_t(row) * info.rowBytes(size_t(k)),
                  weight.values.data() + row * k, size_t(k));
  return weight;
}

inline Weight makeWeight(Format format, int64_t n, int64_t k, Random &random) {
  return tileWeight(format, n, k, randomWeight(format, n, k, random));
}

inline double activation(const std::string &kind, double x) {
  if (kind == "silu")
    return x / (1 + std::exp(-x));
  if (kind == "gelu")
    return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  return x / 2 *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// One problem: inputs, and the kernel's outputs as rows of N.
class Problem {
public:
  Problem(const LinearSpec &spec, uint32_t width, uint64_t seed)
      : spec(spec), width(width) {
    Random random(seed);
    weights.push_back(makeWeight(spec.format, spec.n, spec.k, random));
    if (!spec.gate.empty())
      weights.push_back(makeWeight(spec.format, spec.n, spec.k, random));
    x = random.numbers(size_t(width * spec.k));
    gamma = random.numbers(size_t(spec.k));
    factor = random.numbers(width);
    bias = random.numbers(size_t(spec.n));
    residual = random.numbers(size_t(width * spec.n));
  }

  /// The weight is this one, of the format's bytes, and not a random one.
  void hold(std::vector<std::byte> source) {
    weights[0] = tileWeight(spec.format, spec.n, spec.k, std::move(source));
  }

  const std::vector<float> &input() const { return x; }
  void setInput(size_t at, float number) { x[at] = number; }

  std::vector<float> runOn(const TargetProfile &profile, const LinearSpec &spec,
                           uint32_t first, uint32_t count) {
    return runKernel(compile("linear", spec.toAttr(context()), profile), spec,
                     first, count);
  }

  /// The same with a kernel that is there; null: a failure that was reported.
  std::vector<float> runKernel(const CompiledKernel *kernel,
                               const LinearSpec &spec, uint32_t first,
                               uint32_t count) {
    if (!kernel)
      return {};
    uint32_t tile = kernel->interface.tokenTile,
             rows = (count + tile - 1) / tile * tile;
    // Rows past the width hold what must not leak anywhere.
    auto perToken = [&](const std::vector<float> &all, int64_t numbers) {
      std::vector<float> part(all.begin() + first * numbers,
                              all.begin() + (first + count) * numbers);
      part.resize(size_t(rows * numbers), std::nanf(""));
      return toBytes(part);
    };
    auto layout = quant::describe(spec.format, size_t(spec.n), size_t(spec.k));
    std::vector<Bytes> buffers;
    size_t planes = 0;
    for (const KernelBinding &binding : kernel->interface.bindings) {
      if (StringRef(binding.role).ends_with(kAllPlanes)) {
        const Weight &weight = weights[planes++];
        EXPECT_EQ(binding.bytes, weight.tiled.size());
        const auto *bytes =
            reinterpret_cast<const uint8_t *>(weight.tiled.data());
        buffers.emplace_back(bytes, bytes + binding.bytes);
      } else if (binding.role == kTableRole) {
        buffers.push_back(toBytes(BlockCodec::find(spec.format)->table().vec()));
      } else if (binding.role.find('.') != std::string::npos) {
        const Weight &weight = weights[planes / layout.planes.size()];
        const quant::PlaneLayout &plane =
            layout.planes[planes++ % layout.planes.size()];
        const auto *bytes =
            reinterpret_cast<const uint8_t *>(weight.tiled.data()) +
            plane.offset;
        EXPECT_EQ(binding.bytes, plane.bytes);
        buffers.emplace_back(bytes, bytes + plane.bytes);
      } else if (binding.role == "x") {
        buffers.push_back(perToken(x, spec.k));
      } else if (binding.role == "gamma") {
        buffers.push_back(toBytes(gamma));
      } else if (binding.role == "factor") {
        buffers.push_back(perToken(factor, 1));
      } else if (binding.role == "bias") {
        buffers.push_back(toBytes(bias));
      } else if (binding.role == "residual") {
        buffers.push_back(perToken(residual, spec.n));
      } else {
        buffers.emplace_back(binding.bytes * rows, uint8_t(0xee));
      }
    }
    run(*kernel, buffers, count);
    return gather(*kernel, buffers, count);
  }

  /// The product with a unit vector is a column of the weight, but for the sign
  /// of a zero.
  void expectColumn(const TargetProfile &profile, int64_t k) {
    std::fill(x.begin(), x.end(), 0.0f);
    x[size_t(k)] = 1;
    const std::vector<float> y = runOn(profile, spec, 0, 1);
    ASSERT_EQ(y.size(), size_t(spec.n));
    for (int64_t n = 0; n < spec.n; ++n)
      EXPECT_EQ(y[size_t(n)], weights[0].values[size_t(n * spec.k + k)])
          << "row " << n << " column " << k;
  }

  std::vector<double> expected() const {
    std::vector<double> y(size_t(width * spec.n));
    for (uint32_t t = 0; t < width; ++t)
      for (int64_t n = 0; n < spec.n; ++n) {
        double sums[2] = {0, 0};
        for (size_t w = 0; w < weights.size(); ++w) {
          for (int64_t k = 0; k < spec.k; ++k)
            sums[w] += double(weights[w].values[n * spec.k + k]) *
                       x[t * spec.k + k] * (spec.norm ? gamma[k] : 1.0f);
          sums[w] *= spec.ownFactor() ? ownFactor(t)
                     : spec.norm      ? double(factor[t])
                                      : 1.0;
        }
        double value = sums[0] + (spec.bias ? bias[n] : 0.0f);
        if (!spec.gate.empty())
          value = activation(spec.gate, value) * sums[1];
        y[t * spec.n + n] =
            value + (spec.residual ? residual[t * spec.n + n] : 0.0f);
      }
    return y;
  }

  /// What rounding may do: every product may be off by a few units of its size.
  double tolerance() const {
    double largest = 0;
    for (const Weight &weight : weights)
      for (float value : weight.values)
        largest = std::max(largest, double(std::fabs(value)));
    double sum = largest * double(spec.k) * (spec.ownFactor() ? 2 : 1);
    double bound = 4e-7 * sum + 4e-6;
    return spec.gate.empty() ? bound : bound * (2 + sum);
  }

private:
  double ownFactor(uint32_t t) const {
    double squares = 0;
    for (int64_t k = 0; k < spec.k; ++k)
      squares += double(x[t * spec.k + k]) * x[t * spec.k + k];
    return 1 / std::sqrt(squares / double(spec.count ? spec.count : spec.k) +
                         spec.eps);
  }

  std::vector<float> gather(const CompiledKernel &kernel,
                            const std::vector<Bytes> &buffers,
                            uint32_t count) const {
    std::vector<float> y;
    std::vector<std::pair<std::vector<float>, size_t>> outs;
    for (auto [i, binding] : llvm::enumerate(kernel.interface.bindings))
      if (binding.access == Access::Write)
        outs.push_back(
            {fromBytes<float>(buffers[i]), size_t(binding.bytes / 4)});
    for (uint32_t t = 0; t < count; ++t)
      for (auto &[values, stride] : outs)
        y.insert(y.end(), values.begin() + ptrdiff_t(t * stride),
                 values.begin() +
                     ptrdiff_t(t * stride + std::min(stride, size_t(spec.n))));
    return y;
  }

  LinearSpec spec;
  uint32_t width;
  std::vector<Weight> weights;
  std::vector<float> x, gamma, factor, bias, residual;
};

inline std::string describe(const LinearSpec &spec) {
  std::string text;
  llvm::raw_string_ostream(text) << spec.toAttr(context());
  return text;
}

inline int64_t blockOf(Format format) { return quant::info(format).blockElements; }

/// A profile whose schedule for every linear kernel is `choices`.
inline TargetProfile scheduled(StringRef base, ScheduleValues choices) {
  TargetProfile made = profile(base);
  made.schedules["linear"] = {{{}, choices}};
  made.name += " " + std::to_string(llvm::xxh3_64bits(printProfile(made)));
  return made;
}

/// Runs a problem of that seed, and compares with products in double precision.
inline void check(const LinearSpec &spec, const TargetProfile &profile,
                  uint32_t width, uint64_t seed) {
  Problem problem(spec, width, seed);
  std::vector<float> y = problem.runOn(profile, spec, 0, width);
  std::vector<double> expected = problem.expected();
  ASSERT_EQ(y.size(), expected.size()) << describe(spec);
  double tolerance = problem.tolerance(), worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    double error = std::fabs(y[i] - expected[i]);
    if (!(error <= worst)) {
      worst = error;
      where = i;
    }
  }
  EXPECT_LE(worst, tolerance)
      << describe(spec) << " width " << width << " seed " << seed << " on "
      << profile.name << ": row " << where / size_t(spec.n) << " column "
      << where % size_t(spec.n) << " is " << y[where] << " instead of "
      << expected[where];
}

/// The target with short kernels, one row tile a lane: drivers take long over
/// wide tiles of the larger formats, and what a tile repeats needs no second
/// look.
inline const TargetProfile &narrow(StringRef base) {
  static std::map<std::string, TargetProfile> known;
  auto it = known.find(base.str());
  if (it == known.end()) {
    ScheduleValues choices = {{"rows", 1}};
    if (base == "lavapipe")
      choices = {{"rows", 1}, {"x", "shuffle"}, {"prescale", 1}, {"texels", 3}};
    it = known.emplace(base.str(), scheduled(base, choices)).first;
  }
  return it->second;
}

} // namespace mlir::llm::test

#endif // SPRIG_TEST_CODEGEN_KERNELS_LINEARPROBLEM_H
