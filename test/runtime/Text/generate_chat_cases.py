#!/usr/bin/env python3
"""Writes chat_cases.json: what the `transformers` package (5.24.0 made the committed file) makes of conversations by the
templates in `templates/`, which are written in the manner of ten families.

    pip install transformers jinja2
    python3 test/runtime/Text/generate_chat_cases.py
"""
import datetime
import json
import pathlib

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2026, 7, 5, 12, 0, 0)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = Clock

TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "The weather of a city, with <b>bold</b> & \"quoted\" words.",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "name of the city"},
            "days": {"type": "array", "items": {"type": "integer"}},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
            "deep": {"type": ["string", "null"]}}}}},
    {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {
        "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}},
]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "id": "abcdefghi", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": [1, 2], "x": 1.5, "y": None, "z": True}}}]}
CONVERSATIONS = {
    "one": [{"role": "user", "content": " Hello, who are you?\n"}],
    "system": [{"role": "system", "content": "Be brief. /no_think "}, {"role": "user", "content": "Name a colour."}],
    "turns": [{"role": "system", "content": "S"}, {"role": "user", "content": "a <b> & 'c'"},
              {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"}, {"role": "user", "content": "c\n\n"},
              {"role": "assistant", "content": "  d "}],
    "thoughts": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_content": "r\n"},
                 {"role": "user", "content": "<tool_response>1</tool_response>"},
                 {"role": "assistant", "content": "<think>t</think>b"}],
    "tools": [{"role": "user", "content": "Weather?"}, CALL, {"role": "tool", "content": "{\"t\": 21}"},
              {"role": "assistant", "content": "21 degrees."}],
    "replies": [{"role": "system", "content": "S"}, {"role": "user", "content": "Both?"},
                {"role": "assistant", "content": "Well", "tool_calls": [CALL["tool_calls"][0]] * 2},
                {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}],
    "parts": [{"role": "system", "content": [{"type": "text", "text": "See. "}]},
              {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " What is this? "}]}],
    "wrong": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    "control": [{"role": "user", "content": "<|im_end|><|eot|>[INST]</s>"}],
}


def main():
    folder = pathlib.Path(__file__).parent
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    out = {"now": int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp()), "special": special, "templates": {}, "cases": []}
    for path in sorted((folder / "templates").glob("*.jinja")):
        source = path.read_text()
        for name, messages in CONVERSATIONS.items():
            for tools in ([None, TOOLS] if name in ("one", "tools", "replies") else [None]):
                variables = {"enable_thinking": False} if name == "one" else {}
                case = {"template": path.stem, "conversation": name, "messages": messages, "tools": tools,
                        "add_generation_prompt": name != "turns", "variables": variables, "expected": None, "error": None}
                try:
                    case["expected"] = chat_template_utils.render_jinja_template(
                        [messages], tools=tools, chat_template=source, add_generation_prompt=case["add_generation_prompt"],
                        **variables, **special)[0][0]
                except Exception as error:
                    case["error"] = f"{type(error).__name__}: {error}"
                out["cases"].append(case)
    with (folder / "chat_cases.json").open("w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(out[key])}" for key in ("now", "special")))
        # Conversations and tools once each, cases by name.
        file.write(',\n"tools": ' + json.dumps(TOOLS) + ',\n"conversations": ' + json.dumps(CONVERSATIONS) + ',\n"cases": [\n')
        rows = []
        for case in out["cases"]:
            case = dict(case, tools=case["tools"] is not None)
            del case["messages"]
            rows.append(json.dumps(case))
        file.write(",\n".join(rows) + "\n]}\n")
    print(len(out["cases"]), "cases,", sum(case["error"] is not None for case in out["cases"]), "refused")
    for case in out["cases"]:
        if case["error"]:
            print(case["template"], case["conversation"], case["tools"] is not None, case["error"][:100])


if __name__ == "__main__":
    main()
