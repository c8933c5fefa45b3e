#include "codegen/Kernels/AttentionSchedule.h"

namespace mlir::llm {

FailureOr<AttentionSchedule>
AttentionSchedule::from(const TargetProfile &profile, EmitError emitError) {
  AttentionSchedule schedule;
  const ScheduleValues *choices = profile.findSchedule("attention", {});
  if (!choices)
    return schedule;
  auto refuse = [&](const Twine &message) -> FailureOr<AttentionSchedule> {
    return emitError() << "schedule of attention on target '" << profile.name
                       << "' " << message.str();
  };
  struct {
    StringRef name;
    int64_t *into;
    int64_t least, most;
  } numbers[] = {{"numbers", &schedule.numbers, 1, 1 << 16},
                 {"deep_numbers", &schedule.deepNumbers, 0, 1 << 16},
                 {"code_numbers", &schedule.codeNumbers, 0, 1 << 16},
                 {"group_numbers", &schedule.groupNumbers, 0, 1 << 16},
                 {"groups", &schedule.groups, 1, 1 << 16},
                 {"append", &schedule.append, 0, 1},
                 {"texels", &schedule.texels, 0, 1},
                 {"touch", &schedule.touch, 0, 1},
                 {"word", &schedule.word, 32, 64}};
  for (const auto &[name, value] : *choices) {
    auto *known = llvm::find_if(numbers, [&, &key = name](const auto &number) {
      return number.name == key;
    });
    if (known == std::end(numbers))
      return refuse("has an unknown choice '" + name + "'");
    const auto *number = std::get_if<int64_t>(&value);
    if (!number || *number < known->least || *number > known->most)
      return refuse("expects " + name + " to be a number from " +
                    Twine(known->least) + " to " + Twine(known->most));
    *known->into = *number;
  }
  if (schedule.word != 32 && schedule.word != 64)
    return refuse("expects word to be 32 or 64, but got " +
                  Twine(schedule.word));
  if (schedule.word == 64 && !profile.has(Feature::ShaderInt64))
    return refuse("expects shader_int64 for words of 64 bits");
  return schedule;
}

} // namespace mlir::llm
