// Experts: which a token goes to, and products with their weights, against
// double precision.
#include "LinearProblem.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/ExpertLinear.h"
#include "codegen/Kernels/Route.h"

#include <bit>
#include <numeric>

namespace mlir::llm::test {
namespace {

/// Whether fewer than `top_groups` groups are better than that of expert `i`.
bool inBestGroups(const RouteSpec &spec, const std::vector<double> &score,
                  const float *bias, size_t i) {
  if (!spec.groups)
    return true;
  const size_t size = score.size() / size_t(spec.groups);
  std::vector<double> totals;
  for (size_t begin = 0; begin < score.size(); begin += size) {
    std::vector<double> group;
    for (size_t expert = begin; expert < begin + size; ++expert)
      group.push_back(score[expert] + (bias ? bias[expert] : 0));
    std::sort(group.begin(), group.end(), std::greater<>());
    totals.push_back(group[0] + (spec.byBest ? 0.0 : group[1]));
  }
  int64_t better = 0;
  for (size_t g = 0; g < totals.size(); ++g)
    better += totals[g] > totals[i / size] ||
              (totals[g] == totals[i / size] && g < i / size);
  return better < spec.topGroups;
}

/// Scores by the definition, and the ids in the order that they are chosen.
void checkRoute(const RouteSpec &spec, const TargetProfile &profile,
                uint32_t width, uint64_t seed) {
  const CompiledKernel *kernel =
      compile("route", spec.toAttr(context()), profile);
  ASSERT_TRUE(kernel);
  Random random(seed);
  const auto X = size_t(spec.experts), top = size_t(spec.top);
  std::vector<float> logits = random.numbers(width * X),
                     bias = random.numbers(X);
  for (float &x : logits)
    x = std::round(x * 8); // ties
  std::vector<Bytes> buffers = {toBytes(logits)};
  if (spec.bias)
    buffers.push_back(toBytes(bias));
  buffers.push_back(Bytes(width * top * 4, 0xee));
  buffers.push_back(Bytes(width * top * 4, 0xee));
  run(*kernel, buffers, width);
  const auto ids = fromBytes<uint32_t>(buffers[buffers.size() - 2]);
  const auto weights = fromBytes<float>(buffers.back());
  for (size_t t = 0; t < width; ++t) {
    const float *row = &logits[t * X];
    double total = 0;
    for (size_t i = 0; i < X; ++i)
      total += std::exp(double(row[i]));
    std::vector<double> score(X), key(X);
    for (size_t i = 0; i < X; ++i) {
      score[i] = spec.score == "softmax" ? std::exp(double(row[i])) / total
                                         : 1 / (1 + std::exp(-double(row[i])));
      key[i] = spec.bias ? score[i] + bias[i] : row[i];
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < X; ++i)
      if (inBestGroups(spec, score, spec.bias ? bias.data() : nullptr, i))
        order.push_back(i);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return key[a] != key[b] ? key[a] > key[b] : a < b;
    });
    double sum = 0;
    for (size_t j = 0; j < top; ++j)
      sum += score[order[j]];
    const double scale =
        (spec.scale == 0 ? 1 : spec.scale) / (spec.normalise ? sum : 1.0);
    for (size_t j = 0; j < top; ++j) {
      ASSERT_EQ(ids[t * top + j], order[j])
          << kernel->interface.key << " token " << t << " choice " << j;
      ASSERT_NEAR(weights[t * top + j], score[order[j]] * scale, 2e-6);
    }
  }
}

