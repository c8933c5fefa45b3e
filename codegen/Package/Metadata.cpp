#include "codegen/Package/Metadata.h"

#include "codegen/Package/Requirements.h"
#include "codegen/Package/TokenizerWriter.h"
#include "codegen/Target/TargetProfile.h"
#include "runtime/Format/SpirvCodec.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {

using namespace sprig;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

namespace {

/// What all targets store once however often it occurs, by content: they have
/// many kernels in common, and commands differ in less than what they bind.
struct Shared {
  std::map<std::string, Offset<flatbuffers::Vector<const format::Binding *>>>
      bindings;
  std::map<std::vector<uint32_t>, Offset<flatbuffers::Vector<uint8_t>>> code;
};

/// Everything of one target, with the numbers by which programs refer to
/// commands, and those to kernels and buffers.
class TargetWriter {
public:
  TargetWriter(FlatBufferBuilder &builder, plan::TargetOp target,
               ModuleOp module, Shared &shared)
      : builder(builder), target(target), tensors(module), shared(shared) {}

  FailureOr<Offset<format::Target>> write();

private:
  FailureOr<Offset<format::Kernel>> writeKernel(plan::KernelOp kernel);
  FailureOr<Offset<format::Program>> writeProgram(plan::ProgramOp program);
  FailureOr<uint32_t> writeDispatch(plan::DispatchOp dispatch);
  uint32_t writeBarrier(plan::BarrierOp barrier);
  /// The number of the command `key`, which `write` writes if it is a new one.
  uint32_t number(std::string key,
                  llvm::function_ref<Offset<format::Command>()> write);
  FailureOr<format::Binding> bind(Value view, uint32_t access);
  Offset<format::KvCache> writeCache(plan::KvCacheOp cache);
  auto text(StringRef string) {
    return builder.CreateString(string.data(), string.size());
  }

