#include "codegen/Kernels/Embedding.h"

#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/SpecAttr.h"
#include "codegen/Kernels/StepControl.h"
#include "lib/Quant/Layout.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {
namespace {

constexpr uint32_t kLanes = 64;

const BlockCodec *codecOf(StringRef name) {
  std::optional<sprig::quant::Format> format =
      sprig::quant::formatOfName(std::string_view(name));
  return format ? BlockCodec::find(*format) : nullptr;
}

/// Steps of the codec that cover a row; one lane takes one.
int64_t stepsOf(const EmbeddingSpec &spec, const BlockCodec &codec) {
  int64_t blocks =
      (spec.width + codec.blockElements() - 1) / codec.blockElements();
  return blocks * codec.stepsPerBlock();
}

} // namespace

FailureOr<EmbeddingSpec> EmbeddingSpec::fromAttr(DictionaryAttr attr,
                                                 EmitError emitError) {
  EmbeddingSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  reader.read("format", spec.format);
  reader.read("rows", spec.rows, 1);
  reader.read("width", spec.width, 1);
  reader.read("capacity", spec.capacity, 1);
  reader.maybe("scale", spec.scale);
  reader.read("positions", spec.positions);
  reader.read("tree", spec.tree);
  reader.maybe("first", spec.first, 0);
  reader.maybe("table", spec.table, 1);
  if (spec.table && spec.table - spec.first < spec.rows)
    reader.fail("expects rows inside a table of " + Twine(spec.table) +
                ", but got " + Twine(spec.rows) + " from " + Twine(spec.first));
  if (!codecOf(spec.format))
    reader.fail("expects a format that kernels read, but got '" + spec.format +
                "'");
  else if (spec.width % sprig::quant::info(codecOf(spec.format)->format().format)
                            .blockElements)
    reader.fail("expects a width of whole blocks of " + spec.format +
                ", but got " + Twine(spec.width));
  if (failed(reader.finish()))
    return failure();
  return spec;
}

DictionaryAttr EmbeddingSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("format", StringRef(format))
      .add("rows", rows)
      .add("width", width)
      .add("capacity", capacity)
      .add("scale", scale == 1 ? 0 : scale)
      .flag("positions", positions)
      .flag("tree", tree)
      .add("first", first)
      .add("table", table)
      .done();
}

FailureOr<KernelInterface>
EmbeddingSpec::interface(const TargetProfile &profile,
                         EmitError emitError) const {
  const BlockCodec &codec = *codecOf(format);
  KernelInterface interface;
  interface.key =
      llvm::formatv("embedding {0} {1}x{2} capacity {3} scale {4:e}{5}{6}",
                    format, rows, width, capacity, scale,
                    tree ? " tree positions" : positions ? " positions" : "",
                    table ? llvm::formatv(" first {0} of {1}", first, table)
                                .str()
                          : std::string());
  interface.name = KernelInterface::nameFor(
      llvm::formatv("embedding_{0}_{1}x{2}", format, rows, width).str(),
      interface.key);
  interface.workgroup = {kLanes, 1, 1};
  sprig::quant::TensorLayout layout =
      sprig::quant::describe(codec.format().format, rows, width);
  if (codec.inOneBinding())
    interface.bindings.push_back({"table." + kAllPlanes.str(), Access::Read,
                                  uint64_t(layout.bytes)});
  else
    for (const sprig::quant::PlaneLayout &plane : layout.planes)
      interface.bindings.push_back(
          {"table." + std::string(plane.name), Access::Read, plane.bytes});
  if (!codec.table().empty())
    interface.bindings.push_back({kTableRole.str(), Access::Read,
                                  uint64_t(codec.table().size()) * 4});
  interface.bindings.push_back({"control", Access::Read, StepControl::kBytes});
  if (!positions)
    interface.bindings.push_back(
        {"history", Access::Read, uint64_t(capacity) * 4});
  interface.bindings.push_back(
      {"y", Access::Write, uint64_t(width) * 4, /*perToken=*/true});
  interface.groups[0] = {
      uint32_t((stepsOf(*this, codec) + kLanes - 1) / kLanes), 0};
  interface.groups[1] = {1, 1};
  return interface;
}

