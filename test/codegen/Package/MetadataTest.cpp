// What the tables of a package say.
#include "PackageWriterFixture.h"
#include "runtime/Format/SpirvCodec.h"
#include "runtime/Package/Commands.h"

using namespace mlir;
using namespace mlir::llm;
using namespace sprig;
using mlir::llm::testing::kPlan;
using mlir::llm::testing::PackageWriterTest;
using mlir::llm::testing::ReadPackage;

namespace {

TEST_F(PackageWriterTest, ProgramsAndKernelsAreWhole) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  PackageExtras extras;
  extras.tokenizer.emplace();
  extras.tokenizer->pre = "smollm";
  extras.tokenizer->tokenOffsets = {0, 1};
  extras.tokenizer->tokenBytes = {'a'};
  extras.tokenizer->tokenTypes = {1};
  extras.tokenizer->bos = 0;
  extras.chatTemplate = "{{ messages }}";
  extras.goldens.push_back({{1, 2}, {3, 4}, {0.5f, 1.5f}});
  ASSERT_TRUE(succeeded(write(*module, extras))) << message;
  ReadPackage read(file("out.sprig"));
  ASSERT_TRUE(read.valid);
  EXPECT_EQ(read.package->model()->vocabulary(), 7u);
  EXPECT_EQ(read.package->model()->context(), 16u);
  EXPECT_EQ(read.package->model()->architecture()->str(), "llama");
  EXPECT_EQ(read.package->tokenizer()->pre()->str(), "smollm");
  EXPECT_EQ(read.package->tokenizer()->unknown(), -1);
  EXPECT_EQ(read.package->chat_template()->str(), "{{ messages }}");
  EXPECT_EQ(read.package->goldens()->Get(0)->margin()->Get(1), 1.5f);

  ASSERT_EQ(read.package->targets()->size(), 1u);
  const format::Target &target = *read.package->targets()->Get(0);
  ASSERT_TRUE(target.drivers());
  ASSERT_EQ(target.kernels()->size(), 1u);
  const format::Kernel &kernel = *target.kernels()->Get(0);
  std::vector<uint32_t> words;
  module->walk([&](plan::KernelOp op) {
    for (int32_t word : op.getSpirv()->getValues<int32_t>())
      words.push_back(uint32_t(word));
  });
  EXPECT_EQ(words.front(), 0x07230203u);
  EXPECT_EQ(format::decodeSpirv({kernel.code()->data(), kernel.code()->size()}),
            words);
  EXPECT_EQ(kernel.bindings(), 2u);
  EXPECT_EQ(kernel.workgroup_x(), 8u);
  EXPECT_EQ(kernel.subgroup_size(), 8u);
  const format::Requirements &needs = *target.requirements();
  EXPECT_EQ(needs.subgroup_size(), 8u);
  EXPECT_EQ(needs.storage_range(), 768u);
  EXPECT_EQ(needs.storage_buffers(), 2u);
  EXPECT_EQ(needs.features()->size(), 2u);
  ASSERT_EQ(target.kv_caches()->size(), 1u);
  EXPECT_EQ(target.kv_caches()->Get(0)->head_size(), 16u);

  const format::Program &program = *target.programs()->Get(0);
  EXPECT_EQ(program.kind(), format::ProgramKind::sample);
  auto command = commandsOf(target, program).begin();
  const format::Dispatch *first = (*command)->dispatch();
  ASSERT_TRUE(first);
  EXPECT_EQ(labelOf(target, *first), "first");
  EXPECT_EQ(first->groups_x(), 2u);
  EXPECT_EQ(first->macs(), 10u);
  // A weight: its buffer, and the offset of the tensor in it.
  const format::Binding &weight = *first->bindings()->Get(0);
  EXPECT_EQ(target.buffers()->Get(weight.buffer())->kind(),
            format::BufferKind::weights);
  EXPECT_EQ(weight.offset(), 256u);
  EXPECT_EQ(weight.access(), 1u);
  EXPECT_EQ(target.buffers()->Get(first->bindings()->Get(1)->buffer())->kind(),
            format::BufferKind::scratch);
  EXPECT_TRUE((*++command)->barrier());
}

