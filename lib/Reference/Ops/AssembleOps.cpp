// `llm.assemble`: quantised tensors from the parts that GPTQ, AWQ and packed checkpoints store.
#include "lib/Quant/Half.h"
#include "lib/Reference/Codec.h"
#include "lib/Reference/Interpreter.h"

#include <optional>

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::reference;

namespace {

/// The integers of a tensor as one stream of bits, element after element, low bits first.
class BitStream {
public:
  BitStream(const Tensor &tensor, Type type)
      : words(tensor.as<int32_t>()), width(cast<RankedTensorType>(type).getElementTypeBitWidth()) {}

  /// `bits` bits whose first is bit `from` of the elements base, base + stride, base + 2·stride, …
  uint32_t read(size_t base, size_t stride, size_t from, unsigned bits) const {
    uint32_t value = 0;
    for (unsigned i = 0; i < bits; ++i) {
      const size_t bit = from + i, word = base + bit / width * stride;
      value |= ((uint32_t(words[word]) >> (bit % width)) & 1) << i;
    }
    return value;
  }

private:
  ArrayRef<int32_t> words;
  size_t width;
};

/// Which of the numbers of a row are kept, of `N:M`.
class Patterns {
public:
  Patterns(const Tensor &numbers, Type type, Sparsity sparsity, size_t rows)
      : stream(numbers, type), perRow(size_t(numbers.elements()) / rows), kept(sparsity.kept), of(sparsity.of) {
    std::vector<unsigned> way;
    list(way, 0);
    while ((size_t(1) << bits) < ways.size())
      ++bits;
  }

  /// The place of number k of row n among those that are stored, if it is one of them.
  std::optional<size_t> placeOf(size_t n, size_t k) const {
    const size_t number = stream.read(n * perRow, 1, k / of * bits, bits);
    const std::vector<unsigned> &way = ways[std::min(number, ways.size() - 1)];
    const auto found = llvm::find(way, unsigned(k % of));
    if (found == way.end())
      return std::nullopt;
    return k / of * kept + size_t(found - way.begin());
  }

private:
  /// Every way that begins as `way` does and goes on at `next` or later, in lexical order.
  void list(std::vector<unsigned> &way, unsigned next) {
    if (way.size() == kept)
      return ways.push_back(way);
    for (unsigned place = next; place < of; ++place) {
      way.push_back(place);
      list(way, place + 1);
      way.pop_back();
    }
  }

