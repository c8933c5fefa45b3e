// All ops, for the generators.
include "dialects/LLM/LLMComputeOps.td"
include "dialects/LLM/LLMElementwiseOps.td"
include "dialects/LLM/LLMModuleOps.td"
include "dialects/LLM/LLMSpeculationOps.td"
include "dialects/LLM/LLMStateOps.td"
include "dialects/LLM/LLMWeightOps.td"
