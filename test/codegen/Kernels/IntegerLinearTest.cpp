#include "codegen/Kernels/IntegerLinear.h"
#include "LinearProblem.h"

namespace mlir::llm::test {
namespace {

using Affine = quant::AffineFormat;

/// What rows of IntegerRows.h say.
std::vector<float> numbersOf(const Bytes &bytes, const IntegerRow &row,
                             uint32_t rows) {
  const auto words = fromBytes<uint32_t>(bytes);
  std::vector<float> numbers;
  for (uint32_t t = 0; t < rows; ++t)
    for (int64_t k = 0; k < row.width; ++k) {
      const uint32_t *own = &words[t * size_t(row.words())];
      float scale;
      std::memcpy(&scale, &own[row.codes() + k / row.group], 4);
      numbers.push_back(float(int8_t(own[k / 4] >> k % 4 * 8)) * scale);
    }
  return numbers;
}

/// Runs the kernel, and compares with the rule of llm.quantize.
Bytes quantize(const QuantizeRowsSpec &s, const TargetProfile &profile,
               const std::vector<float> &x, const std::vector<float> &gamma,
               uint32_t width, uint32_t padded) {
  const CompiledKernel *kernel =
      compile("quantize", s.toAttr(context()), profile);
  if (!kernel)
    return {};
  std::vector<Bytes> buffers = {toBytes(x)};
  if (s.gamma)
    buffers.push_back(toBytes(gamma));
  buffers.emplace_back(kernel->interface.bindings.back().bytes * padded,
                       uint8_t(0xee));
  run(*kernel, buffers, width);
  const std::vector<float> y = s.rounded
                                   ? fromBytes<float>(buffers.back())
                                   : numbersOf(buffers.back(), s.row(), width);
  const int64_t group = s.row().group;
  auto factorOf = [&](size_t token) {
    double squares = 0;
    for (int64_t i = 0; i < s.width; ++i)
      squares += double(x[token * s.width + i]) * x[token * s.width + i];
    return s.norm ? 1 / std::sqrt(squares / double(s.width) + s.eps) : 1;
  };
  for (size_t row = 0; row < width * size_t(s.width); row += size_t(group)) {
    std::vector<double> right;
    double most = 0;
    const double factor = factorOf(row / s.width);
    for (int64_t i = 0; i < group; ++i) {
      right.push_back(x[row + i] * factor * (s.gamma ? gamma[(row + i) % s.width] : 1.0f));
      most = std::max(most, std::fabs(right.back()));
    }
    const double step = most / double((1 << (s.bits - 1)) - 1);
    for (int64_t i = 0; i < group; ++i)
      EXPECT_NEAR(y[row + i], right[i], step * 0.501)
          << kernel->interface.key << " number " << row + i;
  }
  return buffers.back();
}

/// What the kernel writes for `width` tokens.
Bytes output(const IntegerLinearSpec &s, const TargetProfile &profile,
             const std::vector<Weight> &weights, const Bytes &rows,
             const std::vector<float> &bias, const std::vector<float> &residual,
             uint32_t width) {
  const CompiledKernel *kernel =
      compile("integer_linear", s.toAttr(context()), profile);
  if (!kernel)
    return {};
  const auto layout =
      quant::describe(s.format, size_t(s.n), size_t(s.k));
  const uint32_t padded = (width + s.tokens - 1) / s.tokens * s.tokens;
  std::vector<Bytes> buffers;
  size_t planes = 0;
  for (const KernelBinding &binding : kernel->interface.bindings) {
    if (binding.role.find('.') != std::string::npos) {
      const Weight &weight = weights[planes / layout.planes.size()];
      const auto &plane = layout.planes[planes++ % layout.planes.size()];
      const auto *bytes =
          reinterpret_cast<const uint8_t *>(weight.tiled.data()) + plane.offset;
      buffers.emplace_back(bytes, bytes + plane.bytes);
    } else if (binding.role == "x") {
      buffers.push_back(rows);
      buffers.back().resize(padded * size_t(binding.bytes), 0xff);
    } else if (binding.role == "bias") {
      buffers.push_back(toBytes(bias));
    } else if (binding.role == "residual") {
      std::vector<float> all(residual.begin(),
                             residual.begin() + long(width * s.n));
      all.resize(padded * size_t(s.n));
      buffers.push_back(toBytes(all));
    } else {
      buffers.emplace_back(binding.bytes * padded, uint8_t(0xee));
    }
  }
  run(*kernel, buffers, width);
  buffers.back().resize(width * size_t(kernel->interface.bindings.back().bytes));
  return buffers.back();
}

std::vector<float> multiply(const IntegerLinearSpec &s,
                            const TargetProfile &profile,
                            const std::vector<Weight> &weights,
                            const Bytes &rows, const std::vector<float> &bias,
                            const std::vector<float> &residual,
                            uint32_t width) {
  return fromBytes<float>(
      output(s, profile, weights, rows, bias, residual, width));
}

void check(IntegerLinearSpec s, const TargetProfile &profile, uint64_t seed) {
  Random random(seed);
  constexpr uint32_t kWidth = 5;
  std::vector<Weight> weights{makeWeight(s.format, s.n, s.k, random)};
  if (!s.gate.empty())
    weights.push_back(makeWeight(s.format, s.n, s.k, random));
  const std::vector<float> x = random.numbers(size_t(kWidth * s.k)),
                           bias = random.numbers(size_t(s.n)),
                           residual = random.numbers(size_t(kWidth * s.n));
  QuantizeRowsSpec rounding;
  rounding.width = s.k, rounding.group = s.xGroup;
  const Bytes rows = quantize(rounding, profile, x, {}, kWidth, kWidth);
  const std::vector<float> rounded = numbersOf(rows, s.xRow(), kWidth);
  s.tokens = 4;
  const std::vector<float> y =
      multiply(s, profile, weights, rows, bias, residual, kWidth);
  ASSERT_EQ(y.size(), size_t(kWidth * s.n));
  for (uint32_t t = 0; t < kWidth; ++t)
    for (int64_t n = 0; n < s.n; ++n) {
      double sums[2] = {}, size = 0;
      for (size_t w = 0; w < weights.size(); ++w)
        for (int64_t k = 0; k < s.k; ++k) {
          double product = double(weights[w].values[n * s.k + k]) *
                           rounded[t * s.k + k];
          sums[w] += product, size += std::fabs(product);
        }
      double right = sums[0] + (s.bias ? bias[n] : 0.0f);
      if (!s.gate.empty())
        right = activation(s.gate, right) * sums[1], size *= size + 1;
      right += s.residual ? residual[t * s.n + n] : 0.0f;
      ASSERT_NEAR(y[t * s.n + n], right, 1e-6 * (1 + size))
          << quant::info(s.format).name << " row " << n << " token " << t;
    }
  // A token's bits are those that it has alone.
  IntegerLinearSpec alone = s;
  alone.tokens = 1;
  const size_t rowBytes = size_t(s.xRow().words()) * 4;
  const std::vector<float> own = multiply(
      alone, profile, weights,
      Bytes(rows.begin() + long(rowBytes), rows.begin() + long(2 * rowBytes)),
      bias, {residual.begin() + s.n, residual.end()}, 1);
  ASSERT_EQ(own.size(), size_t(s.n));
  EXPECT_EQ(std::memcmp(own.data(), y.data() + s.n, own.size() * 4), 0);
}

/// Lavapipe has integer dot products, but no instruction for them: its profile
/// does without.
const TargetProfile &withDots(int64_t dots = 1) {
  static std::map<int64_t, TargetProfile> made;
  auto [known, fresh] = made.try_emplace(dots, profile("lavapipe"));
  if (!fresh)
    return known->second;
  TargetProfile &target = known->second;
  target.features |= 1u << unsigned(Feature::IntegerDotProduct);
  target.vulkan = {1, 3};
  target.spirv = {1, 6};
  target.name += " with dots " + std::to_string(dots);
  for (ScheduleRule &rule : target.schedules["linear"])
    rule.choices["dots"] = dots;
  return target;
}

bool multipliesFour(const IntegerLinearSpec &spec,
                    const TargetProfile &target) {
  const CompiledKernel *kernel =
      compile("integer_linear", spec.toAttr(context()), target);
  if (!kernel)
    return false;
  bool dots = false;
  for (size_t at = 5; at < kernel->spirv.size() && kernel->spirv[at] >> 16;
       at += kernel->spirv[at] >> 16)
    dots |= (kernel->spirv[at] & 0xffff) == 4450; // OpSDot
  return dots;
}

// Where two tiles of rows a lane would not fit the registers.
TEST(IntegerLinear, SchedulesTellThemApart) {
  auto rowsOf = [](Format format, StringRef gate, int64_t tokens, bool integers) {
    LinearSpec spec;
    spec.format = format, spec.n = 1536, spec.k = 576, spec.gate = gate.str();
    spec.tokens = tokens, spec.integers = integers;
    auto chosen = spec.schedule(profile("rdna3"), [] { return InFlightDiagnostic(); });
    return succeeded(chosen) ? chosen->rows : 0;
  };
  EXPECT_EQ(rowsOf(Format::Q4_1, "silu", 4, /*integers=*/true), 1);
  EXPECT_EQ(rowsOf(Format::Q4_1, "silu", 4, /*integers=*/false), 2);
  EXPECT_EQ(rowsOf(Format::Q4_1, "", 4, /*integers=*/true), 2);
  const auto sparse = sprig::quant::formatOfName("U4S_4OF8_G64");
  ASSERT_TRUE(bool(sparse));
  EXPECT_EQ(rowsOf(*sparse, "silu", 4, /*integers=*/false), 1);
  EXPECT_EQ(rowsOf(*sparse, "silu", 3, /*integers=*/false), 2);
}

TEST(IntegerLinear, DotProductsGiveTheSameBits) {
  SKIP_WITHOUT_DEVICE();
  if (!device()->dotProducts())
    GTEST_SKIP() << "expects VK_KHR_shader_integer_dot_product, which "
                 << device()->name() << " lacks";
  uint64_t seed = 1;
  for (auto [bits, kind] : {std::pair(4u, Affine::Kind::Zero),
                            {8u, Affine::Kind::Symmetric},
                            {3u, Affine::Kind::Minimum}}) {
    IntegerLinearSpec s;
    s.format = *quant::formatOf({bits, kind, Affine::Scale::F16, 32u});
    s.n = 11, s.k = 64, s.xGroup = 32;
    check(s, withDots(), seed++); // against one token, which has none
    check(s, withDots(2), seed++);
    EXPECT_FALSE(multipliesFour(s, withDots()));
    EXPECT_TRUE(multipliesFour(s, withDots(2)));
    s.tokens = 4;
    EXPECT_TRUE(multipliesFour(s, withDots()));
    EXPECT_FALSE(multipliesFour(s, withDots(0)));
  }
}

TEST(IntegerLinear, EveryWidthAndKind) {
  SKIP_WITHOUT_DEVICE();
  uint64_t seed = 1;
  for (unsigned bits : {2, 3, 4, 5, 6, 8})
    for (Affine::Kind kind :
         {Affine::Kind::Symmetric, Affine::Kind::Zero, Affine::Kind::Minimum}) {
      IntegerLinearSpec s;
      s.format = *quant::formatOf(
          {bits, kind, Affine::Scale((bits + unsigned(kind)) % 3),
           seed % 3 == 0 ? 0u : seed % 3 == 1 ? 64u : 32u});
      s.n = 21, s.k = 192;
      s.xGroup = seed % 2 ? 0 : 64;
      s.bias = seed % 4 < 2, s.residual = seed % 3 == 0;
      check(s, seed % 5 == 4 ? profile("generic") : deviceProfile(), seed);
      if (++seed % 6 == 0) {
        s.gate = "silu", s.bias = false;
        check(s, deviceProfile(), seed);
      }
    }
}

/// Blocks of GGUF: symmetric ones, those with minima, which meet the sum of the
/// codes of x, scales of 16 numbers, and codes from a table.
TEST(IntegerLinear, FormatsOfFiles) {
  SKIP_WITHOUT_DEVICE();
  uint64_t seed = 1;
  for (quant::Format format : BlockCodec::formats()) {
    if (!IntegerLinearSpec::canMultiply(format, 32))
      continue;
    IntegerLinearSpec s;
    s.format = format;
    s.n = 11, s.k = quant::info(format).blockElements > 32 ? 512 : 96;
    s.xGroup = seed % 3 ? 32 : 0;
    s.residual = seed % 2;
    check(s, seed % 5 == 4 ? profile("generic") : deviceProfile(), seed);
    if (++seed % 4 == 0 && device()->dotProducts())
      check(s, withDots(2), seed);
  }
  EXPECT_GE(seed, 15u);
  for (quant::Format format : {quant::Format::F32, quant::Format::F16, quant::Format::IQ2_XS})
    EXPECT_FALSE(IntegerLinearSpec::canMultiply(format, 32));
}

/// A gate that rounds what it makes leaves the bits of the kernel that rounds
/// rows of f32.
TEST(IntegerLinear, GatesRoundWhatTheyMake) {
  SKIP_WITHOUT_DEVICE();
  if (!deviceProfile().canShuffle())
    GTEST_SKIP() << "expects subgroups of a known size, which "
                 << deviceProfile().name << " does not promise";
  Random random(5);
  constexpr uint32_t kWidth = 5;
  for (const auto &[n, group] : {std::pair<int64_t, int64_t>(96, 32), {192, 32}}) {
    IntegerLinearSpec s;
    s.format = *quant::formatOf(
        {4u, Affine::Kind::Symmetric, Affine::Scale::F16, 32u});
    s.n = n, s.k = 64, s.xGroup = 32, s.gate = "silu";
    const std::vector<Weight> weights{makeWeight(s.format, s.n, s.k, random),
                                      makeWeight(s.format, s.n, s.k, random)};
    QuantizeRowsSpec rounding;
    rounding.width = s.k, rounding.group = s.xGroup;
    std::vector<float> x = random.numbers(size_t(kWidth * s.k));
    std::fill(x.begin(), x.begin() + s.k, 0.0f); // a token of zeros
    const Bytes rows = quantize(rounding, deviceProfile(), x, {}, kWidth, kWidth);
    for (int64_t tokens : {1, 2, 4}) {
      s.tokens = tokens, s.yGroup = 0;
      if (!s.canRound(group, deviceProfile()))
        continue;
      const std::vector<float> floats =
          multiply(s, deviceProfile(), weights, rows, {}, {}, kWidth);
      QuantizeRowsSpec after;
      after.width = n, after.group = group;
      const Bytes right = quantize(after, deviceProfile(), floats, {}, kWidth, kWidth);
      s.yGroup = group;
      EXPECT_EQ(output(s, deviceProfile(), weights, rows, {}, {}, kWidth), right)
          << n << " in groups of " << group << ", " << tokens << " tokens";
    }
  }
  IntegerLinearSpec s;
  s.format = quant::Format::Q8_0, s.n = 96, s.k = 64, s.gate = "silu";
  EXPECT_FALSE(s.canRound(96, deviceProfile())); // whole rows
  EXPECT_FALSE(s.canRound(64, deviceProfile())); // more than 96 has
  EXPECT_FALSE(s.canRound(32, profile("generic"))); // no exchange of lanes
}

TEST(IntegerLinear, SparseWeights) {
  SKIP_WITHOUT_DEVICE();
  IntegerLinearSpec s;
  s.format = *quant::formatOf(
      {4u, Affine::Kind::Symmetric, Affine::Scale::F16, 64u, 4u});
  s.n = 11, s.k = 64, s.xGroup = 32;
  check(s, deviceProfile(), 1);
}

TEST(IntegerLinear, RowsAreRoundedBehindANorm) {
  SKIP_WITHOUT_DEVICE();
  Random random(3);
  for (StringRef target : {StringRef(deviceProfile().name), StringRef("generic")})
    for (bool rounded : {false, true}) {
      QuantizeRowsSpec s;
      s.width = 576, s.rounded = rounded, s.norm = s.gamma = true;
      s.eps = 1e-5;
      std::vector<float> x = random.numbers(3 * 576);
      std::fill(x.begin(), x.begin() + 576, 0.0f);
      quantize(s, profile(target), x, random.numbers(576), 3, 3);
      s.group = 64;
      quantize(s, profile(target), x, random.numbers(576), 3, 3);
      s.norm = s.gamma = false, s.eps = 0, s.group = 64, s.bits = 5;
      quantize(s, profile(target), x, {}, 3, 3);
    }
}

} // namespace
} // namespace mlir::llm::test
