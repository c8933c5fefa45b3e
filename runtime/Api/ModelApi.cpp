#include "runtime/Api/Boundary.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace sprig;
using namespace sprig::api;

namespace {

template <size_t N> void copyText(char (&out)[N], const std::string &text) {
  size_t bytes = std::min(N - 1, text.size());
  std::memcpy(out, text.data(), bytes);
  out[bytes] = 0;
}

sprig_device describe(const vulkan::PhysicalDevice &device) {
  sprig_device described{};
  copyText(described.name, device.name);
  copyText(described.driver, device.driver);
  copyText(described.kind, device.kind());
  described.vulkan_major = VK_API_VERSION_MAJOR(device.version);
  described.vulkan_minor = VK_API_VERSION_MINOR(device.version);
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i)
    if (device.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      described.memory_bytes = std::max<uint64_t>(
          described.memory_bytes, device.memory.memoryHeaps[i].size);
  described.unified = device.unified();
  return described;
}

bool environmentAsksForValidation() {
  const char *value = std::getenv("SPRIG_VALIDATION");
  return value && *value && std::strcmp(value, "0") != 0;
}

const char *text(const flatbuffers::String *string) {
  return string ? string->c_str() : "";
}

} // namespace

sprig_code sprig_list_devices(sprig_device *devices, size_t capacity,
                              size_t *count) {
  return guarded([&]() -> Status {
    if (Status status = needs(count, "count"); !status.ok())
      return status;
    auto instance = vulkan::Instance::create({});
    if (!instance.ok())
      return instance.status();
    auto found = vulkan::listDevices(**instance);
    if (!found.ok())
      return found.status();
    *count = found->size();
    for (size_t i = 0; devices && i < std::min(capacity, found->size()); ++i)
      devices[i] = describe((*found)[i]);
    return {};
  });
}

void sprig_model_options_init(sprig_model_options *options) {
  *options = sprig_model_options{};
  options->struct_bytes = sizeof(*options);
  options->robust = 1;
  options->validation = environmentAsksForValidation();
}

sprig_code sprig_model_open(const char *path,
                            const sprig_model_options *options,
                            sprig_model **model) {
  return guarded([&]() -> Status {
    if (Status status = needs(path, "path"); !status.ok())
      return status;
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    sprig_model_options given = readOptions(options, sprig_model_options_init);
    if (given.weights < SPRIG_WEIGHTS_AUTO ||
        given.weights > SPRIG_WEIGHTS_STAGED)
      return {StatusCode::InvalidArgument, "expects a known kind of `weights`"};
    ModelOptions wanted;
    wanted.choice.device = given.device ? given.device : "";
    wanted.choice.target = given.target ? given.target : "";
    wanted.choice.validation = given.validation;
    wanted.choice.robust = given.robust;
    if (given.message)
      wanted.choice.listener =
          [call = given.message, user = given.message_user](
              const std::string &message) { call(user, message.c_str()); };
    if (given.plan)
      wanted.plan = [call = given.plan, user = given.plan_user](
                        const MemoryPlan &plan, uint64_t available,
                        bool inPlace, uint32_t context) {
        const sprig_memory_plan told = {plan.weights, plan.kv,   plan.scratch,
                                        plan.logits,  plan.control, available,
                                        inPlace,      context};
        call(user, &told);
      };
    wanted.memoryLimit = given.memory_limit;
    wanted.weights = WeightPlacement(given.weights);
    if (given.cache_folder)
      wanted.cacheFolder = given.cache_folder;
    Result<std::shared_ptr<Model>> opened = Model::open(path, wanted);
    if (!opened.ok())
      return opened.status();
    *model = new sprig_model{*opened};
    return {};
  });
}

void sprig_model_close(sprig_model *model) { delete model; }

size_t sprig_model_adapter_count(const sprig_model *model) {
  const auto *names = model ? model->model->metadata().adapters() : nullptr;
  return names ? names->size() : 0;
}

const char *sprig_model_adapter_name(const sprig_model *model, size_t index) {
  return index < sprig_model_adapter_count(model)
             ? model->model->metadata().adapters()->Get(uint32_t(index))->c_str()
             : nullptr;
}

sprig_code sprig_model_verify(sprig_model *model) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    return model->model->ready();
  });
}

sprig_code sprig_model_get_info(const sprig_model *model,
                                sprig_model_info *info) {
  return guarded([&]() -> Status {
    if (Status status = needs(model, "model"); !status.ok())
      return status;
    if (Status status = needs(info, "info"); !status.ok())
      return status;
    const Model &opened = *model->model;
    const format::Package &metadata = opened.metadata();
    sprig_model_info result{};
    result.name = text(metadata.model()->name());
    result.architecture = text(metadata.model()->architecture());
    result.license = text(metadata.model()->license());
    result.target = text(opened.target().name());
    result.device = opened.device()->physical().name.c_str();
    result.driver = opened.device()->physical().driver.c_str();
    result.vocabulary = metadata.model()->vocabulary();
    result.context = metadata.model()->context();
    result.has_tokenizer = metadata.tokenizer() != nullptr;
    result.has_chat_template =
        metadata.chat_template() && metadata.chat_template()->size() != 0;
    result.package_bytes = opened.package().mapping().size();
    result.weight_bytes = opened.plan().weights;
    result.kv_bytes = opened.plan().kv;
    result.session_bytes = opened.plan().session();
    result.weights_in_place =
        opened.weightPlacement() == WeightPlacement::InPlace;
    writeResult(info, result);
    return {};
  });
}
