#include "runtime/Vulkan/Loader.h"
#include "runtime/Support/Strings.h"

#include <cstdlib>
#include <dlfcn.h>

namespace sprig::vulkan {
namespace {

Result<GlobalFunctions> load() {
  // Android names it without the version. The variable is for systems that keep
  // theirs elsewhere.
  const char *chosen = std::getenv("SPRIG_VULKAN_LIBRARY");
  const char *names[] = {chosen ? chosen : "libvulkan.so.1", "libvulkan.so"};
  void *library = nullptr;
  std::string why;
  for (const char *name : names) {
    if (chosen && name != chosen)
      break;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
      break;
    if (const char *error = dlerror(); error && why.empty())
      why = error;
  }
  if (!library)
    return Status(
        StatusCode::NotFound,
        concat("expects the Vulkan loader libvulkan.so.1, but got: ", why,
               "; install it (Debian: libvulkan1, and a driver "
               "such as mesa-vulkan-drivers)"));
  GlobalFunctions functions;
  functions.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(library, "vkGetInstanceProcAddr"));
  if (!functions.GetInstanceProcAddr)
    return Status(StatusCode::NotFound,
                  "expects libvulkan.so.1 to export vkGetInstanceProcAddr, but "
                  "it does not: it is not a Vulkan loader");
#define SPRIG_LOAD(name)                                                       \
  functions.name = reinterpret_cast<PFN_vk##name>(                             \
      functions.GetInstanceProcAddr(nullptr, "vk" #name));
  SPRIG_GLOBAL_FUNCTIONS(SPRIG_LOAD)
#undef SPRIG_LOAD
  if (!functions.EnumerateInstanceVersion || !functions.CreateInstance)
    return Status(StatusCode::Unsupported,
                  "expects a Vulkan loader of version 1.1 or later, but got "
                  "1.0; install a newer one");
  return functions;
}

} // namespace

Result<GlobalFunctions> loadVulkan() {
  static const Result<GlobalFunctions> loaded = load();
  return loaded;
}

} // namespace sprig::vulkan
