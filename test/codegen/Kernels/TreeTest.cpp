#include "StepState.h"
#include "codegen/Kernels/TreeAccept.h"
#include "codegen/Kernels/TreeTable.h"

namespace mlir::llm::test {
namespace {

constexpr uint32_t kCapacity = 96;

uint32_t byteOf(const std::vector<uint32_t> &words, uint32_t first,
                uint32_t which) {
  return words[first + which / 4] >> 8 * (which % 4) & 255;
}

std::vector<uint32_t> treeControl(uint32_t base,
                                  const std::vector<int32_t> &parents) {
  std::vector<uint32_t> words =
      control(base, uint32_t(parents.size()), kCapacity);
  for (uint32_t i = 0; i < parents.size(); ++i)
    words[sprig::format::Parents + i / 4] |= uint32_t(parents[i] & 255)
                                             << 8 * (i % 4);
  return words;
}

TEST(Tree, TheTableHoldsDepthsAndPaths) {
  SKIP_WITHOUT_DEVICE();
  Random random(3);
  for (uint32_t width : {1, 4, 6, 64})
    for (uint32_t count : {1u, width / 2 + 1, width}) {
      std::vector<int32_t> parents{-1};
      for (uint32_t i = 1; i < count; ++i)
        // Now and then a second root, or a parent that does not come first.
        parents.push_back(random.below(9) == 0   ? -1
                          : random.below(9) == 0 ? int32_t(i + 3)
                                                 : int32_t(random.below(i)));
      TreeTableSpec spec;
      spec.width = width;
      for (StringRef target :
           {StringRef(deviceProfile().name), StringRef("generic")}) {
        const CompiledKernel *kernel =
            compile("tree_table", spec.toAttr(context()), profile(target));
        ASSERT_TRUE(kernel);
        std::vector<Bytes> buffers = {toBytes(treeControl(7, parents)),
                                      Bytes(TreeTableSpec::bytes(width), 0xff)};
        run(*kernel, buffers, width);
        auto block = fromBytes<uint32_t>(buffers[0]),
             table = fromBytes<uint32_t>(buffers[1]);
        for (uint32_t i = 0; i < width; ++i) {
          std::vector<uint32_t> path{i < count ? i : 0};
          for (int32_t up = parents[path[0]]; up >= 0 && uint32_t(up) < path[0];
               up = parents[path[0]])
            path.insert(path.begin(), uint32_t(up));
          EXPECT_EQ(byteOf(block, sprig::format::Depths, i), path.size() - 1);
          for (uint32_t d = 0; d < path.size(); ++d)
            EXPECT_EQ(table[i * width + d], path[d])
                << "node " << i << " depth " << d << " of " << count;
        }
      }
    }
}

/// What tree_accept leaves of a tree behind slot 10, whose node i holds token
/// 100 + i.
struct Accepted {
  std::vector<uint32_t> control, history;
};
Accepted accept(const std::vector<int32_t> &parents,
                const std::vector<uint32_t> &drawn, StringRef target) {
  TreeAcceptSpec spec;
  spec.width = 8, spec.capacity = kCapacity;
  const CompiledKernel *kernel =
      compile("tree_accept", spec.toAttr(context()), profile(target));
  if (!kernel)
    return {};
  std::vector<uint32_t> history(kCapacity + 8, 7), padded(8, 9999);
  for (uint32_t i = 0; i < parents.size(); ++i)
    history[10 + i] = 100 + i;
  std::copy(drawn.begin(), drawn.end(), padded.begin());
  std::vector<Bytes> buffers = {toBytes(treeControl(10, parents)),
                                toBytes(history), toBytes(padded)};
  run(*kernel, buffers, 1);
  return {fromBytes<uint32_t>(buffers[0]), fromBytes<uint32_t>(buffers[1])};
}

TEST(Tree, TheWalkFollowsTheTokensDrawn) {
  SKIP_WITHOUT_DEVICE();
  struct {
    std::vector<int32_t> parents;
    std::vector<uint32_t> drawn;
    std::vector<uint32_t> path;
    uint32_t bonus;
  } cases[] = {
      {{-1}, {55}, {}, 55},
      {{-1, 0}, {55, 1}, {}, 55},
      {{-1, 0}, {101, 56}, {1}, 56},
      {{-1, 0, 0, 2, 2, 4}, {102, 1, 104, 2, 105, 77}, {2, 4, 5}, 77},
      {{-1, 0, 1, 2, 3, 4, 5, 6},
       {101, 102, 103, 104, 105, 106, 107, 3},
       {1, 2, 3, 4, 5, 6, 7},
       3},
      {{-1, 0, 0, 0}, {103, 1, 2, 3}, {3}, 3},
  };
  for (const auto &c : cases)
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      Accepted got = accept(c.parents, c.drawn, target);
      ASSERT_FALSE(got.control.empty());
      uint32_t count = uint32_t(c.path.size());
      EXPECT_EQ(got.control[sprig::format::Accepted], count);
      EXPECT_EQ(got.control[sprig::format::Sampled], c.bonus);
      EXPECT_EQ(got.control[sprig::format::Base], 11 + count);
      EXPECT_EQ(got.control[sprig::format::Count], 1u);
      EXPECT_EQ(got.control[sprig::format::Steps], 1u);
      for (uint32_t k = 0; k < count; ++k) {
        EXPECT_EQ(byteOf(got.control, sprig::format::Path, k), c.path[k]);
        EXPECT_EQ(got.history[11 + k], 100 + c.path[k]);
      }
      EXPECT_EQ(got.history[11 + count], c.bonus);
      EXPECT_EQ(got.history[10], 100u);
    }
}

TEST(Tree, CompactionMovesThePathBehindThePrefix) {
  SKIP_WITHOUT_DEVICE();
  Accepted walked = accept({-1, 0, 0, 2, 2, 4}, {102, 1, 104, 2, 105, 77},
                           deviceProfile().name);
  ASSERT_FALSE(walked.control.empty());
  for (StringRef kv : {"f16", "f32", "i8"})
    for (StringRef target :
         {StringRef(deviceProfile().name), StringRef("generic")}) {
      KvCompactSpec spec;
      spec.kvHeads = 3, spec.headSize = 24, spec.capacity = kCapacity;
      spec.width = 8, spec.kv = kv.str();
      spec.layers = 2;
      spec.stride = 4 * ((kCapacity * (kv == "f16"   ? 36
                                       : kv == "f32" ? 72
                                                     : 18 + 3) +
                          3) /
                             4 * 4 +
                         12);
      const CompiledKernel *kernel =
          compile("kv_compact", spec.toAttr(context()), profile(target));
      ASSERT_TRUE(kernel);
      // Behind the codes of all slots lie their scales.
      size_t words = kv == "f16" ? 36 : kv == "f32" ? 72 : 18;
      size_t scales = kv == "i8" ? 3 : 0, behind = kCapacity * words;
      const size_t side = (behind + kCapacity * scales + 3) / 4 * 4;
      // Two layers, and what lies between them stays.
      std::vector<uint32_t> keys(2 * side + 12), values(keys.size());
      for (size_t i = 0; i < keys.size(); ++i)
        keys[i] = uint32_t(i), values[i] = uint32_t(i + 100000);
      std::vector<Bytes> buffers = {toBytes(walked.control), toBytes(keys),
                                    toBytes(values)};
      run(*kernel, buffers, 1);
      for (size_t layer : {size_t(0), side + 12})
        for (auto [to, from] : {std::pair(11, 12), {12, 14}, {13, 15}}) {
          for (size_t i = 0; i < words; ++i)
            keys[layer + to * words + i] =
                uint32_t(layer + from * words + i);
          for (size_t i = 0; i < scales; ++i)
            keys[layer + behind + to * scales + i] =
                uint32_t(layer + behind + from * scales + i);
        }
      for (size_t i = 0; i < keys.size(); ++i)
        values[i] = keys[i] + 100000;
      EXPECT_EQ(fromBytes<uint32_t>(buffers[1]), keys);
      EXPECT_EQ(fromBytes<uint32_t>(buffers[2]), values);
    }
}

} // namespace
} // namespace mlir::llm::test
