// A product that rotates and appends what it makes leaves the same bits as the
// product and rope_append one after the other.
#include "CacheSide.h"
#include "LinearProblem.h"
#include "codegen/Kernels/RopeAppend.h"

#include <cmath>

namespace mlir::llm::test {
namespace {

using Named = std::map<std::string, Bytes>;

/// Runs a kernel on buffers by role; what it writes is kept there.
void runNamed(const CompiledKernel &kernel, Named &named, uint32_t width) {
  const uint32_t tile = kernel.interface.tokenTile;
  const uint32_t rows = (width + tile - 1) / tile * tile;
  std::vector<Bytes> buffers;
  for (const KernelBinding &binding : kernel.interface.bindings) {
    Bytes &known = named[binding.role];
    if (known.size() < binding.bytes * (binding.perToken ? rows : 1))
      known.resize(binding.bytes * (binding.perToken ? rows : 1), 0xee);
    buffers.push_back(known);
  }
  run(kernel, buffers, width);
  for (auto [i, binding] : llvm::enumerate(kernel.interface.bindings))
    named[binding.role] = buffers[i];
}

struct Case {
  RopeAppendSpec append;
  int64_t tokens = 1;
  uint32_t base = 0, count = 1, width = 1;
  bool bias = false;
  bool possible = true;
};

void check(const Case &c, uint64_t seed) {
  RopeAppendSpec append = c.append;
  append.fused = true;
  LinearSpec spec;
  spec.format = Format::Q4_1;
  spec.n = (append.heads + 2 * append.kvHeads) * append.headSize;
  spec.k = 96, spec.tokens = c.tokens;
  spec.norm = true, spec.eps = 1e-5, spec.bias = c.bias;
  const TargetProfile &target = deviceProfile();
  ASSERT_EQ(spec.canAppend(append, target), c.possible);
  if (!c.possible)
    return;

  Random random(seed);
  const Weight weight = makeWeight(spec.format, spec.n, spec.k, random);
  const auto layout =
      quant::describe(spec.format, size_t(spec.n), size_t(spec.k));
  Named named;
  for (const quant::PlaneLayout &plane : layout.planes) {
    const auto *from = reinterpret_cast<const uint8_t *>(weight.tiled.data());
    named["weight." + std::string(plane.name)] =
        Bytes(from + plane.offset, from + plane.offset + plane.bytes);
  }
  named["x"] = toBytes(random.numbers(size_t(c.width * spec.k)));
  named["gamma"] = toBytes(random.numbers(size_t(spec.k)));
  named["bias"] = toBytes(random.numbers(size_t(spec.n)));
  std::vector<double> frequencies;
  for (int64_t i = 0; i < append.dims / 2; ++i)
    frequencies.push_back(
        std::pow(10000.0, -2.0 * double(i) / double(append.dims)));
  if (append.dims)
    named["table"] = toBytes(ropeTable(frequencies, append.capacity));
  named["control"] = toBytes(control(c.base, c.count, append.capacity));

  Named apart = named, together = named;
  const CompiledKernel *product =
      compile("linear", spec.toAttr(context()), target);
  const CompiledKernel *after =
      compile("rope_append", append.toAttr(context()), target);
  spec.append = append;
  const CompiledKernel *both =
      compile("linear", spec.toAttr(context()), target);
  ASSERT_TRUE(product && after && both);
  EXPECT_NE(product->interface.key, both->interface.key);
  runNamed(*product, apart, c.width);
  apart["qkv"] = apart["y"];
  apart.erase("y");
  runNamed(*after, apart, c.width);
  runNamed(*both, together, c.width);

  const size_t queries = size_t(append.heads * append.headSize) * 4 * c.width;
  ASSERT_GE(together["y"].size(), queries);
  EXPECT_TRUE(std::equal(apart["y"].begin(),
                         apart["y"].begin() + ptrdiff_t(queries),
                         together["y"].begin()))
      << both->interface.key;
  EXPECT_EQ(apart["keys"], together["keys"]) << both->interface.key;
  EXPECT_EQ(apart["values"], together["values"]) << both->interface.key;
}

RopeAppendSpec shape(int64_t heads, int64_t kvHeads, int64_t headSize,
                     bool interleaved, StringRef kv = "f16") {
  RopeAppendSpec spec;
  spec.heads = heads, spec.kvHeads = kvHeads, spec.headSize = headSize;
  spec.dims = headSize, spec.capacity = 300;
  spec.interleaved = interleaved, spec.kv = kv.str();
  return spec;
}

bool exchanges() { return deviceProfile().canShuffle(); }

TEST(LinearAppend, SameBitsAsTheAppendBehindIt) {
  SKIP_WITHOUT_DEVICE();
  if (!exchanges())
    GTEST_SKIP() << "the device's subgroups cannot shuffle";
  check({shape(3, 1, 64, true), 1, 17, 1, 1}, 1);
  check({shape(3, 1, 64, false), 4, 290, 7, 7, true}, 2);
  check({shape(2, 2, 32, false, "f32"), 2, 0, 3, 4}, 3);
  check({shape(1, 1, 24, true, "f32"), 1, 5, 2, 2, true}, 4);
  RopeAppendSpec none = shape(2, 1, 16, false);
  none.dims = 0;
  check({none, 3, 40, 3, 3}, 5);
  RopeAppendSpec partly = shape(2, 1, 64, true);
  partly.dims = 16;
  check({partly, 1, 299, 1, 1}, 6);
}

TEST(LinearAppend, WhereItCannotBe) {
  SKIP_WITHOUT_DEVICE();
  RopeAppendSpec codes = shape(3, 1, 64, true);
  codes.kv = "i8";
  check({codes, 1, 0, 1, 1, false, /*possible=*/false}, 1);
  RopeAppendSpec tree = shape(3, 1, 64, true);
  tree.tree = true;
  check({tree, 1, 0, 1, 1, false, false}, 1);
  RopeAppendSpec odd = shape(3, 1, 20, true);
  check({odd, 1, 0, 1, 1, false, false}, 1);
  RopeAppendSpec partly = shape(3, 1, 64, false);
  partly.dims = 32;
  check({partly, 1, 0, 1, 1, false, false}, 1);
}

TEST(LinearAppend, Refusals) {
  LinearSpec spec;
  spec.format = Format::Q4_1;
  spec.n = 320, spec.k = 96;
  spec.append = shape(3, 1, 64, true);
  spec.residual = true;
  EXPECT_TRUE(failed(describeKernel("linear", spec.toAttr(context()),
                                    profile("lavapipe"),
                                    UnknownLoc::get(context()))));
  EXPECT_NE(takeDiagnostics().find("expects neither gate, residual"),
            std::string::npos);
  spec.residual = false;
  spec.n = 64;
  EXPECT_TRUE(failed(describeKernel("linear", spec.toAttr(context()),
                                    profile("lavapipe"),
                                    UnknownLoc::get(context()))));
  EXPECT_NE(takeDiagnostics().find("expects n = 320"), std::string::npos);
}

} // namespace
} // namespace mlir::llm::test
