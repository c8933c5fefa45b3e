#include "codegen/Kernels/Linear.h"
#include "Harness.h"
#include "codegen/Kernels/BlockCodec.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Layout.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <map>

namespace quant = sprig::quant;
using quant::Format;

namespace mlir::llm::test {
namespace {

/// Random rows of a format of groups, with a scale of zero now and then.
std::vector<std::byte> randomGroups(Format format, int64_t n, int64_t k,
                                    Random &random) {
  const quant::AffineFormat affine = *quant::affineOf(format);
  const size_t row = quant::info(format).rowBytes(size_t(k));
  const size_t groups = affine.groups(size_t(k));
  std::vector<std::byte> bytes(size_t(n) * row);
  std::vector<uint8_t> codes(size_t(k), 0);
  for (int64_t i = 0; i < n; ++i) {
    for (uint8_t &code : codes)
      code = uint8_t(random.below(1u << affine.bits));
    std::vector<float> scales = random.numbers(groups);
    std::vector<float> offsets = random.numbers(groups);
    scales[random.below(uint32_t(groups))] *= float(random.below(8) != 0);
    if (affine.kind == quant::AffineFormat::Kind::Zero)
      for (float &zero : offsets)
        zero = float(random.below(1u << affine.bits));
    quant::packAffineRow(format, codes.data(), scales.data(), offsets.data(),
                         bytes.data() + size_t(i) * row, size_t(k));
  }
  return bytes;
}

/// Random weights of a format: encoded where the format has an encoder, else
/// random bytes with sane scales.
std::vector<std::byte> randomWeight(Format format, int64_t n, int64_t k,
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

Weight makeWeight(Format format, int64_t n, int64_t k, Random &random) {
  Weight weight;
  weight.source = randomWeight(format, n, k, random);
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

double activation(const std::string &kind, double x) {
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

  std::vector<float> runOn(const TargetProfile &profile, const LinearSpec &spec,
                           uint32_t first, uint32_t count) {
    const CompiledKernel *kernel =
        compile("linear", spec.toAttr(context()), profile);
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
      if (binding.role.find('.') != std::string::npos) {
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

std::string describe(const LinearSpec &spec) {
  std::string text;
  llvm::raw_string_ostream(text) << spec.toAttr(context());
  return text;
}

void check(const LinearSpec &spec, const TargetProfile &profile, uint32_t width,
           uint64_t seed) {
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

int64_t blockOf(Format format) { return quant::info(format).blockElements; }

/// A profile whose schedule for every linear kernel is `choices`.
TargetProfile scheduled(StringRef base, ScheduleValues choices) {
  TargetProfile made = profile(base);
  made.schedules["linear"] = {{{}, choices}};
  made.name += " " + std::to_string(llvm::xxh3_64bits(printProfile(made)));
  return made;
}

/// The target with short kernels, one row tile a lane: drivers take long over
/// wide tiles of the larger formats, and what a tile repeats needs no second
/// look.
const TargetProfile &narrow(StringRef base) {
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

TEST(Linear, EveryFormatAgreesWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (Format format : BlockCodec::formats())
    for (const std::string &target :
         {deviceProfile().name, std::string("generic")}) {
      LinearSpec spec;
      spec.format = format;
      spec.k = std::max<int64_t>(blockOf(format), 32) * 2;
      spec.n = 11;
      spec.tokens = target == "generic" ? 1 : 2;
      check(spec, narrow(target), uint32_t(spec.tokens), random.bits());
    }
}

using Affine = quant::AffineFormat;

/// Every width, kind, type of scale, and groups with and without tails.
std::vector<Format> groupFormats() {
  std::vector<Format> list;
  for (uint32_t bits : {2u, 3u, 4u, 5u, 6u, 8u})
    for (Affine::Kind kind :
         {Affine::Kind::Symmetric, Affine::Kind::Zero, Affine::Kind::Minimum}) {
      const auto scale = Affine::Scale((bits + unsigned(kind)) % 3);
      const uint32_t group = std::array{32u, 64u, 128u, 0u}[list.size() % 4];
      list.push_back(*quant::formatOf({bits, kind, scale, group}));
    }
  return list;
}

TEST(Linear, FormatsOfGroupsAgreeWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(3);
  for (Format format : groupFormats()) {
    SCOPED_TRACE(quant::info(format).name);
    LinearSpec spec;
    spec.format = format;
    spec.k = 288; // 4.5 groups of 64, 2.25 of 128
    spec.n = 19;
    spec.tokens = random.below(2) ? 1 : 4;
    check(spec, profile(deviceProfile().name), uint32_t(spec.tokens),
          random.bits());
  }
}

/// A weight alone is its own product with one: to the last bit what the
/// reference decodes.
TEST(Linear, FormatsOfGroupsDecodeToTheLastBit) {
  SKIP_WITHOUT_DEVICE();
  for (Format format : groupFormats()) {
    SCOPED_TRACE(quant::info(format).name);
    // A product with 24 bits of scale is rounded before a minimum is added.
    const Affine affine = *quant::affineOf(format);
    if (affine.kind == Affine::Kind::Minimum &&
        affine.scale == Affine::Scale::F32)
      continue;
    LinearSpec spec;
    spec.format = format;
    spec.k = 96;
    spec.n = 40;
    Problem problem(spec, 1, 7);
    for (int64_t k : {0, 13, 31, 32, 63, 95})
      problem.expectColumn(profile(deviceProfile().name), k);
  }
}

LinearSpec randomSpec(Random &random) {
  LinearSpec spec;
  // Half of the cases are the formats of the default model and the plain ones.
  static const std::vector<Format> kCommon = {
      Format::Q4_1, Format::Q8_0, Format::Q4_0, Format::F32, Format::F16};
  auto every = BlockCodec::formats();
  spec.format = random.below(2) ? random.among(kCommon)
                                : every[random.below(uint32_t(every.size()))];
  int64_t block = blockOf(spec.format);
  spec.k = block == 1
               ? random.among<int64_t>({1, 3, 4, 31, 32, 33, 36, 64, 65, 100})
               : block * (1 + random.below(block >= 256 ? 2 : 4));
  spec.n = random.among<int64_t>({1, 7, 8, 9, 31, 32, 33, 40, 63, 65, 72});
  spec.tokens = random.among<int64_t>({1, 1, 2, 4, 8});
  if (block >= 256)
    spec.tokens = std::min<int64_t>(
        spec.tokens,
        2); // long kernels: compiling them would take most of the time
  switch (random.below(5)) {
  case 0:
    spec.gate = random.among<std::string>({"silu", "gelu", "gelu_tanh"});
    break;
  case 1:
    spec.outputs = {8, 8, 1 + int64_t(random.below(20))};
    spec.n = 16 + spec.outputs[2];
    break;
  case 2:
    spec.stride = spec.n + 5;
    break;
  default:
    break;
  }
  spec.norm = random.below(2);
  if (spec.norm && random.below(2)) {
    spec.eps = 1e-5;
    spec.count = random.below(2) ? 0 : spec.k / 2 + 1;
  }
  spec.bias = spec.gate.empty() && random.below(2);
  spec.residual = spec.outputs.empty() && random.below(2);
  if (!spec.outputs.empty())
    spec.bias = false;
  // The smallest targets have eight storage buffers.
  size_t planes =
      quant::info(spec.format).planes.size() * (spec.gate.empty() ? 1 : 2);
  if (planes + 2 + spec.norm * (2 - spec.ownFactor()) + spec.bias + spec.residual +
          spec.outputs.size() >
      8) {
    spec.norm = spec.bias = false;
    spec.eps = 0;
    spec.count = 0;
    if (planes > 5)
      spec.residual = false;
  }
  return spec;
}

TEST(Linear, RandomShapesAgreeWithDoublePrecision) {
  SKIP_WITHOUT_DEVICE();
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    LinearSpec spec = randomSpec(random);
    bool other = i % 3 == 0;
    if (other) // its kernels are longer: drivers compile them for seconds
      spec.tokens = std::min<int64_t>(spec.tokens, 2);
    StringRef name = other ? "generic" : StringRef(deviceProfile().name);
    const TargetProfile &target =
        blockOf(spec.format) > 32 || other ? narrow(name) : profile(name);
    for (uint32_t width : {1u, 7u, 64u})
      check(spec, target, width, random.bits());
  }
}

/// Runs `width` tokens at once with tiles of `tokens`.
std::vector<float> runTiles(const LinearSpec &base,
                            const TargetProfile &profile, int64_t tokens,
                            uint32_t width) {
  LinearSpec spec = base;
  spec.tokens = tokens;
  return Problem(base, 16, 77).runOn(profile, spec, 0, width);
}

TEST(Linear, BitsDoNotDependOnTilesOrSchedules) {
  SKIP_WITHOUT_DEVICE();
  struct Contract {
    std::string target;
    std::vector<ScheduleValues> schedules;
  };
  std::vector<Contract> contracts = {
      {"generic",
       {{{"rows", 2}, {"split", 4}},
        {{"rows", 1}, {"split", 4}, {"load", 32}},
        {{"rows", 4}, {"split", 4}, {"waves", 2}}}}};
  if (deviceProfile().name == "lavapipe")
    contracts.push_back(
        {"lavapipe",
         {{{"x", "shuffle"}, {"rows", 4}},
          {{"x", "shuffle"}, {"rows", 2}, {"prescale", 1}, {"load", 64}},
          {{"x", "broadcast"}, {"rows", 1}, {"waves", 2}},
          {{"x", "direct"}, {"rows", 3}}}});
  for (auto [format, k] : {std::pair(Format::Q4_1, 96),
                           {Format::Q8_0, 64},
                           {Format::Q4_K, 256},
                           {Format::F16, 100}})
    for (const Contract &contract : contracts) {
      LinearSpec spec;
      spec.format = format;
      spec.k = k;
      spec.n = 40;
      spec.norm = true;
      spec.eps = 1e-5;
      std::vector<float> first;
      for (auto [i, choices] : llvm::enumerate(contract.schedules)) {
        TargetProfile target = scheduled(contract.target, choices);
        for (int64_t tokens : {1, 2, 3, 6, 8}) {
          // Compiling wide tiles takes drivers long: they are tried once.
          bool isLong = blockOf(format) >= 256 || contract.target == "generic";
          if ((i || format != Format::Q4_1 || isLong) && tokens != 1 &&
              tokens != (isLong ? 2 : 3))
            continue;
          std::vector<float> y = runTiles(spec, target, tokens, 16);
          if (first.empty())
            first = y;
          ASSERT_EQ(y.size(), first.size());
          EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * 4), 0)
              << describe(spec) << " tiles of " << tokens << " on "
              << contract.target << ", schedule " << i;
        }
        // One token alone.
        std::vector<float> alone = runTiles(spec, target, 1, 1);
        ASSERT_EQ(alone.size(), size_t(spec.n));
        EXPECT_EQ(std::memcmp(alone.data(), first.data(), alone.size() * 4), 0)
            << describe(spec);
      }
    }
}

TEST(Linear, GroupsPastTheLimitFoldIntoTheThirdDimension) {
  SKIP_WITHOUT_DEVICE();
  TargetProfile narrow = scheduled("generic", {{"rows", 1}});
  narrow.limits.groups = 3;
  LinearSpec spec;
  spec.format = Format::F32;
  spec.k = 8;
  spec.n = 8 * 7 + 3;
  auto interface = describeKernel("linear", spec.toAttr(context()), narrow,
                                  UnknownLoc::get(context()));
  ASSERT_TRUE(succeeded(interface));
  EXPECT_EQ(interface->groupsFor(1), (std::array<uint32_t, 3>{3, 1, 3}));
  check(spec, narrow, 2, 5);
}

TEST(Linear, SpecsCrossToAttributesAndBack) {
  Random random(3);
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  for (int i = 0; i < 50; ++i) {
    LinearSpec spec = randomSpec(random);
    FailureOr<LinearSpec> again =
        LinearSpec::fromAttr(spec.toAttr(context()), emitError);
    ASSERT_TRUE(succeeded(again)) << takeDiagnostics();
    EXPECT_EQ(describe(*again), describe(spec));
  }
}

std::string refusal(const LinearSpec &spec, const TargetProfile &target) {
  auto interface = describeKernel("linear", spec.toAttr(context()), target,
                                  UnknownLoc::get(context()));
  EXPECT_TRUE(failed(interface));
  return takeDiagnostics();
}

TEST(Linear, RefusesWhatItCannotDo) {
  const TargetProfile &generic = profile("generic");
  LinearSpec spec;
  spec.n = 8;
  spec.k = 33;
  spec.format = Format::Q4_1;
  EXPECT_EQ(refusal(spec, generic), "linear kernel expects k to be a multiple "
                                    "of the block of Q4_1, 32, but got 33");
  spec.k = 32;
  spec.gate = "sine";
  EXPECT_EQ(refusal(spec, generic),
            "linear kernel expects gate to be silu, gelu, gelu_tanh or relu, "
            "but got 'sine'");
  spec.gate = "";
  spec.format = Format::I32;
  EXPECT_EQ(
      refusal(spec, generic),
      "linear kernel expects a format that kernels can read, but got 'I32'");
  spec.format = Format::Q4_1;
  EXPECT_EQ(refusal(spec, scheduled("generic", {{"rows", 5}}))
                .find("schedule of linear on target"),
            0u);
  EXPECT_NE(refusal(spec, scheduled("generic", {{"x", "shuffle"}}))
                .find("expects known subgroups of 8 or more that can shuffle"),
            std::string::npos);
  spec.n = 300'000;
  spec.k = 1024;
  EXPECT_NE(
      refusal(spec, generic)
          .find(
              "expects at most 134217728 bytes in the binding of weight.codes"),
      std::string::npos);
}

/// Every rule of every profile must be one that the family understands.
TEST(Linear, ProfilesHaveLegalSchedules) {
  auto emitError = [] { return mlir::emitError(UnknownLoc::get(context())); };
  for (const std::string &name : listProfiles()) {
    const TargetProfile &target = profile(name);
    auto rules = target.schedules.find("linear");
    if (rules == target.schedules.end())
      continue;
    std::optional<std::pair<int64_t, int64_t>> contract;
    for (const ScheduleRule &rule : rules->second) {
      FailureOr<LinearSchedule> schedule =
          LinearSchedule::from(rule.choices, target, emitError);
      ASSERT_TRUE(succeeded(schedule)) << takeDiagnostics();
      // A token's bits would depend on the width of the step if rules for other
      // token counts summed in another order.
      if (rule.when.count("tokens") || contract) {
        auto sums = std::pair(schedule->split, schedule->chains);
        EXPECT_EQ(contract.value_or(sums), sums) << name;
        contract = sums;
      }
    }
  }
}

} // namespace
} // namespace mlir::llm::test
