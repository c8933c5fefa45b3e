#include "codegen/Kernels/Linear.h"

#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/LinearAppend.h"
#include "codegen/Kernels/SpecAttr.h"
#include "lib/Quant/Affine.h"
#include "lib/Quant/Layout.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

FailureOr<LinearSpec> LinearSpec::fromAttr(DictionaryAttr attr,
                                           EmitError emitError) {
  LinearSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  std::string format;
  reader.read("format", format);
  reader.read("n", spec.n, 1);
  reader.read("k", spec.k, 1);
  spec.tokens = 1;
  reader.maybe("tokens", spec.tokens, 1, 64);
  reader.maybe("gate", spec.gate);
  reader.read("norm", spec.norm);
  reader.read("bias", spec.bias);
  reader.read("residual", spec.residual);
  reader.maybe("eps", spec.eps);
  reader.maybe("count", spec.count, 1);
  reader.maybe("outputs", spec.outputs, 1);
  reader.maybe("stride", spec.stride, 1);
  DictionaryAttr append;
  reader.maybe("append", append);
  if (failed(reader.finish()))
    return failure();

  auto known = sprig::quant::formatOfName(format);
  const BlockCodec *codec = known ? BlockCodec::find(*known) : nullptr;
  if (!codec) {
    reader.fail("expects a format that kernels can read, but got '" + format +
                "'");
    return failure();
  }
  spec.format = *known;
  unsigned block = codec->format().blockElements;
  if (spec.k % block)
    reader.fail("expects k to be a multiple of the block of " +
                Twine(codec->format().name) + ", " + Twine(block) +
                ", but got " + Twine(spec.k));
  if (!spec.gate.empty() && !activationByName(spec.gate))
    reader.fail("expects gate to be silu, gelu, gelu_tanh or relu, but got '" +
                spec.gate + "'");
  if (!spec.gate.empty() && (spec.bias || !spec.outputs.empty()))
    reader.fail("expects neither bias nor outputs with a gate");
  if (!spec.outputs.empty()) {
    int64_t sum = 0;
    for (int64_t rows : spec.outputs)
      sum += rows;
    if (sum != spec.n || llvm::any_of(ArrayRef(spec.outputs).drop_back(),
                                      [](int64_t rows) { return rows % 8; }))
      reader.fail("expects outputs of a multiple of 8 rows (but for the last) "
                  "that sum to n = " +
                  Twine(spec.n));
    if (spec.residual || spec.stride)
      reader.fail("expects neither residual nor stride with outputs");
  }
  if (append) {
    FailureOr<RopeAppendSpec> ropes = RopeAppendSpec::fromAttr(append, emitError);
    if (failed(ropes))
      return failure();
    spec.append = *ropes;
    int64_t rows = (ropes->heads + 2 * ropes->kvHeads) * ropes->headSize;
    if (spec.n != rows)
      reader.fail("expects n = " + Twine(rows) +
                  ", the queries, keys and values of all heads, to append, but "
                  "got " +
                  Twine(spec.n));
    if (!spec.gate.empty() || spec.residual || spec.stride ||
        !spec.outputs.empty())
      reader.fail("expects neither gate, residual, stride nor outputs with "
                  "append");
  }
  if ((spec.eps != 0 || spec.count) && !spec.ownFactor())
    reader.fail("expects eps and count only together, with a norm");
  if (spec.eps < 0)
    reader.fail("expects eps above 0, but got " + Twine(std::to_string(spec.eps)));
  if (spec.stride && spec.stride < spec.n)
    reader.fail("expects a stride of at least n = " + Twine(spec.n) +
                ", but got " + Twine(spec.stride));
  if (reader.bad())
    return failure();
  return spec;
}

DictionaryAttr LinearSpec::toAttr(MLIRContext *context) const {
  NamedAttrList members(
      SpecWriter(context)
      .add("format", sprig::quant::info(format).name)
      .add("n", n)
      .add("k", k)
      .add("tokens", tokens)
      .add("gate", gate)
      .flag("norm", norm)
      .flag("bias", bias)
      .flag("residual", residual)
      .add("eps", eps)
      .add("count", count)
      .add("outputs", outputs)
      .add("stride", stride)
      .done());
  if (append)
    members.set("append", append->toAttr(context));
  return members.getDictionary(context);
}

FailureOr<LinearSchedule> LinearSpec::schedule(const TargetProfile &profile,
                                               EmitError emitError) const {
  const auto affine = sprig::quant::affineOf(format);
  ScheduleValues facts = {
      {"format", std::string(sprig::quant::info(format).name)},
      {"n", n},
      {"k", k},
      {"tokens", tokens},
      {"gated", int64_t(!gate.empty())},
      {"integers", int64_t(integers)},
      {"among", affine ? int64_t(affine->among) : 0}};
  const ScheduleValues *choices = profile.findSchedule(kFamily, facts);
  if (!choices)
    return LinearSchedule();
  FailureOr<LinearSchedule> chosen =
      LinearSchedule::from(*choices, profile, emitError);
  if (failed(chosen) || !chosen->matrix)
    return chosen;
  if (tokens % kMatrix)
    return emitError() << "schedule of linear on target '" << profile.name
                       << "' expects matrix for tokens of a multiple of "
                       << kMatrix << ", but got " << tokens;
  chosen->matrix = k % 4 == 0; // x is loaded four numbers at a time
  return chosen;
}

bool LinearSpec::canAppend(const RopeAppendSpec &append,
                           const TargetProfile &profile) const {
  FailureOr<LinearSchedule> chosen =
      schedule(profile, [] { return InFlightDiagnostic(); });
  return succeeded(chosen) && LinearAppend::possible(append, *chosen, profile);
}

