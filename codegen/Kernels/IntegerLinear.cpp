#include "codegen/Kernels/IntegerLinear.h"

#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/BlockCodec.h"
#include "codegen/Kernels/ByteDots.h"
#include "codegen/Kernels/SpecAttr.h"
#include "lib/Quant/Layout.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::llm {

bool IntegerLinearSpec::canMultiply(sprig::quant::Format format,
                                    int64_t group) {
  const BlockCodec *codec = BlockCodec::find(format);
  return codec && codec->hasIntegers() && group % kChunk == 0;
}

FailureOr<IntegerLinearSpec>
IntegerLinearSpec::fromAttr(DictionaryAttr attr, EmitError emitError) {
  IntegerLinearSpec spec;
  SpecReader reader(attr, kFamily, emitError);
  std::string format;
  reader.read("format", format);
  reader.read("n", spec.n, 1);
  reader.read("k", spec.k, 1);
  reader.maybe("x_group", spec.xGroup, 1);
  reader.maybe("tokens", spec.tokens, 1, 64);
  reader.maybe("gate", spec.gate);
  reader.maybe("y_group", spec.yGroup, 1);
  reader.read("bias", spec.bias);
  reader.read("residual", spec.residual);
  if (failed(reader.finish()))
    return failure();
  auto known = sprig::quant::formatOfName(format);
  if (!known || !canMultiply(*known, spec.xRow().group))
    reader.fail("expects a format of integers and groups of x of a multiple of " +
                Twine(kChunk) + " numbers, but got '" + format + "' and " +
                Twine(spec.xRow().group));
  else
    spec.format = *known;
  if (spec.k % spec.xRow().group)
    reader.fail("expects groups of x that divide k, but got " +
                Twine(spec.xRow().group) + " of " + Twine(spec.k));
  if (!spec.gate.empty() && (!activationByName(spec.gate) || spec.bias))
    reader.fail("expects gate to be silu, gelu, gelu_tanh or relu, without a "
                "bias, but got '" +
                spec.gate + "'");
  if (spec.yGroup && (spec.gate.empty() || spec.residual ||
                      spec.yGroup % kChunk || spec.n % spec.yGroup))
    reader.fail("expects y_group only with a gate and without a residual, and "
                "groups of a multiple of " +
                Twine(kChunk) + " that divide n, but got " + Twine(spec.yGroup) +
                " of " + Twine(spec.n));
  if (reader.bad())
    return failure();
  return spec;
}

DictionaryAttr IntegerLinearSpec::toAttr(MLIRContext *context) const {
  return SpecWriter(context)
      .add("format", sprig::quant::info(format).name)
      .add("n", n)
      .add("k", k)
      .add("x_group", xGroup)
      .add("tokens", tokens)
      .add("gate", gate)
      .add("y_group", yGroup)
      .flag("bias", bias)
      .flag("residual", residual)
      .done();
}

LinearSpec IntegerLinearSpec::inFloats() const {
  LinearSpec plain;
  plain.format = format, plain.n = n, plain.k = k, plain.tokens = tokens;
  plain.gate = gate, plain.integers = true;
  return plain;
}

FailureOr<LinearSchedule>
IntegerLinearSpec::schedule(const TargetProfile &profile,
                            EmitError emitError) const {
  FailureOr<LinearSchedule> chosen = inFloats().schedule(profile, emitError);
  if (failed(chosen))
    return chosen;
  if (!multipliesFloats(*chosen, profile))
    chosen->texels = 0;
  if (!yGroup)
    return chosen;
  // A power of two of row tiles a lane, and as many sets of lanes as make a
  // group: neither changes a bit.
  const auto tiles = yGroup / 8;
  chosen->rows = std::min<int64_t>(llvm::bit_ceil(uint64_t(chosen->rows)), tiles);
  chosen->waves = std::max(chosen->waves, tiles / chosen->rows);
  return chosen;
}

