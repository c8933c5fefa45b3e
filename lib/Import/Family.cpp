#include "lib/Import/Family.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::llm;
using llvm::StringRef;

// One row a family, in alphabetical order of what checkpoints call it.
static const Family kFamilies[] = {
    // What sets its models apart is not in their names: see readBaichuan.
    {.checkpoint = "baichuan", .names = &kBaichuanNames},
    {
        .gguf = "deepseek2", // those of V3, too
        .checkpoint = "deepseek_v2",
        .names = &kDeepseekNames,
        .interleavedInGGUF = true,
        .interleavedInCheckpoint = true,
        .latentAttention = true,
        .experts = true,
        .expertsInGGUF = true,
        .normaliseExperts = false,
    },
    {
        .checkpoint = "deepseek_v3",
        .names = &kDeepseekNames,
        .interleavedInCheckpoint = true,
        .latentAttention = true,
        .predictLayers = true,
        .experts = true,
        .expertScore = ScoreKind::Sigmoid,
        .expertBias = true,
    },
    {
        .gguf = "gemma2",
        .checkpoint = "gemma2",
        .names = &kSandwichNames,
        .activation = ActivationKind::GeluTanh,
        .normAfter = true,
        .gammaLessOne = true,
        .fullEvery = 2,
        .scaledEmbedding = true,
        .layersThatScaleByWidth = 46, // 27B
        .tied = true,
    },
    {
        .gguf = "gemma3",
        .checkpoint = "gemma3_text",
        .names = &kSandwichNames,
        .activation = ActivationKind::GeluTanh,
        .normAfter = true,
        .qkNorm = QKNorm::Head,
        .gammaLessOne = true,
        .ropeBase = 1e6,
        .windowBase = 10000.0,
        .fullEvery = 6,
        .scaledEmbedding = true,
        .layersThatScaleByWidth = 62, // 27B
        .tied = true,
    },
    {
        .gguf = "gpt2",
        .checkpoint = "gpt2",
        .names = &kGPT2Names,
        .activation = ActivationKind::GeluTanh,
        .gated = false,
        .norm = NormKind::Layer,
        .learnedPositions = true,
        .tied = true,
    },
    // Granite is llama with factors on embedding, residual, attention and
    // logits, which any GGUF file may state.
    {.gguf = "granite", .checkpoint = "granite", .interleavedInGGUF = true},
    {
        .gguf = "llama", // Mixtral's files, too
        .checkpoint = "llama",
        .interleavedInGGUF = true,
        .expertsInGGUF = true,
    },
    {
        .checkpoint = "mimo", // Qwen 2 but for the further layers
        .names = &kMimoNames,
        .windowByFlag = true,
        .predictLayers = true,
        .biasedQKV = true,
    },
    {.gguf = "minicpm", .checkpoint = "minicpm", .interleavedInGGUF = true, .tied = true},
    {.checkpoint = "mistral"},
    {
        .checkpoint = "mixtral",
        .names = &kMixtralNames,
        .ropeBase = 1e6,
        .experts = true,
    },
    {
        .gguf = "olmo2",
        .checkpoint = "olmo2",
        .names = &kSandwichNames,
        .normBefore = false,
        .normAfter = true,
        .qkNorm = QKNorm::Row,
    },
    {.gguf = "phi3", .checkpoint = "phi3"},
    {
        .gguf = "qwen2",
        .checkpoint = "qwen2",
        .windowByFlag = true,
        .biasedQKV = true,
    },
    {
        .gguf = "qwen2moe",
        .checkpoint = "qwen2_moe",
        .names = &kQwenMoeNames,
        .windowByFlag = true,
        .biasedQKV = true,
        .experts = true,
        .expertsInGGUF = true,
        .normaliseExperts = false,
        .normaliseExpertsInGGUF = false,
    },
    {
        .gguf = "qwen3",
        .checkpoint = "qwen3",
        .qkNorm = QKNorm::Head,
        .windowByFlag = true,
    },
    {
        .gguf = "qwen3moe",
        .checkpoint = "qwen3_moe",
        .names = &kQwenMoeNames,
        .qkNorm = QKNorm::Head,
        .windowByFlag = true,
        .experts = true,
        .expertsInGGUF = true,
        .normaliseExperts = false,
    },
    {
        .gguf = "smollm3",
        .checkpoint = "smollm3",
        .interleavedInGGUF = true,
        .ropeBase = 2e6,
        .unrotatedEvery = 4,
        .windowByFlag = true,
        .tied = true,
    },
    {.gguf = "stablelm", .checkpoint = "stablelm", .norm = NormKind::Layer},
};

llvm::ArrayRef<Family> mlir::llm::families() { return kFamilies; }

static const Family *find(StringRef Family::*name, StringRef value) {
  for (const Family &family : kFamilies)
    if (!value.empty() && family.*name == value)
      return &family;
  return nullptr;
}

const Family *mlir::llm::findFamily(StringRef gguf) {
  return find(&Family::gguf, gguf);
}

const Family *mlir::llm::findCheckpointFamily(StringRef modelType) {
  return find(&Family::checkpoint, modelType);
}

std::string mlir::llm::familyNames(StringRef Family::*name) {
  llvm::SmallVector<StringRef> names;
  for (const Family &family : kFamilies)
    if (!(family.*name).empty())
      names.push_back(family.*name);
  return llvm::join(names, ", ");
}

void mlir::llm::applyFamily(const Family &family, ModelConfig &config) {
  config.activation = family.activation;
  config.gated = family.gated;
  config.norm = family.norm;
  config.normBefore = family.normBefore;
  config.normAfter = family.normAfter;
  config.qkNorm = family.qkNorm;
  config.learnedPositions = family.learnedPositions;
  config.biasedQKV = family.biasedQKV;
}
