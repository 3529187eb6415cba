"""What lancet says, in the words of a call in Python: the program's flags are keywords here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from . import _text
from .errors import Error

Result = TypeVar("Result")

_SENTENCES = (
    (re.compile(r"--out: "), ""),
    (re.compile(r"set output\.replace: true to replace it"), "give overwrite=True to replace it"),
    (re.compile(r"output\.replace does not"), "overwrite=True does not"),
    (re.compile(r"choose another name, or --replace it"), "choose another name, or give overwrite=True"),
    (re.compile(r"--tokens\b"), "max_new_tokens="),
    (re.compile(r"--replace\b"), "overwrite=True"),
)
_OF_SESSIONS = (
    (re.compile(r"^job: ", re.M), ""),
    (re.compile(r"(?<![\w./-])(?:editor|run)\.(?=[a-z])"), ""),
    (re.compile(r"lancet log shows those that do"), "session.edits has those that do"),
)
_OTHER_PROGRAMS = re.compile(r"(\bhf download [^\n]*)")
_FLAG = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])")


def of_python(message: str) -> str:
    """`--top-k` becomes `top_k=`; commands of other programs stay as they are."""
    for words, ours in _SENTENCES:
        message = words.sub(ours, message)
    parts = _OTHER_PROGRAMS.split(message)
    parts[::2] = [_FLAG.sub(lambda flag: flag[1].replace("-", "_") + "=", part) for part in parts[::2]]
    return "".join(parts)


def of_session(message: str) -> str:
    """Likewise; `editor.layers` of a job is the keyword `layers` of a session."""
    for words, ours in _OF_SESSIONS:
        message = words.sub(ours, message)
    return of_python(message)


def called(function: Callable[..., Result], *arguments: object, say: Callable[[str], str] = of_python) -> Result:
    """Calls it; an error of lancet's says its words in Python's. Texts among the arguments are held to what it can take."""
    for given in arguments:
        if isinstance(given, (str, list)):
            _text.check(given, "text")
    try:
        return function(*arguments)
    except Error as error:
        error.args = (say(str(error)), *error.args[1:])
        raise
