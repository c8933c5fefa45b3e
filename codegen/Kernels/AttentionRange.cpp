#include "codegen/Kernels/AttentionRange.h"

namespace mlir::llm {

AttentionRange::AttentionRange(KernelBuilder &builder,
                               const AttentionShape &shape, unsigned binding)
    : b(builder), shape(shape), control(binding) {
  StepControl step(b, control);
  base = step.base();
  valid = step.count();
  end = b.min(b.add(base, valid), b.index(shape.capacity));
}

Value AttentionRange::limit(Value token) {
  Value beyond = token; // positions of the step before the token's own
  if (shape.tree)
    beyond = StepControl(b, control).depth(token);
  return b.min(b.add(b.add(base, beyond), 1), end);
}

Value AttentionRange::slot(Value token, Value position) {
  if (!shape.tree)
    return position;
  Value slot =
      TreeTable(b, shape.tree, shape.treeBinding).slot(token, position, base);
  return b.min(slot, b.index(shape.capacity - 1));
}

Value AttentionRange::windowStart(Value limit) {
  Value window = b.index(shape.window);
  return b.sub(b.max(limit, window), window);
}

Value AttentionRange::first(Value limit) {
  return shape.fromStart() ? b.index(0) : windowStart(limit);
}

Value AttentionRange::sees(Value limit, Value position) {
  Value visible = b.less(position, limit);
  if (shape.hidden)
    visible = b.bitAnd(visible, b.less(b.index(shape.hidden - 1), position));
  if (shape.window) {
    Value near = b.less(limit, b.add(position, shape.window + 1));
    if (shape.sinks)
      near = b.bitOr(near, b.less(position, shape.sinks));
    visible = b.bitAnd(visible, near);
  }
  if (shape.blocks)
    visible = b.bitAnd(visible,
                       seesBlock(limit, b.div(position, shape.blocks.size)));
  return visible;
}

Value AttentionRange::seesBlock(Value limit, Value block) {
  const BlockShape &blocks = shape.blocks;
  // A token is at the last position that it sees.
  Value own = b.div(b.sub(b.max(limit, b.index(1)), b.index(1)), blocks.size);
  Value seen = b.less(own, b.add(block, blocks.local));
  if (blocks.first)
    seen = b.bitOr(seen, b.less(block, blocks.first));
  if (blocks.stride) {
    Value behind = b.sub(b.max(own, block), block);
    seen = b.bitOr(seen,
                   b.equal(b.rem(behind, blocks.stride), b.index(0)));
  }
  return seen;
}

Value AttentionRange::reaches(Value limit, Value begin, int64_t length) {
  if (!shape.window)
    return b.equal(limit, limit);
  Value near = b.less(windowStart(limit), b.add(begin, length));
  return shape.sinks ? b.bitOr(near, b.less(begin, shape.sinks)) : near;
}

Value AttentionRange::seesAny(Value limit, Value begin, int64_t length) {
  Value seen = b.bitAnd(b.less(begin, limit), reaches(limit, begin, length));
  if (!shape.blocks)
    return seen;
  // All blocks that it may touch.
  Value first = b.div(begin, shape.blocks.size),
        last = b.div(b.add(begin, length - 1), shape.blocks.size), any;
  for (int64_t i = 0; i <= (length - 2) / shape.blocks.size + 1; ++i) {
    Value block = seesBlock(limit, b.min(b.add(first, i), last));
    any = any ? b.bitOr(any, block) : block;
  }
  return b.bitAnd(seen, any);
}

Value AttentionRange::spans(Value limit, Value split) {
  Value low = b.div(first(limit), shape.split),
        high = b.div(b.sub(limit, b.index(1)), shape.split);
  return b.bitAnd(b.less(split, b.add(high, 1)), b.less(low, b.add(split, 1)));
}

Value AttentionRange::seesOneSplit(Value limit) {
  Value last = b.div(b.sub(limit, b.index(1)), shape.split);
  return b.equal(b.div(first(limit), shape.split), last);
}

Value AttentionRange::firstSplit() {
  return b.div(first(b.min(b.add(base, 1), end)), shape.split);
}

Value AttentionRange::splits() {
  Value last = b.div(b.sub(end, b.index(1)), shape.split);
  return b.add(b.sub(last, firstSplit()), 1);
}

Values foldSplit(KernelBuilder &b, ValueRange known, ValueRange next) {
  Value most = b.max(known[0], next[0]);
  Value old = b.exp(b.sub(known[0], most)), fresh = b.exp(b.sub(next[0], most));
  Values folded{most};
  for (size_t i = 1; i < known.size(); ++i)
    folded.push_back(b.fma(known[i], old, b.mul(next[i], fresh)));
  return folded;
}

Values emptyFold(KernelBuilder &b, int64_t numbers) {
  Values empty{b.constant(AttentionRange::kHidden)};
  empty.append(1 + numbers, b.constant(0.0f));
  return empty;
}

} // namespace mlir::llm
