// How a kernel reads a block of quantised weights: one small codec a format. A
// codec turns the words of a block's planes (lib/Quant/Format.h) into f32
// codes, scales and minima; the linear family does the rest.
//
// A block is worked through in steps, each self-contained and equal in code, so
// that a loop over steps covers a row. A step holds chunks of up to 32
// neighbouring numbers; a chunk holds groups that share a scale:
//
//   weight[k] = scale * code[k] + minimum        k in the group
//   sum over k of weight * x = scale * (sum of code * x) + minimum * (sum of x)
//
// Codes may come multiplied by a power of two, 2^shift(k), where that saves an
// instruction; the caller then divides x by it, once for all rows, which is
// exact.
#ifndef SPRIG_CODEGEN_KERNELS_BLOCKCODEC_H
#define SPRIG_CODEGEN_KERNELS_BLOCKCODEC_H

#include "codegen/Kernels/KernelBuilder.h"
#include "lib/Quant/Format.h"
#include "lib/Quant/Layout.h"
#include <memory>

namespace mlir::llm {

class BlockCodec;

inline constexpr unsigned kChunk = 32;
/// The binding that holds BlockCodec::table().
inline constexpr llvm::StringLiteral kTableRole = "grid";
/// What follows the dot in the role of a binding that holds all planes of a
/// weight (BlockCodec::inOneBinding).
inline constexpr llvm::StringLiteral kAllPlanes = "all";

/// One plane of a weight as a binding: [tiles][units][8 rows][unitBytes] (or as
/// lib/Quant/Layout.h says of runs) seen as an array of elements.
struct PlaneBinding {
  unsigned binding = 0;
  unsigned elementBytes = 4; ///< 16, 8 or 4: what one load fetches
  unsigned base = 0; ///< word of the binding that the plane starts at
  sprig::quant::PlaneLayout layout = {};

  unsigned unitBytes() const { return layout.unitBytes; }
  unsigned runBytes() const { return layout.unitBytes * layout.run; }
};

/// Bytes that one load of a plane fetches: the widest of 16, 8 and 4 that
/// divides the unit, or with `spans` the run of units that lie side by side,
/// but 4 for tiny ones. Units of an odd number of words, and more than one, are
/// read 8 bytes at a time, the first or the last word of which is that of a
/// neighbour.
unsigned planeElementBytes(const sprig::quant::PlaneLayout &plane,
                           unsigned widest = 16, bool spans = true);

/// Bytes that one load of a plane fetches: 16, 8 or 4.
using PlaneLoad =
    llvm::function_ref<unsigned(const sprig::quant::PlaneLayout &)>;

/// Adds the plane `name` of a weight, or all of them, that binding `binding`
/// holds, and gives the type of its elements.
Type bindPlanes(KernelBuilder &b, StringRef name, unsigned binding,
                const sprig::quant::TensorLayout &layout, PlaneLoad loadBytes,
                SmallVectorImpl<PlaneBinding> &planes);

/// A unit of one row: unit `unit` of the rows of tile `tile`, of which it is
/// row `row`.
struct UnitPlace {
  Value tile, unit, row;
};

/// What a span of units (TensorLayout::span) has in small planes: the words of
/// the run, or of the piece, that the span's units have there. Empty for planes
/// that are read with each unit.
using SpanWords = std::vector<Values>;

/// Loads them, of the span that starts with the unit at `first`.
SpanWords loadSpan(KernelBuilder &b, ArrayRef<PlaneBinding> planes,
                   const UnitPlace &first, unsigned span);

/// Reads the words of one row's units.
class UnitReader {
public:
  /// `span` has the words of the span that the unit is in, of which it is unit
  /// `within`; empty: all planes are read here.
  UnitReader(KernelBuilder &b, ArrayRef<PlaneBinding> planes, UnitPlace unit,
             unsigned tableBinding = 0, ArrayRef<Values> span = {},
             Value within = {})
      : b(b), planes(planes), unit(unit), tableBinding(tableBinding),
        span(span), within(within) {}

  KernelBuilder &builder() { return b; }
  /// The reader of the unit `count` units further along the row; of formats
  /// without spans.
  UnitReader next(unsigned count) {
    return UnitReader(b, planes,
                      {unit.tile, b.add(unit.unit, int64_t(count)), unit.row},
                      tableBinding);
  }

  /// `count` words of the plane from word `first` (+ `dynamic`, if given) on;
  /// both are whole loads, or the whole unit.
  Values words(unsigned plane, unsigned first, unsigned count,
               Value dynamic = {});
  /// Number `index` of the codec's table, a whole one, as an i32.
  Value table(Value index) {
    return b.floorToI32(b.load(tableBinding, b.toIndex(index)));
  }
  /// The 1 or 2 bytes that a tiny plane has for the unit, as an i32.
  Value tiny(unsigned plane);
  /// The half of such a byte that is the unit's: the lower one for the first
  /// half of the units that share it.
  Value tinyNibble(unsigned plane);

private:
  /// All words of a unit of an odd number of them.
  Values oddWords(unsigned plane);
  /// The unit's piece in the run of the plane that the span holds.
  Value inRun(unsigned plane);
  bool held(unsigned plane) const {
    return !span.empty() && !span[plane].empty();
  }

  KernelBuilder &b;
  ArrayRef<PlaneBinding> planes;
  UnitPlace unit;
  unsigned tableBinding;
  ArrayRef<Values> span;
  Value within;
};

/// Walks the blocks of a row, whole ones, in their order. With `spans` a span
/// is opened after another: these are dealt out to `split` slices in turn, and
/// within one come all steps of all blocks. Else steps are dealt out.
class BlockWalk {
public:
  BlockWalk(KernelBuilder &b, const BlockCodec &codec,
            const sprig::quant::TensorLayout &layout, bool spans, Value slice,
            int64_t split);

