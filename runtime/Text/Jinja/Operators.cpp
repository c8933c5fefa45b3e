#include "runtime/Text/Jinja/Operators.h"
#include "runtime/Text/Jinja/Format.h"
#include "runtime/Text/Jinja/Unicode.h"

#include <cmath>

namespace sprig::jinja {
namespace {

[[noreturn]] void unsupported(Context &context, std::string_view op,
                              const Value &a, const Value &b) {
  context.fail("'" + std::string(op) + "' does not take '" + typeName(a) +
               "' and '" + typeName(b) + "'");
}

[[noreturn]] void tooLarge(Context &context) {
  context.fail("expects integers of at most 64 bits; the result is larger");
}

Value integerPower(Context &context, int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t out = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(out, base, &out))
      tooLarge(context);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      tooLarge(context);
  }
  return Value(out);
}

Value integers(Context &context, std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &out);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &out);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &out);
  else if (op == "**")
    return integerPower(context, a, b);
  else if (b == 0)
    context.fail("division by zero");
  else if (op == "/")
    return Value(static_cast<double>(a) / static_cast<double>(b));
  else if (b == -1) // INT64_MIN / -1 traps
    overflow = op == "//" && __builtin_sub_overflow(int64_t(0), a, &out);
  else { // Python rounds towards minus infinity
    const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
    out = op == "//" ? quotient : a - quotient * b;
  }
  if (overflow)
    tooLarge(context);
  return Value(out);
}

Value reals(Context &context, std::string_view op, double a, double b) {
  if (op == "+")
    return Value(a + b);
  if (op == "-")
    return Value(a - b);
  if (op == "*")
    return Value(a * b);
  if (op == "**")
    return Value(std::pow(a, b));
  if (b == 0)
    context.fail("division by zero");
  if (op == "/")
    return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  return op == "//" ? Value(std::floor((a - rest) / b + 0.5)) : Value(rest);
}

Value repeat(Context &context, const Value &value, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  const List *list = value.list();
  const uint64_t unit =
      list ? list->items.size() * sizeof(Value) : value.string()->size();
  if (unit > 0 && times > context.limits.bytes / unit)
    context.charge(context.limits.bytes + 1); // fails
  context.step(unit > 0 ? times / 16 : 0);
  if (list) {
    std::vector<Value> items;
    for (uint64_t i = 0; unit > 0 && i < times; ++i)
      items.insert(items.end(), list->items.begin(), list->items.end());
    return context.list(std::move(items), list->tuple);
  }
  MarkedText out;
  context.charge(unit * times);
  for (uint64_t i = 0; unit > 0 && i < times; ++i)
    out.append(*value.string());
  return Value(std::move(out));
}

} // namespace

const char *typeName(const Value &value) {
  static constexpr const char *names[] = {
      "Undefined", "NoneType", "bool",     "int",       "float", "str",
      "list",      "dict",     "function", "Namespace", "macro", "LoopContext"};
  if (value.list() && value.list()->tuple)
    return "tuple";
  const bool is[] = {value.isUndefined(),
                     value.isNone(),
                     value.as<bool>() != nullptr,
                     value.as<int64_t>() != nullptr,
                     value.as<double>() != nullptr,
                     value.string() != nullptr,
                     value.list() != nullptr,
                     value.dict() != nullptr,
                     value.as<FunctionRef>() != nullptr,
                     value.as<Namespace *>() != nullptr,
                     value.as<Macro *>() != nullptr,
                     value.as<Loop *>() != nullptr};
  for (size_t i = 0; i < std::size(is); ++i)
    if (is[i])
      return names[i];
  return "object";
}

bool truth(const Value &value) {
  if (value.isUndefined() || value.isNone())
    return false;
  if (value.isNumber())
    return *value.number() != 0;
  if (value.string())
    return !value.string()->empty();
  if (value.list())
    return !value.list()->items.empty();
  return !value.dict() || !value.dict()->items.empty();
}

