#include "runtime/Speculation/ModelDraft.h"
#include "runtime/Support/Strings.h"

#include <algorithm>
#include <chrono>

namespace sprig {
namespace {

/// Where two vocabularies part; empty where they do not.
std::string difference(const format::Package &wanted,
                       const format::Package &got) {
  if (wanted.model()->vocabulary() != got.model()->vocabulary())
    return concat("its vocabulary has ", got.model()->vocabulary(),
                  " tokens instead of ", wanted.model()->vocabulary());
  const format::Tokenizer *a = wanted.tokenizer(), *b = got.tokenizer();
  if (!a || !b)
    return {}; // token ids are all there is
  uint32_t beginA = 0, beginB = 0;
  for (uint32_t i = 0;
       i < a->token_lengths()->size() && i < b->token_lengths()->size(); ++i) {
    auto spelled = [i](const format::Tokenizer &tokenizer, uint32_t &begin) {
      const auto *bytes =
          reinterpret_cast<const char *>(tokenizer.token_bytes()->data());
      const uint32_t length = tokenizer.token_lengths()->Get(i);
      return std::string_view(bytes + std::exchange(begin, begin + length),
                              length);
    };
    const std::string_view ofA = spelled(*a, beginA), ofB = spelled(*b, beginB);
    if (ofA != ofB)
      return concat("its token ", i, " is '", ofB, "' instead of '", ofA, "'");
  }
  return {};
}

} // namespace

Result<std::unique_ptr<ModelDraft>>
ModelDraft::create(Session &target, const std::shared_ptr<Model> &model) {
  if (!model)
    return Status(StatusCode::InvalidArgument,
                  "expects a draft model with the draft 'model' (llm-run "
                  "--draft-model=FILE), but got none");
  const std::string parts =
      difference(target.model().metadata(), model->metadata());
  if (!parts.empty())
    return Status(StatusCode::InvalidArgument,
                  concat(model->package().path(),
                         ": expects a draft with the vocabulary of the model, "
                         "but ",
                         parts));
  std::unique_ptr<ModelDraft> made(new ModelDraft(target));
  Result<std::unique_ptr<Session>> session = Session::create(model, {});
  if (!session.ok())
    return session.status();
  made->session = std::move(*session);
  made->record.reserve(format::kMostNodes);
  return made;
}

Status ModelDraft::follow(const std::vector<uint32_t> &tokens, bool sampled) {
  record.follow(tokens, sampled);
  return {};
}

Status ModelDraft::propose(DraftTree &tree, uint32_t nodes) {
  const std::vector<uint32_t> &tokens = target.tokens();
  record.begin(tokens.size());
  const uint64_t room = session->capacity() + 1;
  if (nodes < 2 || tokens.size() >= room)
    return {};
  const uint64_t wanted =
      std::min<uint64_t>(nodes - 1, room - tokens.size());
  // At least one token is fed: its logits are what sampling starts from.
  const size_t same = std::min(session->match(tokens.data(), tokens.size()),
                               tokens.size() - 1);
  if (Status status = session->truncate(same); !status.ok())
    return status;
  if (Status status = session->setSampling(target.sampled()); !status.ok())
    return status;
  const bool caughtUp = tokens.size() - same < 4;
  const auto began = std::chrono::steady_clock::now();
  if (Status status = session->start(tokens.data() + same,
                                     tokens.size() - same, wanted);
      !status.ok())
    return status;
  uint32_t node = 0;
  const float likely = float(record.agreement());
  while (record.size() < wanted && node != DraftTree::kNone) {
    Result<uint32_t> token = session->next();
    if (!token.ok())
      return token.status();
    record.add(*token);
    node = tree.add(node, *token, likely);
  }
  if (Status status = session->stop(); !status.ok())
    return status;
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
          .count() /
      double(record.size());
  // The first round reads the whole text.
  if (caughtUp)
    record.took(took);
  return {};
}

} // namespace sprig
