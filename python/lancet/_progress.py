"""What calls say while they run: progress, warnings, log lines. Called in the Python thread that waits for the call."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from .errors import ConfigError, EditWarning

logger = logging.getLogger("lancet")
LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)


@dataclass(frozen=True)
class Progress:
    """How far a stage of a call is."""

    stage: str
    done: int
    total: int
    """0: not known."""
    unit: str
    line: str
    """All that is known, for people: "values  64/100 requests  3.1/s  12 s left"."""
    finished: bool


Shown = Union[bool, Callable[[Progress], Any], None]


class _Bars:
    """A bar of tqdm for each stage, one at a time."""

    def __init__(self, tqdm: Any) -> None:
        self.tqdm, self.stage = tqdm, ""
        self.bar: Any = None

    def __call__(self, now: Progress) -> None:
        if self.bar is None or self.stage != now.stage:
            self.close()
            self.bar = self.tqdm(total=now.total or None, desc=now.stage, unit=f" {now.unit}", leave=False, dynamic_ncols=True)
            self.stage = now.stage
        self.bar.total = now.total or None
        self.bar.update(now.done - self.bar.n)
        if now.finished:
            self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        self.bar = None


def _show_line(now: Progress) -> None:
    print(now.line, file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _chosen(shown: Shown) -> tuple[Callable[[Progress], Any] | None, str]:
    """Who shows progress, and how it is to come (src/python/event_queue.h)."""
    if shown is False:
        return None, "none"
    if callable(shown):
        return shown, "awaited"
    if shown is not None and shown is not True:
        raise ConfigError(f"progress: expected True, False or a function, got {type(shown).__name__}")
    if shown or _in_notebook() or (sys.stderr is not None and sys.stderr.isatty()):
        try:
            from tqdm.auto import tqdm

            return _Bars(tqdm), "queued"
        except ImportError:
            pass
    return _show_line, "lines"


class Listener:
    """What an engine tells."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.show, self.delivery = _chosen(shown)

    def __call__(self, kind: str, *facts: Any) -> None:
        if kind == "progress":
            if self.show is not None:
                self.show(Progress(*facts))
            return
        level, text = facts
        if LEVELS[level] == logging.WARNING:
            warnings.warn(text, EditWarning, stacklevel=_frames_within())
        else:
            logger.log(LEVELS[level], "%s", text)

    def end(self) -> None:
        """After a call, however it ended."""
        if isinstance(self.show, _Bars):
            self.show.close()


def _frames_within() -> int:
    """The level (of warnings.warn) of the first frame outside of this package: the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lancet."):
        level, frame = level + 1, frame.f_back
    return level
