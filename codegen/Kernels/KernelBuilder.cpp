#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::llm {
namespace {

gpu::Dimension dimensionOf(unsigned dimension) {
  return gpu::Dimension(dimension);
}

bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// The array that a storage or uniform buffer is.
Type bufferType(const KernelBinding &binding, Type element,
                MLIRContext *context) {
  auto space = spirv::StorageClassAttr::get(
      context, binding.uniform ? spirv::StorageClass::Uniform
                               : spirv::StorageClass::StorageBuffer);
  int64_t count = ShapedType::kDynamic;
  if (binding.uniform) { // uniform blocks have no runtime arrays
    auto vector = dyn_cast<VectorType>(element);
    int64_t lanes = vector ? vector.getNumElements() : 1;
    count = int64_t(binding.bytes * 8) /
            (getElementTypeOrSelf(element).getIntOrFloatBitWidth() * lanes);
  }
  return MemRefType::get({count}, element, MemRefLayoutAttrInterface{}, space);
}

spirv::ImageType texelType(TexelFormat format, MLIRContext *context) {
  Builder builder(context);
  bool real =
      format == TexelFormat::R32Sfloat || format == TexelFormat::Rgba32Sfloat;
  spirv::ImageFormat texel = spirv::ImageFormat::R32ui;
  if (format == TexelFormat::R32Sfloat)
    texel = spirv::ImageFormat::R32f;
  else if (format == TexelFormat::Rgba32Uint)
    texel = spirv::ImageFormat::Rgba32ui;
  else if (format == TexelFormat::Rgba32Sfloat)
    texel = spirv::ImageFormat::Rgba32f;
  return spirv::ImageType::get(
      real ? Type(builder.getF32Type()) : Type(builder.getI32Type()),
      spirv::Dim::Buffer, spirv::ImageDepthInfo::NoDepth,
      spirv::ImageArrayedInfo::NonArrayed,
      spirv::ImageSamplingInfo::SingleSampled,
      spirv::ImageSamplerUseInfo::NoSampler, texel);
}

} // namespace

KernelBuilder::KernelBuilder(ModuleOp module, const TargetProfile &profile,
                             const KernelInterface &interface)
    : profile(profile), interface(interface), module(module),
      builder(module.getContext()), location(module.getLoc()) {}

void KernelBuilder::open(ArrayRef<Type> elements) {
  MLIRContext *context = builder.getContext();
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  builder.getUnitAttr());
  builder.setInsertionPointToStart(module.getBody());
  auto kernels = gpu::GPUModuleOp::create(builder, location, "kernels");
  builder.setInsertionPointToStart(kernels.getBody());

  // Bindings are numbered in the order of the interface. A texel view is an
  // opaque variable of the module; the others are the kernel's arguments.
  SmallVector<Type> arguments;
  SmallVector<Attribute> numbers;
  for (auto [i, binding] : llvm::enumerate(interface.bindings)) {
    if (binding.texel != TexelFormat::None) {
      Type type = spirv::PointerType::get(texelType(binding.texel, context),
                                          spirv::StorageClass::UniformConstant);
      spirv::GlobalVariableOp::create(builder, location, type,
                                      "texels_" + std::to_string(i),
                                      /*descriptorSet=*/0, unsigned(i));
      continue;
    }
    arguments.push_back(bufferType(binding, elements[i], context));
    numbers.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        spirv::getInterfaceVarABIAttrName(),
        spirv::getInterfaceVarABIAttr(0, unsigned(i), std::nullopt, context))));
  }
  function = gpu::GPUFuncOp::create(builder, location, "main",
                                    builder.getFunctionType(arguments, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function.setAllArgAttrs(numbers);
  std::array<int32_t, 3> size = {int32_t(interface.workgroup[0]),
                                 int32_t(interface.workgroup[1]),
                                 int32_t(interface.workgroup[2])};
  function->setAttr(spirv::getEntryPointABIAttrName(),
                    spirv::getEntryPointABIAttr(context, size));
  builder.setInsertionPointToStart(&function.getBody().front());

  unsigned argument = 0;
  for (auto [i, binding] : llvm::enumerate(interface.bindings)) {
    if (binding.texel == TexelFormat::None) {
      arrays.push_back(function.getArgument(argument++));
      continue;
    }
    Type type = spirv::PointerType::get(texelType(binding.texel, context),
                                        spirv::StorageClass::UniformConstant);
    Value variable = spirv::AddressOfOp::create(builder, location, type,
                                                "texels_" + std::to_string(i));
    arrays.push_back(spirv::LoadOp::create(builder, location, variable));
  }
}

void KernelBuilder::close() { gpu::ReturnOp::create(builder, location); }

Value KernelBuilder::constantAttr(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    // Constants live at the head of the kernel, where they dominate every use.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    known = arith::ConstantOp::create(builder, location, value);
  }
  return known;
}

