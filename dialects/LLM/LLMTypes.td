// Types of the llm dialect, and the tensor constraints that its ops use.
#ifndef LLM_TYPES_TD
#define LLM_TYPES_TD

include "dialects/LLM/LLMDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def LLM_QuantizedType
    : TypeDef<LLM_Dialect, "Quantized",
              [DeclareTypeInterfaceMethods<VectorElementTypeInterface>]> {
  let mnemonic = "q";
  let summary = "Element type of a quantised tensor: what the numbers mean";
  let description = [{
    ```
    !llm.q<CODE [, N:M] {, GROUP: SCALE [(+|-) MIN | zero ZERO]}>
    CODE   = i2…i8 | u2…u8 | uB-OFFSET | trit | f4E2M1 | f8E4M3 | f8E5M2
           | cb<name, bits> | grid<name, dim>
    GROUP  = number of elements | *          (* is the whole row)
    SCALE, MIN, ZERO = f16 | bf16 | f32 | e8m0 | ue4m3 | uB | iB
    ```

    An element is a code, scaled by one number for each level of groups along
    the last dimension, inner level first. With the scales `s0`, `s1` of two
    levels, and where given the minima `m0`, `m1` or the zero point `z`:

    ```
    w = s1*s0*code            32:i6, 256:f16
    w = s1*s0*code + m1*m0    32:u6+u6, 256:f16+f16     (or -)
    w = s*(code - z)          128:f16 zero u4
    ```

    - `u4-8` is an unsigned code with a fixed offset: `code - 8`. `i6` is a
      number from -32 to 31, whichever way its bits are stored.
    - `trit` is -1, 0 or 1; `f4E2M1`, `f8E4M3` and `f8E5M2` are the OCP floats; `e8m0`
      is a power of two and `ue4m3` an unsigned 8-bit float.
    - `cb<name, bits>` looks a code up in a codebook. `iq4nl` and `nf4` are known
      to everyone; a learned codebook is an operand of `llm.assemble`.
    - `grid<name, dim>` looks up `dim` elements at a time, signs included. A grid
      fixes how its scales read (for `iq2_xxs`, `s1*(0.5 + s0)/4`).
    - `N:M`: of each `M` elements in a row `N` are stored, and a pattern code.

    - (C1) integer codes have 2 to 8 bits, and an offset that fits them.
    - (C2) a codebook has 1 to 8 bits and a name; a grid is known, with its `dim`.
    - (C3) `0 < N < M <= 32`, and the code is neither a codebook nor a grid.
    - (C4) each group is a multiple of the one inside it (and of `M`, and of
      `dim`); `*` is outermost.
    - (C5) integer scales, minima and zero points have 2 to 16 bits.

    | format | type |
    |---|---|
    | Q4_0, Q4_1, Q8_0 | `<u4-8, 32:f16>`, `<u4, 32:f16+f16>`, `<i8, 32:f16>` |
    | Q4_K, Q6_K | `<u4, 32:u6-u6, 256:f16-f16>`, `<i6, 16:i8, 256:f16>` |
    | IQ4_XS, IQ2_XXS | `<cb<iq4nl, 4>, 32:i6, 256:f16>`, `<grid<iq2_xxs, 8>, 32:u4, 256:f16>` |
    | TQ1_0, TQ2_0 | `<trit, 256:f16>`, `<u2-1, 256:f16>` |
    | MXFP4, NVFP4 | `<f4E2M1, 32:e8m0>`, `<f4E2M1, 16:ue4m3>` |
    | GPTQ, AWQ | `<u4, 128:f16 zero u4>` |
    | 2:4 int4, A8, NF4 | `<i4, 2:4, 64:f16>`, `<i8, *:f32>`, `<cb<nf4, 4>, 64:f32>` |

    The element types of all 26 GGUF tensor types are distinct
    (`dialects/LLM/GGUFFormats.h`).
  }];
  let parameters = (ins
    "::mlir::llm::QuantCode":$code,
    StringRefParameter<"name of the codebook or grid, else empty">:$codebook,
    "::mlir::llm::Sparsity":$sparsity,
    ArrayRefParameter<"::mlir::llm::QuantLevel">:$levels
  );
  let builders = [
    TypeBuilder<(ins "::mlir::llm::QuantCode":$code,
                     "::llvm::ArrayRef<::mlir::llm::QuantLevel>":$levels), [{
      return $_get($_ctxt, code, ::llvm::StringRef(), Sparsity(), levels);
    }]>,
  ];
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Bits of storage an element needs, scales and patterns included, padding
    /// left out; a whole-row level counts as nothing.
    double bitsPerElement() const;
    /// Elements that share the outermost scale: the smallest piece of a row that
    /// can be cut off. 1 without scales; kWholeRow (-1) when a level is `*`.
    int64_t blockElements() const;
    bool isSparse() const { return getSparsity().kept != 0; }
    bool hasCodebook() const { return getCode().kind == CodeKind::Codebook; }
    bool hasGrid() const { return getCode().kind == CodeKind::Grid; }
    /// True for codes that are integers once the fixed offset is taken off.
    bool isInteger() const { return getCode().isInteger(); }
  }];
}

