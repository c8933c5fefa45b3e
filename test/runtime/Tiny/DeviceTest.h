//===- DeviceTest.h - tests on a Vulkan device, under validation
//--------------===//
#pragma once

#include "../Tiny/TinyPackage.h"
#include "runtime/Session/Session.h"

#include <gtest/gtest.h>

#define ASSERT_OK(expression)                                                  \
  do {                                                                         \
    ::sprig::Status asserted = (expression);                                   \
    ASSERT_TRUE(asserted.ok()) << asserted.message();                          \
  } while (false)

namespace sprig::test {

/// `count` tokens of the tiny vocabulary.
inline std::vector<uint32_t> prompt(size_t count) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < count; ++i)
    tokens.push_back((i * 7 + 3) % 50);
  return tokens;
}

/// The next `count` sampled tokens; fails the test where there are fewer.
inline std::vector<uint32_t> take(Session &session, size_t count) {
  std::vector<uint32_t> tokens;
  while (tokens.size() < count) {
    Result<uint32_t> token = session.next();
    EXPECT_TRUE(token.ok()) << token.status().message();
    if (!token.ok())
      break;
    tokens.push_back(*token);
  }
  return tokens;
}

/// Runs under the validation layers, core and synchronisation, where they are
/// installed: any message fails the test. Skips where there is no device.
class DeviceTest : public testing::Test {
protected:
  void SetUp() override {
    auto instance = vulkan::Instance::create({true, {}});
    validated = instance.ok();
    if (!validated)
      instance = vulkan::Instance::create({});
    if (!instance.ok())
      GTEST_SKIP() << instance.status().message();
    auto devices = vulkan::listDevices(**instance);
    if (!devices.ok() || devices->empty())
      GTEST_SKIP() << "no Vulkan device here";
  }

  ModelOptions modelOptions() {
    ModelOptions options;
    options.choice.validation = validated;
    options.choice.listener = [](const std::string &text) {
      ADD_FAILURE() << "validation: " << text;
    };
    options.cacheFolder = std::string();
    return options;
  }

  /// A session on a tiny package; fails the test and returns null on errors.
  std::unique_ptr<Session>
  open(const std::string &name, const TinyOptions &tiny = {},
       WeightPlacement placement = WeightPlacement::Auto,
       SessionOptions sessionOptions = {}) {
    ModelOptions options = modelOptions();
    options.weights = placement;
    if (!sessionOptions.fill)
      sessionOptions.fill = kPoison;
    Result<std::shared_ptr<Model>> opened =
        Model::open(tinyPackage(name, tiny), options);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status().message();
      return nullptr;
    }
    model = *opened;
    Result<std::unique_ptr<Session>> session =
        Session::create(model, sessionOptions);
    if (!session.ok()) {
      ADD_FAILURE() << session.status().message();
      return nullptr;
    }
    return std::move(*session);
  }

  bool validated = false;
  std::shared_ptr<Model> model;
};

} // namespace sprig::test
