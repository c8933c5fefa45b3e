#include "codegen/Target/TargetProfile.h"
#include "codegen/Target/Drivers.h"
#include "codegen/Target/TargetEnv.h"

#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace mlir::llm {
namespace {

TargetProfile find(llvm::StringRef name) {
  llvm::Expected<TargetProfile> profile = findProfile(name);
  if (!profile) {
    ADD_FAILURE() << llvm::toString(profile.takeError());
    return {};
  }
  return *profile;
}

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<TargetProfile> profile = parseProfile(text, "test.json");
  return profile ? "" : llvm::toString(profile.takeError());
}

/// The generic profile's text with `from` replaced by `to`.
std::string edited(llvm::StringRef from, llvm::StringRef to) {
  std::string text = printProfile(find("generic"));
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos) << from.str();
  return text.replace(at, from.size(), to.str());
}

TEST(TargetProfile, ListsAndFindsTheProfilesOfTheLibrary) {
  EXPECT_EQ(listProfiles(),
            (std::vector<std::string>{"adreno", "generic", "lavapipe", "matrix",
                                      "nvidia", "rdna3"}));
  for (const std::string &name : listProfiles())
    EXPECT_EQ(find(name).name, name);
  llvm::Expected<TargetProfile> unknown = findProfile("riva128");
  EXPECT_EQ(
      llvm::toString(unknown.takeError()),
      "expects a target among adreno, generic, lavapipe, matrix, nvidia, rdna3, or "
      "a profile file ending in .json, but got 'riva128'");
}

TEST(TargetProfile, GenericRestsOnNothingBeyondVulkan11) {
  TargetProfile generic = find("generic");
  EXPECT_EQ(generic.vulkan, (Version{1, 1}));
  EXPECT_EQ(generic.features, 0u);
  EXPECT_EQ(generic.subgroupSize, 0u);
  EXPECT_FALSE(generic.canShuffle());
  EXPECT_TRUE(find("lavapipe").canShuffle());
}

TEST(TargetProfile, PrintedProfilesReadBackEqual) {
  for (const std::string &name : listProfiles()) {
    std::string text = printProfile(find(name));
    llvm::Expected<TargetProfile> again = parseProfile(text, name);
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(printProfile(*again), text);
  }
}

TEST(TargetProfile, DriversAreNumbersOfTheVulkanRegistry) {
  EXPECT_EQ(find("lavapipe").drivers, std::vector<uint32_t>{13});
  EXPECT_EQ(find("rdna3").drivers, (std::vector<uint32_t>{3, 2, 1}));
  EXPECT_TRUE(find("generic").drivers.empty());
  EXPECT_EQ(driverName(24), "mesa_nvk");
  EXPECT_EQ(driverName(1000), "1000");
  EXPECT_NE(errorOf(edited("\"drivers\": []", "\"drivers\": [\"mesa\"]"))
                .find("expects names of drivers"),
            std::string::npos);
}

TEST(TargetProfile, OnlyMatricesGiveUpEqualBits) {
  for (const std::string &name : listProfiles())
    EXPECT_EQ(find(name).bitEqualWidths, name != "matrix") << name;
  EXPECT_NE(errorOf(edited("\"bit_equal_widths\": true",
                           "\"bit_equal_widths\": 1"))
                .find("expects true or false for 'bit_equal_widths'"),
            std::string::npos);
  EXPECT_NE(errorOf(edited("\"rows\": [\n        1,", "\"rows\": [\n        [],"))
                .find("expects whole numbers and strings for 'rows'"),
            std::string::npos);
}

TEST(TargetProfile, TilesCoverSteps) {
  TargetProfile target = find("lavapipe");
  ASSERT_EQ(target.tokenTiles, (std::vector<int64_t>{1, 2, 3, 4, 6, 8}));
  for (auto [tokens, tile] : {std::pair(1, 1), {7, 8}, {10, 6}, {12, 6}, {64, 8}})
    EXPECT_EQ(target.tokenTile(tokens), tile) << tokens;
  EXPECT_NE(errorOf(edited("\"token_tiles\": [\n    1,",
                           "\"token_tiles\": [\n    2,"))
                .find("expects token_tiles that rise from 1 to at most 64"),
            std::string::npos);
}

TEST(TargetProfile, ReadsAFile) {
  std::string path = std::string(SPRIG_BINARY_DIR) + "/profile-test.json";
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << edited("\"generic\"", "\"mine\"");
  ASSERT_FALSE(error);
  EXPECT_EQ(find(path).name, "mine");
  llvm::sys::fs::remove(path);
  llvm::Expected<TargetProfile> missing = findProfile("nowhere.json");
  EXPECT_EQ(
      llvm::toString(missing.takeError()),
      "cannot read target profile 'nowhere.json': No such file or directory");
}

