#include "codegen/Kernels/LinearAppend.h"

#include "codegen/Kernels/LinearKernel.h"
#include "codegen/Kernels/RopeTable.h"

namespace mlir::llm {

bool LinearAppend::possible(const RopeAppendSpec &append,
                            const LinearSchedule &schedule,
                            const TargetProfile &profile) {
  // A head's scale would need all of its lanes. And products that only trees
  // of drafts have would be more code to ship and to compile than a dispatch
  // of that rare step is worth.
  if (KvFormat::named(append.kv).quantised() || append.hadamard ||
      append.headSize % 8 || append.tree)
    return false;
  if (schedule.matrix || !profile.canShuffle() || profile.subgroupSize % 8)
    return false;
  if (append.dims == 0 || append.interleaved)
    return true;
  const int64_t halfTiles = append.headSize / 16, halfRows = schedule.rows / 2;
  return append.dims == append.headSize && append.headSize % 16 == 0 &&
         schedule.rows % 2 == 0 && halfTiles % halfRows == 0;
}

void LinearAppend::bind(const RopeAppendSpec &append, TexelFormat single,
                        KernelInterface &interface) {
  const uint64_t queryBytes = uint64_t(append.heads * append.headSize) * 4;
  const uint64_t cacheBytes =
      KvFormat::named(append.kv)
          .sideBytes(append.capacity, append.kvHeads, append.headSize);
  auto &bindings = interface.bindings;
  if (append.dims) {
    bindings.push_back({"table", Access::Read, append.tableBytes()});
    bindings.back().texel = single;
  }
  bindings.push_back({"control", Access::Read, StepControl::kBytes});
  bindings.push_back({"y", Access::Write, queryBytes, true});
  bindings.push_back({"keys", Access::Write, cacheBytes});
  bindings.push_back({"values", Access::Write, cacheBytes});
}

Value LinearAppend::tile(KernelBuilder &b, const RopeAppendSpec &append,
                         const LinearSchedule &schedule, Value set, int64_t r) {
  // Half of the lane's tiles from each half of a head, as far apart as they can
  // be there (LinearSpec::tileOf).
  const int64_t halfTiles = append.headSize / 16, halfRows = schedule.rows / 2;
  const int64_t sets = halfTiles / halfRows;
  Value first =
      b.add(b.mul(b.div(set, sets), 2 * halfTiles), b.rem(set, sets));
  return b.add(first, r / halfRows * halfTiles + r % halfRows * sets);
}

LinearAppend::LinearAppend(KernelBuilder &builder, const RopeAppendSpec &spec,
                           const KernelInterface &interface, Value row)
    : b(builder), append(spec), interface(interface),
      format(KvFormat::named(spec.kv)), control(builder, binding("control")),
      row(row) {}

Value LinearAppend::turned(ArrayRef<Value> numbers, size_t r, Value element,
                           RopeTable &table) {
  Value number = numbers[r], partner, first, pair;
  if (append.interleaved) {
    partner = b.shuffleXor(number, 1);
    first = b.equal(b.rem(row, 2), b.index(0));
    pair = b.div(element, 2);
  } else {
    const size_t half = numbers.size() / 2;
    partner = numbers[r < half ? r + half : r - half];
    first = b.equal(b.index(r < half), b.index(1));
    pair = b.rem(element, append.dims / 2);
  }
  if (append.dims == append.headSize)
    return table.turn(number, partner, first, pair);
  Value inside = b.less(element, append.dims);
  pair = b.select(inside, pair, b.index(0));
  return b.select(inside, table.turn(number, partner, first, pair), number);
}

void LinearAppend::storeCached(Value number, Value head, Value element,
                               Value slot, Value valid) {
  Value word, mine = valid;
  const unsigned pack = format.elementsPerWord();
  if (pack == 1) {
    word = format.pack(b, number);
  } else { // the even lane of two stores the numbers of both
    word = format.pack(b, {number, b.shuffleXor(number, 1)});
    mine = b.bitAnd(mine, b.equal(b.rem(row, 2), b.index(0)));
  }
  const int64_t words = format.headWords(append.headSize);
  for (auto [role, first] :
       {std::pair("keys", append.heads),
        std::pair("values", append.heads + append.kvHeads)}) {
    Value own = b.sub(head, b.index(first)); // wraps below `first`
    b.when(b.bitAnd(mine, b.less(own, append.kvHeads)), [&] {
      Value place = b.mul(b.add(b.mul(slot, append.kvHeads), own), words);
      b.store(word, binding(role), b.add(place, b.div(element, pack)));
    });
  }
}

void LinearAppend::store(ArrayRef<Value> numbers, ArrayRef<Value> tiles,
                         Value line) {
  Value slot = b.add(control.base(), line);
  // Padding rows may lie past the context; their rotation does not matter, but
  // its address does.
  Value position = b.min(slot, b.index(append.capacity - 1));
  Value valid =
      b.bitAnd(b.less(line, control.count()), b.less(slot, append.capacity));
  std::optional<RopeTable> table;
  if (append.dims)
    table.emplace(b, append, interface, binding("table"), position);

  const int64_t headTiles = append.headSize / 8;
  const int64_t width = append.heads * append.headSize;
  for (size_t r = 0; r < numbers.size(); ++r) {
    Value head = b.div(tiles[r], headTiles);
    Value element = b.add(b.mul(b.rem(tiles[r], headTiles), 8), row);
    Value number = numbers[r];
    if (table)
      number = b.select(b.less(head, append.heads + append.kvHeads),
                        turned(numbers, r, element, *table), number);
    b.when(b.less(head, append.heads), [&] {
      Value column = b.add(b.mul(tiles[r], 8), row);
      b.store(number, binding("y"), b.add(b.mul(line, width), column));
    });
    storeCached(number, head, element, slot, valid);
  }
}

void LinearKernel::finishAppend(ValueRange sums) {
  LinearAppend append(b, *spec.append, interface, row);
  Values factor = factors(sums), tiles, biases;
  for (int64_t r = 0; r < schedule.rows; ++r) {
    tiles.push_back(tileOf(r));
    if (spec.bias)
      biases.push_back(biasOf(r));
  }
  for (unsigned token = 0; token < spec.tokens; ++token) {
    Values numbers;
    for (unsigned r = 0; r < schedule.rows; ++r) {
      Value number = sums[at(r, token)];
      if (spec.norm)
        number = b.mul(number, factor[token]);
      numbers.push_back(spec.bias ? b.add(number, biases[r]) : number);
    }
    append.store(numbers, tiles, b.add(firstToken, int64_t(token)));
  }
}

} // namespace mlir::llm