TEST_F(PackageWriterTest, MergesAreSplitsWhereThoseSayAll) {
  PackageExtras extras;
  TokenizerTables &tables = extras.tokenizer.emplace();
  tables.pre = "smollm";
  auto add = [&](std::string_view text) {
    tables.tokenBytes.insert(tables.tokenBytes.end(), text.begin(), text.end());
    tables.tokenOffsets.push_back(uint32_t(tables.tokenBytes.size()));
    tables.tokenTypes.push_back(1);
  };
  for (const char *text : {"a", "b", "ab", "aba", "c"})
    add(text);
  tables.mergeLeft = {0, 2};
  tables.mergeRight = {1, 0};
  OwningOpRef<ModuleOp> module = parse(kPlan);
  {
    ASSERT_TRUE(succeeded(write(*module, extras))) << message;
    const ReadPackage read(file("out.sprig"));
    const format::Tokenizer &stored = *read.package->tokenizer();
    EXPECT_EQ(stored.token_lengths()->Get(3), 3u);
    EXPECT_FALSE(stored.merge_left());
    EXPECT_EQ(stored.merge_first(), 2u);
    ASSERT_EQ(stored.merge_splits()->size(), 2u);
    EXPECT_EQ(stored.merge_splits()->Get(0), 1u);
    EXPECT_EQ(stored.merge_splits()->Get(1), 2u);
  }
  // "ab" and "aba" in the other order: no first token says it.
  std::swap(tables.mergeLeft[0], tables.mergeLeft[1]);
  std::swap(tables.mergeRight[0], tables.mergeRight[1]);
  {
    ASSERT_TRUE(succeeded(write(*module, extras))) << message;
    const ReadPackage read(file("out.sprig"));
    const format::Tokenizer &stored = *read.package->tokenizer();
    EXPECT_FALSE(stored.merge_splits());
    EXPECT_EQ(stored.merge_left()->Get(0), 2u);
    EXPECT_EQ(stored.merge_right()->Get(1), 1u);
  }
  add(std::string(65536, 'x'));
  EXPECT_TRUE(failed(write(*module, extras)));
  EXPECT_NE(message.find("tokenizer: expects tokens of at most 65535 bytes, but "
                         "token 5 has 65536"),
            std::string::npos)
      << message;
}

TEST_F(PackageWriterTest, EqualCommandsAreStoredOnce) {
  std::string text = kPlan;
  const size_t begin = text.find("plan.program"), end = text.find("    }\n  }\n}");
  std::string again = text.substr(begin, end + 6 - begin);
  again.replace(again.find("@sample_1 sample width 1"), 24,
                "@append_2 append width 2");
  again.replace(again.find("[3, 1, 1]"), 9, "[4, 1, 1]");
  text.insert(end + 6, again);
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(succeeded(write(*module))) << message;
  ReadPackage read(file("out.sprig"));
  ASSERT_TRUE(read.valid);
  const format::Target &target = *read.package->targets()->Get(0);
  ASSERT_EQ(target.programs()->size(), 2u);
  const auto &first = *target.programs()->Get(0)->commands(),
             &second = *target.programs()->Get(1)->commands();
  ASSERT_EQ(first.size(), second.size());
  // Numbers follow their first uses: the new one is the last.
  uint32_t next = 0, others = 0;
  for (const uint32_t number : first) {
    EXPECT_LE(number, next);
    next = std::max(next, number + 1);
  }
  for (uint32_t i = 0; i < first.size(); ++i)
    if (first.Get(i) != second.Get(i)) {
      EXPECT_EQ(second.Get(i), next);
      // It binds the same.
      EXPECT_EQ(target.commands()->Get(next)->dispatch()->bindings(),
                target.commands()->Get(first.Get(i))->dispatch()->bindings());
      ++others;
    }
  EXPECT_EQ(others, 1u);
  EXPECT_EQ(target.commands()->size(), next + 1);
  // Five dispatches, and barriers of one kind between them.
  EXPECT_EQ(next, 6u);
  EXPECT_GT(first.size(), 6u);
}

} // namespace
