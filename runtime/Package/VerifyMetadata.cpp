#include "runtime/Package/Ranges.h"
#include "runtime/Format/Control.h"
#include "runtime/Package/Verify.h"
#include "runtime/Support/Strings.h"

#include <set>

namespace sprig {
namespace {

Status corrupt(std::string message) {
  return {StatusCode::Corrupt, std::move(message)};
}

Status verifyModel(const format::Model &model) {
  if (model.vocabulary() == 0 || model.vocabulary() > 1u << 24)
    return corrupt(concat("expects a vocabulary of 1 to 16777216 tokens, but "
                          "got ",
                          model.vocabulary()));
  if (model.context() == 0 || model.context() > 1u << 28)
    return corrupt(
        concat("expects a context of 1 to 268435456 tokens, but got ",
               model.context()));
  return {};
}

Status verifyTensors(const format::Package &package, uint64_t weightBytes) {
  for (const format::Tensor *tensor : *package.tensors()) {
    if (!aligned(tensor->offset()) ||
        !rangeInside(tensor->offset(), tensor->bytes(), weightBytes))
      return corrupt(concat("tensor '", tensor->name()->string_view(),
                            "': expects a range of "
                            "the weight section of ",
                            weightBytes, " bytes at a multiple of ",
                            format::kAlignment, ", but got ", tensor->bytes(),
                            " bytes at ", tensor->offset()));
  }
  return {};
}

Status verifyChunks(const format::Package &package, uint64_t weightBytes) {
  if (!alignedStructs(*package.chunks()))
    return corrupt("weight hashes: expects a vector at a multiple of 8 bytes");
  uint64_t end = 0;
  for (const format::Chunk *chunk : *package.chunks()) {
    if (chunk->offset() != end || chunk->bytes() == 0 ||
        chunk->bytes() > format::kChunkBytes)
      return corrupt(concat("weight hashes: expects a chunk of 1 to ",
                            format::kChunkBytes, " bytes at ", end,
                            ", but got ", chunk->bytes(), " bytes at ",
                            chunk->offset()));
    end += chunk->bytes();
  }
  if (end != weightBytes)
    return corrupt(concat("weight hashes: expects them to cover the section "
                          "of ",
                          weightBytes, " bytes, but they cover ", end));
  return {};
}

Status verifyGoldens(const format::Package &package) {
  if (!package.goldens())
    return {};
  uint32_t vocabulary = package.model()->vocabulary();
  for (const format::Golden *golden : *package.goldens()) {
    uint32_t count = golden->tokens()->size();
    if (count == 0 || count > package.model()->context() ||
        golden->argmax()->size() != count || golden->margin()->size() != count)
      return corrupt(concat("golden vector: expects 1 to ",
                            package.model()->context(),
                            " tokens with as many answers and margins, but "
                            "got ",
                            count, ", ", golden->argmax()->size(), " and ",
                            golden->margin()->size()));
    for (uint32_t i = 0; i < count; ++i)
      if (golden->tokens()->Get(i) >= vocabulary ||
          golden->argmax()->Get(i) >= vocabulary)
        return corrupt(concat(
            "golden vector: expects token ids below ", vocabulary, ", but got ",
            golden->tokens()->Get(i), " and ", golden->argmax()->Get(i)));
  }
  return {};
}

/// Sessions find adapters by name.
Status verifyAdapters(const format::Package &package) {
  if (!package.adapters())
    return {};
  std::set<std::string_view> names;
  for (const flatbuffers::String *name : *package.adapters())
    if (name->size() == 0 || !names.insert(name->string_view()).second)
      return corrupt(concat("adapters: expects different names, but got '",
                            name->string_view(), "'"));
  return {};
}

/// Tables may share a vector, so a short file could say that it has more
/// commands, kernels or code than anyone could look at.
Status verifyAmounts(const format::Package &package) {
  constexpr uint64_t kMostCommands = 16'000'000, kMostKernels = 1u << 16,
                     kMostCode = 1u << 30;
  uint64_t commands = 0, kernels = 0, code = 0;
  for (const format::Target *target : *package.targets()) {
    for (const format::Program *program : *target->programs())
      commands += program->commands()->size();
    kernels += target->kernels()->size();
    for (const format::Kernel *kernel : *target->kernels())
      code += kernel->code()->size();
  }
  if (commands > kMostCommands)
    return corrupt(concat("programs: expects at most ", kMostCommands,
                          " commands in all, but got ", commands));
  if (kernels > kMostKernels)
    return corrupt(concat("kernels: expects at most ", kMostKernels,
                          " in all, but got ", kernels));
  if (code > kMostCode)
    return corrupt(concat("kernels: expects at most ", kMostCode,
                          " bytes of code in all, but got ", code));
  return {};
}

/// Every target has the programs of each draft.
Status verifyDrafts(const format::Package &package) {
  if (!package.drafts())
    return {};
  std::set<std::string_view> names;
  for (const format::Draft *draft : *package.drafts()) {
    const std::string where =
        concat("draft '", draft->name()->string_view(), "'");
    if (!names.insert(draft->name()->string_view()).second)
      return corrupt(concat(where, ": expects drafts of different names"));
    if (draft->count() == 0 || draft->count() > format::kMostNodes)
      return corrupt(concat(where, ": expects 1 to ", format::kMostNodes,
                            " programs, but got ", draft->count()));
    for (const format::Target *target : *package.targets()) {
      std::set<uint32_t> guesses;
      for (const format::Program *program : *target->programs())
        if (program->kind() == format::ProgramKind::draft &&
            program->width() == 1)
          guesses.insert(program->guess());
      for (uint64_t i = 0; i < draft->count(); ++i)
        if (const uint64_t guess = uint64_t(draft->first()) + i;
            guess > UINT32_MAX || !guesses.count(uint32_t(guess)))
          return corrupt(concat(where, ": expects a program for guess ", guess,
                                " in target '", target->name()->string_view(),
                                "', but got none"));
    }
  }
  return {};
}

} // namespace

Status verifyMetadata(const format::Package &package, uint64_t weightBytes) {
  if (Status status = verifyModel(*package.model()); !status.ok())
    return status.within("model");
  if (Status status = verifyTensors(package, weightBytes); !status.ok())
    return status;
  if (Status status = verifyChunks(package, weightBytes); !status.ok())
    return status;
  if (package.tokenizer())
    if (Status status = verifyTokenizer(*package.tokenizer(),
                                        package.model()->vocabulary());
        !status.ok())
      return status.within("tokenizer");
  if (package.targets()->size() == 0)
    return corrupt("expects at least one target, but got none");
  if (Status status = verifyAmounts(package); !status.ok())
    return status;
  std::set<std::string_view> names;
  for (const format::Target *target : *package.targets()) {
    std::string where = concat("target '", target->name()->string_view(), "'");
    if (!names.insert(target->name()->string_view()).second)
      return corrupt(concat(where, ": expects targets of different names"));
    Status status = verifyTarget(*target, *package.model(), weightBytes);
    if (!status.ok())
      return status.within(where);
  }
  if (Status status = verifyDrafts(package); !status.ok())
    return status;
  if (Status status = verifyAdapters(package); !status.ok())
    return status;
  return verifyGoldens(package);
}

} // namespace sprig
