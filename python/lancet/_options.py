"""Keyword arguments and `set=` as the changes of keys that `lancet edit --set` takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .errors import ConfigError

RUN_KEYS = ("devices", "dtype", "quantise_base", "threads", "seed")


def to_json(value: Any, where: str) -> str:
    """Plain data, tuples and paths among it, as JSON that is also YAML."""

    def other(item: Any) -> Any:
        if isinstance(item, os.PathLike):
            return os.fspath(item)
        if hasattr(item, "tolist"):  # NumPy's numbers and arrays, torch's tensors
            return item.tolist()
        raise ConfigError(f"{where}: expected numbers, texts, lists and dicts, got {type(item).__name__}")

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=other)
    except ValueError as error:  # nan, a circle, or ours
        raise error if isinstance(error, ConfigError) else ConfigError(f"{where}: {error}") from error
    except TypeError as error:  # keys
        raise ConfigError(f"{where}: {error}") from error


def assignments(prefix: str, value: Any) -> list[str]:
    """`prefix=value`; of a dict one for each of its keys, so that the others stay as they are."""
    if isinstance(value, Mapping) and value:
        return [line for key, inner in value.items() for line in assignments(f"{prefix}.{key}", inner)]
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
    return [f"{key}={to_json(value, str(key))}" for key, value in changed.items()]
