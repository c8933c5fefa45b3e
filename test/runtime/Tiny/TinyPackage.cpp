#include "TinyPackage.h"

#include "runtime/Format/Control.h"
#include "runtime/Format/Header.h"
#include "runtime/Format/SpirvCodec.h"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

namespace sprig::test {
namespace {

using namespace format;

enum Buffers : uint32_t {
  kUniform,
  kStorage,
  kKv,
  kScratch,
  kControl,
  kHistory,
  kLogits
};
enum Kernels : uint32_t { kRemember, kLogitRows, kCounts, kSample };

constexpr uint64_t kFirstPage = 256, kSecondPage = 4096 + 300;

std::vector<uint32_t> spirv(const std::string &name) {
  std::ifstream file(SPRIG_TINY_DIR "/" + name + ".spv", std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty())
    std::memcpy(words.data(), bytes.data(), 4 * words.size());
  return words;
}

std::unique_ptr<BufferT> buffer(const char *name, BufferKind kind,
                                uint64_t bytes, uint64_t offset = 0) {
  auto made = std::make_unique<BufferT>();
  made->name = name;
  made->kind = kind;
  made->bytes = bytes;
  made->file_offset = offset;
  return made;
}

std::unique_ptr<KernelT> kernel(const char *name, uint32_t bindings,
                                uint32_t pushBytes, uint32_t uniforms = 0) {
  auto made = std::make_unique<KernelT>();
  made->name = made->family = made->key = name;
  made->entry = "main";
  made->code = encodeSpirv(spirv(name));
  made->workgroup_x = made->workgroup_y = made->workgroup_z = 1;
  made->bindings = bindings;
  made->push_constant_bytes = pushBytes;
  made->uniform_bindings = uniforms;
  return made;
}

void addCommand(TargetT &target, ProgramT &program,
                std::unique_ptr<CommandT> command) {
  program.commands.push_back(uint32_t(target.commands.size()));
  target.commands.push_back(std::move(command));
}

/// Builds the commands of one program. Barriers are commands of several.
struct Writer {
  TargetT &target;
  ProgramT &program;