Value KernelBuilder::localId(unsigned dimension) {
  Value &known = ids[dimension];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    known = gpu::ThreadIdOp::create(builder, location, builder.getIndexType(),
                                    dimensionOf(dimension));
  }
  return known;
}

Value KernelBuilder::groupId(unsigned dimension) {
  Value &known = ids[3 + dimension];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    known = gpu::BlockIdOp::create(builder, location, builder.getIndexType(),
                                   dimensionOf(dimension));
  }
  return known;
}

Value KernelBuilder::globalId(unsigned dimension) {
  return add(mul(groupId(dimension), interface.workgroup[dimension]),
             localId(dimension));
}

Value KernelBuilder::index(int64_t value) {
  return constantAttr(builder.getIndexAttr(value));
}
Value KernelBuilder::constant(uint32_t value) {
  return constantAttr(builder.getI32IntegerAttr(int32_t(value)));
}
Value KernelBuilder::constant(float value) {
  return constantAttr(builder.getF32FloatAttr(value));
}

Value KernelBuilder::constantLike(Value like, int64_t value) {
  Type type = like.getType();
  if (isa<FloatType>(type))
    return constantAttr(builder.getFloatAttr(type, double(value)));
  if (auto integer = dyn_cast<IntegerType>(type))
    return constantAttr(
        builder.getIntegerAttr(type, APInt(integer.getWidth(), uint64_t(value),
                                           false, /*implicitTrunc=*/true)));
  return constantAttr(builder.getIntegerAttr(type, value));
}

Value KernelBuilder::add(Value a, Value b) {
  return isFloat(a) ? make<arith::AddFOp>(a, b) : make<arith::AddIOp>(a, b);
}
Value KernelBuilder::sub(Value a, Value b) {
  return isFloat(a) ? make<arith::SubFOp>(a, b) : make<arith::SubIOp>(a, b);
}
Value KernelBuilder::mul(Value a, Value b) {
  return isFloat(a) ? make<arith::MulFOp>(a, b) : make<arith::MulIOp>(a, b);
}
Value KernelBuilder::div(Value a, Value b) {
  return isFloat(a) ? make<arith::DivFOp>(a, b) : make<arith::DivUIOp>(a, b);
}
Value KernelBuilder::rem(Value a, Value b) {
  return make<arith::RemUIOp>(a, b);
}
Value KernelBuilder::min(Value a, Value b) {
  // GLSL's FMin and FMax are single instructions; arith.minimumf would spell
  // out its NaN rules.
  return isFloat(a)
             ? spirv::GLFMinOp::create(builder, location, a, b).getResult()
             : make<arith::MinUIOp>(a, b);
}
Value KernelBuilder::max(Value a, Value b) {
  return isFloat(a)
             ? spirv::GLFMaxOp::create(builder, location, a, b).getResult()
             : make<arith::MaxUIOp>(a, b);
}
Value KernelBuilder::shl(Value a, int64_t bits) {
  return bits ? make<arith::ShLIOp>(a, constantLike(a, bits)) : a;
}
Value KernelBuilder::shl(Value a, Value bits) {
  return make<arith::ShLIOp>(a, bits);
}
Value KernelBuilder::shr(Value a, int64_t bits) {
  return bits ? make<arith::ShRUIOp>(a, constantLike(a, bits)) : a;
}
Value KernelBuilder::shr(Value a, Value bits) {
  return make<arith::ShRUIOp>(a, bits);
}
Value KernelBuilder::sar(Value a, int64_t bits) {
  return bits ? make<arith::ShRSIOp>(a, constantLike(a, bits)) : a;
}
Value KernelBuilder::bitAnd(Value a, Value b) {
  return make<arith::AndIOp>(a, b);
}
Value KernelBuilder::bitOr(Value a, Value b) {
  return make<arith::OrIOp>(a, b);
}
Value KernelBuilder::bitXor(Value a, Value b) {
  return make<arith::XOrIOp>(a, b);
}

Value KernelBuilder::less(Value a, Value b) {
  if (isFloat(a))
    return make<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, b);
  return make<arith::CmpIOp>(arith::CmpIPredicate::ult, a, b);
}
Value KernelBuilder::equal(Value a, Value b) {
  if (isFloat(a))
    return make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, b);
  return make<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return make<arith::SelectOp>(condition, a, b);
}

