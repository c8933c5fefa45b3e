// The body of a linear kernel.
#include "codegen/Kernels/Activation.h"
#include "codegen/Kernels/LinearAppend.h"
#include "codegen/Kernels/LinearKernel.h"
#include "codegen/Kernels/RopeTable.h"

namespace mlir::llm {
namespace {

/// Adds a list as a balanced tree.
Value treeSum(KernelBuilder &b, Values list) {
  while (list.size() > 1) {
    Values half;
    for (size_t i = 0; i + 1 < list.size(); i += 2)
      half.push_back(b.add(list[i], list[i + 1]));
    if (list.size() % 2)
      half.push_back(list.back());
    list = half;
  }
  return list[0];
}

} // namespace

void LinearKernel::open() {
  bool quads = spec.k % 4 == 0; // rows of x start at whole quads
  SmallVector<Type> elements;
  SmallVector<PlaneBinding> planes;
  for (const KernelBinding &known : interface.bindings) {
    StringRef role = known.role;
    auto [weight, planeName] = role.split('.');
    elements.push_back(
        planeName.empty() ? otherElement(unsigned(elements.size()), quads)
                          : bindPlanes(
                                b, planeName, unsigned(elements.size()), layout,
                                [&](const sprig::quant::PlaneLayout &plane) {
                                  return schedule.elementBytes(plane);
                                },
                                planes));
  }
  b.open(elements);

  Value lane = b.localId();
  row = b.rem(lane, 8);
  slice = b.rem(b.div(lane, 8), schedule.split);
  Value group = b.groupId(0);
  if (interface.groups[2].fixed > 1)
    group = b.add(b.mul(b.groupId(2), interface.groups[0].fixed), group);
  Value set = schedule.waves == 1 ? group
                                  : b.add(b.mul(group, schedule.waves),
                                          b.div(lane, 8 * schedule.split));
  this->set = set;
  firstToken = b.mul(b.groupId(1), spec.tokens);
  size_t perWeight = layout.planes.size();
  bool whole = spec.tiles() % LinearSpec::tilesPerGroup(schedule) == 0 &&
               interface.groups[2].fixed == 1;
  for (size_t weight = 0; weight * perWeight < planes.size(); ++weight)
    for (int64_t r = 0; r < schedule.rows; ++r) {
      RowSet &rows = rowSets.emplace_back();
      rows.planes.assign(planes.begin() + weight * perWeight,
                         planes.begin() + (weight + 1) * perWeight);
      rows.tile = tileOf(r);
      if (!whole)
        rows.tile = b.min(rows.tile, b.index(spec.tiles() - 1));
    }
  source = XSource::create(
      b, schedule, codec, spec.k, binding("x"),
      spec.norm ? std::optional(binding("gamma")) : std::nullopt,
      spec.ownFactor(), firstToken);
}

Type LinearKernel::otherElement(unsigned binding, bool quads) {
  StringRef role = interface.bindings[binding].role;
  if (role == "table")
    return RopeTable::elementType(b, interface, binding);
  if (role == "control" || role == "keys" || role == "values")
    return b.i32();
  bool wide = quads && (role == "x" || role == "gamma");
  return wide ? b.vec(4, b.f32()) : b.f32();
}

Value LinearKernel::tileOf(int64_t r) {
  if (spec.append && spec.append->dims && !spec.append->interleaved)
    return LinearAppend::tile(b, *spec.append, schedule, set, r);
  return spec.tileOf(b, schedule, set, r, interface.groups[2].fixed > 1);
}

Value LinearKernel::biasOf(int64_t r) {
  Value column = b.add(b.mul(tileOf(r), 8), row);
  return b.load(binding("bias"), b.min(column, b.index(spec.n - 1)));
}

void LinearKernel::extend(Values &chains, unsigned i, Value code,
                          Value number) {
  if (i < schedule.chains)
    chains.push_back(b.mul(code, number));
  else
    chains[i % schedule.chains] =
        b.fma(code, number, chains[i % schedule.chains]);
}

void LinearKernel::close(const ChunkGroup &group, ChunkGroup extent,
                         const Values &chains, XChunk &x, unsigned token,
                         Value &sum) {
  Value dot = treeSum(b, chains);
  Value next = group.scale ? b.fma(group.scale, dot, sum) : b.add(sum, dot);
  if (group.minimum)
    next = b.fma(group.minimum, x.sum(token, extent.first, extent.count), next);
  put(sum, next);
}

void LinearKernel::put(Value &sum, Value next) {
  sum = seen ? b.select(seen, next, sum) : next;
}

void LinearKernel::byToken(ArrayRef<WeightChunk> rows, XChunk &x,
                           MutableArrayRef<Value> sums) {
  for (unsigned token = 0; token < spec.tokens; ++token) {
    // Drivers keep this order: a token ahead, the products of one hide how long
    // the numbers of the next take.
    if (token + 1 < spec.tokens)
      x.load(token + 1);
    // Groups have the same extent in every row.
    for (auto [g, extent] : llvm::enumerate(rows[0].groups)) {
      SmallVector<Values> chains(rows.size());
      for (unsigned i = 0; i < extent.count; ++i) {
        Value number = x.number(token, extent.first + i);
        for (auto [r, chunk] : llvm::enumerate(rows))
          extend(chains[r], i, chunk.code(extent.first + i, schedule.prescale),
                 number);
      }
      for (auto [r, chunk] : llvm::enumerate(rows))
        close(chunk.groups[g], extent, chains[r], x, token, sums[at(r, token)]);
    }
    if (spec.ownFactor())
      addSquares(x, token, sums);
  }
}

void LinearKernel::byNumber(ArrayRef<WeightChunk> rows, XChunk &x,
                            MutableArrayRef<Value> sums) {
  // Squares, which are loads of their own, are spread over the chunk.
  int64_t squared = spec.ownFactor() ? 0 : spec.tokens;
  for (auto [g, extent] : llvm::enumerate(rows[0].groups)) {
    SmallVector<Values> chains(rows.size() * size_t(spec.tokens));
    for (unsigned i = 0; i < extent.count; ++i) {
      Values codes;
      for (const WeightChunk &chunk : rows)
        codes.push_back(chunk.code(extent.first + i, schedule.prescale));
      for (unsigned token = 0; token < spec.tokens; ++token) {
        Value number = x.number(token, extent.first + i);
        for (auto [r, code] : llvm::enumerate(codes))
          extend(chains[at(r, token)], i, code, number);
      }
      if (i % 4 == 3 && squared < spec.tokens)
        addSquares(x, unsigned(squared++), sums);
    }
    for (auto [r, chunk] : llvm::enumerate(rows))
      for (unsigned token = 0; token < spec.tokens; ++token)
        close(chunk.groups[g], extent, chains[at(r, token)], x, token,
              sums[at(r, token)]);
  }
  while (squared < spec.tokens)
    addSquares(x, unsigned(squared++), sums);
}

void LinearKernel::addSquares(XChunk &x, unsigned token,
                              MutableArrayRef<Value> sums) {
  Value &squares = sums[at(rowSets.size(), token)];
  put(squares, b.add(squares, x.squares(token)));
}

void LinearKernel::openSpan(Value firstUnit) {
  for (RowSet &set : rowSets)
    set.span = loadSpan(b, set.planes, {set.tile, firstUnit, row}, layout.span);
}

std::vector<LinearKernel::Chunks>
LinearKernel::decode(const BlockWalk::Step &at, unsigned count) {
  Value unit = b.mul(at.block, codec.unitsPerBlock());
  std::vector<Chunks> rows;
  for (RowSet &set : rowSets) {
    UnitReader reader(b, set.planes, {set.tile, unit, row}, binding(kTableRole),
                      set.span, at.within);
    rows.push_back(codec.decode(reader, at.step, count));
  }
  return rows;
}

Value LinearKernel::offsetOf(const WeightChunk &chunk, Value block) {
  Value offset = b.mul(block, codec.blockElements());
  if (chunk.dynamicOffset)
    offset = b.add(offset, chunk.dynamicOffset);
  return b.add(offset, chunk.offset);
}

/// One step of all row sets and tokens.
Values LinearKernel::step(const BlockWalk::Step &at, unsigned count,
                          ValueRange carried) {
  Values sums(carried);
  seen = at.seen;
  std::vector<Chunks> rows = decode(at, count);
  for (unsigned c = 0; c < rows[0].size(); ++c) {
    SmallVector<WeightChunk> chunks;
    for (auto &set : rows)
      chunks.push_back(set[c]);
    bool direct = schedule.x == LinearSchedule::X::Direct;
    XChunk x(*source, offsetOf(chunks[0], at.block), chunks[0].count, c);
    x.load(0);
    if (spec.tokens > 1 && !direct)
      for (WeightChunk &chunk : chunks) {
        // Decode once for all tokens.
        Values codes;
        for (unsigned k = 0; k < chunk.count; ++k)
          codes.push_back(chunk.code(k, schedule.prescale));
        chunk.code = [codes](unsigned k, bool) { return codes[k]; };
      }
    if (direct)
      byNumber(chunks, x, sums);
    else
      byToken(chunks, x, sums);
  }
  return sums;
}

Values LinearKernel::mainLoop() {
  const unsigned whole = codec.blockElements();
  const BlockWalk walk(b, codec, layout, schedule.spans, slice, schedule.split);
  Values sums = walk.run(
      Values(at(rowSets.size() + spec.ownFactor(), 0), b.constant(0.0f)),
      [&](Value first) { openSpan(first); },
      [&](const BlockWalk::Step &at, ValueRange carried) {
        return step(at, whole, carried);
      },
      // One token has few registers and little code: loads of a whole span are
      // under way at once.
      spec.tokens == 1 ? KernelBuilder::Rounds::WriteOut
                       : KernelBuilder::Rounds::KeepLoop);
  unsigned tail = unsigned(spec.k % whole); // plain formats only
  if (!tail)
    return sums;
  const BlockWalk::Step last{b.index(walk.count()), {}, {}, {}};
  if (schedule.split == 1)
    return step(last, tail, sums);
  return b.choose(
      b.equal(slice, b.index(walk.count() % schedule.split)),
      [&] { return step(last, tail, sums); }, [&] { return sums; });
}

void LinearKernel::addSlices(Values &sums) {
  auto split = unsigned(schedule.split);
  Values squares(ArrayRef(sums).drop_front(at(rowSets.size(), 0)));
  sums.truncate(at(rowSets.size(), 0));
  if (split > 1)
    sums = b.reduceAll(sums, split, /*stride=*/8);
  if (!squares.empty())
    sums.append(b.reduceAll(squares, 8 * split, /*stride=*/1));
}

void LinearKernel::store(Value value, unsigned rowSet, unsigned token) {
  Value column = b.add(b.mul(tileOf(rowSet), 8), row);
  Value line = b.add(firstToken, int64_t(token));
  auto write = [&] {
    if (spec.outputs.empty()) {
      int64_t stride = spec.stride ? spec.stride : spec.n;
      Value place = b.add(b.mul(line, stride), column);
      if (spec.residual)
        value = b.add(value, b.load(binding("residual"),
                                    b.add(b.mul(line, spec.n), column)));
      b.store(value, binding("y"), place);
      return;
    }
    int64_t first = 0;
    for (auto [i, rows] : llvm::enumerate(spec.outputs)) {
      Value within = b.sub(
          column, b.index(first)); // wraps below `first`: not less than `rows`
      b.when(b.less(within, rows), [&, i = i, rows = rows] {
        b.store(value, binding("y" + std::to_string(i)),
                b.add(b.mul(line, rows), within));
      });
      first += rows;
    }
  };
  bool guarded = spec.n % (8 * LinearSpec::tilesPerGroup(schedule)) != 0 ||
                 interface.groups[2].fixed > 1;
  if (guarded)
    b.when(b.less(column, spec.n), write);
  else
    write();
}

Values LinearKernel::factors(ValueRange sums) {
  Values list;
  for (unsigned token = 0; spec.norm && token < spec.tokens; ++token) {
    if (!spec.ownFactor()) {
      list.push_back(
          b.load(binding("factor"), b.add(firstToken, int64_t(token))));
      continue;
    }
    list.push_back(rmsFactor(sums[at(rowSets.size(), token)]));
  }
  return list;
}

Value LinearKernel::rmsFactor(Value sumOfSquares) {
  double count = double(spec.count ? spec.count : spec.k);
  Value mean = b.fma(sumOfSquares, b.constant(float(1.0 / count)),
                     b.constant(float(spec.eps)));
  return b.div(b.constant(1.0f), b.sqrt(mean));
}

void LinearKernel::finish(ValueRange sums) {
  Values factor = schedule.matrix ? Values() : factors(sums);
  for (unsigned r = 0; r < schedule.rows; ++r) {
    Value bias;
    if (spec.bias)
      bias = biasOf(r);
    for (unsigned token = 0; token < spec.tokens; ++token) {
      auto scaled = [&](size_t rowSet) {
        Value sum = sums[at(rowSet, token)];
        // Matrices are of f16: there x had its factor before it was rounded.
        bool late = spec.norm && !schedule.matrix;
        return late ? b.mul(sum, factor[token]) : sum;
      };
      Value value = scaled(r);
      if (bias)
        value = b.add(value, bias);
      if (!spec.gate.empty())
        value = b.mul(activate(b, *activationByName(spec.gate), value),
                      scaled(size_t(schedule.rows) + r));
      store(value, r, token);
    }
  }
}

void LinearKernel::build() {
  open();
  if (schedule.matrix) {
    finish(matrixLoop());
    return b.close();
  }
  Values sums = mainLoop();
  addSlices(sums);
  auto end = [&] { spec.append ? finishAppend(sums) : finish(sums); };
  if (schedule.split == 1)
    end();
  else
    b.when(b.equal(slice, b.index(0)), end);
  b.close();
}

Value LinearSpec::tileOf(KernelBuilder &b, const LinearSchedule &schedule,
                         Value set, int64_t r, bool folded) const {
  const int64_t sets = setsOf(schedule);
  Value tile = b.add(set, r * sets);
  // Sets past the last would take the tiles of others.
  return folded ? b.select(b.less(set, sets), tile, b.index(tiles())) : tile;
}

void LinearSpec::build(KernelBuilder &builder,
                       const KernelInterface &interface) const {
  auto unreachable = [&] { return emitError(builder.loc()); };
  FailureOr<LinearSchedule> chosen = schedule(
      builder.target(), unreachable); // made once already for `interface`
  LinearKernel(*this, *chosen, interface, builder).build();
}

} // namespace mlir::llm
