"""lancet edits what language models know, by small changes of their weights.

Open a model: a folder, a name of the hub that was downloaded, or a model of transformers with its tokenizer.

    session = lancet.open("data/demo-model")

Edit facts, one batch a call. {} is where the subject stands:

    edit = session.edit([{"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}])

Did it take? A request has its metrics before and after, and why it did not:

    print(edit, edit["efficacy_argmax"])
    for request in edit.requests:
        print(request.prompt, request.success, request.why)

Ask the edited model; `temperature`, `top_k`, `top_p` and `seed` sample:

    print(session.generate("Piranha Games, created in", tokens=8))

Keep it. A folder is for transformers, an adapter for PEFT or llama.cpp, and edits alone are for lancet:

    session.save("edited", overwrite=True)
    session.export_adapter("adapter", overwrite=True)
    session.save_edits("edits")

Measure other facts, look at what stands, take an edit back, to the bit:

    session.evaluate([{"prompt": "{}, created in", "subject": "Piranha Games", "target": "Vancouver"}])
    print(session.edits)
    session.undo(edit)
    session.close()

Options: `help(lancet.open)` says them, and they can be changed for a call: `session.edit(facts, method="rome")`.
`lancet.list_presets()` has published ones. Facts as lists: `help(lancet.edit)`; files of facts:
`lancet.load_requests(path)`; whole jobs: `lancet.run("job.yaml")`. EasyEdit's scripts: `lancet.compat.easyedit`.
Each error is a `lancet.Error`, after which the weights are what they were. More: docs/python.md of the project.
"""

from . import _torch  # first: torch's libraries, which ours are linked to
from ._lancet import version as __version__
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
from .jobs import apply, erase, list_presets, load_requests, merge, run, undo, undo_push
from ._progress import Progress
from .report import ActiveEdit, ActiveEdits, Edit, Evaluation, Report, RequestReport
from .session import Session
from .session import open as open  # an `import *` leaves the builtin alone
from ._hf import Applied
from .facts import edit

del _torch

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
    "erase",
    "list_presets",
    "load_requests",
    "merge",
    "run",
    "undo",
    "undo_push",
]
