//===- Functions.h - filters, tests, methods and global functions --------===//
#pragma once

#include "runtime/Text/Jinja/Context.h"

namespace sprig::jinja {

Value applyFilter(Context &context, const std::string &name, const Value &input,
                  const Arguments &arguments);
bool applyTest(Context &context, const std::string &name, const Value &input,
               const Arguments &arguments);

/// Whether values of this kind have a method of this name.
bool hasMethod(const Value &value, std::string_view name);
/// Calls a method or a global function.
Value callFunction(Context &context, const Function &function,
                   const Arguments &arguments);
bool isGlobal(std::string_view name);

// The tables that the files of filters and tests add up to.
using FilterCode = Value (*)(Context &, const Value &, const Arguments &);
struct FilterEntry {
  std::string_view name;
  FilterCode code;
};
const FilterEntry *findTextFilter(std::string_view name);
const FilterEntry *findListFilter(std::string_view name);

/// Methods of strings, which several filters share.
Value stringMethod(Context &context, const MarkedText &text,
                   std::string_view name, const Arguments &arguments);
MarkedText changeCase(Context &context, const MarkedText &text,
                      std::string_view how);
MarkedText strip(const MarkedText &text,
                 const std::optional<MarkedText> &characters, bool start,
                 bool end);

} // namespace sprig::jinja
