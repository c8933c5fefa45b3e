// The weight files behind the `llm.source` symbols of a module, each opened
// once, and the file that takes new weights.
//
// A tool makes one store for the folder of its IR and attaches it to the
// context; passes find it there. Opening is safe from several threads.
#ifndef SPRIG_LIB_WEIGHTS_WEIGHTSTORE_H
#define SPRIG_LIB_WEIGHTS_WEIGHTSTORE_H

#include "dialects/LLM/LLM.h"
#include "lib/Weights/WeightSource.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>
#include <set>

namespace mlir::llm {

class WeightSpill;

class WeightStore {
public:
  /// Paths of sources are relative to `folder`; an empty one is the working
  /// folder.
  explicit WeightStore(StringRef folder);
  ~WeightStore();

  StringRef folder() const { return base; }

  /// The open file of the `llm.source` that `symbol` names, seen from `user`.
  /// Errors are on `user` or the source: no such symbol, a run-time source, a
  /// file that cannot be read, or one that is not the file that was imported
  /// (its `bytes` or `hash` differ).
  FailureOr<const WeightSource *> source(Operation *user,
                                         FlatSymbolRefAttr symbol);

  /// New weights go to this file (relative to the folder). Nothing is created
  /// before there is one.
  void setSpillPath(StringRef path) { spillPath = path.str(); }
  /// Whether there were new weights, and no place for them: an error then says so.
  bool lackedPlace() const { return lacked; }
  /// Whether there are new weights.
  bool hasSpill() const { return newWeights != nullptr; }
  /// The file of new weights, created on the first call; null, with an error on
  /// `user`, where it cannot be or no path was set.
  WeightSpill *spill(Operation *user);
  /// Completes that file and gives it its name; does nothing without one.
  llvm::Error finish();

  /// The store of a context, or null where no tool attached one.
  static WeightStore *of(MLIRContext *context);
  /// Gives the context a store; its `llm` dialect is loaded by this.
  static void attach(MLIRContext *context, std::shared_ptr<WeightStore> store);

private:
  std::string absolute(StringRef path) const;

  std::string base, spillPath;
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<WeightSource>> files; ///< by absolute path
  std::set<std::string> checked; ///< path, bytes and hash that were compared
  std::unique_ptr<WeightSpill> newWeights, trialWeights;
  bool trying = false, lacked = false;
  friend class WeightTrial;
};

/// While it lives, new weights go to a file of their own, which is gone afterwards: for IR that is made to see what it
/// does. One at a time, and nothing else makes new weights meanwhile.
class WeightTrial {
public:
  explicit WeightTrial(WeightStore &store);
  ~WeightTrial();
  WeightTrial(const WeightTrial &) = delete;
  WeightTrial &operator=(const WeightTrial &) = delete;

private:
  WeightStore &store;
};

/// The way from a folder to a file; both relative to the working folder, or
/// absolute.
std::string relativePath(StringRef file, StringRef folder);

/// Declares `file`, opened from `path`, as the first `llm.source` of the module, and gives back its symbol: `name`, or
/// another where that is taken.
std::string declareSource(ModuleOp module, StringRef name, const WeightSource &file, StringRef path,
                          const WeightStore &store);

/// Rewrites the relative paths of a module's sources from one folder to
/// another, for IR that is written to another place than it was read from.
void rebaseSources(ModuleOp module, StringRef fromFolder, StringRef toFolder);

} // namespace mlir::llm

#endif // SPRIG_LIB_WEIGHTS_WEIGHTSTORE_H