TEST(Route, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(5);
  for (int i = 0; i < 10; ++i) {
    RouteSpec spec;
    spec.experts = random.among<int64_t>({1, 4, 7, 8, 33, 128});
    spec.top = 1 + random.below(uint32_t(std::min<int64_t>(8, spec.experts)));
    spec.score = random.among<std::string>({"softmax", "sigmoid"});
    spec.normalise = random.below(2);
    spec.bias = random.below(2);
    spec.scale = random.below(2) ? 2.5 : 0;
    if (i % 3 == 2) {
      spec.experts = random.among<int64_t>({8, 24, 48});
      spec.groups = random.among<int64_t>({2, 4});
      spec.topGroups = 1 + random.below(uint32_t(spec.groups));
      spec.byBest = i % 2;
      spec.top = std::min(spec.top, spec.experts / spec.groups * spec.topGroups);
    }
    checkRoute(spec, i % 4 == 3 ? profile("generic") : deviceProfile(),
               random.among<uint32_t>({1, 5, 64}), uint64_t(i));
  }
}

void checkProduct(const ExpertLinearSpec &spec, const TargetProfile &profile,
                  uint32_t width, uint64_t seed) {
  const CompiledKernel *kernel =
      compile("expert_linear", spec.toAttr(context()), profile);
  ASSERT_TRUE(kernel) << takeDiagnostics();
  Random random(seed);
  const auto n = size_t(spec.n), k = size_t(spec.k), top = size_t(spec.top);
  const Weight weight =
      makeWeight(spec.format, spec.experts * spec.n, spec.k, random);
  const std::vector<float> x =
      random.numbers(width * k * (spec.each ? top : 1));
  const std::vector<float> combine = random.numbers(width * top),
                           residual = random.numbers(width * n);
  std::vector<uint32_t> ids(width * top);
  for (uint32_t &id : ids)
    id = random.below(uint32_t(spec.experts));
  ids.back() = 0xffffffff; // reads the last expert, not beyond
  if (spec.of) // of all experts, of which the kernel has some
    for (uint32_t &id : ids)
      id = random.below(uint32_t(spec.of));
  std::vector<Bytes> buffers;
  const auto layout = quant::describe(spec.format, size_t(spec.experts) * n, k);
  size_t planes = 0;
  for (const KernelBinding &binding : kernel->interface.bindings) {
    if (StringRef(binding.role).ends_with(kAllPlanes)) {
      const auto *bytes =
          reinterpret_cast<const uint8_t *>(weight.tiled.data());
      buffers.emplace_back(bytes, bytes + weight.tiled.size());
    } else if (binding.role == kTableRole) {
      const ArrayRef<float> table = BlockCodec::find(spec.format)->table();
      buffers.push_back(toBytes(std::vector<float>(table.begin(), table.end())));
    } else if (binding.role.find('.') != std::string::npos) {
      const auto &plane = layout.planes[planes++];
      const auto *bytes =
          reinterpret_cast<const uint8_t *>(weight.tiled.data()) + plane.offset;
      buffers.emplace_back(bytes, bytes + plane.bytes);
    } else if (binding.role == "x") {
      buffers.push_back(toBytes(x));
    } else if (binding.role == "ids") {
      buffers.push_back(toBytes(ids));
    } else if (binding.role == "combine") {
      buffers.push_back(toBytes(combine));
    } else if (binding.role == "residual") {
      buffers.push_back(toBytes(residual));
    } else {
      buffers.emplace_back(binding.bytes * width, uint8_t(0xee));
    }
  }
  run(*kernel, buffers, width);
  const auto y = fromBytes<float>(buffers.back());
  for (size_t t = 0; t < width; ++t)
    for (size_t row = 0; row < n; ++row) {
      double sum = spec.residual ? residual[t * n + row] : 0.0f;
      for (size_t j = 0; j < top; ++j) {
        size_t expert = std::min<size_t>(
            ids[t * top + j], size_t(spec.of ? spec.of : spec.experts) - 1);
        if (spec.of && (expert < size_t(spec.first) ||
                        expert >= size_t(spec.first + spec.experts))) {
          if (!spec.combine) // left alone
            ASSERT_EQ(std::bit_cast<uint32_t>(y[(t * top + j) * n + row]),
                      0xeeeeeeee)
                << kernel->interface.key;
          continue;
        }
        expert -= size_t(spec.first);
        const float *w = &weight.values[(expert * n + row) * k];
        const float *line = &x[(spec.each ? t * top + j : t) * k];
        double dot = 0;
        for (size_t i = 0; i < k; ++i)
          dot += double(w[i]) * line[i];
        if (spec.combine)
          sum += combine[t * top + j] * dot;
        else
          ASSERT_NEAR(y[(t * top + j) * n + row], dot, 1e-4)
              << kernel->interface.key;
      }
      if (spec.combine)
        ASSERT_NEAR(y[t * n + row], sum, 2e-4) << kernel->interface.key;
    }
}

