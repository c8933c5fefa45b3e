// What a tuning has found so far, kept in a file so that it can go on later.
#ifndef SPRIG_TOOLS_TUNE_STATE_H
#define SPRIG_TOOLS_TUNE_STATE_H

#include "tools/Tune/Search.h"
#include "llvm/Support/Error.h"

namespace mlir::llm {

class TuneState {
public:
  /// One search: a product, a token tile, and the schedule that it began with.
  struct Key {
    std::string product;
    int64_t tokens = 1;
    ScheduleValues start;
    bool operator<(const Key &other) const {
      return std::tie(product, tokens, start) <
             std::tie(other.product, other.tokens, other.start);
    }
  };

  /// `what` says on what device and from what profile: a state of another is
  /// refused. A file that is not there is a state in which nothing was done; one
  /// that is no state is an error, and is left alone.
  static llvm::Expected<TuneState> open(std::string file, std::string what);

  /// Null where it was not done; an empty optional where nothing came of it.
  const std::optional<TileResult> *find(const Key &key) const;
  llvm::Error add(const Key &key, std::optional<TileResult> result);
  size_t size() const { return done.size(); }

private:
  llvm::Error read(llvm::StringRef text);
  llvm::Error write() const;

  std::string file, what;
  std::map<Key, std::optional<TileResult>> done;
};

} // namespace mlir::llm

#endif // SPRIG_TOOLS_TUNE_STATE_H
