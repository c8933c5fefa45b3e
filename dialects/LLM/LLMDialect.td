// The llm dialect itself, and the base class of its ops.
#ifndef LLM_DIALECT_TD
#define LLM_DIALECT_TD

include "mlir/IR/OpBase.td"

def LLM_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::mlir::llm";
  let summary = "Transformers as tensors, weights by name, and explicit state";
  let description = [{
    The dialect of a transformer between import and lowering. Three ideas carry it:

    - **Weights never sit in the text.** `llm.weight` names a tensor of an
      `llm.source`; slices, gathers and other cheap edits of weights are
      expressions that are evaluated when the package is written.
    - **A type says what the numbers mean, an encoding how the bytes lie.**
      `!llm.q<…>` is the first, `#llm.layout<…>` the second, and ops take
      quantised operands where a kernel can read them.
    - **State is explicit.** Key-value caches are symbols; `llm.kv` gives a
      handle, and only the users of the handle have memory effects.

    Dimension names are the same everywhere: `T` tokens in the step, `S` cached
    positions, `D` model width, `H`/`G` query/key-value heads, `E` head size,
    `F` feed-forward width, `V` vocabulary, `L` layers, `B` quantisation group,
    `N`/`K` rows and columns of a weight, `X` experts.

    `T` is spelt the same in every type of a function: all dynamic, or all the
    same number. Every product sums along `K`; a quantised tensor is grouped
    along its last dimension.

    **Reshapes are implicit.** Where an op says that `x` is `TxK` it also takes
    `TxHxE` with `H*E = K`, and a result `TxN` may be written `TxHxE` with
    `H*E = N`; heads are the slow dimension.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 0;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    void registerOps();
  }];
}

/// An i64 that is read as signed.
def LLM_I64Attr : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer">;

class LLM_Op<string mnemonic, list<Trait> traits = []>
    : Op<LLM_Dialect, mnemonic, traits>;

#endif // LLM_DIALECT_TD
