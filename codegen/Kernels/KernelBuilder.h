// Thin helpers over OpBuilder with which the kernel families are written:
// arithmetic on i32, index and f32, loads and stores, loops, the exchange of
// values between lanes. One builder makes one kernel:
//
//   KernelBuilder b(module, profile, interface);
//   b.open({b.f32(), b.f32()});               // element type of each binding
//   Value i = b.globalId();
//   b.store(b.mul(b.load(0, i), b.constant(2.0f)), 1, i);
//   b.close();
//
// Integers are unsigned wherever it matters. `index` values are addresses (32
// bits on every target), i32 values are data; `toIndex` and `toI32` cross over
// at no cost. Constant operands fold, so address arithmetic stays short.
#ifndef SPRIG_CODEGEN_KERNELS_KERNELBUILDER_H
#define SPRIG_CODEGEN_KERNELS_KERNELBUILDER_H

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Target/TargetProfile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

using Values = SmallVector<Value>;

class KernelBuilder {
public:
  KernelBuilder(ModuleOp module, const TargetProfile &profile,
                const KernelInterface &interface);

  const TargetProfile &target() const { return profile; }
  OpBuilder &ops() { return builder; }
  Location loc() const { return location; }

  // Types.
  Type f32() { return builder.getF32Type(); }
  Type f16() { return builder.getF16Type(); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }
  Type vec(int64_t lanes, Type element) {
    return VectorType::get({lanes}, element);
  }

  /// Starts the kernel: binding i is an array of `elements[i]`. Uniform
  /// bindings must state their bytes.
  void open(ArrayRef<Type> elements);
  void close();

  // Where this invocation is (index values).
  Value localId(unsigned dimension = 0);
  Value groupId(unsigned dimension = 0);
  Value globalId(unsigned dimension = 0);

  // Constants.
  Value index(int64_t value);
  Value constant(uint32_t value);
  Value constant(float value);
  /// A constant of the type of `like` (index, integer or float).
  Value constantLike(Value like, int64_t value);

