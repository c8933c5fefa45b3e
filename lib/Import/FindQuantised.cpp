// The tensors of a quantised matrix, and whether they are what the
// configuration promises.
#include "lib/Import/ModelWeights.h"

#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace mlir::llm;
using llvm::StringRef;
using llvm::Twine;
using sprig::quant::Format;

static int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A tensor of one of the types, or an error that names them.
static const WeightTensor *ofType(TensorTable &tensors, const Twine &key,
                                  llvm::ArrayRef<int64_t> shape,
                                  std::initializer_list<Format> types) {
  const WeightTensor *tensor = tensors.take(key, shape);
  if (!tensor || llvm::is_contained(types, tensor->format))
    return tensor;
  std::string names;
  for (Format type : types)
    names += (names.empty() ? "" : " or ") +
             std::string(sprig::quant::info(type).name);
  tensors.fail("expects tensor '" + tensor->key + "' to be of type " + names +
               " by quantization_config, but got " +
               StringRef(sprig::quant::info(tensor->format).name));
  return tensor;
}

static constexpr std::initializer_list<Format> kFloats{
    Format::F16, Format::BF16, Format::F32};

namespace {

struct Search {
  const CheckpointQuantisation &how;
  StringRef stem;
  int64_t N, K;
  TensorTable &tensors;

  std::string key(StringRef end) const { return (stem + "." + end).str(); }
  /// Words of 32 bits that hold so many codes.
  int64_t words(int64_t codes) const { return divideUp(codes * how.bits, 32); }
  int64_t groups() const { return how.group ? divideUp(K, how.group) : 1; }
  QuantisedMatrix empty() const {
    QuantisedMatrix matrix;
    matrix.rows = N;
    matrix.columns = K;
    matrix.how = how;
    return matrix;
  }

  std::optional<QuantisedMatrix> compressed() const {
    QuantisedMatrix matrix = empty();
    matrix.packed = tensors.has(key("weight_packed"));
    if (matrix.packed) {
      if (how.isFloat)
        tensors.fail("expects tensor '" + key("weight") +
                     "' of type F8_E4M3 by quantization_config, but got packed "
                     "integers");
      matrix.codes =
          ofType(tensors, key("weight_packed"), {N, words(K)}, {Format::I32});
      checkShape(ofType(tensors, key("weight_shape"), {2}, {Format::I64}));
    } else {
      const WeightTensor *plain = tensors.find(key("weight"));
      if (plain && llvm::is_contained(kFloats, plain->format) &&
          !tensors.has(key("weight_scale")))
        return std::nullopt; // a layer that was left out
      if (!how.isFloat && how.bits != 8)
        tensors.fail("expects tensor '" + key("weight_packed") + "' of " +
                     Twine(how.bits) +
                     " bits a code by quantization_config, but got none");
      matrix.codes = ofType(tensors, key("weight"), {N, K},
                            {how.isFloat ? how.floats : Format::I8});
    }
    matrix.scales = how.rows == 1 ? ofType(tensors, key("weight_scale"),
                                           {N, groups()}, kFloats)
                                  : scalesOfBlocks({"weight_scale"});
    if (!how.symmetric && !matrix.packed)
      tensors.fail("expects tensor '" + key("weight_packed") +
                   "', for zero points are read beside packed integers, but "
                   "got none");
    else if (!how.symmetric)
      matrix.zeros = ofType(tensors, key("weight_zero_point"),
                            {words(N), groups()}, {Format::I32});
    if (matrix.packed && tensors.has(key("weight_g_idx")))
      matrix.groups =
          outOfOrder(ofType(tensors, key("weight_g_idx"), {K}, {Format::I32}));
    // What static scales of inputs say is not needed: inputs are not rounded.
    if (how.isFloat)
      tensors.ignore(key("input_scale"));
    return matrix;
  }

