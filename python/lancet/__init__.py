"""lancet edits what language models know, by small changes of their weights.

    session = lancet.open("model-folder", devices=["cpu"])
    edit = session.edit([{"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}])
    session.generate("Piranha Games, created in")

docs/python.md of the project has all of it.
"""

from warnings import warn as _warn

from . import _torch  # first: torch's libraries, which ours are linked to
from ._lancet import __version__
from .errors import (
    CheckpointError,
    Cancelled,
    CollectiveError,
    ConfigError,
    EditWarning,
    Error,
    NumericError,
    PlacementError,
    TokenizerError,
)
from .jobs import apply, list_presets, load_requests, merge, run, undo, undo_push
from ._progress import Progress
from .report import ActiveEdit, ActiveEdits, Edit, Evaluation, Report, RequestReport
from .session import Session, open
from ._hf import Applied
from .facts import edit

del _torch

_RENAMED = {"StandingEdit": ActiveEdit, "StandingEdits": ActiveEdits}


def __getattr__(name: str) -> type:
    """Names of an earlier version."""
    if name not in _RENAMED:
        raise AttributeError(f"module 'lancet' has no attribute {name!r}")
    _warn(f"lancet.{name} is called lancet.{_RENAMED[name].__name__} now", DeprecationWarning, stacklevel=2)
    return _RENAMED[name]


__all__ = [
    "ActiveEdit",
    "ActiveEdits",
    "Applied",
    "Cancelled",
    "CheckpointError",
    "CollectiveError",
    "ConfigError",
    "Edit",
    "EditWarning",
    "Error",
    "Evaluation",
    "NumericError",
    "PlacementError",
    "Progress",
    "Report",
    "RequestReport",
    "Session",
    "TokenizerError",
    "__version__",
    "apply",
    "edit",
    "list_presets",
    "load_requests",
    "merge",
    "run",
    "undo",
    "undo_push",
]