  /// Where a step is: its block, which step of it (null where blocks have one),
  /// and which block of the span. Where spans reach past the row's end, `seen`
  /// is false for steps there: they read the last block again, and what they
  /// read must not count.
  struct Step {
    Value block, step, within, seen;
  };
  /// `open` is called once in the code, with the span's first unit, before all
  /// of `body`; without spans, or where they are single units, it isn't.
  /// `rounds`: of a span.
  Values
  run(ValueRange carried, llvm::function_ref<void(Value)> open,
      llvm::function_ref<Values(const Step &, ValueRange)> body,
      KernelBuilder::Rounds rounds = KernelBuilder::Rounds::KeepLoop) const;
  /// What is dealt out: spans or steps.
  int64_t count() const { return dealt; }

private:
  KernelBuilder &b;
  int64_t span, steps, blocks, dealt, split;
  Value slice;
};

struct ChunkGroup {
  unsigned first = 0, count = kChunk;
  Value scale;   ///< null: 1
  Value minimum; ///< null: 0
};

struct WeightChunk {
  unsigned count = kChunk; ///< numbers in the chunk
  unsigned offset = 0;     ///< of its first number in the step's span …
  Value dynamicOffset; ///< … plus this, from the first number of the block, if
                       ///< it depends on the step
  SmallVector<ChunkGroup, 2> groups;
  std::function<Value(unsigned k, bool scaled)> code;
  /// The same as an i32, not scaled; of formats whose codes are integers.
  std::function<Value(unsigned k)> integer;
};

/// 32 numbers of a format whose codes are integers that fit signed bytes, or
/// unsigned ones of 8 bits: weight[k] = scale * codes[k] + minimum of its group.
struct IntegerUnit {
  unsigned offset = 0; ///< as in WeightChunk; a multiple of 32 with the next one
  Value dynamicOffset;
  SmallVector<ChunkGroup, 2> groups;
  Values codes; ///< i32, signed
};

class BlockCodec {
public:
  virtual ~BlockCodec() = default;

  const sprig::quant::FormatInfo &format() const { return info; }
  unsigned blockElements() const { return elements; }
  unsigned stepsPerBlock() const { return steps; }
  /// Units of the tiled layout in a block: 1, or 32 / unit for plain formats.
  unsigned unitsPerBlock() const { return units; }

  /// The chunks of step `step` (index; null where a block has one step) of the
  /// block at `reader`. For plain formats `count` limits the numbers of the
  /// block; others always have whole blocks.
  virtual SmallVector<WeightChunk, 2> decode(UnitReader &reader, Value step,
                                             unsigned count) const = 0;
  /// The power of two in the code of number `k` of chunk `chunk` of a step,
  /// when codes are asked for scaled.
  virtual unsigned shift(unsigned chunk, unsigned k) const { return 0; }
  /// True where every group has a minimum, so that sums of x are needed.
  virtual bool hasMinimum() const { return false; }

  /// Numbers that the kernel must be given beside the planes, as an f32 binding
  /// with the role kTableRole; empty for most formats.
  virtual ArrayRef<float> table() const { return {}; }
  /// Whether a weight's planes are one binding, of 32-bit words: for formats of
  /// so many planes that some devices could not bind all of them.
  virtual bool inOneBinding() const { return false; }

  /// Whether codes can be had as integers, in units of 32 numbers.
  virtual bool hasIntegers() const { return false; }
  /// Those of a step, as in decode().
  virtual SmallVector<IntegerUnit, 2> integers(UnitReader &reader,
                                               Value step) const;

  /// The codec of a format, or null where kernels cannot read it.
  static const BlockCodec *find(sprig::quant::Format format);
  /// Formats of files with a codec; formats of groups (lib/Quant/Affine.h) all
  /// have one, and are not listed.
  static SmallVector<sprig::quant::Format> formats();

protected:
  BlockCodec(sprig::quant::Format format, unsigned elements, unsigned steps = 1,
             unsigned units = 1)
      : info(sprig::quant::info(format)), elements(elements), steps(steps),
        units(units) {}

private:
  const sprig::quant::FormatInfo &info;
  unsigned elements, steps, units;
};

// The codecs by file.
using CodecList = std::vector<std::unique_ptr<BlockCodec>>;
void addPlainCodecs(CodecList &list);
void addLegacyCodecs(CodecList &list);
void addKCodecs(CodecList &list);
void addGridCodecs(CodecList &list);
/// The codec of a format of groups, made on first use; null for others.
const BlockCodec *findAffineCodec(sprig::quant::Format format);

// Shared by the codecs.
/// Byte `i` of a list of words, as an i32 in 0 … 255.
Value byteOf(KernelBuilder &b, ArrayRef<Value> words, unsigned i);
/// A code as f32, from the integer.
inline std::function<Value(unsigned, bool)>
asF32(KernelBuilder &b, std::function<Value(unsigned)> integer) {
  return [&b, integer = std::move(integer)](unsigned k, bool) {
    return b.signedToF32(integer(k));
  };
}
/// A table of 16 small integers indexed by a 4-bit code, as an i32.
Value lookUp16(KernelBuilder &b, const int8_t (&table)[16], Value code);

} // namespace mlir::llm

#endif // SPRIG_CODEGEN_KERNELS_BLOCKCODEC_H
