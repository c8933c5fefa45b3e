//===- Commands.h - what a program does, in order
//----------------------------===//
#pragma once

#include "runtime/Format/Package_generated.h"

namespace sprig {

/// The commands of a program. It has their numbers alone: a target stores equal
/// commands once, and small numbers pack better than the offsets by which
/// tables refer to each other. Both have to outlive the range, and to be
/// verified (Verify.h): no number is looked at again.
class CommandRange {
public:
  class Iterator {
  public:
    Iterator(const format::Target &target, const format::Program &program,
             uint32_t index)
        : target(&target), program(&program), index(index) {}
    const format::Command *operator*() const {
      return target->commands()->Get(program->commands()->Get(index));
    }
    Iterator &operator++() {
      ++index;
      return *this;
    }
    bool operator==(const Iterator &other) const {
      return index == other.index;
    }

  private:
    const format::Target *target;
    const format::Program *program;
    uint32_t index;
  };

  CommandRange(const format::Target &target, const format::Program &program)
      : target(target), program(program) {}
  Iterator begin() const { return {target, program, 0}; }
  Iterator end() const { return {target, program, size()}; }
  uint32_t size() const { return program.commands()->size(); }

private:
  const format::Target &target;
  const format::Program &program;
};

/// What a dispatch of the target is for; empty where nobody said.
inline std::string_view labelOf(const format::Target &target,
                                const format::Dispatch &dispatch) {
  return dispatch.label() == 0
             ? std::string_view()
             : target.labels()->Get(dispatch.label() - 1)->string_view();
}

inline CommandRange commandsOf(const format::Target &target,
                               const format::Program &program) {
  return {target, program};
}

} // namespace sprig