TEST(TargetProfile, RefusesBadText) {
  EXPECT_NE(errorOf("{").find("target profile 'test.json' is not JSON"),
            std::string::npos);
  EXPECT_EQ(errorOf("[]"),
            "target profile 'test.json' expects an object, but got []");
  EXPECT_EQ(
      errorOf(edited("\"subgroup_size\": 0", "\"subgroup_size\": \"many\"")),
      "target profile 'test.json' expects a whole number for 'subgroup_size', "
      "but got \"many\"");
  EXPECT_EQ(errorOf(edited("\"subgroup_size\": 0", "\"subgroup_size\": 24")),
            "target 'generic' expects a subgroup size of 0 (unknown) or a "
            "power of two up to 128, but got 24");
  EXPECT_EQ(errorOf(edited("\"features\": []",
                           "\"features\": [\"subgroup_shuffle\"]")),
            "target 'generic' expects no subgroup features while subgroup_size "
            "is 0 (unknown), but got "
            "subgroup_shuffle");
  EXPECT_EQ(
      errorOf(edited("\"features\": []", "\"features\": [\"telepathy\"]")),
      "target profile 'test.json' expects names of features for 'features', "
      "but got \"telepathy\"");
  EXPECT_EQ(errorOf(edited("\"shared_bytes\": 16384", "\"shared_bytes\": 64")),
            "target 'generic' expects limits.shared_bytes of at least 16384, "
            "but got 64");
  EXPECT_EQ(errorOf(edited("\"shared_bytes\"", "\"shared_bites\"")),
            "target profile 'test.json' limits expects a whole number for "
            "'shared_bytes', but got nothing");
  EXPECT_EQ(errorOf(edited("\"faults\"", "\"defaults\"")),
            "target profile 'test.json' has an unknown key 'defaults'");
  EXPECT_EQ(errorOf(edited("\"1.1\"", "\"1.0\"")),
            "target 'generic' expects Vulkan 1.1 or newer, but got 1.0");
}

TEST(TargetProfile, SchedulesAreChosenByTheFirstRuleThatHolds) {
  std::string text = printProfile(find("generic"));
  size_t at = text.find("\"schedules\":");
  text = text.substr(0, at) + R"("schedules": {"linear": [
    {"when": {"tokens": {"min": 4}, "format": ["q4_0", "q4_1"]}, "rows": 2, "x": "shared"},
    {"when": {"tokens": 1}, "rows": 4},
    {"rows": 1}]}})";
  size_t brace = text.rfind('}');
  text = text.substr(0, brace + 1);
  // The printed object is in alphabetical order: put back what the cut removed.
  text.insert(1, R"("subgroup_size": 0, "vulkan": "1.1", "spirv": "1.3",)");
  llvm::Expected<TargetProfile> profile = parseProfile(text, "test.json");
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  auto rows = [&](int64_t tokens, std::string format) {
    const ScheduleValues *choices = profile->findSchedule(
        "linear", {{"tokens", tokens}, {"format", format}});
    return choices ? std::get<int64_t>(choices->at("rows")) : 0;
  };
  EXPECT_EQ(rows(8, "q4_1"), 2);
  EXPECT_EQ(rows(8, "q8_0"), 1);
  EXPECT_EQ(rows(1, "q4_1"), 4);
  EXPECT_EQ(profile->findSchedule("attention", {}), nullptr);
}

TEST(TargetProfile, EstimatesTheSlowerOfReadingAndComputing) {
  TargetProfile profile = find("generic");
  profile.rates = {/*readGbPerSecond=*/2, /*gflopPerSecond=*/10,
                   /*dispatchMicroseconds=*/0};
  EXPECT_DOUBLE_EQ(profile.estimateSeconds(2'000'000'000, 1), 1.0);
  EXPECT_DOUBLE_EQ(profile.estimateSeconds(1, 10'000'000'000), 2.0);
}

TEST(TargetEnv, AllowsWhatTheProfileLists) {
  MLIRContext context;
  context.loadDialect<spirv::SPIRVDialect>();
  spirv::TargetEnv lavapipe(getTargetEnv(find("lavapipe"), &context));
  EXPECT_TRUE(lavapipe.allows(spirv::Capability::GroupNonUniformShuffle));
  EXPECT_TRUE(lavapipe.allows(spirv::Extension::SPV_KHR_16bit_storage));
  EXPECT_FALSE(lavapipe.allows(spirv::Capability::CooperativeMatrixKHR));
  EXPECT_EQ(lavapipe.getVersion(), spirv::Version::V_1_3);
  spirv::TargetEnv generic(getTargetEnv(find("generic"), &context));
  EXPECT_TRUE(generic.allows(spirv::Capability::Shader));
  EXPECT_FALSE(generic.allows(spirv::Capability::Int16));
  EXPECT_FALSE(generic.allows(spirv::Capability::GroupNonUniform));
}

} // namespace
} // namespace mlir::llm