bool equals(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.integer() && b.integer() ? *a.integer() == *b.integer()
                                      : *a.number() == *b.number();
  if (a.string() && b.string())
    return a.string()->str() == b.string()->str();
  if (a.list() && b.list()) {
    const List &x = *a.list(), &y = *b.list();
    if (x.tuple != y.tuple || x.items.size() != y.items.size())
      return false;
    for (size_t i = 0; i < x.items.size(); ++i)
      if (!equals(x.items[i], y.items[i]))
        return false;
    return true;
  }
  if (a.dict() && b.dict()) {
    const Dict &x = *a.dict(), &y = *b.dict();
    if (x.items.size() != y.items.size())
      return false;
    for (const auto &[key, value] : x.items) {
      const Value *other = key.string() ? y.find(key.string()->str()) : nullptr;
      for (size_t i = 0; !key.string() && !other && i < y.items.size(); ++i)
        if (equals(y.items[i].first, key))
          other = &y.items[i].second;
      if (!other || !equals(value, *other))
        return false;
    }
    return true;
  }
  if (a.as<Namespace *>() && b.as<Namespace *>())
    return *a.as<Namespace *>() == *b.as<Namespace *>();
  return (a.isNone() && b.isNone()) || (a.isUndefined() && b.isUndefined());
}

int order(Context &context, const Value &a, const Value &b, const char *op) {
  context.step();
  if (a.integer() && b.integer())
    return *a.integer() < *b.integer() ? -1 : *a.integer() > *b.integer();
  if (a.isNumber() && b.isNumber())
    return *a.number() < *b.number() ? -1 : *a.number() > *b.number();
  if (a.string() && b.string())
    return a.string()->str().compare(b.string()->str());
  if (!a.list() || !b.list() || a.list()->tuple != b.list()->tuple)
    unsupported(context, op, a, b);
  const auto &x = a.list()->items, &y = b.list()->items;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (!equals(x[i], y[i]))
      return order(context, x[i], y[i], op);
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

bool contains(Context &context, const Value &container, const Value &item) {
  if (const MarkedText *text = container.string()) {
    if (!item.string())
      unsupported(context, "in", item, container);
    context.step(text->size() / 64);
    return text->str().find(item.string()->str()) != std::string::npos;
  }
  if (const Dict *dict = container.dict(); dict && item.string())
    return dict->find(item.string()->str()) != nullptr;
  for (const Value &value : each(context, container)) {
    context.step();
    if (equals(value, item))
      return true;
  }
  return false;
}

Value binary(Context &context, std::string_view op, const Value &a,
             const Value &b) {
  for (const Value *side : {&a, &b})
    if (side->isUndefined())
      (void)item(context, *side,
                 Value(int64_t(0))); // fails, and says what is undefined
  if (a.integer() && b.integer())
    return integers(context, op, *a.integer(), *b.integer());
  if (a.isNumber() && b.isNumber())
    return reals(context, op, *a.number(), *b.number());
  if (op == "%" && a.string())
    return formatPercent(context, *a.string(), b);
  if (op == "*" && (a.string() || a.list()) && b.integer())
    return repeat(context, a, *b.integer());
  if (op == "*" && (b.string() || b.list()) && a.integer())
    return repeat(context, b, *a.integer());
  if (op == "+" && a.string() && b.string()) {
    context.charge(a.string()->size() + b.string()->size() + 64);
    MarkedText out = *a.string();
    out.append(*b.string());
    return Value(std::move(out));
  }
  if (op == "+" && a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    std::vector<Value> items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return context.list(std::move(items), a.list()->tuple);
  }
  unsupported(context, op, a, b);
}

Value negate(Context &context, const Value &value) {
  if (value.as<double>())
    return Value(-*value.as<double>());
  if (!value.integer())
    context.fail(std::string("'-' does not take '") + typeName(value) + "'");
  return integers(context, "-", 0, *value.integer());
}

} // namespace sprig::jinja
