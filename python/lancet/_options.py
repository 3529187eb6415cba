"""Keywords that are declared as options, and `set=`, as the changes of keys that `lancet edit --set` takes."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import _lancet, _text
from .errors import ConfigError

Function = TypeVar("Function", bound=Callable[..., Any])

DECLARED: dict[str, dict[str, Any]] = {
    name: json.loads(_lancet.option_schema(name))["properties"] for name in ("run", "editor", "generate", "adapter", "undo")
}
"""Of each section its options, as JSON Schema: what a value is, `default`, `description`."""


def default(section: str, key: str) -> Any:
    return DECLARED[section][key]["default"]


def given(section: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the section's options that are not None, each held to its declaration; others among `keywords` are none of its own."""
    chosen = {key: keywords[key] for key in DECLARED[section] if keywords.get(key) is not None}
    for key, value in chosen.items():
        if problem := _lancet.option_problem(section, key, to_json(value, key)):
            raise ConfigError(f"{key}: {problem}")
    return chosen


def refuse_misspelt(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """`options` that are no options of an editor."""
    for key in options:
        if key in DECLARED["editor"]:
            continue
        _text.text(key, "keyword")
        near = _lancet.nearest(key, [*DECLARED["editor"], *inspect.signature(function).parameters])
        raise ConfigError(f"{key}: unknown keyword of {function.__name__}(){f'; did you mean {near}?' if near else ''}")


def expanded(function: Function) -> Function:
    """The same function, whose signature has each option of an editor in the place of `**options`, for help() and completion."""
    from . import _editor_options as declared

    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    types = declared.EditorOptions.__annotations__
    more = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=types[key]) for key in DECLARED["editor"] if key not in signature.parameters]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return function


def to_json(value: Any, where: str) -> str:
    """Plain data, tuples and paths among it, as JSON that is also YAML."""

    def other(item: Any) -> Any:
        if isinstance(item, os.PathLike):
            return _text.path(item, where)
        if hasattr(item, "tolist"):  # NumPy's numbers and arrays, torch's tensors
            return item.tolist()
        raise ConfigError(f"{where}: expected numbers, texts, lists and dicts, got {type(item).__name__}")

    try:
        _text.check(value, where)
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=other)
    except ValueError as error:  # nan, a circle, or ours
        raise error if isinstance(error, ConfigError) else ConfigError(f"{where}: {error}") from error
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply, or within itself") from None
    except TypeError as error:  # keys
        raise ConfigError(f"{where}: {error}") from error


def assignments(prefix: str, value: Any) -> list[str]:
    """`prefix=value`; of a dict one for each of its keys, so that the others stay as they are."""
    if isinstance(value, Mapping) and value:
        return [line for key, inner in value.items() for line in assignments(f"{prefix}.{_text.text(str(key), prefix)}", inner)]
    return [f"{prefix}={to_json(value, prefix)}"]


def section(prefix: str, options: Mapping[str, Any]) -> list[str]:
    """Options that are None are not given."""
    return [line for key, value in options.items() if value is not None for line in assignments(f"{prefix}.{key}", value)]


def changes(changed: Mapping[str, Any] | None) -> list[str]:
    """`set={"run.dtype": "f32"}`: each value takes the place of the whole one, as by `--set`."""
    if changed is None:
        return []
    if not isinstance(changed, Mapping):
        raise ConfigError(f"set: expected a dict of dotted keys, got {type(changed).__name__}")
    return [f"{_text.text(str(key), 'set')}={to_json(value, str(key))}" for key, value in changed.items()]
