// The main loop of a linear kernel by cooperative matrices.
//
// For each chunk of 32 numbers of K: every lane dequantises its own rows into
// shared memory, the workgroup brings x there, and each subgroup multiplies.
// Lines in shared memory are padded by 16 bytes, so that the lines of a matrix
// do not fall into the same banks.
#include "codegen/Kernels/LinearKernel.h"

namespace mlir::llm {
namespace {

constexpr int64_t kLine = kChunk + 8; // f16 numbers
constexpr int64_t kSumPad = 4;        // f32 numbers behind a line of sums

/// The shapes of what a kernel keeps in shared memory.
struct Shapes {
  Shapes(const LinearSpec &spec, const LinearSchedule &schedule,
         const TargetProfile &profile)
      : sets(profile.subgroupSize / 8), subgroups(schedule.waves / sets),
        rows(sets * schedule.rows * 8), weights(spec.gate.empty() ? 1 : 2),
        tokens(spec.tokens) {}
  int64_t sets;      ///< of eight lanes, in a subgroup
  int64_t subgroups; ///< in the workgroup
  int64_t rows;      ///< of each weight, in a subgroup
  int64_t weights, tokens;

  int64_t lines() const { return subgroups * weights * rows; }
  int64_t sumLine() const { return weights * rows + kSumPad; }
};

/// What no number of f16 lies beyond.
constexpr float kLargest = 65504.0f;

} // namespace

uint32_t LinearSpec::matrixBytes(const LinearSchedule &schedule,
                                 const TargetProfile &profile) const {
  Shapes shapes(*this, schedule, profile);
  return uint32_t((shapes.lines() + tokens) * kLine * 2 +
                  shapes.subgroups * tokens * shapes.sumLine() * 4);
}

SmallVector<LinearKernel::XItem> LinearKernel::itemsOfX(Value lane) {
  const int64_t quads = kChunk / 4,
                invocations = interface.workgroup[0];
  SmallVector<XItem> items;
  for (int64_t first = 0; first < spec.tokens * quads; first += invocations) {
    Value place = b.add(lane, first);
    if (first + invocations > spec.tokens * quads) // nobody stores these
      place = b.min(place, b.index(spec.tokens * quads - 1));
    XItem &item = items.emplace_back();
    item.token = b.add(firstToken, b.div(place, quads));
    item.quad = b.rem(place, quads);
    if (spec.norm && !spec.ownFactor())
      item.factor = b.load(binding("factor"), item.token);
    if (!spec.ownFactor())
      continue;
    // Eight lanes go through the row, a quad each.
    Values sum = b.loop(
        item.quad, b.index(spec.k / 4), b.index(quads), {b.constant(0.0f)},
        [&](Value i, ValueRange carried) {
          Value at = b.add(b.mul(item.token, spec.k / 4), i);
          Value squares = carried[0];
          for (Value number : b.unpack(b.load(binding("x"), at)))
            squares = b.fma(number, number, squares);
          return Values{squares};
        });
    item.factor = rmsFactor(b.reduce(sum[0], quads));
  }
  return items;
}

void LinearKernel::stageX(ArrayRef<XItem> items, Value lane, Value offset,
                          unsigned count, Value shared) {
  const int64_t quads = kChunk / 4;
  for (auto [i, item] : llvm::enumerate(items)) {
    int64_t first = int64_t(i) * interface.workgroup[0];
    auto stage = [&, &item = item] {
      bool whole = count == kChunk;
      Value quad =
          whole ? item.quad : b.min(item.quad, b.index(count / 4 - 1));
      Value column = b.add(b.div(offset, 4), quad);
      Values x = b.unpack(b.load(
          binding("x"), b.add(b.mul(item.token, spec.k / 4), column)));
      Values gamma;
      if (spec.norm)
        gamma = b.unpack(b.load(binding("gamma"), column));
      Value line = b.mul(b.div(b.add(lane, first), quads), kLine);
      Value place = b.add(line, b.mul(item.quad, 4));
      for (unsigned j = 0; j < 4; ++j) {
        Value number = x[j];
        if (spec.norm)
          number = b.mul(b.mul(number, gamma[j]), item.factor);
        number = b.max(b.min(number, b.constant(kLargest)),
                       b.constant(-kLargest));
        if (!whole)
          number = b.select(b.less(item.quad, count / 4), number,
                            b.constant(0.0f));
        b.store(b.toF16(number), shared, b.add(place, int64_t(j)));
      }
    };
    if (first + interface.workgroup[0] > spec.tokens * quads)
      b.when(b.less(b.add(lane, first), spec.tokens * quads), stage);
    else
      stage();
  }
}

void LinearKernel::stageRow(const WeightChunk &chunk, Value line,
                            Value shared) {
  for (unsigned k = 0; k < kChunk; ++k) {
    Value number = b.constant(0.0f);
    if (k < chunk.count) {
      const ChunkGroup *group =
          llvm::find_if(chunk.groups, [&](const ChunkGroup &each) {
            return each.first <= k && k < each.first + each.count;
          });
      number = chunk.code(k, /*scaled=*/false);
      if (group->scale && group->minimum)
        number = b.fma(group->scale, number, group->minimum);
      else if (group->scale)
        number = b.mul(group->scale, number);
    }
    b.store(b.toF16(number), shared, b.add(line, int64_t(k)));
  }
}

Values LinearKernel::matrixLoop() {
  const Shapes shapes(spec, schedule, b.target());
  Value weights = b.shared(b.f16(), shapes.lines() * kLine);
  Value x = b.shared(b.f16(), shapes.tokens * kLine);
  Value results = b.shared(b.f32(), shapes.subgroups * shapes.tokens *
                                        shapes.sumLine());
  Value lane = b.localId();
  Value subgroup = b.div(lane, 8 * shapes.sets);
  Value firstLine = b.mul(subgroup, shapes.weights * shapes.rows);
  Value set = b.rem(b.div(lane, 8), shapes.sets);
  // Line of a row set within the subgroup's lines.
  auto lineOf = [&](size_t rowSet) {
    int64_t weight = int64_t(rowSet) / schedule.rows,
            r = int64_t(rowSet) % schedule.rows;
    Value tile = b.add(b.mul(set, schedule.rows), r);
    return b.add(b.add(b.mul(tile, 8), row), weight * shapes.rows);
  };
  SmallVector<XItem> items = itemsOfX(lane);

  const int64_t down = shapes.tokens / kMatrix,
                across = shapes.weights * shapes.rows / kMatrix;
  auto multiply = [&](ValueRange carried) {
    Values sums(carried);
    for (int64_t k = 0; k < kChunk; k += kMatrix) {
      Values left;
      for (int64_t i = 0; i < down; ++i)
        left.push_back(b.loadMatrix(KernelBuilder::MatrixUse::A, x,
                                    b.index(i * kMatrix * kLine + k), kLine));
      for (int64_t j = 0; j < across; ++j) {
        Value line = b.add(firstLine, j * kMatrix);
        Value right = b.loadMatrix(KernelBuilder::MatrixUse::B, weights,
                                   b.add(b.mul(line, kLine), k), kLine);
        for (int64_t i = 0; i < down; ++i) {
          Value &sum = sums[size_t(j * down + i)];
          sum = b.multiplyAdd(left[size_t(i)], right, sum);
        }
      }
    }
    return sums;
  };
  auto body = [&](const BlockWalk::Step &at, unsigned count,
                  ValueRange carried) {
    Values sums(carried);
    std::vector<Chunks> rows = decode(at, count);
    for (unsigned c = 0; c < rows[0].size(); ++c) {
      b.barrier(); // what is there has been multiplied
      for (auto [r, chunks] : llvm::enumerate(rows))
        stageRow(chunks[c],
                 b.mul(b.add(firstLine, lineOf(r)), kLine), weights);
      stageX(items, lane, offsetOf(rows[0][c], at.block), rows[0][c].count, x);
      b.barrier();
      sums = multiply(sums);
    }
    return sums;
  };
  Values sums;
  for (int64_t i = 0; i < down * across; ++i)
    sums.push_back(b.zeroMatrix());
  const unsigned whole = codec.blockElements();
  const BlockWalk walk(b, codec, layout, /*spans=*/false, slice, /*split=*/1);
  sums = walk.run(
      sums, [](Value) {},
      [&](const BlockWalk::Step &at, ValueRange carried) {
        return body(at, whole, carried);
      });
  if (unsigned tail = unsigned(spec.k % whole))
    sums = body({b.index(walk.count()), {}, {}, {}}, tail, sums);

  // A lane takes the sums of its own rows.
  Value firstSum = b.mul(subgroup, shapes.tokens * shapes.sumLine());
  for (int64_t j = 0; j < across; ++j)
    for (int64_t i = 0; i < down; ++i)
      b.storeMatrix(sums[size_t(j * down + i)], results,
                    b.add(firstSum, i * kMatrix * shapes.sumLine() +
                                        j * kMatrix),
                    shapes.sumLine());
  b.barrier();
  Values mine;
  for (size_t r = 0; r < rowSets.size(); ++r)
    for (int64_t token = 0; token < spec.tokens; ++token)
      mine.push_back(b.load(
          results, b.add(b.add(firstSum, token * shapes.sumLine()),
                         lineOf(r))));
  return mine;
}

} // namespace mlir::llm