bool IntegerLinearSpec::multipliesFloats(const LinearSchedule &schedule,
                                         const TargetProfile &profile) const {
  return schedule.x == LinearSchedule::X::Shuffle &&
         profile.subgroupSize % 8 == 0 && !hasByteDots(profile);
}

bool IntegerLinearSpec::canRound(int64_t group,
                                 const TargetProfile &profile) const {
  if (gate.empty() || residual || group % kChunk || n % group ||
      !llvm::isPowerOf2_64(uint64_t(group)) || !profile.canShuffle())
    return false;
  auto silent = [] { return InFlightDiagnostic(); };
  IntegerLinearSpec rounded = *this;
  rounded.yGroup = group;
  FailureOr<LinearSchedule> plain = schedule(profile, silent),
                            chosen = rounded.schedule(profile, silent);
  // More than twice the sums of a lane would cost more than a dispatch saves.
  return succeeded(plain) && succeeded(chosen) &&
         chosen->rows < 2 * plain->rows &&
         lanesOfGroup(*chosen, group) <= profile.subgroupSize &&
         8 * chosen->split * chosen->waves <=
             int64_t(profile.limits.workgroupInvocations);
}

FailureOr<KernelInterface>
IntegerLinearSpec::interface(const TargetProfile &profile,
                             EmitError emitError) const {
  FailureOr<LinearSchedule> chosen = schedule(profile, emitError);
  if (failed(chosen))
    return failure();
  KernelInterface interface;
  const sprig::quant::FormatInfo &info = sprig::quant::info(format);
  interface.key = llvm::formatv(
      "integer_linear {0} n={1} k={2}/{3} tokens={4}{5}{6}{7}{8} | {9}",
      info.name, n, k, xRow().group, tokens,
      gate.empty() ? "" : " gate=" + gate,
      yGroup ? " y=/" + std::to_string(yGroup) : "", bias ? " bias" : "",
      residual ? " residual" : "", chosen->key());
  interface.name = KernelInterface::nameFor(
      llvm::formatv("integer_linear{0}_{1}_{2}x{3}_t{4}",
                    gate.empty() ? "" : "_gated", StringRef(info.name).lower(),
                    n, k, tokens),
      interface.key);
  auto layout = sprig::quant::describe(format, size_t(n), size_t(k));
  SmallVector<StringRef, 2> weights;
  if (gate.empty())
    weights = {"weight"};
  else
    weights = {"gate", "up"};
  for (StringRef weight : weights)
    for (const sprig::quant::PlaneLayout &plane : layout.planes) {
      interface.bindings.push_back({(weight + "." + plane.name).str(),
                                    Access::Read, plane.bytes});
      interface.bindings.back().texel = chosen->texelOf(plane);
    }
  interface.bindings.push_back(
      {"x", Access::Read, uint64_t(xRow().words()) * 4, true});
  if (chosen->texelX())
    interface.bindings.back().texel = TexelFormat::R32Uint;
  if (bias)
    interface.bindings.push_back({"bias", Access::Read, uint64_t(n) * 4});
  if (residual)
    interface.bindings.push_back(
        {"residual", Access::Read, uint64_t(n) * 4, true});
  interface.bindings.push_back(
      {"y", Access::Write, uint64_t(yGroup ? yRow().words() : n) * 4, true});

  inFloats().spread(*chosen, profile, interface);
  if (yGroup)
    interface.subgroupSize = profile.subgroupSize;
  if (chosen->split > 1) {
    int64_t sums = tokens * chosen->rows * (gate.empty() ? 1 : 2);
    if (profile.canShuffle() && 8 * chosen->split <= profile.subgroupSize)
      interface.subgroupSize = profile.subgroupSize;
    else
      interface.sharedBytes = uint32_t(sums) * interface.workgroup[0] * 4;
  }
  return interface;
}

} // namespace mlir::llm