  void dispatch(uint32_t kernel,
                std::vector<std::pair<uint32_t, uint32_t>> uses,
                std::vector<uint32_t> push, uint32_t groups,
                bool indirect = false) {
    auto made = std::make_unique<DispatchT>();
    made->kernel = kernel;
    made->label = kernel + 1;
    for (auto [index, access] : uses)
      made->bindings.push_back(
          Binding(0, target.buffers[index]->bytes, index, access));
    for (uint32_t word : push)
      for (int i = 0; i < 4; ++i)
        made->push_constants.push_back(uint8_t(word >> 8 * i));
    made->groups_x = groups;
    made->groups_y = made->groups_z = 1;
    made->macs = made->bytes = groups;
    if (indirect)
      made->indirect.push_back(Binding(0, 12, kScratch, 1));
    auto command = std::make_unique<CommandT>();
    command->dispatch = std::move(made);
    addCommand(target, program, std::move(command));
  }
  void barrier(BarrierKind kind = BarrierKind::compute_to_compute) {
    for (size_t i = 0; i < target.commands.size(); ++i)
      if (const auto &known = target.commands[i]->barrier;
          known && known->kind == kind) {
        program.commands.push_back(uint32_t(i));
        return;
      }
    auto command = std::make_unique<CommandT>();
    command->barrier = std::make_unique<BarrierT>();
    command->barrier->kind = kind;
    addCommand(target, program, std::move(command));
  }
};

std::unique_ptr<ProgramT> program(TargetT &target, ProgramKind kind,
                                  uint32_t width, uint32_t vocabulary) {
  auto made = std::make_unique<ProgramT>();
  made->kind = kind;
  made->width = width;
  Writer write{target, *made};
  write.dispatch(
      kRemember,
      {{kControl, 1}, {kHistory, 1}, {kKv, 2}, {kUniform, 1}, {kStorage, 1}},
      {}, width);
  if (kind == ProgramKind::append)
    return made;
  bool rows = kind == ProgramKind::logits;
  if (!rows)
    write.dispatch(kCounts, {{kScratch, 2}}, {}, 1);
  write.barrier();
  write.dispatch(kLogitRows, {{kControl, 1}, {kKv, 1}, {kLogits, 2}},
                 {rows, vocabulary}, rows ? width : 1);
  if (rows)
    return made;
  write.barrier(BarrierKind::compute_to_indirect);
  write.dispatch(kSample, {{kControl, 3}, {kHistory, 2}, {kLogits, 1}},
                 {vocabulary}, 1, /*indirect=*/true);
  return made;
}

std::unique_ptr<TokenizerT> tokenizer(uint32_t vocabulary) {
  auto made = std::make_unique<TokenizerT>();
  made->kind = TokenizerKind::byte_bpe;
  made->pre = "gpt-2";
  for (uint32_t i = 0; i < vocabulary; ++i) {
    // One letter a token, from 'A' on; the last one ends a text.
    made->token_bytes.push_back(uint8_t('A' + i));
    made->token_lengths.push_back(1);
    made->token_types.push_back(i + 1 == vocabulary ? 3 : 1);
  }
  made->end_tokens.push_back(vocabulary - 1);
  return made;
}

} // namespace

PackageT tinyMetadata(const TinyOptions &options) {
  PackageT package;
  package.producer = "tiny";
  package.model = std::make_unique<ModelT>();
  package.model->name = package.model->architecture = "tiny";
  package.model->vocabulary = options.vocabulary;
  package.model->context = options.context;
  package.model->layers = 1;
  package.tokenizer = tokenizer(options.vocabulary);
  for (auto [name, offset] : {std::pair("a", uint64_t(0)), {"b", 4096}}) {
    auto tensor = std::make_unique<TensorT>();
    tensor->name = name;
    tensor->type = "tensor<1xi32>";
    tensor->layout = "plain";
    tensor->offset = offset;
    tensor->bytes = 4;
    package.tensors.push_back(std::move(tensor));
  }

  auto target = std::make_unique<TargetT>();
  target->name = "tiny";
  target->requirements = std::make_unique<RequirementsT>();
  target->requirements->vulkan_version = 1u << 22 | 1u << 12;
  target->requirements->workgroup_invocations = 1;
  target->requirements->storage_range = 1u << 20;
  target->requirements->uniform_range = 256;
  target->requirements->storage_buffers = 8;
  target->requirements->offset_alignment = 256;
  target->requirements->push_constant_bytes = 8;
  uint32_t widest = 1, rows = 1;
  for (const auto *widths :
       {&options.appendWidths, &options.sampleWidths, &options.logitsWidths})
    for (uint32_t width : *widths)
      widest = std::max(widest, width);
  for (uint32_t width : options.logitsWidths)
    rows = std::max(rows, width);
  auto &buffers = target->buffers;
  buffers.push_back(buffer("uniform weights", BufferKind::weights, kFirstPage));
  buffers.push_back(
      buffer("storage weights", BufferKind::weights, kSecondPage - 4096, 4096));
  buffers.push_back(buffer("kv", BufferKind::kv, 4 * options.context));
  buffers.push_back(buffer("scratch", BufferKind::scratch, 256));
  buffers.push_back(
      buffer("control", BufferKind::control, 4 * uint64_t(ControlWords)));
  buffers.push_back(buffer("history", BufferKind::history,
                           4 * uint64_t(options.context + widest)));
  buffers.push_back(buffer("logits", BufferKind::logits,
                           4 * uint64_t(rows) * options.vocabulary));
  auto &kernels = target->kernels;
  kernels.push_back(kernel("remember", 5, 0, 1u << 3));
  kernels.push_back(kernel("logits", 3, 8));
  kernels.push_back(kernel("counts", 1, 0));
  kernels.push_back(kernel("sample", 3, 4));
  for (const auto &made : kernels)
    target->labels.push_back(made->name);
  auto cut = [&](ProgramT &program) {
    const CommandT &whole = *target->commands[program.commands[0]];
    DispatchT &first = *whole.dispatch;
    if (!options.parts || first.groups_x < 2)
      return;
    auto rest = std::make_unique<CommandT>(whole);
    first.groups_x /= 2;
    rest->dispatch->base_x = first.groups_x;
    rest->dispatch->groups_x -= first.groups_x;
    auto between = std::make_unique<CommandT>();
    between->barrier = std::make_unique<BarrierT>();
    between->barrier->submit = true;
    const uint32_t number = uint32_t(target->commands.size());
    program.commands.insert(program.commands.begin() + 1, {number, number + 1});
    target->commands.push_back(std::move(between));
    target->commands.push_back(std::move(rest));
  };
  for (uint32_t width : options.appendWidths)
    target->programs.push_back(
        program(*target, ProgramKind::append, width, options.vocabulary));
  for (uint32_t width : options.sampleWidths)
    target->programs.push_back(
        program(*target, ProgramKind::sample, width, options.vocabulary));
  for (uint32_t width : options.logitsWidths)
    target->programs.push_back(
        program(*target, ProgramKind::logits, width, options.vocabulary));
  for (auto &made : target->programs)
    cut(*made);
  auto cache = std::make_unique<KvCacheT>();
  cache->name = "kv";
  cache->layers = cache->heads = cache->head_size = 1;
  cache->capacity = options.context;
  cache->key_type = cache->value_type = "i32";
  cache->buffer = kKv;
  cache->bytes = 4 * options.context;
  cache->planes.push_back(std::make_unique<KvPlaneT>());
  cache->planes[0]->slot_bytes = 4;
  target->kv_caches.push_back(std::move(cache));
  package.targets.push_back(std::move(target));

  auto golden = std::make_unique<GoldenT>();
  golden->tokens = {1, 2, 3, 5, 8};
  std::vector<uint32_t> so_far;
  for (uint32_t token : golden->tokens) {
    so_far.push_back(token);
    golden->argmax.push_back(tinyNext(so_far, options.vocabulary));
    golden->margin.push_back(1);
  }
  package.goldens.push_back(std::move(golden));
  return package;
}

std::vector<uint8_t> tinyWeights() {
  std::vector<uint8_t> bytes(kSecondPage);
  bytes[0] = 3;
  bytes[4096] = 7;
  // Bytes that no kernel reads, so that every chunk has something to hash.
  for (size_t i = 64; i < 4096; ++i)
    bytes[i] = uint8_t(i * 31);
  return bytes;
}

std::vector<uint8_t> metadataBytes(PackageT metadata,
                                   const std::vector<uint8_t> &weights) {
  metadata.chunks.clear();
  constexpr uint64_t kChunk = 3000;
  for (uint64_t at = 0; at < weights.size(); at += kChunk) {
    uint64_t bytes = std::min<uint64_t>(kChunk, weights.size() - at);
    metadata.chunks.push_back(
        Chunk(at, bytes, XXH3_64bits(weights.data() + at, bytes)));
  }
  flatbuffers::FlatBufferBuilder builder;
  FinishPackageBuffer(builder, Package::Pack(builder, &metadata));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<uint8_t> packageBytes(PackageT metadata,
                                  const std::vector<uint8_t> &weights) {
  return packageBytes(metadataBytes(std::move(metadata), weights), weights);
}

std::vector<uint8_t> frameOf(const std::vector<uint8_t> &plain) {
  std::vector<uint8_t> frame(ZSTD_compressBound(plain.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(),
                             plain.size(), /*compressionLevel=*/3));
  return frame;
}

std::vector<uint8_t> packageBytes(const std::vector<uint8_t> &metadata,
                                  const std::vector<uint8_t> &weights,
                                  uint64_t plainBytes) {
  Header head{};
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.version = kVersion;
  head.metadataOffset = kPageBytes;
  head.metadataBytes = metadata.size();
  head.metadataHash = XXH3_64bits(metadata.data(), metadata.size());
  head.metadataPlainBytes = plainBytes ? plainBytes : metadata.size();
  head.weightsOffset =
      (kPageBytes + metadata.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
  head.weightsBytes = weights.size();
  head.headerHash = XXH3_64bits(&head, offsetof(Header, headerHash));
  std::vector<uint8_t> bytes(head.weightsOffset + weights.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!metadata.empty())
    std::memcpy(bytes.data() + kPageBytes, metadata.data(), metadata.size());
  if (!weights.empty())
    std::memcpy(bytes.data() + head.weightsOffset, weights.data(),
                weights.size());
  return bytes;
}

std::string writeFile(const std::string &name,
                      const std::vector<uint8_t> &bytes) {
  std::filesystem::path folder = SPRIG_TINY_DIR "/out";
  std::filesystem::create_directories(folder);
  // ctest runs the cases of one binary as processes side by side.
  std::string path =
      (folder / (name + "-" + std::to_string(getpid()) + ".sprig")).string();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             std::streamsize(bytes.size()));
  return path;
}

std::string tinyPackage(const std::string &name, const TinyOptions &options) {
  return writeFile(name, packageBytes(tinyMetadata(options), tinyWeights()));
}

uint32_t tinyNext(const std::vector<uint32_t> &tokens, uint32_t vocabulary) {
  uint32_t sum = 0;
  for (uint32_t token : tokens)
    sum += 3 * token + 7;
  return sum % vocabulary;
}

std::vector<uint32_t> tinyGenerate(std::vector<uint32_t> tokens, size_t count,
                                   uint32_t vocabulary) {
  size_t start = tokens.size();
  while (tokens.size() < start + count)
    tokens.push_back(tinyNext(tokens, vocabulary));
  return {tokens.begin() + ptrdiff_t(start), tokens.end()};
}

} // namespace sprig::test
