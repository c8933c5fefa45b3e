// Latent attention (DeepSeek-V2, arXiv 2405.04434, equations 9 to 19), with the
// heads made out of the latent before the cache: the cache holds ordinary keys
// and values, and attention is the ordinary one.
#include "lib/Import/GraphBuilder.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::llm;

GraphBuilder::Heads GraphBuilder::buildLatentHeads(const LayerConfig &layer,
                                                   const LayerWeights &tensors,
                                                   Value x) {
  const int64_t H = layer.heads, R = config.rotated;
  Heads heads;
  Value from = x;
  if (tensors.queryLatent.weight)
    from = headNorm(linear(x, tensors.queryLatent, {config.queryLatent}),
                    tensors.queryLatentNorm, config.latentEpsilon);
  heads.q = linear(from, tensors.q, {H, config.keySize});

  // The key that all heads share, then each head's own part: rotation turns the
  // first components of a head, and the rows of q have that order as well.
  Value latent = headNorm(linear(x, tensors.latent, {config.latent}),
                          tensors.latentNorm, config.latentEpsilon);
  Value shared = linear(x, tensors.rotatedKey, {1, R});
  Value own = linear(latent, tensors.k, {H, config.keySize - R});
  heads.v = linear(latent, tensors.v, {H, config.valueSize});
  auto type = RankedTensorType::get({H}, builder.getI32Type());
  Value everyHead =
      WeightOp::create(builder, loc, DenseElementsAttr::get(type, int32_t(0)));
  shared = GatherOp::create(builder, loc, shared, everyHead, 1);
  heads.k = ConcatOp::create(builder, loc, ValueRange{shared, own}, 2);
  return heads;
}

Value GraphBuilder::headRows(Value value, const WeightRef &ref) {
  auto type = cast<RankedTensorType>(value.getType());
  const auto shaped = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, type.getElementType(),
                                 type.getEncoding());
  };
  const auto rows = [&](Value from, int64_t begin, int64_t end) -> Value {
    return SliceOp::create(builder, loc, from, begin, end, 1);
  };
  int64_t N = type.getDimSize(0) / ref.heads, K = type.getDimSize(1);
  value = ReshapeOp::create(builder, loc, shaped({ref.heads, N, K}), value);
  if (ref.begin != ref.end) {
    value = rows(value, ref.begin, ref.end);
    N = ref.end - ref.begin;
  }
  if (ref.lastFirst) {
    Value last = rows(value, N - ref.lastFirst, N),
          first = rows(value, 0, N - ref.lastFirst);
    value = ConcatOp::create(builder, loc, ValueRange{last, first}, 1);
  }
  return ReshapeOp::create(builder, loc, shaped({ref.heads * N, K}), value);
}
