"""lancet edits what language models know, by small changes of their weights.

    session = lancet.open("model-folder", devices=["cpu"])
    edit = session.edit([{"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}])
    session.generate("Piranha Games, created in")

docs/python.md of the project has all of it.
"""

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
from .jobs import apply, load_requests, merge, run, undo
from ._progress import Progress
from .report import Edit, Evaluation, Report, RequestReport, StandingEdit, StandingEdits
from .session import Session, open

del _torch

__all__ = [
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
    "StandingEdit",
    "StandingEdits",
    "TokenizerError",
    "__version__",
    "apply",
    "load_requests",
    "merge",
    "open",
    "run",
    "undo",
]
