"""What lancet says, in the words of a call in Python: the program's flags are keywords here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

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
_FLAG = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])")


def of_python(message: str) -> str:
    """`--top-k` becomes `top_k=`."""
    for words, ours in _SENTENCES:
        message = words.sub(ours, message)
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_") + "=", message)


def called(function: Callable[..., Result], *arguments: object) -> Result:
    """Calls it; an error of lancet's says its words in Python's."""
    try:
        return function(*arguments)
    except Error as error:
        error.args = (of_python(str(error)), *error.args[1:])
        raise