  FlatBufferBuilder &builder;
  plan::TargetOp target;
  SymbolTable tensors;
  llvm::StringMap<uint32_t> kernels;
  llvm::StringMap<uint32_t> buffers;
  /// By content, in the order of their first uses: programs of one width do the
  /// same for most of their way.
  std::map<std::string, uint32_t> numbers;
  std::vector<Offset<format::Command>> commands;
  llvm::MapVector<StringRef, uint32_t> labels; ///< numbers from 1
  Shared &shared;
  plan::BufferOp weights;
};

FailureOr<Offset<format::Kernel>>
TargetWriter::writeKernel(plan::KernelOp kernel) {
  if (!kernel.getSpirv()) {
    kernel.emitOpError(
        "expects SPIR-V words in a package; run plan-lower-kernels");
    return failure();
  }
  std::vector<uint32_t> words;
  for (int32_t word : kernel.getSpirv()->getValues<int32_t>())
    words.push_back(uint32_t(word));
  std::string key;
  llvm::raw_string_ostream(key)
      << kernel.getFamily() << " " << kernel.getSpec();
  ArrayRef<int32_t> size = *kernel.getWorkgroup();
  auto name = text(kernel.getSymName()), family = text(kernel.getFamily()),
       keyText = text(key), entry = text(*kernel.getEntry());
  Offset<flatbuffers::Vector<uint8_t>> &code = shared.code[words];
  if (code.IsNull())
    code = builder.CreateVector(format::encodeSpirv(words));
  std::vector<uint32_t> texels;
  if (std::optional<ArrayRef<int32_t>> formats = kernel.getTexelFormats())
    texels.assign(formats->begin(), formats->end());
  Offset<flatbuffers::Vector<uint32_t>> texelFormats;
  if (!texels.empty())
    texelFormats = builder.CreateVector(texels);
  return format::CreateKernel(
      builder, name, family, keyText, entry, code, size[0], size[1], size[2],
      kernel.getAccess()->size(), kernel.getPushConstantBytes(),
      kernel.getSharedBytes(), kernel.getSubgroupSize(),
      kernel.getUniformBindings(), texelFormats);
}

FailureOr<format::Binding> TargetWriter::bind(Value view, uint32_t access) {
  plan::Place place = plan::getPlace(view);
  if (place.scratch) {
    view.getDefiningOp()->emitOpError(
        "expects a place in a package; run plan-assign-memory");
    return failure();
  }
  if (!place.weight)
    return format::Binding(place.offset, place.bytes,
                           buffers.lookup(place.symbol.getValue()), access);
  auto tensor = tensors.lookup<plan::TensorOp>(place.symbol);
  if (!tensor.getOffset() || !weights) {
    tensor.emitOpError("expects a place in a package; run plan-place-weights");
    return failure();
  }
  uint64_t offset =
      *tensor.getOffset() - weights.getOffset().value_or(0) + place.offset;
  return format::Binding(offset, place.bytes,
                         buffers.lookup(weights.getSymName()), access);
}

uint32_t
TargetWriter::number(std::string key,
                     llvm::function_ref<Offset<format::Command>()> write) {
  auto [known, fresh] =
      numbers.try_emplace(std::move(key), uint32_t(commands.size()));
  if (fresh)
    commands.push_back(write());
  return known->second;
}

FailureOr<uint32_t> TargetWriter::writeDispatch(
    plan::DispatchOp dispatch) {
  std::vector<format::Binding> bindings, indirect;
  for (auto [i, view] : llvm::enumerate(dispatch.getBindings())) {
    FailureOr<format::Binding> binding = bind(view, dispatch.getAccess()[i]);
    if (failed(binding))
      return failure();
    bindings.push_back(*binding);
  }
  if (dispatch.getIndirect()) {
    FailureOr<format::Binding> counts =
        bind(dispatch.getIndirect(), /*access=*/1);
    if (failed(counts))
      return failure();
    indirect.push_back(*counts);
  }
  std::vector<uint8_t> push;
  for (int32_t word : dispatch.getPush().value_or(ArrayRef<int32_t>()))
    for (unsigned shift = 0; shift != 32; shift += 8)
      push.push_back(uint8_t(uint32_t(word) >> shift));
  ArrayRef<int32_t> groups = dispatch.getGroups();
  uint32_t kernel = kernels.lookup(dispatch.getKernel());

  std::string key = dispatch.getLabel().str();
  auto mark = [&](const auto &list) {
    key.append(reinterpret_cast<const char *>(list.data()),
               list.size() * sizeof(*list.data()));
    key += '|';
  };
  mark(bindings);
  const std::string bound = key.substr(dispatch.getLabel().size());
  mark(indirect);
  mark(push);
  mark(groups);
  std::array<int32_t, 3> base = {0, 0, 0};
  if (dispatch.getBase())
    llvm::copy(*dispatch.getBase(), base.begin());
  mark(base);
  mark(std::array{uint64_t(kernel), uint64_t(dispatch.getMacs()),
                  uint64_t(dispatch.getTouched()),
                  uint64_t(dispatch.getNanoseconds())});
  return number(std::move(key), [&] {
    uint32_t label = 0;
    if (!dispatch.getLabel().empty())
      label = labels.try_emplace(dispatch.getLabel(), labels.size() + 1)
                  .first->second;
    auto &bindingList = shared.bindings[bound];
    if (bindingList.IsNull())
      bindingList = builder.CreateVectorOfStructs(bindings);
    Offset<flatbuffers::Vector<uint8_t>> pushBytes;
    if (!push.empty())
      pushBytes = builder.CreateVector(push);
    Offset<flatbuffers::Vector<const format::Binding *>> counts;
    if (!indirect.empty())
      counts = builder.CreateVectorOfStructs(indirect);
    auto written = format::CreateDispatch(
        builder, kernel, label, bindingList, pushBytes, groups[0], groups[1],
        groups[2], counts, dispatch.getMacs(), dispatch.getTouched(),
        uint32_t(base[0]), uint32_t(base[1]), uint32_t(base[2]),
        dispatch.getNanoseconds());
    return format::CreateCommand(builder, written, 0);
  });
}

uint32_t TargetWriter::writeBarrier(plan::BarrierOp barrier) {
  auto kind = barrier.getIndirect() ? format::BarrierKind::compute_to_indirect
                                    : format::BarrierKind::compute_to_compute;
  std::string key = format::EnumNameBarrierKind(kind);
  return number(barrier.getSubmit() ? key + " submit" : key, [&] {
    return format::CreateCommand(
        builder, 0, format::CreateBarrier(builder, kind, barrier.getSubmit()));
  });
}

FailureOr<Offset<format::Program>>
TargetWriter::writeProgram(plan::ProgramOp program) {
  std::vector<uint32_t> order;
  for (Operation &op : program.getBody().front()) {
    if (auto dispatch = dyn_cast<plan::DispatchOp>(op)) {
      FailureOr<uint32_t> written = writeDispatch(dispatch);
      if (failed(written))
        return failure();
      order.push_back(*written);
    }
    if (auto barrier = dyn_cast<plan::BarrierOp>(op))
      order.push_back(writeBarrier(barrier));
  }
  auto list = builder.CreateVector(order);
  return format::CreateProgram(builder, format::ProgramKind(program.getKind()),
                               uint32_t(program.getWidth()), list,
                               uint32_t(program.getGuess().value_or(0)));
}

Offset<format::KvCache> TargetWriter::writeCache(plan::KvCacheOp cache) {
  auto name = text(cache.getSymName()), key = text(cache.getKeyType()),
       value = text(cache.getValueType());
  std::vector<Offset<format::KvPlane>> planes;
  for (auto [offset, slot] :
       llvm::zip_equal(cache.getPlaneOffsets(), cache.getSlotBytes()))
    planes.push_back(
        format::CreateKvPlane(builder, uint64_t(offset), uint32_t(slot)));
  auto planeVector = builder.CreateVector(planes);
  return format::CreateKvCache(
      builder, name, cache.getLayers(), cache.getHeads(), cache.getHeadSize(),
      cache.getCapacity(), cache.getWindow(), cache.getSinks(), key, value,
      buffers.lookup(cache.getBuffer()), cache.getOffset(), cache.getBytes(),
      planeVector);
}

FailureOr<Offset<format::Target>> TargetWriter::write() {
  llvm::Expected<TargetProfile> profile = findProfile(target.getProfileName());
  if (!profile) {
    target.emitOpError() << llvm::toString(profile.takeError());
    return failure();
  }
  weights = target.findBuffer(plan::BufferKind::weights);
  std::vector<Offset<format::Kernel>> kernelList;
  std::vector<Offset<format::Buffer>> bufferList;
  std::vector<Offset<format::Program>> programList;
  std::vector<Offset<format::KvCache>> cacheList;
  for (auto kernel : target.getOps<plan::KernelOp>()) {
    FailureOr<Offset<format::Kernel>> written = writeKernel(kernel);
    if (failed(written))
      return failure();
    kernels[kernel.getSymName()] = uint32_t(kernelList.size());
    kernelList.push_back(*written);
  }
  for (auto buffer : target.getOps<plan::BufferOp>()) {
    buffers[buffer.getSymName()] = uint32_t(bufferList.size());
    bufferList.push_back(format::CreateBuffer(
        builder, text(buffer.getSymName()),
        format::BufferKind(buffer.getKind()), buffer.getBytes(),
        buffer.getOffset().value_or(0)));
  }
  for (auto program : target.getOps<plan::ProgramOp>()) {
    FailureOr<Offset<format::Program>> written = writeProgram(program);
    if (failed(written))
      return failure();
    programList.push_back(*written);
  }
  for (auto cache : target.getOps<plan::KvCacheOp>())
    cacheList.push_back(writeCache(cache));
  auto requirements = buildRequirements(builder, target, *profile);
  auto name = text(target.getSymName());
  auto kernelVector = builder.CreateVector(kernelList);
  auto bufferVector = builder.CreateVector(bufferList);
  auto programVector = builder.CreateVector(programList);
  auto cacheVector = builder.CreateVector(cacheList);
  auto driverVector = builder.CreateVector(profile->drivers);
  auto commandVector = builder.CreateVector(commands);
  std::vector<Offset<flatbuffers::String>> labelList;
  for (auto [label, number] : labels)
    labelList.push_back(text(label));
  return format::CreateTarget(builder, name, requirements, kernelVector,
                              bufferVector, programVector, cacheVector,
                              driverVector, commandVector,
                              builder.CreateVector(labelList));
}

Offset<format::Model> writeModel(FlatBufferBuilder &builder, ModuleOp module) {
  auto info = module->getAttrOfType<DictionaryAttr>("plan.model");
  auto word = [&](StringRef key) {
    auto value = info ? info.getAs<StringAttr>(key) : StringAttr();
    StringRef string = value ? value.getValue() : "";
    return builder.CreateString(string.data(), string.size());
  };
  auto number = [&](StringRef key) -> uint64_t {
    auto value = info ? info.getAs<IntegerAttr>(key) : IntegerAttr();
    return value ? uint64_t(value.getInt()) : 0;
  };
  auto name = word("name"), architecture = word("architecture"),
       license = word("license");
  return format::CreateModel(
      builder, name, architecture, license, number("vocabulary"),
      number("context"), number("trained_context"), number("layers"),
      number("width"), number("heads"), number("kv_heads"), number("head_size"),
      number("feed_forward"), number("parameters"));
}

Offset<flatbuffers::Vector<Offset<format::Draft>>>
writeDrafts(FlatBufferBuilder &builder, ModuleOp module) {
  std::vector<Offset<format::Draft>> drafts;
  auto list = module->getAttrOfType<ArrayAttr>("plan.drafts");
  if (!list)
    return 0;
  for (auto draft : list.getAsRange<DictionaryAttr>()) {
    auto number = [&](StringRef key) {
      return uint32_t(draft.getAs<IntegerAttr>(key).getInt());
    };
    auto name = builder.CreateString(draft.getAs<StringAttr>("name").str()),
         description =
             builder.CreateString(draft.getAs<StringAttr>("description").str());
    drafts.push_back(format::CreateDraft(
        builder, name, description, number("first"), number("count"),
        draft.getAs<BoolAttr>("repeats").getValue()));
  }
  return builder.CreateVector(drafts);
}

Offset<format::Tensor> writeTensor(FlatBufferBuilder &builder,
                                   plan::TensorOp tensor) {
  std::string type;
  llvm::raw_string_ostream(type)
      << tensor.getBody().front().getTerminator()->getOperand(0).getType();
  StringRef layout = tensor.getLayout();
  auto name = builder.CreateString(tensor.getSymName().str());
  auto typeText = builder.CreateString(type),
       layoutText = builder.CreateString(layout.str());
  return format::CreateTensor(builder, name, typeText, layoutText,
                              *tensor.getOffset(), tensor.getBytes());
}

} // namespace