Value KernelBuilder::fma(Value a, Value b, Value c) {
  return spirv::GLFmaOp::create(builder, location, a.getType(), a, b, c);
}
Value KernelBuilder::neg(Value a) { return make<arith::NegFOp>(a); }
Value KernelBuilder::exp(Value a) {
  return spirv::GLExpOp::create(builder, location, a);
}
Value KernelBuilder::tanh(Value a) {
  return spirv::GLTanhOp::create(builder, location, a);
}
Value KernelBuilder::sqrt(Value a) {
  return spirv::GLSqrtOp::create(builder, location, a);
}
Value KernelBuilder::rsqrt(Value a) {
  return spirv::GLInverseSqrtOp::create(builder, location, a);
}

Value KernelBuilder::toIndex(Value integer) {
  return integer.getType().isIndex()
             ? integer
             : make<arith::IndexCastUIOp>(builder.getIndexType(), integer);
}
Value KernelBuilder::toI32(Value value) {
  return value.getType().isIndex() ? make<arith::IndexCastUIOp>(i32(), value)
                                   : value;
}
Value KernelBuilder::unsignedToF32(Value integer) {
  return make<arith::UIToFPOp>(f32(), integer);
}
Value KernelBuilder::signedToF32(Value integer) {
  return make<arith::SIToFPOp>(f32(), integer);
}
Value KernelBuilder::floorToI32(Value number) {
  return make<arith::FPToUIOp>(i32(), number);
}
Value KernelBuilder::f32FromBits(Value bits) {
  return make<arith::BitcastOp>(f32(), bits);
}
Value KernelBuilder::bitsOfF32(Value number) {
  return make<arith::BitcastOp>(i32(), number);
}

std::pair<Value, Value> KernelBuilder::unpackHalves(Value word) {
  Value pair =
      spirv::GLUnpackHalf2x16Op::create(builder, location, vec(2, f32()), word);
  return {extract(pair, 0), extract(pair, 1)};
}
Value KernelBuilder::packHalves(Value low, Value high) {
  return spirv::GLPackHalf2x16Op::create(builder, location, i32(),
                                         pack({low, high}));
}
Values KernelBuilder::words(Value integer) {
  if (!integer.getType().isInteger(64))
    return {integer};
  return {make<arith::TruncIOp>(i32(), integer),
          make<arith::TruncIOp>(i32(), shr(integer, 32))};
}
Value KernelBuilder::bits(Value word, unsigned offset, unsigned count) {
  Value shifted = shr(word, offset);
  return offset + count == 32 ? shifted
                              : bitAnd(shifted, (int64_t(1) << count) - 1);
}
Value KernelBuilder::signedBits(Value word, unsigned offset, unsigned count) {
  return sar(shl(word, 32 - offset - count), 32 - count);
}

Value KernelBuilder::extract(Value vector, int64_t lane) {
  return make<vector::ExtractOp>(vector, lane);
}
Value KernelBuilder::pack(ArrayRef<Value> scalars) {
  Type type = vec(int64_t(scalars.size()), scalars[0].getType());
  return spirv::CompositeConstructOp::create(builder, location, type, scalars);
}
Values KernelBuilder::unpack(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type)
    return {value};
  Values scalars;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    scalars.push_back(extract(value, lane));
  return scalars;
}

Value KernelBuilder::load(unsigned binding, Value element) {
  TexelFormat texel = interface.bindings[binding].texel;
  if (texel == TexelFormat::None)
    return load(arrays[binding], element);
  // Vulkan's image reads give four components, whatever the format has.
  auto type = cast<spirv::ImageType>(arrays[binding].getType());
  Value four = spirv::ImageReadOp::create(
      builder, location, vec(4, type.getElementType()), arrays[binding],
      toI32(element), spirv::ImageOperandsAttr{}, ValueRange{});
  bool wide =
      texel == TexelFormat::Rgba32Uint || texel == TexelFormat::Rgba32Sfloat;
  return wide ? four : extract(four, 0);
}
void KernelBuilder::store(Value value, unsigned binding, Value element) {
  store(value, arrays[binding], element);
}
Value KernelBuilder::load(Value array, Value element) {
  return memref::LoadOp::create(builder, location, array, toIndex(element));
}
void KernelBuilder::store(Value value, Value array, Value element) {
  memref::StoreOp::create(builder, location, value, array, toIndex(element));
}
Value KernelBuilder::shared(Type element, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  auto space = spirv::StorageClassAttr::get(builder.getContext(),
                                            spirv::StorageClass::Workgroup);
  return memref::AllocOp::create(
      builder, location,
      MemRefType::get({count}, element, MemRefLayoutAttrInterface{}, space));
}
void KernelBuilder::barrier() { gpu::BarrierOp::create(builder, location); }

} // namespace mlir::llm