void EmbeddingSpec::build(KernelBuilder &b,
                          const KernelInterface &interface) const {
  const BlockCodec &codec = *codecOf(format);
  sprig::quant::TensorLayout layout =
      sprig::quant::describe(codec.format().format, rows, width);
  SmallVector<Type> types;
  SmallVector<PlaneBinding> planes;
  for (auto [i, plane] : llvm::enumerate(layout.planes)) {
    PlaneBinding binding{
        unsigned(i), planeElementBytes(plane, 16, /*spans=*/false), 0, plane};
    if (codec.inOneBinding()) {
      binding.binding = 0, binding.elementBytes = 4;
      binding.base = unsigned(plane.offset / 4);
    }
    planes.push_back(binding);
    if (binding.binding == types.size())
      types.push_back(binding.elementBytes > 4
                          ? b.vec(binding.elementBytes / 4, b.i32())
                          : b.i32());
  }
  const unsigned grid = unsigned(types.size()); // if the codec has a table
  if (!codec.table().empty())
    types.push_back(b.f32());
  unsigned control = unsigned(types.size()), history = control + 1,
           y = history + !positions;
  types.append(y - control, b.i32());
  types.push_back(b.f32());
  b.open(types);

  Value item = b.globalId(0), token = b.groupId(1);
  int64_t steps = codec.stepsPerBlock(), elements = codec.blockElements();
  b.when(b.less(item, stepsOf(*this, codec)), [&] {
    // Padding rows may lie past the history's last slot.
    StepControl step(b, control);
    Value slot = b.min(b.add(step.base(), tree ? step.depth(token) : token),
                       b.index(capacity - 1));
    const int64_t all = table ? table : rows;
    Value row = positions
                    ? b.min(slot, b.index(all - 1))
                    : b.toIndex(b.min(b.load(history, slot),
                                      b.constant(uint32_t(all - 1))));
    // Wraps below `first`: not less than `rows`.
    if (first)
      row = b.sub(row, b.index(first));
    auto copy = [&] {
      Value block = steps == 1 ? item : b.div(item, steps);
      Value step = steps == 1 ? Value() : b.rem(item, steps);
      UnitReader reader(b, planes,
                        {b.div(row, layout.rows),
                         b.mul(block, codec.unitsPerBlock()),
                         b.rem(row, layout.rows)},
                        grid);

      // A plain row may end inside its last block, which has units of its own.
      Value out = b.add(b.mul(token, width), b.mul(block, elements));
      auto write = [&](unsigned count) {
        for (const WeightChunk &chunk : codec.decode(reader, step, count)) {
          Value start = b.add(out, int64_t(chunk.offset));
          if (chunk.dynamicOffset)
            start = b.add(start, chunk.dynamicOffset);
          for (const ChunkGroup &group : chunk.groups)
            for (unsigned k = group.first; k < group.first + group.count; ++k) {
              Value number = chunk.code(k, /*scaled=*/false);
              if (group.scale)
                number = b.mul(number, group.scale);
              if (group.minimum)
                number = b.add(number, group.minimum);
              if (scale != 1)
                number = b.mul(number, b.constant(float(scale)));
              b.store(number, y, b.add(start, int64_t(k)));
            }
        }
      };
      unsigned tail = unsigned(width % elements);
      if (!tail) {
        write(unsigned(elements));
      } else {
        Value last = b.equal(block, b.index(width / elements));
        b.when(b.bitXor(last, b.constantLike(last, 1)),
               [&] { write(unsigned(elements)); });
        b.when(last, [&] { write(tail); });
      }
    };
    if (table)
      b.when(b.less(row, rows), copy);
    else
      copy();
  });
  b.close();
}

} // namespace mlir::llm
