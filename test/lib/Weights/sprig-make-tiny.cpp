// Writes a tiny llama for tests that run commands.
//
// usage: sprig-make-tiny FILE.gguf [VARIANT [SEED]]
//        sprig-make-tiny --list
#include "test/lib/Weights/TinyLlama.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir::llm::testing;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  const llvm::ArrayRef<char *> arguments(argv + 1, size_t(argc - 1));
  if (arguments.size() == 1 && llvm::StringRef(arguments[0]) == "--list") {
    for (llvm::StringRef name : tinyLlamaVariants())
      llvm::outs() << name << "\n";
    return 0;
  }
  if (arguments.empty() || arguments.size() > 3 || arguments[0][0] == '-')
    return fail("usage: sprig-make-tiny FILE.gguf [VARIANT [SEED]] | --list");
  auto options =
      tinyLlamaVariant(arguments.size() > 1 ? arguments[1] : "default");
  if (!options)
    return fail("unknown variant '" + llvm::Twine(arguments[1]) +
                "'; --list names them");
  if (arguments.size() > 2 &&
      llvm::StringRef(arguments[2]).getAsInteger(10, options->seed))
    return fail("expects a number as seed, but got '" +
                llvm::Twine(arguments[2]) + "'");
  if (llvm::Error error = writeTinyLlama(arguments[0], *options))
    return fail(llvm::toString(std::move(error)));
  return 0;
}