std::string LinearSpec::normKey() const {
  if (!ownFactor())
    return norm ? " norm" : "";
  return llvm::formatv(" norm of {0} eps {1:e}", count ? count : k, eps);
}

void LinearSpec::spread(const LinearSchedule &schedule,
                        const TargetProfile &profile,
                        KernelInterface &interface) const {
  interface.workgroup = {uint32_t(8 * schedule.split * schedule.waves), 1, 1};
  uint64_t groups = llvm::divideCeil(tiles(), tilesPerGroup(schedule));
  // Past the limit of one dimension the groups fold into z.
  uint64_t fold = llvm::divideCeil(groups, uint64_t(profile.limits.groups));
  interface.groups[0] = {uint32_t(llvm::divideCeil(groups, fold)), 0};
  interface.groups[1] = {1, uint32_t(tokens)};
  interface.groups[2] = {uint32_t(fold), 0};
  interface.tokenTile = uint32_t(tokens);
}

FailureOr<KernelInterface> LinearSpec::interface(const TargetProfile &profile,
                                                 EmitError emitError) const {
  FailureOr<LinearSchedule> chosen = schedule(profile, emitError);
  if (failed(chosen))
    return failure();
  if (append && !LinearAppend::possible(*append, *chosen, profile))
    return emitError() << "linear kernel expects a schedule and a cache with "
                          "which it can append, but got '"
                       << chosen->key() << "' and " << append->kv
                       << " on target '" << profile.name << "'";
  KernelInterface interface;
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  std::string outs;
  for (int64_t rows : outputs)
    outs += (outs.empty() ? " outputs=" : ",") + std::to_string(rows);
  interface.key = llvm::formatv(
      "linear {0} n={1} k={2} tokens={3}{4}{5}{6}{7}{8}{9}{10} | {11}", info.name,
      n, k, tokens, gate.empty() ? "" : " gate=" + gate, normKey(),
      bias ? " bias" : "", residual ? " residual" : "", outs,
      stride ? " stride=" + std::to_string(stride) : "",
      append ? " " + append->shapeKey() : "", chosen->key());
  interface.name = KernelInterface::nameFor(
      llvm::formatv("linear{0}_{1}_{2}x{3}_t{4}", gate.empty() ? "" : "_gated",
                    StringRef(info.name).lower(), n, k, tokens),
      interface.key);

  auto layout = sprig::quant::describe(format, size_t(n), size_t(k));
  SmallVector<std::string, 2> weights =
      gate.empty() ? SmallVector<std::string, 2>{"weight"}
                   : SmallVector<std::string, 2>{"gate", "up"};
  const BlockCodec &codec = *BlockCodec::find(format);
  for (const std::string &weight : weights) {
    if (codec.inOneBinding()) {
      interface.bindings.push_back({weight + "." + kAllPlanes.str(),
                                    Access::Read, uint64_t(layout.bytes)});
      continue;
    }
    for (const sprig::quant::PlaneLayout &plane : layout.planes) {
      KernelBinding &binding = interface.bindings.emplace_back();
      binding.role = weight + "." + std::string(plane.name);
      binding.bytes = plane.bytes;
      binding.texel = chosen->texelOf(plane);
    }
  }
  if (!codec.table().empty())
    interface.bindings.push_back({kTableRole.str(), Access::Read,
                                  uint64_t(codec.table().size()) * 4});
  auto bind = [&](std::string role, Access access, int64_t numbers,
                  bool perToken, TexelFormat texel = TexelFormat::None) {
    KernelBinding &binding = interface.bindings.emplace_back();
    binding.role = std::move(role);
    binding.access = access;
    binding.bytes = uint64_t(numbers) * 4;
    binding.perToken = perToken;
    binding.texel = texel;
  };
  // Rows that lanes load four numbers of, and single numbers.
  TexelFormat single = TexelFormat::None, row = TexelFormat::None;
  if (chosen->texelX()) {
    single = TexelFormat::R32Sfloat;
    row = k % 4 == 0 ? TexelFormat::Rgba32Sfloat : single;
  }
  bind("x", Access::Read, k, true, row);
  if (norm) {
    bind("gamma", Access::Read, k, false, row);
    if (!ownFactor())
      bind("factor", Access::Read, 1, true, single);
  }
  if (bias)
    bind("bias", Access::Read, n, false, single);
  if (residual)
    bind("residual", Access::Read, n, true, single);
  if (append) {
    LinearAppend::bind(*append, single, interface);
  } else if (outputs.empty()) {
    bind("y", Access::Write, stride ? stride : n, true);
    interface.bindings.back().shorter = stride ? uint64_t(stride - n) * 4 : 0;
  }
  for (auto [i, rows] : llvm::enumerate(outputs))
    bind("y" + std::to_string(i), Access::Write, rows, true);

  spread(*chosen, profile, interface);
  if (chosen->x != LinearSchedule::X::Direct || append)
    interface.subgroupSize = profile.subgroupSize;
  if (chosen->matrix) {
    interface.subgroupSize = profile.subgroupSize;
    interface.sharedBytes = matrixBytes(*chosen, profile);
    return interface;
  }
  // Slices, and the lanes that each hold a part of the sum of squares, meet by
  // shuffles within a subgroup, else in shared memory.
  if (chosen->split > 1 || ownFactor()) {
    bool shuffles =
        profile.canShuffle() && 8 * chosen->split <= profile.subgroupSize;
    int64_t sums = ownFactor() ? tokens : 0;
    if (chosen->split > 1)
      sums += tokens * chosen->rows * (gate.empty() ? 1 : 2);
    if (shuffles)
      interface.subgroupSize = profile.subgroupSize;
    else
      interface.sharedBytes = uint32_t(sums) * interface.workgroup[0] * 4;
  }
  return interface;
}

} // namespace mlir::llm
