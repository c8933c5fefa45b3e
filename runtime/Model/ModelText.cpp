#include "runtime/Model/ModelText.h"
#include "runtime/Support/Strings.h"

#include <algorithm>

namespace sprig {
namespace {

template <class T>
std::span<const T> view(const flatbuffers::Vector<T> *vector) {
  if (!vector)
    return {};
  return {vector->data(), vector->size()};
}

} // namespace

std::vector<uint32_t> tokenOffsets(const format::Tokenizer &tokenizer) {
  std::vector<uint32_t> offsets{0};
  offsets.reserve(size_t(tokenizer.token_lengths()->size()) + 1);
  for (const uint16_t length : *tokenizer.token_lengths())
    offsets.push_back(offsets.back() + length);
  return offsets;
}

TokenizerData tokenizerData(const format::Tokenizer &tokenizer,
                            std::span<const uint32_t> offsets) {
  TokenizerData data;
  data.kind = TokenizerKind(tokenizer.kind());
  data.pre = tokenizer.pre()->string_view();
  data.tokenBytes = view(tokenizer.token_bytes());
  data.tokenOffsets = offsets;
  data.tokenTypes = view(tokenizer.token_types());
  data.scores = view(tokenizer.scores());
  data.mergeLeft = view(tokenizer.merge_left());
  data.mergeRight = view(tokenizer.merge_right());
  data.mergeFirst = tokenizer.merge_first();
  data.mergeSplits = view(tokenizer.merge_splits());
  data.bos = tokenizer.bos();
  data.unknown = tokenizer.unknown();
  data.padding = tokenizer.padding();
  data.endTokens = view(tokenizer.end_tokens());
  data.addBos = tokenizer.add_bos();
  data.addEos = tokenizer.add_eos();
  data.addSpacePrefix = tokenizer.add_space_prefix();
  data.removeExtraWhitespace = tokenizer.remove_extra_whitespace();
  data.ignoreMerges = tokenizer.ignore_merges();
  if (tokenizer.pipeline())
    data.pipeline = tokenizer.pipeline()->string_view();
  data.addedFlags = view(tokenizer.added_flags());
  data.byteFallback = tokenizer.byte_fallback();
  data.fuseUnknown = tokenizer.fuse_unknown();
  return data;
}

/// Whether the tokenizer reads the package's probe as it did when the package
/// was written: patterns and Unicode's tables come from libraries of the
/// machine, and tokens that differ make a model stupid without an error.
static Status checkProbe(const format::Tokenizer &stored,
                         const Tokenizer &tokenizer) {
  if (!stored.probe() || !stored.probe_tokens())
    return {};
  const auto tokens = tokenizer.encode(stored.probe()->string_view());
  if (!tokens.ok())
    return tokens.status();
  const std::span<const uint32_t> wanted = view(stored.probe_tokens());
  const auto [got, expected] = std::mismatch(tokens->begin(), tokens->end(),
                                             wanted.begin(), wanted.end());
  if (got == tokens->end() && expected == wanted.end())
    return {};
  const auto name = [](auto at, auto end) {
    return at == end ? std::string("the end") : concat("token ", *at);
  };
  return {StatusCode::Corrupt,
          concat("expects ", name(expected, wanted.end()), " at place ",
                 expected - wanted.begin(),
                 " of the package's probe text, but got ",
                 name(got, tokens->end()),
                 "; is PCRE2 or utf8proc much older here?")};
}

Result<const Tokenizer *> ModelText::tokenizer() {
  std::call_once(once, [this] {
    const format::Tokenizer *tokenizer = package.metadata().tokenizer();
    if (tokenizer) {
      offsets = tokenOffsets(*tokenizer);
      made.emplace(Tokenizer::create(tokenizerData(*tokenizer, offsets)));
      if (made->ok())
        if (Status s = checkProbe(*tokenizer, **made); !s)
          made.emplace(s);
    } else
      made.emplace(Status(StatusCode::Unsupported,
                          "the package has no tokenizer; give token ids"));
  });
  if (!made->ok())
    return made->status().within(concat(package.path(), ": tokenizer"));
  return &**made;
}

void ModelText::addBegin(std::vector<uint32_t> &tokens) {
  const format::Tokenizer *tokenizer = package.metadata().tokenizer();
  if (tokenizer && tokenizer->add_bos() && tokenizer->bos() >= 0)
    tokens.insert(tokens.begin(), uint32_t(tokenizer->bos()));
}

Result<std::vector<uint32_t>> ModelText::chat(const std::string &messages,
                                              const std::string &tools,
                                              bool addGenerationPrompt) {
  Result<const Tokenizer *> words = tokenizer();
  if (!words.ok())
    return words.status();
  const flatbuffers::String *source = package.metadata().chat_template();
  if (!source || source->size() == 0)
    return Status(StatusCode::Unsupported,
                  concat(package.path(), ": the package has no chat template"));
  std::call_once(chatOnce, [&] {
    parsed.emplace(ChatTemplate::parse(source->string_view()));
  });
  if (!parsed->ok())
    return parsed->status().within(concat(package.path(), ": chat template"));
  ChatInput input;
  input.messages = messages;
  input.tools = tools;
  input.addGenerationPrompt = addGenerationPrompt;
  const TokenizerData &data = (*words)->data();
  if (data.bos >= 0)
    input.bosToken = (*words)->bytes(uint32_t(data.bos));
  if (!data.endTokens.empty())
    input.eosToken = (*words)->bytes(data.endTokens[0]);
  Result<std::vector<TextSegment>> text = (**parsed).render(input);
  if (!text.ok())
    return text.status().within("chat template");
  return (*words)->encode(*text);
}

} // namespace sprig