FailureOr<std::vector<uint8_t>> buildMetadata(ModuleOp module,
                                              const PackageExtras &extras,
                                              ArrayRef<SectionChunk> chunks) {
  FlatBufferBuilder builder(1 << 20);
  // A table of its own says the same in every command, so that it packs to
  // nothing; the distance to one that all share differs.
  builder.DedupVtables(false);
  Shared shared;
  std::vector<Offset<format::Target>> targets;
  for (plan::TargetOp target : module.getOps<plan::TargetOp>()) {
    FailureOr<Offset<format::Target>> written =
        TargetWriter(builder, target, module, shared).write();
    if (failed(written))
      return failure();
    targets.push_back(*written);
  }
  std::vector<Offset<format::Tensor>> tensors;
  for (plan::TensorOp tensor : module.getOps<plan::TensorOp>())
    tensors.push_back(writeTensor(builder, tensor));
  std::vector<Offset<format::Golden>> goldens;
  for (const Golden &golden : extras.goldens)
    goldens.push_back(format::CreateGoldenDirect(
        builder, &golden.tokens, &golden.argmax, &golden.margin));
  std::vector<format::Chunk> chunkList;
  for (const SectionChunk &chunk : chunks)
    chunkList.emplace_back(chunk.offset, chunk.bytes, chunk.hash);

  auto producer = builder.CreateString("llm-compile " SPRIG_VERSION);
  auto model = writeModel(builder, module);
  Offset<format::Tokenizer> tokenizer;
  if (extras.tokenizer) {
    FailureOr<Offset<format::Tokenizer>> written =
        writeTokenizer(builder, *extras.tokenizer, module);
    if (failed(written))
      return failure();
    tokenizer = *written;
  }
  auto chat = builder.CreateString(extras.chatTemplate);
  auto tensorVector = builder.CreateVector(tensors);
  auto chunkVector = builder.CreateVectorOfStructs(chunkList);
  auto targetVector = builder.CreateVector(targets);
  auto goldenVector = builder.CreateVector(goldens);
  auto drafts = writeDrafts(builder, module);
  Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> adapters;
  if (auto names = module->getAttrOfType<ArrayAttr>("llm.adapters")) {
    std::vector<std::string> list;
    for (auto name : names.getAsRange<StringAttr>())
      list.push_back(name.str());
    adapters = builder.CreateVectorOfStrings(list);
  }
  format::FinishPackageBuffer(
      builder, format::CreatePackage(builder, producer, model, tokenizer, chat,
                                     tensorVector, chunkVector, targetVector,
                                     goldenVector, drafts, adapters));
  return std::vector<uint8_t>(builder.GetBufferPointer(),
                              builder.GetBufferPointer() + builder.GetSize());
}

} // namespace mlir::llm
