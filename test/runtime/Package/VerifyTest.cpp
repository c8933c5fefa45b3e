#include "../Tiny/TinyPackage.h"
#include "runtime/Format/SpirvCodec.h"
#include "runtime/Model/ModelText.h"
#include "runtime/Package/Package.h"

#include <functional>
#include <gtest/gtest.h>

using namespace sprig;
using namespace sprig::test;
using namespace sprig::format;

namespace {

struct Case {
  const char *name;
  std::function<void(PackageT &)> change;
  const char *message; ///< a part of it
};

DispatchT &firstDispatch(PackageT &package) {
  return *package.targets[0]->commands[0]->dispatch;
}

/// Replaces binding 0 (the control block) of the first dispatch.
void bind(PackageT &package, uint64_t offset, uint64_t bytes, uint32_t buffer,
          uint32_t access) {
  firstDispatch(package).bindings[0] = Binding(offset, bytes, buffer, access);
}

/// Changes the words of kernel 0.
void changeCode(PackageT &package,
                const std::function<void(std::vector<uint32_t> &)> &change) {
  KernelT &kernel = *package.targets[0]->kernels[0];
  std::vector<uint32_t> words = *decodeSpirv(kernel.code);
  change(words);
  kernel.code = encodeSpirv(words);
}
void changeWord(PackageT &package, size_t index, uint32_t value) {
  changeCode(package,
             [=](std::vector<uint32_t> &words) { words[index] = value; });
}

/// A draft 'self' of `count` guesses, of which guess 0 has a program.
void addDraft(PackageT &package, uint32_t first, uint32_t count) {
  auto &programs = package.targets[0]->programs;
  for (const auto &program : programs)
    if (program->kind == ProgramKind::sample && program->width == 1) {
      programs.push_back(std::make_unique<ProgramT>(*program));
      break;
    }
  programs.back()->kind = ProgramKind::draft;
  auto draft = std::make_unique<DraftT>();
  draft->name = "self";
  draft->first = first;
  draft->count = count;
  package.drafts.push_back(std::move(draft));
}

const Case kCases[] = {
    {"NoTarget", [](PackageT &p) { p.targets.clear(); },
     "expects at least one target"},
    {"Vocabulary", [](PackageT &p) { p.model->vocabulary = 0; },
     "expects a vocabulary"},
    {"Context", [](PackageT &p) { p.model->context = 0; }, "expects a context"},
    {"TensorRange", [](PackageT &p) { p.tensors[0]->bytes = 1u << 20; },
     "tensor 'a'"},
    {"TensorOverflow", [](PackageT &p) { p.tensors[0]->bytes = ~0ull; },
     "tensor 'a'"},
    {"TensorAlignment", [](PackageT &p) { p.tensors[0]->offset = 8; },
     "multiple of 256"},
    {"WeightPage",
     [](PackageT &p) { p.targets[0]->buffers[1]->file_offset = 256; },
     "buffer 'storage weights': expects pages"},
    {"WeightRange",
     [](PackageT &p) { p.targets[0]->buffers[1]->bytes = 1u << 20; },
     "buffer 'storage weights'"},
    {"EmptyBuffer", [](PackageT &p) { p.targets[0]->buffers[2]->bytes = 0; },
     "buffer 'kv'"},
    {"BufferKind",
     [](PackageT &p) { p.targets[0]->buffers[3]->kind = BufferKind(9); },
     "known kind"},
    {"NoControl",
     [](PackageT &p) { p.targets[0]->buffers[4]->kind = BufferKind::scratch; },
     "expects a control buffer, but got none"},
    {"TwoHistories",
     [](PackageT &p) { p.targets[0]->buffers[3]->kind = BufferKind::history; },
     "several"},
    {"ShortHistory",
     [](PackageT &p) {
       p.targets[0]->kv_caches.clear();
       p.model->context = 65;
     },
     "expects a history buffer of at least 324 bytes"},
    {"ShortLogits", [](PackageT &p) { p.model->vocabulary = 51; },
     "expects a logits buffer of at least 816 bytes"},
    {"BindingBuffer", [](PackageT &p) { bind(p, 0, 256, 7, 1); },
     "target 'tiny': command 0: dispatch 'remember': binding 0: expects a "
     "buffer below 7, but got 7"},
    {"BindingOffset", [](PackageT &p) { bind(p, 4, 64, 4, 1); },
     "multiple of 256"},
    {"BindingRange", [](PackageT &p) { bind(p, 0, 512, 4, 1); },
     "binding 0: expects a range of buffer 'control' of 256 bytes, but got "
     "512"},
    {"BindingOverflow",
     [](PackageT &p) { bind(p, 0xffffffffffffff00, 512, 4, 1); },
     "expects a range"},
    {"BindingEmpty", [](PackageT &p) { bind(p, 0, 0, 4, 1); },
     "expects a range"},
    {"GridEnd", [](PackageT &p) { firstDispatch(p).base_y = UINT32_MAX; },
     "expects a grid of at most 4294967295 groups in each direction, but got 1 "
     "from 4294967295"},
    {"IndirectBase",
     [](PackageT &p) {
       for (auto &command : p.targets[0]->commands)
         if (command->dispatch && !command->dispatch->indirect.empty())
           command->dispatch->base_x = 1;
     },
     "expects either a base or an indirect argument"},
    {"BindingAccess", [](PackageT &p) { bind(p, 0, 256, 4, 0); },
     "expects access"},
    {"WrittenWeights", [](PackageT &p) { bind(p, 0, 256, 0, 3); }, "read only"},
    {"StorageRange",
     [](PackageT &p) { p.targets[0]->requirements->storage_range = 128; },
     "the target's storage range"},
    {"UniformRange",
     [](PackageT &p) { p.targets[0]->requirements->uniform_range = 16; },
     "the target's uniform range"},
    {"TexelFormatCount",
     [](PackageT &p) { p.targets[0]->kernels[0]->texel_formats = {107}; },
     "expects a texel format for each of its 5 bindings, but got 1"},
    {"TexelFormat",
     [](PackageT &p) {
       p.targets[0]->kernels[0]->texel_formats = {37, 0, 0, 0, 0};
     },
     "as the texel format of binding 0"},
    {"TexelElements",
     [](PackageT &p) {
       p.targets[0]->kernels[0]->texel_formats = {107, 0, 0, 0, 0};
     },
     "expects whole texels of 16 bytes, at most 0 (the target's texel "
     "elements), but got"},
    {"BindingCount", [](PackageT &p) { firstDispatch(p).bindings.pop_back(); },
     "expects 5 bindings for kernel 'remember', but got 4"},
    {"KernelIndex", [](PackageT &p) { firstDispatch(p).kernel = 4; },
     "expects a kernel below 4, but got 4"},
    {"PushConstants",
     [](PackageT &p) { firstDispatch(p).push_constants.assign(4, 0); },
     "expects 0 bytes of push constants, but got 4"},
    {"NoGroups", [](PackageT &p) { firstDispatch(p).groups_y = 0; },
     "at least one group"},
    {"TwoIndirects",
     [](PackageT &p) {
       firstDispatch(p).indirect.assign(2, Binding(0, 12, 3, 1));
     },
     "at most one indirect"},
    {"ShortIndirect",
     [](PackageT &p) {
       firstDispatch(p).indirect.assign(1, Binding(0, 8, 3, 1));
     },
     "indirect: expects 12 bytes"},
    {"IndirectWeights",
     [](PackageT &p) {
       firstDispatch(p).indirect.assign(1, Binding(0, 12, 0, 1));
     },
     "indirect: expects 12 bytes"},
    {"Label", [](PackageT &p) { firstDispatch(p).label = 5; },
     "command 0: expects a label of 0 to 4, but got 5"},
    {"EmptyCommand",
     [](PackageT &p) {
       p.targets[0]->commands[0]->dispatch.reset();
     },
     "command 0: expects either"},
    {"BarrierKind",
     [](PackageT &p) {
       auto barrier = std::make_unique<CommandT>(); // in no program
       barrier->barrier = std::make_unique<BarrierT>();
       barrier->barrier->kind = BarrierKind(2);
       p.targets[0]->commands.push_back(std::move(barrier));
     },
     "expects a known kind of barrier, but got 2"},
    {"CommandNumber",
     [](PackageT &p) {
       const TargetT &target = *p.targets[0];
       target.programs[3]->commands[1] = uint32_t(target.commands.size());
     },
     "target 'tiny': program sample at width 1: command 1: expects a number "
     "below the target's 21 commands, but got 21"},
    {"CommandNumberOfAll",
     [](PackageT &p) {
       p.targets[0]->programs[0]->commands.push_back(UINT32_MAX);
     },
     "command 1: expects a number below the target's 21 commands, but got "
     "4294967295"},
    {"NoCommands", [](PackageT &p) { p.targets[0]->commands.clear(); },
     "program append at width 1: command 0: expects a number below the "
     "target's 0 commands, but got 0"},
    {"Width", [](PackageT &p) { p.targets[0]->programs[0]->width = 0; },
     "expects a width"},
    {"SameProgram", [](PackageT &p) { p.targets[0]->programs[0]->width = 4; },
     "expects each kind and width once"},
    {"NoDecode", [](PackageT &p) { p.targets[0]->programs[3]->width = 2; },
     "expects a sample program of width 1"},
    {"ProgramKind",
     [](PackageT &p) { p.targets[0]->programs[0]->kind = ProgramKind(7); },
     "known kind"},
    {"Workgroup",
     [](PackageT &p) { p.targets[0]->kernels[0]->workgroup_x = 2; },
     "kernel 'remember': expects a workgroup of 1 to 1 invocations"},
    {"WorkgroupOfSpirv",
     [](PackageT &p) {
       p.targets[0]->requirements->workgroup_invocations = 64;
       p.targets[0]->kernels[0]->workgroup_x = 2;
     },
     "SPIR-V: expects a workgroup of 2 x 1 x 1, but got 1 x 1 x 1"},
    {"Entry", [](PackageT &p) { p.targets[0]->kernels[0]->entry = "other"; },
     "expects a compute entry point 'other'"},
    {"SpirvMagic", [](PackageT &p) { changeWord(p, 0, 1); },
     "magic"},
    {"SpirvVersion",
     [](PackageT &p) { changeWord(p, 1, 0x10600); },
     "expects version 1.0 to 1.3"},
    {"SpirvCutShort",
     [](PackageT &p) {
       changeCode(p, [](std::vector<uint32_t> &words) { words.resize(50); });
     },
     "SPIR-V: expects a module that ends with a function"},
    {"CodeCutShort",
     [](PackageT &p) { p.targets[0]->kernels[0]->code.pop_back(); },
     "SPIR-V: expects a module as Format/SpirvCodec.h encodes it, but got"},
    {"CodeOfNothing", [](PackageT &p) { p.targets[0]->kernels[0]->code.clear(); },
     "SPIR-V: expects a module as Format/SpirvCodec.h encodes it, but got 0"},
    {"CodeInstructions",
     [](PackageT &p) { p.targets[0]->kernels[0]->code[3] = 0x80; },
     "SPIR-V: expects a module as Format/SpirvCodec.h encodes it"},
    {"SpirvZeroCount",
     [](PackageT &p) { changeWord(p, 5, 0); },
     "whole instructions"},
    {"SpirvCapability",
     [](PackageT &p) { changeWord(p, 6, 9); },
     "capabilities that the target requires, but got 9, which needs "
     "shader_float16"},
    {"SpirvUnknownCapability",
     [](PackageT &p) { changeWord(p, 6, 3); },
     "capabilities that this runtime knows"},
    {"SpirvBinding",
     [](PackageT &p) { p.targets[0]->kernels[2]->bindings = 0; },
     "expects bindings below 0"},
    {"SharedMemory",
     [](PackageT &p) { p.targets[0]->kernels[0]->shared_bytes = 64; },
     "shared memory"},
    {"SubgroupSize",
     [](PackageT &p) { p.targets[0]->kernels[0]->subgroup_size = 12; },
     "power of two"},
    {"KvBuffer", [](PackageT &p) { p.targets[0]->kv_caches[0]->buffer = 3; },
     "kv cache 'kv': expects a range of a kv buffer"},
    {"KvPlane",
     [](PackageT &p) { p.targets[0]->kv_caches[0]->planes[0]->slot_bytes = 5; },
     "expects planes inside the 256 bytes of a layer"},
    {"KvPlaneOverflow",
     [](PackageT &p) { p.targets[0]->kv_caches[0]->planes[0]->offset = ~0ull; },
     "expects planes inside the 256 bytes of a layer"},
    {"KvLayers", [](PackageT &p) { p.targets[0]->kv_caches[0]->layers = 0; },
     "multiple of the layers"},
    {"KvSlots", [](PackageT &p) { p.targets[0]->kv_caches[0]->capacity = 63; },
     "expects slots for a context of 64"},
    {"KvRange", [](PackageT &p) { p.targets[0]->kv_caches[0]->offset = 8; },
     "kv cache 'kv'"},
    {"SameTarget",
     [](PackageT &p) {
       p.targets.push_back(std::make_unique<TargetT>(*p.targets[0]));
     },
     "different names"},
    {"TokenLengths", [](PackageT &p) { p.tokenizer->token_lengths[3] = 40; },
     "tokenizer: expects lengths that add up to the 50 token bytes, but got "
     "89"},
    {"TokenCount", [](PackageT &p) { p.tokenizer->token_lengths.pop_back(); },
     "expects 1 to 50 tokens with a length each, but got 50 and 49"},
    {"TokenBytes", [](PackageT &p) { p.tokenizer->token_bytes.pop_back(); },
     "add up to the 49 token bytes, but got 50"},
    {"MergesTwice",
     [](PackageT &p) {
       p.tokenizer->merge_left = p.tokenizer->merge_right = {1};
       p.tokenizer->merge_splits = {1};
     },
     "merges as pairs or as splits, but got both"},
    {"MergesMakeTokens",
     [](PackageT &p) {
       p.tokenizer->merge_first = 49;
       p.tokenizer->merge_splits = {1, 1};
     },
     "expects merges that make tokens below 50, but got 2 from 49 on"},
    {"MergeSplit", [](PackageT &p) { p.tokenizer->merge_splits = {1}; },
     "merge 0: expects a split inside the 1 bytes of token 0, but got 1"},
    {"Merge",
     [](PackageT &p) {
       p.tokenizer->merge_left = {1};
       p.tokenizer->merge_right = {50};
     },
     "merge 0"},
    {"MergeHalves", [](PackageT &p) { p.tokenizer->merge_left = {1}; },
     "as many left as right"},
    {"EndToken", [](PackageT &p) { p.tokenizer->end_tokens = {50}; },
     "end tokens below 50"},
    {"Probe", [](PackageT &p) { p.tokenizer->probe_tokens = {50}; },
     "tokens of the probe below 50"},
    {"Begin", [](PackageT &p) { p.tokenizer->bos = 50; }, "begin token"},
    {"Scores", [](PackageT &p) { p.tokenizer->scores = {1}; }, "scores"},
    {"GoldenLengths", [](PackageT &p) { p.goldens[0]->margin.pop_back(); },
     "golden vector"},
    {"GoldenToken", [](PackageT &p) { p.goldens[0]->tokens[0] = 50; },
     "token ids below 50"},
    {"DraftProgram", [](PackageT &p) { addDraft(p, 0, 2); },
     "draft 'self': expects a program for guess 1 in target"},
    {"DraftWraps", [](PackageT &p) { addDraft(p, UINT32_MAX, 2); },
     "expects a program for guess 4294967295"},
    {"DraftCount", [](PackageT &p) { addDraft(p, 0, 0); },
     "expects 1 to 64 programs, but got 0"},
    {"DraftTwice",
     [](PackageT &p) {
       addDraft(p, 0, 1);
       p.drafts.push_back(std::make_unique<DraftT>(*p.drafts[0]));
     },
     "draft 'self': expects drafts of different names"},
    {"DraftWidth",
     [](PackageT &p) {
       addDraft(p, 0, 1);
       p.targets[0]->programs.back()->width = 2;
     },
     "expects a control buffer of at least 5376 bytes, but got 256"},
    {"DraftTreeTooWide",
     [](PackageT &p) {
       addDraft(p, 0, 1);
       p.targets[0]->programs.back()->width = 65;
     },
     "expects trees of at most 64 nodes"},
    {"GuessOfOthers",
     [](PackageT &p) { p.targets[0]->programs[0]->guess = 1; },
     "the number of a guess for drafts alone"},
};

class Verify : public testing::TestWithParam<Case> {};

TEST_P(Verify, RefusesAndNames) {
  PackageT package = tinyMetadata();
  GetParam().change(package);
  std::string path = writeFile(std::string("verify-") + GetParam().name,
                               packageBytes(std::move(package), tinyWeights()));
  Result<std::shared_ptr<const sprig::Package>> opened =
      sprig::Package::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::Corrupt);
  const std::string &message = opened.status().message();
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_EQ(message.find(path), 0u) << message;
}

INSTANTIATE_TEST_SUITE_P(All, Verify, testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(Probe, ReadsAsItDidWhenThePackageWasWritten) {
  for (const bool same : {true, false}) {
    PackageT package = tinyMetadata();
    package.tokenizer->probe = "ABBA";
    package.tokenizer->probe_tokens = {0, 1, 1, same ? 0u : 2u};
    const std::string path =
        writeFile("probe", packageBytes(std::move(package), tinyWeights()));
    Result<std::shared_ptr<const sprig::Package>> opened =
        sprig::Package::open(path);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    sprig::ModelText text(**opened);
    const auto tokenizer = text.tokenizer();
    EXPECT_EQ(tokenizer.ok(), same);
    if (!same)
      EXPECT_NE(tokenizer.status().message().find(
                    "expects token 2 at place 3 of the package's probe text, "
                    "but got token 0"),
                std::string::npos)
          << tokenizer.status().message();
  }
}

} // namespace
