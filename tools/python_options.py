#!/usr/bin/env python3
"""Writes python/lancet/_editor_options.py: the options of an editor as Python's types, from their declarations in the built module.

.venv/bin/python tools/python_options.py --write"""
import importlib.util
import json
import os
import pathlib
import sys

FILE = pathlib.Path(__file__).parents[1] / "python" / "lancet" / "_editor_options.py"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "Mapping[str, Any]"}
OWN = ("method",)  # keywords that stand in the signatures
HEAD = '''"""Options of an editor (docs/options.md). Made by tools/python_options.py of their declarations: not to be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union


class EditorOptions(TypedDict, total=False):
    """What `lancet.open`, `Session.edit` and `lancet.edit` take besides their own keywords. None: not given."""
'''


def types_of(schema):
    """Names of Python's types of a JSON Schema, without null."""
    if "const" in schema:
        return [f"Literal[{schema['const']!r}]"]
    if values := [value for value in schema.get("enum", []) if value is not None]:
        return [f"Literal[{', '.join(map(repr, values))}]"]
    if "anyOf" in schema:
        return [name for part in schema["anyOf"] for name in types_of(part)]
    kinds = schema.get("type", "string")
    names = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            items = types_of(schema["items"]) if "items" in schema else ["Any"]
            names.append(f"Sequence[{items[0] if len(items) == 1 else 'Any'}]")
        elif kind != "null":
            names.append(PLAIN[kind])
    return names


def text_of(declared):
    lines = [HEAD]
    for key, schema in declared.items():
        if key in OWN:
            continue
        names = list(dict.fromkeys(types_of(schema)))
        lines.append(f"    {key}: Union[{', '.join([*names, 'None'])}]")
    return "\n".join(lines) + "\n"


def declared_options():
    """Of the module alone: the package needs the file that is made here."""
    import torch  # noqa: F401  # the module is linked to its libraries

    root = pathlib.Path(__file__).parents[1]
    (module,) = (pathlib.Path(os.environ.get("LANCET_BUILD", root / "build")) / "python" / "lancet").glob("_lancet.*.so")
    spec = importlib.util.spec_from_file_location("_lancet", module)
    built = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(built)
    return json.loads(built.option_schema("editor"))["properties"]


def main():
    text = text_of(declared_options())
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE} is not as it is declared: .venv/bin/python tools/python_options.py --write")


if __name__ == "__main__":
    main()