  // Arithmetic. Both operands have one type; integer division, remainder, shift
  // right and comparisons are unsigned.
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return add(a, constantLike(a, b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b) { return mul(a, constantLike(a, b)); }
  Value div(Value a, Value b);
  Value div(Value a, int64_t b) { return div(a, constantLike(a, b)); }
  Value rem(Value a, Value b);
  Value rem(Value a, int64_t b) { return rem(a, constantLike(a, b)); }
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value shl(Value a, int64_t bits);
  Value shl(Value a, Value bits);
  Value shr(Value a, int64_t bits);
  Value shr(Value a, Value bits);
  Value sar(Value a, int64_t bits); ///< signed shift right
  Value bitAnd(Value a, Value b);
  Value bitAnd(Value a, int64_t b) { return bitAnd(a, constantLike(a, b)); }
  Value bitOr(Value a, Value b);
  Value bitXor(Value a, Value b);
  Value less(Value a, Value b);
  Value less(Value a, int64_t b) { return less(a, constantLike(a, b)); }
  Value equal(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  /// a * b + c, rounded once where the hardware can; never contracted or split
  /// differently from kernel to kernel.
  Value fma(Value a, Value b, Value c);
  Value neg(Value a);
  Value exp(Value a);
  Value tanh(Value a);
  Value sqrt(Value a);
  Value rsqrt(Value a);

  // Conversions.
  Value toIndex(Value integer);
  Value toI32(Value index);
  Value unsignedToF32(Value integer);
  Value signedToF32(Value integer);
  /// The integer part of a number that is not negative.
  Value floorToI32(Value f32);
  Value f32FromBits(Value i32);
  Value bitsOfF32(Value f32);
  /// The two f16 numbers in an i32 as f32 (low half first): needs no 16-bit
  /// type. Exact, subnormals included.
  std::pair<Value, Value> unpackHalves(Value i32);
  Value packHalves(Value low, Value high);
  /// The two i32 words of an i64, low first; an i32 is its own only word.
  Values words(Value integer);
  /// bits [offset, offset + count) of an i32.
  Value bits(Value i32, unsigned offset, unsigned count);
  /// The same, sign-extended.
  Value signedBits(Value i32, unsigned offset, unsigned count);

  // Vectors.
  Value extract(Value vector, int64_t lane);
  Value pack(ArrayRef<Value> scalars);
  /// Scalars of a vector; a scalar is its own only element.
  Values unpack(Value vectorOrScalar);

  // Memory.
  Value load(unsigned binding, Value element);
  void store(Value value, unsigned binding, Value element);
  /// An array shared by the workgroup.
  Value shared(Type element, int64_t count);
  Value load(Value array, Value element);
  void store(Value value, Value array, Value element);
  void barrier();

  // Control flow.
  using LoopBody = function_ref<Values(Value index, ValueRange carried)>;
  /// What a driver is told about a loop whose rounds it knows the number of.
  enum class Rounds { Any, KeepLoop, WriteOut };
  /// for (index = lower; index < upper; index += step); returns the carried
  /// values after the last round.
  Values loop(Value lower, Value upper, Value step, ValueRange initial,
              LoopBody body, Rounds rounds = Rounds::Any);
  Values loop(int64_t lower, int64_t upper, int64_t step, ValueRange initial,
              LoopBody body);
  void when(Value condition, function_ref<void()> body);
  Values choose(Value condition, function_ref<Values()> then,
                function_ref<Values()> otherwise);

  // Exchange between the lanes of a subgroup; the profile must know the
  // subgroup size.
  /// The value of lane `lane` in every lane.
  Value broadcast(Value value, unsigned lane);
  Value shuffle(Value value, Value lane);
  Value shuffleXor(Value value, unsigned mask);

  /// Adds (or takes the maximum of) a value over aligned runs of `lanes`
  /// invocations along x, the whole workgroup at most; every lane receives it.
  /// The order of the additions depends on `lanes` alone: a balanced tree. By
  /// subgroup shuffles as far as they reach, then through shared memory, so
  /// every invocation must arrive here.
  enum class Reduction { Add, Max };
  Value reduce(Value value, unsigned lanes,
               Reduction reduction = Reduction::Add);

  /// Adds each of `values` over the lanes l, l ^ stride, l ^ 2 stride, …
  /// (`lanes` of them, x the fastest), as balanced trees. The sums reach the
  /// lanes whose number within those is 0; in others they are undefined. Takes
  /// values × workgroup × 4 bytes of shared memory where shuffles do not reach.
  Values reduceAll(Values values, unsigned lanes, unsigned stride);

  // Cooperative matrices of 16 × 16, held by a subgroup: see KernelMatrix.cpp.
  /// A: [token][k] as f16; B: [k][row], read from [row][k].
  enum class MatrixUse { A, B };
  /// Rounds to the nearest; what is too large becomes infinite.
  Value toF16(Value number);
  Value zeroMatrix();
  /// From `array` (shared, of f16), element `first` on; `line` numbers from one
  /// token or row to the next.
  Value loadMatrix(MatrixUse use, Value array, Value first, int64_t line);
  /// a * b + c, in f32 and in the order of the device.
  Value multiplyAdd(Value a, Value b, Value c);
  void storeMatrix(Value matrix, Value array, Value first, int64_t line);

private:
  Value combine(Value a, Value b, Reduction reduction);
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return builder.createOrFold<Op>(location, std::forward<Args>(args)...);
  }
  Value constantAttr(TypedAttr value);
  Value select3(gpu::Dimension dimension);

  const TargetProfile &profile;
  const KernelInterface &interface;
  ModuleOp module;
  OpBuilder builder;
  Location location;
  gpu::GPUFuncOp function;
  Values arrays; ///< of the bindings: a memref, or the image of a texel view
  DenseMap<Attribute, Value> constants;
  DenseMap<unsigned, Value> ids;
};

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_KERNELBUILDER_H
