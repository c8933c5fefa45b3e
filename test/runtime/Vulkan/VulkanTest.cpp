#include "../Tiny/DeviceTest.h"
#include "runtime/Vulkan/PipelineWorker.h"
#include "runtime/Vulkan/Requirements.h"
#include "runtime/Vulkan/Result.h"

#include <filesystem>
#include <fstream>
#include <numeric>

using namespace sprig;
using namespace sprig::test;
using namespace sprig::vulkan;

namespace {

class VulkanTest : public DeviceTest {
protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped())
      return;
    instance = *Instance::create({});
    devices = *listDevices(*instance);
  }

  /// What the first device lacks for a changed tiny target.
  std::string lacks(const std::function<void(format::TargetT &)> &change) {
    format::PackageT package = tinyMetadata();
    change(*package.targets[0]);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(format::Package::Pack(builder, &package));
    const format::Package *packed =
        format::GetPackage(builder.GetBufferPointer());
    std::string all;
    for (const std::string &text :
         missing(*packed->targets()->Get(0), devices[0]))
      all += text + ";";
    return all;
  }

  std::shared_ptr<Instance> instance;
  std::vector<PhysicalDevice> devices;
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_F(VulkanTest, ChoosesDevicesByNameAndIndex) {
  EXPECT_TRUE(chooseDevice(devices, "").ok());
  EXPECT_EQ(chooseDevice(devices, "0")->name, devices[0].name);
  Result<PhysicalDevice> none = chooseDevice(devices, "77");
  EXPECT_EQ(none.status().code(), StatusCode::NotFound);
  EXPECT_TRUE(contains(none.status().message(), devices[0].name));
  EXPECT_EQ(chooseDevice(devices, "no such name").status().code(),
            StatusCode::NotFound);
  Status status = chooseDevice({}, "").status();
  EXPECT_TRUE(contains(status.message(), "mesa-vulkan-drivers"));
}

TEST_F(VulkanTest, SaysWhatADeviceLacks) {
  using format::TargetT;
  EXPECT_EQ(lacks([](TargetT &) {}), "");
  std::string text = lacks([](TargetT &target) {
    target.requirements->vulkan_version = VK_MAKE_API_VERSION(0, 1, 9, 0);
    target.requirements->subgroup_size = 1;
    target.requirements->shared_bytes = 1u << 30;
    target.kernels[0]->workgroup_z = 60000;
  });
  EXPECT_TRUE(contains(text, "Vulkan 1.9 (it has Vulkan 1.")) << text;
  EXPECT_TRUE(contains(text, "subgroups of 1 (it has")) << text;
  EXPECT_TRUE(contains(text, "1073741824 bytes of shared memory (it has"))
      << text;
  EXPECT_TRUE(contains(text, "60000 invocations in one direction")) << text;
  if (!devices[0].supports(format::Feature::cooperative_matrix)) {
    EXPECT_EQ(lacks([](TargetT &target) {
                target.requirements->features = {
                    format::Feature::cooperative_matrix};
              }),
              "cooperative_matrix;");
  }
}

TEST_F(VulkanTest, TakesTheBestTargetThatFits) {
  auto choose = [&](const std::function<void(format::PackageT &)> &change,
                    const std::string &wanted = {}) {
    format::PackageT package = tinyMetadata();
    for (const char *name : {"second", "third"}) {
      package.targets.push_back(
          std::make_unique<format::TargetT>(*package.targets[0]));
      package.targets.back()->name = name;
    }
    change(package);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(format::Package::Pack(builder, &package));
    return chooseTarget(*format::GetPackage(builder.GetBufferPointer()),
                        devices[0], wanted);
  };
  uint32_t here = uint32_t(devices[0].driverId);
  EXPECT_EQ(*choose([](format::PackageT &) {}), 0u);
  EXPECT_EQ(
      *choose([&](format::PackageT &p) { p.targets[2]->drivers = {here}; }),
      2u);
  EXPECT_EQ(
      *choose([&](format::PackageT &p) { p.targets[0]->drivers = {here + 1}; }),
      1u);
  EXPECT_EQ(*choose([](format::PackageT &) {}, "third"), 2u);
  EXPECT_EQ(choose([](format::PackageT &) {}, "other").status().code(),
            StatusCode::NotFound);
  Result<uint32_t> none = choose([](format::PackageT &p) {
    for (auto &target : p.targets)
      target->requirements->shared_bytes = 1u << 30;
  });
  EXPECT_EQ(none.status().code(), StatusCode::Unsupported);
  EXPECT_TRUE(contains(none.status().message(), "'third' needs"));
}

