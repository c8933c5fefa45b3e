// What passes, lowerings, importers, tools and their tests use besides MLIR: the llm dialect.
#include "SprigPchMLIR.h"
#include "SprigPchStd.h"

#include "dialects/LLM/LLM.h"