def LLM_KVType : TypeDef<LLM_Dialect, "KV"> {
  let mnemonic = "kv";
  let summary = "A key-value cache, and the handle to one";
  let description = [{
    ```
    !llm.kv<GxE, KEY, VALUE, CAPACITY [, window = W] [, sinks = S]>
    !llm.kv<GxExEV, …>                     (values of another width than keys)
    !llm.kv<1xE, KEY, prefix<EV>, …>       (values are the first EV of the keys)
    ```

    `KEY` and `VALUE` are f32, f16, bf16 or `!llm.q<…>`, grouped along a head.
    A cache with a window promises only that the last `W` positions and the first
    `S` are kept.

    ```mlir
    !llm.kv<3x64, f16, f16, 2048>
    !llm.kv<3x64, !llm.q<i8, *:f16>, !llm.q<u4, 32:f16+f16>, 8192>
    !llm.kv<1x576, f16, prefix<512>, 4096>
    ```

    - (C1) heads, widths and capacity are positive.
    - (C2) keys and values are f32, f16, bf16 or `!llm.q`.
    - (C3) a prefix is not longer than the key.
    - (C4) window and sinks are not negative, and sinks need a window.
  }];
  let parameters = (ins
    "int64_t":$heads,
    "int64_t":$keyWidth,
    "int64_t":$valueWidth,
    "::mlir::Type":$keyType,
    OptionalParameter<"::mlir::Type", "none where values are a prefix of the keys">:$valueType,
    "int64_t":$capacity,
    "int64_t":$window,
    "int64_t":$sinks
  );
  let builders = [
    TypeBuilder<(ins "int64_t":$heads, "int64_t":$width, "::mlir::Type":$keyType,
                     "::mlir::Type":$valueType, "int64_t":$capacity,
                     CArg<"int64_t", "0">:$window, CArg<"int64_t", "0">:$sinks), [{
      return $_get($_ctxt, heads, width, width, keyType, valueType, capacity,
                   window, sinks);
    }]>,
  ];
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// True where only keys are stored, and a value is the head of its key.
    bool isValuePrefix() const { return !getValueType(); }
  }];
}

def LLM_Float : AnyTypeOf<[F16, BF16, F32, F64], "float">;
def LLM_Number : AnyTypeOf<[F16, BF16, F32, F64, LLM_QuantizedType],
                           "float or quantised">;
def LLM_FloatTensor : RankedTensorOf<[LLM_Float]>;
def LLM_NumberTensor : RankedTensorOf<[LLM_Number]>;
/// Anything that a weight file holds, raw integers included.
def LLM_AnyTensor : RankedTensorOf<[LLM_Number, AnyInteger]>;
def LLM_IntTensor : RankedTensorOf<[AnyInteger]>;
def LLM_FloatVector : 1DTensorOf<[LLM_Float]>;
def LLM_F32Vector : 1DTensorOf<[F32]>;
def LLM_I32Vector : 1DTensorOf<[I32]>;
/// A tensor<Nxi32> of fixed length, whose type is not printed.
class LLM_I32Fixed<int length>
    : Type<CPred<"$_self == ::mlir::llm::i32Vector($_self.getContext(), " # length # ")">,
           "tensor<" # length # "xi32>">,
      BuildableType<"::mlir::llm::i32Vector($_builder.getContext(), " # length # ")">;
def LLM_I32Scalar : LLM_I32Fixed<1>;
def LLM_SampleParameters : LLM_I32Fixed<8>;
def LLM_QuantizedTensor : RankedTensorOf<[LLM_QuantizedType]>;

/// One number a row of `of`, of element type `element`: its type is not printed.
class OneARow<string of, string vector, string element>
    : TypesMatchWith<"'" # vector # "' has one " # element # " a row of '" # of # "'", of, vector,
                     "::mlir::llm::rowVector($_self, \"" # element # "\")">;
class OptionalOneARow<string of, string vector, string element>
    : OptionalTypesMatchWith<"'" # vector # "' has one " # element # " a row of '" # of # "'", of,
                             vector, "::mlir::llm::rowVector($_self, \"" # element # "\")">;

#endif // LLM_TYPES_TD
