"""Text and paths as lancet's own code can take them: UTF-8, and no character U+0000, at which a path would end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ConfigError


def _shown(value: str) -> str:
    """In ASCII: what is wrong with it could not be printed."""
    return ascii(value if len(value) <= 60 else value[:57] + "...")


def text(value: str, where: str) -> str:
    """The text itself. Raises ConfigError where UTF-8 cannot hold it, and for U+0000."""
    if not isinstance(value, str):
        raise ConfigError(f"{where}: expected text, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(value[error.start]):04X}"
        raise ConfigError(f"{where}: {_shown(value)}: character {error.start} is {half}, half of a character, which UTF-8 cannot hold: write the whole character") from None
    if "\0" in value:
        raise ConfigError(f"{where}: {_shown(value)}: character {value.index(chr(0))} is U+0000, which stands in no text and no path: take it out")
    return value


def path(value: Any, where: str) -> str:
    """Likewise of a path."""
    try:
        given = os.fspath(value)
    except TypeError:
        raise ConfigError(f"{where}: expected a path, got {type(value).__name__}") from None
    return text(os.fsdecode(given), where)


def texts(value: Any, where: str) -> list[str]:
    """One text or several, as a list."""
    if isinstance(value, str):
        return [text(value, where)]
    try:
        given = list(value)
    except TypeError:
        raise ConfigError(f"{where}: expected a text or a list of texts, got {type(value).__name__}") from None
    return [text(item, f"{where}[{i}]") for i, item in enumerate(given)]


def check(value: Any, where: str) -> None:
    """All texts of plain data, keys among them."""
    if isinstance(value, str):
        text(value, where)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                text(key, f"{where}: a key" if where else "a key")
            check(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        for i, inner in enumerate(value):
            check(inner, f"{where}[{i}]")
