#include "runtime/Package/Ranges.h"
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
  std::set<std::string_view> names;
  for (const format::Target *target : *package.targets()) {
    std::string where = concat("target '", target->name()->string_view(), "'");
    if (!names.insert(target->name()->string_view()).second)
      return corrupt(concat(where, ": expects targets of different names"));
    Status status = verifyTarget(*target, *package.model(), weightBytes);
    if (!status.ok())
      return status.within(where);
  }
  return verifyGoldens(package);
}

} // namespace sprig
