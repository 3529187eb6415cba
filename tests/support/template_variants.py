"""Chat templates for tests: those of tests/fixtures/chat_templates, written with the constructs that public ones use, and each as others
spell and change it: other quotes, other ways to an attribute, an opening of its own with the day, a thought that is opened."""
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "chat_templates"

TAG = re.compile(r"(\{[{%].*?[%}]\})", re.S)
STRING = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""", re.S)
ATTRIBUTE = re.compile(r"\b(message|m|msg|item)\.(role|content)\b")
ITEM = re.compile(r"""\b(message|m|msg)\[['"](role|content)['"]\]""")


def in_tags(template, change):
    return "".join(change(part) if TAG.fullmatch(part) else part for part in TAG.split(template))


def with_other_quotes(template):
    def swapped(match):
        single, double = match.groups()
        if single is not None:
            return match[0] if '"' in single else f'"{single}"'
        return match[0] if "'" in double else f"'{double}'"

    return in_tags(template, lambda tag: STRING.sub(swapped, tag))


def with_other_attributes(template):
    if ATTRIBUTE.search(template):
        return in_tags(template, lambda tag: ATTRIBUTE.sub(r"\1['\2']", tag))
    return in_tags(template, lambda tag: ITEM.sub(r"\1.\2", tag))


def with_own_opening(template):
    return (
        "{%- if messages[0]['role'] != 'system' -%}\n    {{- 'You are Ada. Today is ' + strftime_now('%d %b %Y') + '.\\n' -}}\n{%- endif -%}\n"
        + template
    )


def with_opened_thought(template):
    return template.rstrip("\n") + "{% if add_generation_prompt and (enable_thinking is not defined or enable_thinking) %}{{ '<think>\\n' }}{% endif %}\n"


CHANGES = {
    "": lambda template: template,
    "other quotes": with_other_quotes,
    "other attributes": with_other_attributes,
    "own opening": with_own_opening,
    "opened thought": with_opened_thought,
    "windows": lambda template: template.replace("\n", "\r\n"),
}


def templates():
    """Name to text; no text twice."""
    found, seen = {}, set()
    for file in sorted(FOLDER.glob("*.jinja")):
        text = file.read_text(encoding="utf-8")
        for change, make in CHANGES.items():
            made = make(text)
            if made not in seen:
                seen.add(made)
                found[f"{file.stem}, {change}".rstrip(", ")] = made
    return found


def turns(*contents, system=None):
    said = [{"role": "system", "content": system}] if system is not None else []
    return said + [{"role": role, "content": content} for role, content in zip(["user", "assistant"] * len(contents), contents)]


CONVERSATIONS = {
    "user": turns("Who wrote Faust?"),
    "blanks": turns("  two\nlines \n "),
    "other characters": turns("Zürich, 日本 {} <b> \u3000\x1c \"it's\" \\n"),
    "empty": turns(""),
    "system": turns("Hi", system=" Be brief. "),
    "several": turns("Hi", "Ho", "Why?"),
    "thoughts": turns("Hi", "<think>\nhm\n</think>\n\nHo", "Why?", "<think>a</think>b", "And?", system="/no_think Be brief."),
    "ends with an answer": turns("Hi", "Ho", system="Be brief."),
    "two users": [*turns("Hi"), *turns("Ho")],
    "system later": [*turns("Hi", "Ho"), {"role": "system", "content": "Be long."}, {"role": "user", "content": "Why?"}],
    "developer": [{"role": "developer", "content": "Be brief."}, *turns("Hi")],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Ho"}]}],
    "none": [],
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where", "enum": ["Zürich", "Bern"]},
                "days": {"type": "array", "items": {"type": "integer"}, "default": [1]},
                "how": {"type": ["string", "null"]},
                "more": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"oneOf": [{"type": "string"}, {"type": "object"}]}}, "required": ["a"]},
            },
            "required": ["place"],
        },
    },
}
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": {"place": "Bern", "days": [1, 2]}}}
TOOL_TALK = [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"sun": 1.5}', "tool_call_id": "abcdefghi", "name": "weather"},
    {"role": "assistant", "content": "Sun."},
    {"role": "user", "content": "Thanks"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def settings():
    """What a template is given besides the messages, as apply_chat_template gives it."""
    yield {"add_generation_prompt": True}
    yield {"add_generation_prompt": False}
    yield {"add_generation_prompt": True, "enable_thinking": True, "thinking": True}
    yield {"add_generation_prompt": True, "enable_thinking": False, "thinking": False, "reasoning": False, "thinking_budget": 0}
    yield {"add_generation_prompt": False, "enable_thinking": True, "date_string": "1 May 2025"}
    yield {"add_generation_prompt": True, "tools": [TOOL], "documents": [{"title": "a", "text": "b"}], "reasoning_effort": "low"}


def cases(template):
    """Every conversation with every setting, for one template."""
    for messages in CONVERSATIONS.values():
        for more in settings():
            yield {"template": template, "variables": {"messages": messages, "tools": None, "documents": None, **TOKENS, **more}}
    for tools in ([TOOL], [TOOL, TOOL], None):
        yield {"template": template, "variables": {"messages": TOOL_TALK, "tools": tools, "documents": None, **TOKENS, "add_generation_prompt": True}}
    yield {"template": template, "variables": {"messages": CONVERSATIONS["system"], "tools": None, "documents": None, "add_generation_prompt": True}}
