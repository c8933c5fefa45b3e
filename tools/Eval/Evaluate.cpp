#include "tools/Eval/Evaluate.h"

#include "lib/Reference/Scores.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::llm;
using reference::Tensor;

/// How many tokens a step takes, so that its logits stay below some 256 MB.
static size_t chunkFor(const EvalModel &model) {
  return std::max<size_t>(1, (size_t(256) << 20) / (sizeof(double) * size_t(std::max<int64_t>(1, model.vocabulary()))));
}

/// `count` characters of UTF-8 from character `skip` on.
static llvm::Expected<llvm::StringRef> characters(llvm::StringRef text, int64_t skip, int64_t count,
                                                  llvm::StringRef file) {
  auto advance = [](llvm::StringRef &rest, int64_t characters) {
    size_t at = 0;
    int64_t seen = 0;
    while (at < rest.size() && seen < characters) {
      ++at;
      while (at < rest.size() && (uint8_t(rest[at]) & 0xc0) == 0x80) // continuation bytes
        ++at;
      ++seen;
    }
    const llvm::StringRef taken = rest.take_front(at);
    rest = rest.drop_front(at);
    return std::make_pair(taken, seen);
  };
  const int64_t skipped = advance(text, skip).second;
  if (skipped < skip || (count != 0 && text.empty()))
    return llvm::createStringError("'" + file + "' expects more than " + llvm::Twine(skip) + " characters, but has " +
                                   llvm::Twine(skipped));
  return count == 0 ? text : advance(text, count).first;
}

llvm::Expected<std::vector<std::vector<int32_t>>> mlir::llm::cutText(EvalModel &model, const TextOptions &options) {
  auto buffer = llvm::MemoryBuffer::getFile(options.file);
  if (!buffer)
    return llvm::createStringError("cannot read '" + options.file + "': " + buffer.getError().message());
  auto text = characters((*buffer)->getBuffer(), options.skipChars, options.chars, options.file);
  if (!text)
    return text.takeError();
  auto tokens = model.tokenize(*text);
  if (!tokens)
    return tokens.takeError();
  const int64_t have = int64_t(tokens->size()) / options.window;
  const int64_t windows = options.windows ? options.windows : have;
  if (have < windows || windows == 0)
    return llvm::createStringError("expects " + llvm::Twine(std::max<int64_t>(1, windows) * options.window) +
                                   " tokens of text, but '" + options.file + "' gives " + llvm::Twine(tokens->size()) +
                                   "; take more characters or fewer windows");
  std::vector<std::vector<int32_t>> result;
  for (int64_t i = 0; i < windows; ++i) {
    auto &window =
        result.emplace_back(tokens->begin() + i * options.window, tokens->begin() + (i + 1) * options.window);
    auto begins = options.begin ? llvm::Expected<bool>(*options.begin) : model.addsBegin();
    if (!begins)
      return begins.takeError();
    if (!*begins)
      continue;
    auto begin = model.beginToken();
    if (!begin)
      return begin.takeError();
    window.pop_back();
    window.insert(window.begin(), *begin);
  }
  return result;
}

namespace {
/// Both models at the same place of a sequence.
class Pair {
public:
  Pair(EvalModel &model, EvalModel *against) : model(model), against(against) {}

  llvm::Error reset() {
    if (llvm::Error error = model.reset())
      return error;
    return against ? against->reset() : llvm::Error::success();
  }
  llvm::Error step(ArrayRef<int32_t> tokens) {
    auto own = model.step(tokens);
    if (!own)
      return own.takeError();
    logits = *own;
    if (!against)
      return llvm::Error::success();
    auto others = against->step(tokens);
    if (!others)
      return others.takeError();
    other = *others;
    return llvm::Error::success();
  }

  /// Adds KL and agreement of the first `rows` rows.
  void compare(reference::Workers &workers, int64_t rows, double &divergence, int64_t &agreed) const {
    if (!against)
      return;
    const auto kl = reference::divergences(workers, other, logits);
    const auto a = reference::argmaxima(logits), b = reference::argmaxima(other);
    for (size_t i = 0; i < size_t(rows); ++i)
      divergence += kl[i], agreed += a[i] == b[i];
  }

  Tensor logits, other;

private:
  EvalModel &model;
  EvalModel *against;
};
} // namespace

static llvm::Error checkVocabularies(const EvalModel &model, const EvalModel *against) {
  if (!against || against->vocabulary() == model.vocabulary())
    return llvm::Error::success();
  return llvm::createStringError("expects models of one vocabulary, but got " + llvm::Twine(model.vocabulary()) +
                                 " and " + llvm::Twine(against->vocabulary()) + " tokens");
}

llvm::Expected<std::vector<WindowResult>> mlir::llm::scoreWindows(EvalModel &model, EvalModel *against,
                                                                  ArrayRef<std::vector<int32_t>> windows,
                                                                  reference::Workers &workers, Progress progress) {
  if (llvm::Error error = checkVocabularies(model, against))
    return error;
  Pair pair(model, against);
  std::vector<WindowResult> results;
  for (const std::vector<int32_t> &window : windows) {
    if (llvm::Error error = pair.reset())
      return error;
    WindowResult &result = results.emplace_back();
    const ArrayRef<int32_t> inputs = ArrayRef(window).drop_back(), targets = ArrayRef(window).drop_front();
    for (size_t first = 0; first < inputs.size(); first += chunkFor(model)) {
      const size_t count = std::min(chunkFor(model), inputs.size() - first);
      if (llvm::Error error = pair.step(inputs.slice(first, count)))
        return error;
      for (double nll : reference::negativeLogLikelihoods(workers, pair.logits, targets.slice(first, count)))
        result.negativeLogLikelihood += nll;
      pair.compare(workers, int64_t(count), result.divergence, result.agreed);
    }
    result.predicted = int64_t(inputs.size());
    result.negativeLogLikelihood /= double(result.predicted);
    result.divergence /= double(result.predicted);
    progress(results.size(), windows.size(), results);
  }
  return results;
}

llvm::Expected<TokenResult> mlir::llm::evaluateTokens(EvalModel &model, EvalModel *against, ArrayRef<int32_t> tokens,
                                                      LogitRows rows, reference::Workers &workers) {
  if (llvm::Error error = checkVocabularies(model, against))
    return error;
  for (int32_t token : tokens)
    if (token < 0 || token >= model.vocabulary())
      return llvm::createStringError("expects tokens from 0 to " + llvm::Twine(model.vocabulary() - 1) + ", but got " +
                                     llvm::Twine(token));
  Pair pair(model, against);
  if (llvm::Error error = pair.reset())
    return error;
  TokenResult result;
  for (size_t first = 0; first < tokens.size(); first += chunkFor(model)) {
    const size_t count = std::min(chunkFor(model), tokens.size() - first);
    if (llvm::Error error = pair.step(tokens.slice(first, count)))
      return error;
    llvm::append_range(result.argmax, reference::argmaxima(pair.logits));
    pair.compare(workers, int64_t(count), result.divergence, result.agreed);
    const std::vector<double> numbers = pair.logits.toDoubles();
    const size_t V = size_t(pair.logits.width());
    for (size_t i = 0; i < count; ++i)
      if (rows == LogitRows::All || (rows == LogitRows::First ? first + i == 0 : first + i + 1 == tokens.size()))
        result.logits.emplace_back(numbers.begin() + ptrdiff_t(i * V), numbers.begin() + ptrdiff_t((i + 1) * V));
  }
  result.divergence /= double(tokens.size());
  return result;
}