TEST_F(VulkanTest, KeepsPipelinesOnDisk) {
  std::filesystem::path folder = std::filesystem::path(tinyPackage("cache"));
  folder.replace_extension("cache");
  std::filesystem::remove_all(folder);
  ModelOptions options = modelOptions();
  options.cacheFolder = (folder / "deep").string();
  auto run = [&] {
    auto opened = Model::open(tinyPackage("cache"), options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    auto session = Session::create(*opened, {});
    ASSERT_TRUE(session.ok());
    uint32_t token = 1;
    ASSERT_OK((*session)->start(&token, 1, 2));
    ASSERT_OK((*session)->next().status());
    EXPECT_EQ((*opened)->pipelines().created(), 4u);
    ASSERT_OK((*opened)->saveCache());
  };
  run();
  std::vector<std::filesystem::path> files;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  run();
  // A damaged file is no reason to fail.
  std::ofstream(files[0], std::ios::binary | std::ios::in) << "damaged";
  run();
  std::ofstream(files[0], std::ios::binary | std::ios::trunc) << "short";
  run();
}

TEST_F(VulkanTest, KnowsWhichKernelsRanBefore) {
  std::filesystem::path folder = std::filesystem::path(tinyPackage("known"));
  folder.replace_extension("known");
  std::filesystem::remove_all(folder);
  ModelOptions options = modelOptions();
  options.cacheFolder = folder.string();
  auto open = [&] {
    auto opened = Model::open(tinyPackage("known"), options);
    EXPECT_TRUE(opened.ok());
    return *opened;
  };
  auto countKnown = [](Model &model) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < model.target().kernels()->size(); ++i)
      count += model.pipelines().known(i);
    return count;
  };
  {
    std::shared_ptr<Model> model = open();
    EXPECT_EQ(countKnown(*model), 0u);
    auto session = Session::create(model, {});
    ASSERT_TRUE(session.ok());
    uint32_t token = 1;
    ASSERT_OK((*session)->start(&token, 1, 2));
    ASSERT_OK((*session)->next().status());
    model->pipelineCache().setLost(12.5);
  }
  std::shared_ptr<Model> model = open();
  EXPECT_GT(countKnown(*model), 0u);
  EXPECT_EQ(model->pipelines().created(), 0u);
  EXPECT_EQ(model->pipelineCache().lost(), 12.5);
}

TEST_F(VulkanTest, MakesPipelinesAhead) {
  ModelOptions options = modelOptions();
  options.cacheFolder = std::string();
  auto opened = Model::open(tinyPackage("ahead"), options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  vulkan::Pipelines &pipelines = (*opened)->pipelines();
  const uint32_t count = (*opened)->target().kernels()->size();
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  {
    vulkan::PipelineWorker worker(pipelines);
    worker.add(all);
    worker.add({all.front()});
    worker.wait();
    EXPECT_EQ(pipelines.created(), count);
    for (uint32_t kernel : all)
      EXPECT_TRUE(pipelines.known(kernel));
    worker.add(all); // ends with work to do
  }
  vulkan::PipelineWorker idle(pipelines);
  // What computes on the processor itself gains nothing.
  EXPECT_EQ(vulkan::PipelineWorker::pays((*opened)->device()->physical()),
            (*opened)->device()->physical().properties.deviceType !=
                VK_PHYSICAL_DEVICE_TYPE_CPU);
}

/// The debug messenger is really there: a missing barrier is a failure.
TEST_F(VulkanTest, ValidationTurnsMistakesIntoErrors) {
  if (!validated)
    GTEST_SKIP() << "the validation layers are not installed";
  format::PackageT package = tinyMetadata();
  auto &commands = package.targets[0]->programs[3]->commands;
  for (size_t i = commands.size(); i-- > 0;)
    if (package.targets[0]->commands[commands[i]]->barrier)
      commands.erase(commands.begin() + ptrdiff_t(i));
  ModelOptions options;
  options.choice.validation = true;
  options.cacheFolder = std::string();
  auto opened = Model::open(
      writeFile("no-barrier", packageBytes(std::move(package), tinyWeights())),
      options);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  auto session = Session::create(*opened, {});
  ASSERT_TRUE(session.ok());
  uint32_t token = 1;
  ASSERT_OK((*session)->start(&token, 1, 1));
  Status status = (*session)->next().status();
  EXPECT_EQ(status.code(), StatusCode::DeviceError);
  EXPECT_TRUE(contains(status.message(), "HAZARD")) << status.message();
}

TEST_F(VulkanTest, TooLittleMemoryIsAnErrorWithNumbers) {
  format::PackageT package = tinyMetadata();
  uint64_t huge =
      std::min<uint64_t>(devices[0].maxAllocation, uint64_t(1) << 46);
  uint64_t copies = availableMemory(*instance, devices[0]) / huge + 1;
  for (uint64_t i = 0; i < copies; ++i) {
    auto buffer = std::make_unique<format::BufferT>();
    buffer->name = "huge";
    buffer->kind = format::BufferKind::kv;
    buffer->bytes = huge;
    package.targets[0]->buffers.push_back(std::move(buffer));
  }
  auto opened = Model::open(
      writeFile("huge", packageBytes(std::move(package), tinyWeights())),
      modelOptions());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::OutOfMemory);
  EXPECT_TRUE(contains(opened.status().message(), "too few"))
      << opened.status().message();
}

TEST(Result, NamesCallObjectAndCode) {
  Status status = checked(VK_ERROR_DEVICE_LOST, "vkQueueSubmit", "llvmpipe");
  EXPECT_EQ(status.code(), StatusCode::DeviceError);
  EXPECT_EQ(status.message(), "vkQueueSubmit (llvmpipe): VK_ERROR_DEVICE_LOST");
  EXPECT_EQ(checked(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkAllocateMemory").code(),
            StatusCode::OutOfMemory);
  EXPECT_EQ(resultName(VkResult(-77)), "VkResult -77");
}

} // namespace
