// What tests of whole models on a device share: a folder, the compiler, and a
// session on what it made.
#ifndef SPRIG_TEST_TOOLS_DEVICEMODELTEST_H
#define SPRIG_TEST_TOOLS_DEVICEMODELTEST_H

#include "runtime/Session/Session.h"
#include "runtime/sprig.h"
#include "tools/CompileDriver.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

namespace mlir::llm::testing {

/// A package and a session on it through the C API, with no pipeline cache; no
/// session where that failed.
struct HeldSession {
  explicit HeldSession(const std::string &package) {
    sprig_model_options options;
    sprig_model_options_init(&options);
    options.cache_folder = "";
    EXPECT_EQ(sprig_model_open(package.c_str(), &options, &model), SPRIG_OK)
        << sprig_last_error();
    if (model)
      EXPECT_EQ(sprig_session_create(model, nullptr, &session), SPRIG_OK)
          << sprig_last_error();
  }
  ~HeldSession() {
    sprig_session_destroy(session);
    sprig_model_close(model);
  }
  HeldSession(const HeldSession &) = delete;

  sprig_model *model = nullptr;
  sprig_session *session = nullptr;
};

class DeviceModelTest : public ::testing::Test {
protected:
  void SetUp() override {
    // Files are made durable, which some disks take minutes for.
    const char *memory = "/dev/shm";
    ASSERT_FALSE(::llvm::sys::fs::createUniqueDirectory(
        ::llvm::sys::fs::is_directory(memory)
            ? std::string(memory) + "/sprig-model"
            : std::string("sprig-model"),
        folder));
  }
  void TearDown() override { ::llvm::sys::fs::remove_directories(folder); }

  static DialectRegistry &registry() {
    static DialectRegistry *shared = [] {
      auto *made = new DialectRegistry;
      registerCompiler(*made);
      return made;
    }();
    return *shared;
  }

  std::string file(StringRef name) const {
    return (folder + "/" + name).str();
  }
  std::string package() const { return file("tiny.sprig"); }

  /// The default pipeline for one target, to be changed by the test.
  CompileOptions optionsFor(std::string source, std::string target) const {
    CompileOptions options;
    options.source = std::move(source);
    options.output = package();
    options.targets = {std::move(target)};
    options.passPipeline = "builtin.module(llm-default-pipeline)";
    return options;
  }

  void compile(const CompileOptions &options) {
    MLIRContext context(registry());
    std::string message;
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
    ASSERT_TRUE(succeeded(compileModel(context, options))) << message;
  }

  /// Opens the package; skips where there is no device. `validated`: under the
  /// validation layers, core and synchronisation, where they are installed: any
  /// message fails the test. `poisoned`: memory starts as NaN.
  void open(bool validated, bool poisoned) {
    sprig::ModelOptions options;
    options.cacheFolder = "";
    options.choice.intercept = intercept;
    if (validated) {
      options.choice.validation =
          sprig::vulkan::Instance::create({true, {}}).ok();
      options.choice.listener = [](const std::string &text) {
        ADD_FAILURE() << "validation: " << text;
      };
    }
    auto model = sprig::Model::open(package(), options);
    if (!model.ok() &&
        (model.status().code() == sprig::StatusCode::NotFound ||
         model.status().code() == sprig::StatusCode::Unsupported))
      GTEST_SKIP() << model.status().message();
    ASSERT_TRUE(model.ok()) << model.status().message();
    sprig::SessionOptions memory;
    if (poisoned)
      memory.fill = sprig::kPoison;
    auto made = sprig::Session::create(*model, memory);
    ASSERT_TRUE(made.ok()) << made.status().message();
    session = std::move(*made);
    vocabulary = (*model)->metadata().model()->vocabulary();
  }

  /// Logits after each of `tokens`, fed in pieces of `piece` from the empty
  /// sequence on.
  std::vector<float> logitsOf(ArrayRef<uint32_t> tokens, size_t piece) {
    EXPECT_TRUE(session->truncate(0).ok());
    std::vector<float> logits(tokens.size() * vocabulary);
    for (size_t at = 0; at < tokens.size(); at += piece) {
      sprig::Status status = session->evaluate(
          tokens.data() + at, std::min(piece, tokens.size() - at),
          logits.data() + at * vocabulary);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return logits;
  }

  /// May replace functions of the device.
  std::function<void(sprig::vulkan::DeviceFunctions &)> intercept;
  ::llvm::SmallString<64> folder;
  std::unique_ptr<sprig::Session> session;
  size_t vocabulary = 0;
};

} // namespace mlir::llm::testing

#endif // SPRIG_TEST_TOOLS_DEVICEMODELTEST_H
