#include "runtime/Speculation/DraftTree.h"

#include <algorithm>

namespace sprig {

void DraftTree::reset(uint32_t token, uint32_t depth) {
  nodes[0] = {token, kNone, 0, 1, 1};
  count = 1;
  deepest = depth;
}

uint32_t DraftTree::add(uint32_t parent, uint32_t token, float probability) {
  for (uint32_t i = parent + 1; i < count; ++i)
    if (nodes[i].parent == parent && nodes[i].token == token) {
      nodes[i].probability = std::max(nodes[i].probability, probability);
      return i;
    }
  if (count == kMost || nodes[parent].depth >= deepest)
    return kNone;
  nodes[count] = {token, parent, nodes[parent].depth + 1, probability, 0};
  return count++;
}

void DraftTree::rank() {
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0)
      nodes[i].joint = nodes[nodes[i].parent].joint * nodes[i].probability;
    order[i] = i;
  }
  // No child is likelier than its parent, and parents come first among equals:
  // the first nodes are a tree, however many are taken. Among others the
  // shallow one wins.
  std::sort(order.begin(), order.begin() + count, [&](uint32_t a, uint32_t b) {
    if (nodes[a].joint != nodes[b].joint)
      return nodes[a].joint > nodes[b].joint;
    return nodes[a].depth != nodes[b].depth ? nodes[a].depth < nodes[b].depth
                                            : a < b;
  });
  for (uint32_t i = 0; i < count; ++i)
    sums[i + 1] = sums[i] + nodes[order[i]].joint;
}

void DraftTree::keepChain() {
  rank();
  uint32_t at = 0, kept = 1;
  // The first child in the order is the likeliest.
  for (uint32_t i = 1; i < count; ++i)
    if (nodes[order[i]].parent == at) {
      at = order[i];
      order[kept++] = at;
    }
  for (uint32_t i = 1; i < kept; ++i) {
    // Parents come first, so what is read has not been written over.
    Node node = nodes[order[i]];
    node.parent = i - 1;
    nodes[i] = node;
  }
  count = kept;
  rank();
}

void DraftTree::cut(uint32_t wanted, Cut &out) const {
  wanted = std::min({wanted, count, format::kMostNodes});
  // Depth first, the likelier child first.
  std::array<uint32_t, format::kMostNodes> stack;
  std::array<uint32_t, kMost> placeOf{};
  uint32_t depth = 1;
  stack[0] = 0;
  out.count = 0;
  while (depth > 0) {
    const uint32_t at = stack[--depth];
    placeOf[at] = out.count;
    out.tokens[out.count] = nodes[at].token;
    out.parents[out.count] =
        at == 0 ? -1 : int32_t(placeOf[nodes[at].parent]);
    ++out.count;
    // The likeliest is pushed last.
    for (uint32_t i = wanted; i-- > 1;)
      if (nodes[order[i]].parent == at)
        stack[depth++] = order[i];
  }
}

} // namespace sprig
