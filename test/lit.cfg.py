import os
import lit.formats

config.name = "sprig"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.sprig_binary_dir, "test", "lit")

tools = [os.path.join(config.sprig_binary_dir, "bin"), config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment.get("PATH", os.environ["PATH"])])
for name in ("HOME", "SPRIG_VALIDATION", "VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_LAYER_PATH", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

shared = os.path.join(config.sprig_source_dir, "..", "shared")
model = os.path.join(config.sprig_binary_dir, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
config.substitutions.append(("%shared", shared))
config.substitutions.append(("%model", model))
config.substitutions.append(("%source", config.sprig_source_dir))
config.substitutions.append(("%mlir_include", config.mlir_include_dir))
if os.path.isdir(shared):
    config.available_features.add("shared")
if os.path.exists(model):
    config.available_features.add("model")
radv = "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"
config.substitutions.append(("%radv_icd", radv))
if os.path.exists(radv):
    config.available_features.add("radv")
