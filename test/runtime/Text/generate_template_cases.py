#!/usr/bin/env python3
"""Writes template_cases.json: small templates and what Jinja (3.1.6 made the committed file) makes
of them, set up as Hugging Face's tokenizers set it up.

    pip install jinja2
    python3 test/runtime/Text/generate_template_cases.py
"""
import json
import pathlib

from jinja2 import ext
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <b>there</b> & \"you\" caf\u00e9\n  two\n\nlines "},
        {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "f", "arguments": {"x": 1, "y": [True, None, 2.5]}}}]},
        {"role": "tool", "content": "42"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
    ],
    "n": 7, "f": 2.5, "s": "Hello, World", "u": "\u00e9\u4e2d\U0001f600x", "empty": "", "t": True, "none": None,
    "l": [3, 1, 2], "names": ["bob", "Al", "cy"], "d": {"b": 2, "a": 1, "items": 3},
    "rows": [{"k": "x", "v": 2}, {"k": "Y", "v": 1}, {"k": "X", "v": 3}, {"v": 4}],
}

TEMPLATES = r"""
a {{ n }} b
{{- n -}}   x   {{ n }}
  {% if t %}
yes
  {% endif %}
tail
====
  {%- if t -%}
    yes
  {%- endif -%}
  tail
====
x {% if t %}y{% endif %} z
====
{% for i in l %}
  {{ i }}
{% endfor %}
====
{% for i in l -%}
  {{ i }}
{%- endfor %}
====
  {%+ if t %}a{% endif +%}
b
====
{# comment #}
a
  {# comment #}
b {#- dash -#}  c
====
{% raw %}{{ not }} {% even %}{% endraw %}!
====
  {%- raw -%}  {{ x }}  {%- endraw -%}  y
====
{{ "a\n\t\"\\\x41\u00e9\101\q" }}|{{ 'it''s' }}
====
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }}
====
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 3 }} {{ 1e20 }} {{ 1e15 }} {{ 123456789.123 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 100.0 }}
====
{{ 1 ~ "a" ~ 2.0 ~ none ~ true }} {{ "1" + 2 ~ 3 }} {{ "ab" * 3 }} {{ [1] * 2 + [2] }}
====
{{ 1 < 2 < 3 }} {{ 3 > 2 >= 2 }} {{ 1 == 1.0 }} {{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ 1 != 2 }} {{ true == 1 }}
====
{{ 2 in l }} {{ 5 not in l }} {{ "ell" in s }} {{ "a" in d }} {{ not 2 in l }} {{ "z" not in "xyz" }}
====
{{ not t and n or "x" }} {{ empty or "dflt" }} {{ n and "y" }} {{ not not n }} {{ none or none }}
====
{{ "a" if t else "b" }}{{ "c" if not t }}{{ "d" if not t else "e" if n == 7 else "g" }}
====
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[::-1] }} {{ l[:-1] }} {{ s[1:5:2] }} {{ s[-3:] }} {{ u[1] }} {{ u[::-1] }} {{ u[1:3] }} {{ l[5:] }} {{ s[10:2:-3] }}
====
{{ d.a }} {{ d["b"] }} {{ d.items() | list }} {{ d["items"] }} {{ d.get("z") }} {{ d.get("z", 4) }} {{ d.keys() | list }} {{ d.values() | list }}
====
{{ d.zz is defined }} {{ zz is defined }} {{ zz is not defined }} {{ n is defined and n > 3 }} {{ d.zz }}|{{ zz }}|{{ l[9] }}
====
{{ messages[0]["role"] }} {{ messages[2].tool_calls[0].function.name }} {{ messages[0]["nothing"] is defined }}
====
{{ [1, "a", none, 2.0, {"k": (1,)}, "it's", "q\"q'"] }} {{ {} }} {{ () }} {{ (1, 2) }} {{ "x\ny" | list }}
====
{{ s | upper }} {{ s | lower }} {{ "hELLO wORLD-foo (bar" | title }} {{ "hELLO wORLD" | capitalize }} {{ s | length }} {{ u | length }}
====
[{{ "  x y " | trim }}] [{{ "xxaxx" | trim("x") }}] {{ s | replace("l", "L") }} {{ s | replace("l", "L", 1) }} {{ "aaa" | replace("", "-") }}
====
{{ l | sort }} {{ l | sort(reverse=true) }} {{ names | sort }} {{ names | sort(case_sensitive=true) }} {{ rows | map(attribute="v") | sort | list }} {{ rows | sort(attribute="v", reverse=true) | map(attribute="v") | list }}
====
{{ l | join }} {{ l | join("-") }} {{ rows | join(",", attribute="v") }} {{ "-".join(names) }} {{ names | join(", ") | upper }}
====
{{ l | first }} {{ l | last }} {{ l | max }} {{ l | min }} {{ l | sum }} {{ rows | sum(attribute="v") }} {{ l | reverse | list }} {{ "abc" | reverse }} {{ [] | first is defined }}
====
{{ rows | groupby("v") | length }} {% for k, g in rows[:3] | groupby("k") %}{{ k }}={{ g | map(attribute="v") | list }};{% endfor %}
====
{{ l | select("odd") | list }} {{ l | reject("odd") | list }} {{ l | select("gt", 1) | list }} {{ [0, 1, "", "a"] | select | list }} {{ rows | selectattr("k", "defined") | list | length }} {{ rows | rejectattr("k", "defined") | list }} {{ rows | selectattr("v", "ge", 3) | map(attribute="v") | list }}
====
{{ names | map("upper") | list }} {{ names | map("replace", "b", "B") | list }} {{ rows | map(attribute="k", default="?") | list }} {{ messages | map(attribute="role") | unique | list }} {{ ["b", "B", "a"] | unique | list }}
====
{{ d | dictsort }} {{ d | dictsort(reverse=true) }} {{ d | dictsort(by="value") }} {{ d | items | list }} {{ d | length }} {{ d | list }}
====
{{ l | batch(2) | list }} {{ l | batch(2, "x") | list }} {{ "%s is %5.2f %d%% %-4s|%04d|%x" | format("pi", 3.14159, 50, "ab", 42, 255) }} {{ "%s" % "x" }} {{ "%5s|%+d" % ("a", 3) }}
====
{{ "42" | int + 1 }} {{ "3.7" | int }} {{ "x" | int }} {{ "x" | int(5) }} {{ "ff" | int(base=16) }} {{ "2.5" | float }} {{ 3.99 | int }} {{ "1e3" | float }} {{ true | int }} {{ -3 | abs }}
====
{{ 42.55 | round }} {{ 42.55 | round(1) }} {{ 2.5 | round }} {{ 2.675 | round(2) }} {{ 42.1 | round(method="ceil") }} {{ 42.9 | round(0, "floor") }} {{ 42.55 | round | int }}
====
{{ zz | default("d") }} {{ empty | default("d") }} {{ empty | default("d", true) }} {{ none | d("x", boolean=true) }} {{ n | default(1) }} {{ zz | d }}|
====
{{ messages[1].content | indent }}|{{ messages[1].content | indent(2, true) }}|{{ "a\n\nb" | indent(1, blank=true) }}|{{ "a\nb" | indent("> ") }}
====
{{ messages[2] | tojson }} {{ messages[1].content | tojson }} {{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {} | tojson }} {{ "\u00e9</x>'" | tojson }} {{ [1.0, 1e100, true, none] | tojson }} {{ d | tojson(sort_keys=true, separators=(",", ":")) }} {{ "\u00e9\U0001f600" | tojson(ensure_ascii=true) }} {{ {1: 2, none: 3, true: 4} | tojson }}
====
{{ s.split(", ") }} {{ " a  b ".split() }} {{ "a,b,,c".split(",") }} {{ "a,b,c".split(",", 1) }} {{ "a,b,c".rsplit(",", 1) }} {{ "a\nb\r\nc\n".splitlines() }} {{ "a b c".split(maxsplit=1) }} {{ " a b c ".rsplit(none, 1) }}
====
[{{ " x ".strip() }}] [{{ " x ".lstrip() }}] [{{ " x ".rstrip() }}] {{ "xyzx".strip("x") }} {{ "xyzx".lstrip("xy") }} {{ s.startswith("Hell") }} {{ s.endswith(("d", "x")) }} {{ s.find("o") }} {{ s.rfind("o") }} {{ s.find("zz") }} {{ s.count("l") }} {{ u.find("x") }}
====
{{ "abc".upper() }} {{ "ABC".lower() }} {{ "they're bill's".title() }} {{ "aBc".swapcase() }} {{ "abc".capitalize() }} {{ "\u00df".upper() }} {{ "7".zfill(3) }} {{ "-7".zfill(4) }} {{ "a".ljust(3) }}| {{ "a".rjust(3, "*") }} {{ "ab".center(5) }}| {{ "abc".center(6, "-") }}
====
{{ "a=b=c".partition("=") }} {{ "a=b=c".rpartition("=") }} {{ "abc".partition("x") }} {{ "abc".removeprefix("a") }} {{ "abc".removesuffix("c") }} {{ "123".isdigit() }} {{ "ab".isalpha() }} {{ "a1".isalnum() }} {{ " ".isspace() }} {{ "".isdigit() }} {{ "AB1".isupper() }}
====
{% for m in messages %}{{ loop.index }}/{{ loop.length }}:{{ loop.index0 }}:{{ loop.revindex }}:{{ loop.first }}:{{ loop.last }}:{{ loop.previtem.role if loop.previtem is defined }}:{{ loop.nextitem.role if loop.nextitem is defined }};{% endfor %}
====
{% for i in [] %}x{% else %}none{% endfor %}{% for i in l if i > 1 %}{{ loop.index }}{{ i }},{% else %}no{% endfor %}{% for i in l if i > 9 %}{{ i }}{% else %}no{% endfor %}
====
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
====
{% for i in l %}{% for j in range(i) %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }};{% endfor %}{{ loop is defined }}
====
{% for c in "héy" %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}
====
{% for i in range(4) %}{{ loop.cycle("a", "b", "c") }}{% endfor %} {% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %} {{ range(2, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }}
====
{% set x = 1 %}{% for i in l %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}
====
{% set ns = namespace(n=0, found=false) %}{% for i in l %}{% set ns.n = ns.n + i %}{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }} {{ ns.zz is defined }}
====
{% if n > 10 %}a{% elif n > 5 %}b{% elif n > 1 %}c{% else %}d{% endif %}{% if zz %}x{% endif %}{% if not zz %}y{% endif %}
====
{% set x %}a {{ n }} b{% endset %}[{{ x }}]{% set y | upper | trim %} q {% endset %}[{{ y }}]
====
{% macro m(a, b="x", c=none) %}<{{ a }},{{ b }},{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(1, c=3) }}{{ m(b=1, a=2) }}{{ m() }}
====
{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}{% macro fact(k) %}{{ 1 if k <= 1 else k * fact(k - 1) | int }}{% endmacro %}{{ fact(5) }}
====
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=3) }}{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box("a") %}body {{ n }}{% endcall %}
====
{% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) each(l) %}<{{ x }}>{% endcall %}
====
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}{% filter upper %}abc {{ s }}{% endfilter %}
====
{{ 1 is integer }} {{ 1.0 is float }} {{ "a" is string }} {{ l is sequence }} {{ d is mapping }} {{ d is iterable }} {{ n is number }} {{ t is boolean }} {{ none is none }} {{ t is true }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ n is eq 7 }} {{ n is gt(3) }} {{ "a" is in "abc" }} {{ "AB" is upper }} {{ 1 is sameas 1 }} {{ n is ne 7 }} {{ true is integer }} {{ "x" is callable }} {{ 5 is not none }}
====
{{ "<a href='x'>&" | escape }} {{ "abc def ghi" | truncate(7) }} {{ "abc def ghi" | truncate(7, true) }} {{ "abc def" | truncate(7) }} {{ "a b  c" | wordcount }} {{ 5 | string + "x" }} {{ "x" | center(5) }}| {{ l | count }}
====
{{ {"a": 1, "b": {"c": [1, 2]}}.b.c[1] }} {{ {"a": 1}["a"] }} {{ dict(x=1, y=2) }} {{ [[1, 2], [3]] | map("length") | list }} {{ ([1, 2] | first) + 1 }} {{ (1, 2) + (3,) }} {{ [] == [] }} {{ {"a": 1} == {"a": 1.0} }} {{ l.index(1) }} {{ l.count(3) }}
====
{{ messages | selectattr("role", "equalto", "user") | map(attribute="content") | first | length }} {{ messages[2:3] | map(attribute="tool_calls.0.function.name") | select("defined") | list }} {{ rows | map(attribute="k") | select("string") | map("lower") | unique | list }}
====
{% for m in messages %}{% if m.content is string %}{{ m.content | trim }}{% elif m.content is iterable %}{% for p in m.content %}{{ p.text if p.type == "text" else "<img>" }}{% endfor %}{% endif %};{% endfor %}
====
{{ "a" "b" 'c' }} {{ "%%" % () }} {{ n|string|length }} {{ -n }} {{ +n }} {{ - -n }} {{ (n) }} {{ ((n)) * 2 }} {{ n if n }} {{ 10 - 2 - 3 }} {{ 100 // 7 // 2 }} {{ 2 * 3 % 4 }}
====
{{ "a,b" | replace(",", ";") | upper | list | join("|") }} {{ "ab" in ["ab"] and "c" not in "ab" }} {{ l | length > 2 and (l | first) == 3 }} {{ -1 | abs }} {{ l[0] - 1 }} {{ l[n - 6] }} {{ "x" ~ l | length }}
====
{{ "héy" | map("upper") | list }} {{ "abc" | join("-") }} {{ d | join(",") }} {{ "ab" | select("equalto", "a") | list }} {{ "cab" | sort | list }} {{ d | map("upper") | list }} {{ "aab" | unique | list }} {{ "abc" | batch(2) | list }} {{ "aXb" | max }} {{ zz | map("upper") | list }} {{ zz | join }} {{ zz | list }} {{ d | sort }} {{ 1 in {1: 2} }} {{ 2 in {1: 2} }} {{ "abc" | first }}{{ d | first }}{{ "abc" | last }} {{ "a" in zz }}
====
{% generation %}gen {{ n }}{% endgeneration %}
====
line one   
{%- if t %}

  kept
{% endif -%}

end

====
{% if t %}  
a
  {% endif %}  
b
====
	{% set q = 3 %}	
{{ q }}
====
{{ raise_exception("stop " ~ n) }}
====
{{ messages | map(attribute="tool_calls.0.function.name") | list }}
====
{{ 1 + 2 ~ 3 }}
====
{{ zz.a }}
====
{{ none.a.b }}
====
{{ zz + 1 }}
====
{{ "a" + 1 }}
====
{{ 1 / 0 }}
====
{{ "a" < 1 }}
====
{{ l | nofilter }}
====
{{ l is notest }}
====
{{ n() }}
====
{{ zz() }}
====
{% for i in n %}{% endfor %}
====
{% for i in none %}{% endfor %}
====
{{ l.append(4) }}
====
{{ d.update({"x": 1}) }}
====
{{ s.__class__ }}|{{ s.__class__.__mro__ }}
====
{% if t %}a
====
{% endif %}
====
{{ n
====
{{ (n }}
====
{{ n n }}
====
{% for %}{% endfor %}
====
{% set 1 = 2 %}
====
{% nonsense %}
====
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
====
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
====
{% set d.x = 1 %}
====
{{ "abc" | join(1, 2, 3, 4) }}
====
{% for a, b in [(1, 2, 3)] %}{% endfor %}
====
{{ {"a": [1]}[["x"]] }}
====
{{ range(10 ** 9) }}
====
{{ {[1]: 2} }}
====
{{ "%d" % "x" }}
====
{{ "%s %s" % "x" }}
====
{{ "x" | tojson(indent=2, bogus=1) }}
====
{% break %}
====
{{ }}
====
{{ 'a
====
{# open
"""


class Generation(ext.Extension):
    """The tag that marks an assistant's words; it writes its body."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    cases = []
    for template in TEMPLATES[1:].split("\n====\n"):
        case = {"template": template}
        try:
            case["expected"] = env.from_string(template).render(**json.loads(json.dumps(CONTEXT)))
        except Exception as error:  # whatever Jinja refuses, we refuse
            case["error"] = f"{type(error).__name__}: {error}"
        cases.append(case)
    path = pathlib.Path(__file__).with_name("template_cases.json")
    with path.open("w", encoding="utf-8") as out:
        out.write('{\n "context": ' + json.dumps(CONTEXT) + ',\n "cases": [\n')
        out.write(",\n".join("  " + json.dumps(c) for c in cases))
        out.write("\n ]\n}\n")


main()