  BitStream stream;
  size_t perRow;
  unsigned kept, of, bits = 0;
  std::vector<std::vector<unsigned>> ways;
};

/// AutoAWQ deals out the eight codes of a word in the order 0, 2, 4, 6, 1, 3, 5, 7: column n of a word lies at place
/// n / 2 when even and 4 + n / 2 when odd.
size_t awqPlace(size_t column) { return column / 8 * 8 + (column % 2 ? 4 : 0) + column % 8 / 2; }

template <typename F> class Assembler {
public:
  Assembler(const OpContext<F> &context, AssembleOp op)
      : context(context), op(op), type(op.getResult().getType()), element(getQuantizedElement(type)),
        layout(cast<LayoutAttr>(type.getEncoding()).getKind()), levels(element.getLevels()),
        bits(element.getCode().kind == CodeKind::Trit ? 2 : element.getCode().bits), K(size_t(type.getShape().back())),
        N(size_t(type.getNumElements()) / K) {}

  LogicalResult run() {
    if (element.hasGrid())
      return op.emitOpError("expects a type without a grid, but got ") << element;
    const Tensor &codes = context.get(op.getCodes());
    if (!codes.template is<int32_t>())
      return op.emitOpError("expects codes as integers, but got ") << op.getCodes().getType();
    const BitStream stream(codes, op.getCodes().getType());
    std::vector<double> scale(N * K, 1), offset(N * K, 0);
    if (failed(readLevels(scale, offset)))
      return failure();
    // Column k of the result is column order[k] of the codes; groups of scales count the result's columns.
    ArrayRef<int32_t> order;
    if (op.getOrder()) {
      order = context.ints(op.getOrder());
      for (int32_t column : order)
        if (column < 0 || size_t(column) >= K)
          return op.emitOpError("expects an order of columns from 0 to ") << K - 1 << ", but got " << column;
    }
    const bool zero = llvm::any_of(levels, [](const QuantLevel &level) { return level.hasZero(); });
    F *numbers = context.make(op.getResult(), int64_t(N));
    const size_t perRow = size_t(codes.elements()) / N;
    std::optional<Patterns> patterns;
    if (op.getPatterns())
      patterns.emplace(context.get(op.getPatterns()), op.getPatterns().getType(), element.getSparsity(), N);
    context.workers().ranges(N, 16, [&](size_t begin, size_t end) {
      for (size_t n = begin; n < end; ++n)
        for (size_t k = 0; k < K; ++k) {
          const size_t i = n * K + k;
          std::optional<size_t> place = order.empty() ? k : size_t(order[k]);
          if (patterns)
            place = patterns->placeOf(n, *place);
          if (!place) {
            numbers[i] = 0;
            continue;
          }
          const double code = meaningOfCode(element.getCode(), codebookOf(n), codeAt(stream, perRow, n, *place));
          numbers[i] = F(zero ? scale[i] * (code - offset[i]) : scale[i] * code + offset[i]);
        }
    });
    return success();
  }

private:
  uint32_t codeAt(const BitStream &stream, size_t perRow, size_t n, size_t k) const {
    if (layout == LayoutKind::GPTQ) // [K·bits/32, N]
      return stream.read(n, N, k * bits, bits);
    if (layout == LayoutKind::AWQ) // [K, N·bits/32]
      return stream.read(k * (N * bits / 32), 1, awqPlace(n) * bits, bits);
    return stream.read(n * perRow, 1, k * bits, bits);
  }

  ArrayRef<float> codebookOf(size_t n) const {
    if (learnedEntries.empty())
      return knownCodebook(element.getCodebook());
    const size_t entries = size_t(1) << element.getCode().bits;
    return ArrayRef<float>(learnedEntries).slice(learnedEntries.size() == entries ? 0 : n * entries, entries);
  }

  /// Multiplies the scales of all levels into `scale`, and gathers what is added to (or, for zero points, taken off).
  LogicalResult readLevels(std::vector<double> &scale, std::vector<double> &offset) {
    if (op.getCodebook())
      learnedEntries = context.get(op.getCodebook()).toFloats();
    bool hasMin = false;
    auto zeros = op.getZeros().begin();
    for (auto [level, operand] : llvm::zip(levels, op.getScales())) {
      const size_t group = level.group == kWholeRow ? K : size_t(level.group), groups = (K + group - 1) / group;
      if (failed(apply(operand, level.scale, group, groups, [&](size_t i, double value) { scale[i] *= value; })))
        return failure();
      if (level.offsetKind == OffsetKind::None)
        continue;
      Value given = *zeros++;
      if (level.hasZero()) {
        if (failed(applyZeros(given, level.offset, group, groups, offset)))
          return failure();
        continue;
      }
      const double sign = level.offsetKind == OffsetKind::SubtractMin && !hasMin ? -1 : 1;
      auto add = [&](size_t i, double value) { offset[i] = sign * (hasMin ? offset[i] * value : value); };
      if (failed(apply(given, level.offset, group, groups, add)))
        return failure();
      hasMin = true;
    }
    return success();
  }

  /// Calls `use(element, number)` for all elements; the operand has a number for each group of each row, or one alone.
  template <typename Use> LogicalResult apply(Value operand, ScaleType format, size_t group, size_t groups, Use use) {
    const Tensor &given = context.get(operand);
    const size_t count = size_t(given.elements());
    if (count != 1 && count != N * groups)
      return op.emitOpError("expects ") << N * groups << " scales or minima, but got " << operand.getType();
    const std::vector<double> numbers = given.toDoubles();
    const bool columns = layout != LayoutKind::Packed; // [K/group, N]
    for (size_t n = 0; n < N; ++n)
      for (size_t k = 0; k < K; ++k) {
        const size_t at = count == 1 ? 0 : columns ? k / group * N + n : n * groups + k / group;
        use(n * K + k, given.is<int32_t>() ? storedScale(format, numbers[at]) : numbers[at]);
      }
    return success();
  }

  /// A scale that a file holds as raw bits.
  static double storedScale(ScaleType format, double value) {
    const uint32_t raw = uint32_t(int32_t(value));
    if (format.kind == ScaleKind::E8M0)
      return sprig::quant::e8m0ToFloat(uint8_t(raw));
    if (format.kind == ScaleKind::UE4M3)
      return sprig::quant::e4m3ToFloat(uint8_t(raw & 0x7f));
    return format.kind == ScaleKind::Unsigned ? double(raw & ((1u << format.bits) - 1)) : value;
  }

  LogicalResult applyZeros(Value operand, ScaleType format, size_t group, size_t groups, std::vector<double> &offset) {
    const Tensor &given = context.get(operand);
    const size_t count = size_t(given.elements());
    const size_t words = count / groups,
                 width = words * cast<RankedTensorType>(operand.getType()).getElementTypeBitWidth();
    const bool packed = given.is<int32_t>() && count % groups == 0 && width >= N * format.bits;
    // A number for each group of each row, or one for all, unless the bits of one are the zero points of all rows.
    if (layout == LayoutKind::Packed && (count == N * groups || (count == 1 && !packed)))
      return apply(operand, format, group, groups, [&](size_t i, double value) { offset[i] = value; });
    // Packed along N, as the codes are in GPTQ and AWQ; compressed-tensors packs the first dimension.
    const BitStream stream(given, operand.getType());
    if (!packed)
      return op.emitOpError("expects ") << groups << " groups of " << N << " packed zero points, but got "
                                        << operand.getType();
    for (size_t n = 0; n < N; ++n)
      for (size_t g = 0; g < groups; ++g) {
        const size_t place = (layout == LayoutKind::AWQ ? awqPlace(n) : n) * format.bits;
        uint32_t zero = layout == LayoutKind::Packed ? stream.read(g, groups, place, format.bits)
                                                     : stream.read(g * words, 1, place, format.bits);
        if (layout == LayoutKind::GPTQ) // stored less one
          zero = (zero + 1) & ((1u << format.bits) - 1);
        for (size_t k = g * group; k < std::min(K, (g + 1) * group); ++k)
          offset[n * K + k] = zero;
      }
    return success();
  }

  const OpContext<F> &context;
  AssembleOp op;
  RankedTensorType type;
  QuantizedType element;
  LayoutKind layout;
  ArrayRef<QuantLevel> levels;
  unsigned bits;
  size_t K, N;
  std::vector<float> learnedEntries;
};

} // namespace

template <typename F> static LogicalResult evaluateAssemble(const OpContext<F> &context) {
  return Assembler<F>(context, cast<AssembleOp>(context.op)).run();
}

template <typename F> void reference::addAssembleOps(OpTable<F> &table) {
  table[TypeID::get<AssembleOp>()] = {evaluateAssemble<F>};
}
template void reference::addAssembleOps<float>(OpTable<float> &);
template void reference::addAssembleOps<double>(OpTable<double> &);