TEST(ExpertLinear, SeededSweep) {
  SKIP_WITHOUT_DEVICE();
  Random random(9);
  for (int i = 0; i < 10; ++i) {
    ExpertLinearSpec spec;
    spec.format = random.among<Format>({Format::F32, Format::F16, Format::BF16,
                                        Format::Q4_0, Format::Q4_1,
                                        Format::Q8_0, Format::Q4_K});
    const int64_t block = quant::info(spec.format).blockElements;
    spec.k = block == 1 ? random.among<int64_t>({7, 32, 66, 96})
                        : block * random.among<int64_t>({1, 3});
    spec.n = random.among<int64_t>({8, 13, 24, 36, 64});
    spec.experts = random.among<int64_t>({1, 3, 8});
    spec.top = 1 + random.below(3);
    spec.each = random.below(2);
    spec.combine = random.below(2);
    spec.residual = spec.combine && random.below(2);
    if (i % 3 == 1) {
      spec.of = spec.experts + 5;
      spec.first = random.among<int64_t>({0, 2, 5});
    }
    checkProduct(spec, i % 4 == 3 ? profile("generic") : deviceProfile(),
                 random.among<uint32_t>({1, 5, 16}), uint64_t(i));
  }
}

TEST(ExpertLinear, GridsAndFloats) {
  SKIP_WITHOUT_DEVICE();
  using Affine = quant::AffineFormat;
  const Format floats = *quant::formatOf({8, Affine::Kind::Symmetric,
                                          Affine::Scale::F32, 128, 0,
                                          Affine::Code::E4M3});
  uint64_t seed = 20;
  for (Format format : {Format::IQ1_S, Format::IQ2_S, Format::IQ3_XXS,
                        Format::IQ4_XS, floats}) {
    ExpertLinearSpec spec;
    spec.format = format;
    spec.k = 256;
    spec.n = 24;
    spec.experts = 3;
    spec.top = 2;
    spec.combine = seed % 2;
    checkProduct(spec, seed % 3 ? deviceProfile() : profile("generic"), 5,
                 seed);
    ++seed;
  }
}

TEST(ExpertLinear, Refuses) {
  Builder builder(context());
  ExpertLinearSpec spec;
  spec.n = 12;
  spec.k = 32;
  spec.experts = 2;
  const auto refuse = [&](StringRef message) {
    EXPECT_TRUE(
        failed(describeKernel("expert_linear", spec.toAttr(context()),
                              profile("generic"), builder.getUnknownLoc())));
    EXPECT_EQ(takeDiagnostics(), message);
  };
  spec.residual = true;
  refuse("expert_linear kernel expects a residual only with combine");
  spec.residual = false;
  spec.of = 3, spec.first = 2;
  refuse("expert_linear kernel expects experts among the 3 of all, but got 2 "
         "from 2");
  spec.of = spec.first = 0;
  spec.stride = 8;
  refuse("expert_linear kernel expects a stride of at least n = 12, but got 8");
  spec.stride = 0;
  spec.format = Format::Q4_0;
  spec.k = 40;
  refuse("expert_linear kernel expects k to be a multiple of the block of "
         "Q4_0, 32, but got 40");
}

} // namespace
} // namespace mlir::llm::test