  /// Scales that several rows share, under the first of the names that is there:
  /// one a block; where there are no blocks one for all, or one a row, for which
  /// software has several shapes.
  const WeightTensor *
  scalesOfBlocks(std::initializer_list<StringRef> names) const {
    StringRef name = *names.begin();
    for (StringRef other : llvm::reverse(llvm::ArrayRef(names)))
      if (tensors.has(key(other)))
        name = other;
    const WeightTensor *found = tensors.find(key(name));
    using Shape = llvm::SmallVector<int64_t, 2>;
    if (found && how.rows == 0)
      for (const Shape &shape : {Shape{}, Shape{1, 1}, Shape{N}, Shape{N, 1}})
        if (llvm::ArrayRef(found->shape) == llvm::ArrayRef(shape))
          return ofType(tensors, key(name), shape, kFloats);
    if (how.rows == 0)
      return ofType(tensors, key(name), {1}, kFloats);
    return ofType(tensors, key(name), {divideUp(N, how.rows), groups()},
                  kFloats);
  }

  std::optional<QuantisedMatrix> fp8() const {
    const WeightTensor *plain = tensors.find(key("weight"));
    if (plain && llvm::is_contained(kFloats, plain->format))
      return std::nullopt; // a layer that was left out
    QuantisedMatrix matrix = empty();
    matrix.codes = ofType(tensors, key("weight"), {N, K}, {how.floats});
    matrix.scales =
        scalesOfBlocks({"weight_scale_inv", "weight_scale", "scale"});
    // What static scales of inputs say is not needed: inputs are not rounded.
    for (StringRef name : {"input_scale", "activation_scale"})
      tensors.ignore(key(name));
    return matrix;
  }

  /// `weight_shape` repeats what the model's sizes say.
  void checkShape(const WeightTensor *tensor) const {
    int64_t stored[2];
    if (!tensor || tensor->data.size() != sizeof(stored))
      return;
    std::memcpy(stored, tensor->data.data(), sizeof(stored));
    if (stored[0] != N || stored[1] != K)
      tensors.fail("expects tensor '" + tensor->key + "' to say " + Twine(N) +
                   "x" + Twine(K) + ", but got " + Twine(stored[0]) + "x" +
                   Twine(stored[1]));
  }

  std::optional<QuantisedMatrix> split() const {
    if (!tensors.has(key("qweight")))
      return std::nullopt;
    const bool awq = how.method == QuantMethod::AWQ;
    QuantisedMatrix matrix = empty();
    matrix.packed = true;
    if (awq && N % 8 != 0)
      tensors.fail("expects a multiple of 8 rows in '" + key("qweight") +
                   "', but got " + Twine(N));
    matrix.codes =
        awq ? ofType(tensors, key("qweight"), {K, words(N)}, {Format::I32})
            : ofType(tensors, key("qweight"), {words(K), N}, {Format::I32});
    matrix.scales = ofType(tensors, key("scales"), {groups(), N}, kFloats);
    matrix.zeros =
        ofType(tensors, key("qzeros"), {groups(), words(N)}, {Format::I32});
    if (!awq && tensors.has(key("g_idx")))
      matrix.groups =
          outOfOrder(ofType(tensors, key("g_idx"), {K}, {Format::I32}));
    return matrix;
  }

  /// Null where the groups lie one after another, as without the tensor.
  const WeightTensor *outOfOrder(const WeightTensor *groupOf) const {
    if (!groupOf || groupOf->data.size() != size_t(K) * 4)
      return nullptr;
    bool inOrder = true;
    for (int64_t k = 0; k < K; ++k) {
      int32_t group;
      std::memcpy(&group, groupOf->data.data() + size_t(k) * 4, 4);
      // What compressed-tensors begins with, and leaves where there is no order.
      if (k == 0 && group == -1 &&
          how.method == QuantMethod::CompressedTensors)
        return nullptr;
      if (group < 0 || group >= groups())
        tensors.fail("expects tensor '" + groupOf->key +
                     "' to name groups below " + Twine(groups()) +
                     ", but got " + Twine(group));
      inOrder &= group == (how.group ? k / how.group : 0);
    }
    return inOrder ? nullptr : groupOf;
  }
};

} // namespace

std::optional<QuantisedMatrix>
mlir::llm::findQuantised(const CheckpointQuantisation &how, StringRef stem,
                         int64_t N, int64_t K, TensorTable &tensors) {
  const Search search{how, stem, N, K, tensors};
  switch (how.method) {
  case QuantMethod::None:
    return std::nullopt;
  case QuantMethod::CompressedTensors:
    return search.compressed();
  case QuantMethod::FP8:
    return search.fp8();
  case QuantMethod::GPTQ:
  case QuantMethod::AWQ:
    return search.split();
  }
  return std::nullopt;
}
