#include "codegen/Kernels/AttentionLaneReads.h"

#include "codegen/Kernels/AttentionSchedule.h"

namespace mlir::llm {

LaneLoads::LaneLoads(KernelBuilder &b, const AttentionSpec &spec) {
  int64_t all = KvFormat::named(spec.kv).headWords(spec.headSize),
          lanes = b.target().subgroupSize;
  words = std::max<int64_t>(all / lanes, 1);
  sharers = std::max<int64_t>(lanes / all, 1);
  FailureOr<AttentionSchedule> schedule = AttentionSchedule::of(b.target());
  if (spec.readsTexels(b.target()))
    wide = 4;
  else if (succeeded(schedule) && schedule->word == 64 && words % 2 == 0)
    bits = 64;
  while (wide * bits < 128 && words % (2 * unit()) == 0)
    wide *= 2;
}

Type LaneLoads::type(KernelBuilder &b) const {
  Type word = bits == 64 ? b.i64() : b.i32();
  return wide > 1 ? b.vec(wide, word) : word;
}

LaneReader::LaneReader(KernelBuilder &builder, const AttentionSpec &spec,
                       int64_t numbers)
    : AttentionBuilder(builder, spec, builder.target().subgroupSize, numbers),
      loads(builder, spec), lanes(builder.target().subgroupSize),
      lane(builder.localId()) {}

KvScale LaneReader::scale(unsigned binding, Value slot) {
  if (!format.quantised())
    return {};
  // One word of the vector that a load fetches.
  Value group = b.div(lane, int64_t(lanes) / format.groups(spec.headSize));
  Value place = scaleWord(binding, slot, group);
  Values words;
  for (Value wide : b.unpack(
           b.load(scalesOf(binding), b.div(place, loads.unit()))))
    words.append(b.words(wide));
  Value within = b.rem(place, loads.unit()), word = words[0];
  for (size_t i = 1; i < words.size(); ++i)
    word = b.select(b.equal(within, b.index(int64_t(i))), words[i], word);
  return format.scaleOf(b, word);
}

Values LaneReader::words(unsigned binding, Value slot, bool own) {
  int64_t units = loads.words / loads.unit();
  Value head = b.add(b.mul(slot, spec.kvHeads), keyHead);
  if (loads.sharers > 1) {
    Value start = b.add(b.mul(head, int64_t(lanes) / loads.sharers),
                        b.div(lane, loads.sharers));
    Value word = b.load(binding, start);
    return {own ? b.shr(word, before()) : word};
  }
  Value start = b.add(b.mul(head, units * lanes), b.mul(lane, units));
  Values list;
  for (int64_t i = 0; i < units; ++i)
    for (Value wide : b.unpack(b.load(binding, b.add(start, i))))
      list.append(b.words(wide));
  return list;
}

Value LaneReader::before() {
  return b.toI32(
      b.mul(b.rem(lane, loads.sharers), numbers * int64_t(format.bits)));
}

Values LaneReader::unpack(ValueRange words) {
  Values list;
  for (Value word : words)
    list.append(format.unpack(b, word, {},
                              loads.sharers > 1 ? unsigned(numbers) : 0));
  return list;
}

Values LaneReader::load(unsigned binding, Value slot) {
  return unpack(words(binding, slot, /*own=*/true));
}

Value LaneReader::touch(Value start) {
  constexpr int64_t kLineWords = 16;
  const int64_t headWords = format.headWords(spec.headSize);
  Value head =
      b.add(b.mul(slotOf(b.add(start, lane)), spec.kvHeads), keyHead);
  Value all;
  for (unsigned side : {AttentionSlots::keys, AttentionSlots::values})
    for (int64_t word = 0; word < headWords; word += kLineWords) {
      Value at = b.add(b.mul(head, headWords / loads.unit()),
                       word / loads.unit());
      Value own = b.words(b.unpack(b.load(side, at))[0])[0];
      all = all ? b.bitOr(all, own) : own;
    }
  return all;
}

} // namespace mlir::llm
