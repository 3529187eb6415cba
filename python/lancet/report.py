"""Reports as objects: the JSON of docs/report.md, with what one asks of it most as attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _page
from ._table import Table, frame_of

if TYPE_CHECKING:
    import pandas
    import torch

    from .session import Session


class RequestReport:
    """One request: what it asked, and how well it holds."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.json = row
        """Its part of the report."""
        self.id: str = row["id"]
        self.prompt: str = row["prompt"]
        self.subject: str = row["subject"]
        self.target: str = row["target"]
        self.before: dict[str, float | None] = {name: value["before"] for name, value in row["metrics"].items()}
        """Each metric on the unedited weights."""
        self.after: dict[str, float | None] = {name: value["after"] for name, value in row["metrics"].items()}
        self.success: bool | None = row["verdict"]["success"]
        """Whether the model says the target now; None: not measured."""
        self.why: str | None = row["verdict"]["why"]
        """Why it did not take."""
        self.subject_answers: list[dict[str, Any]] = row.get("subject_answers", [])
        """What else the model says of the subject, before and after: asked, prompt, before, after, kept."""

    def __repr__(self) -> str:
        return f"<request {self.id!r}: {self.prompt!r} -> {self.target!r}, success: {self.success}>"

    def row(self) -> dict[str, Any]:
        """A flat dict, of `table()`."""
        flat: dict[str, Any] = {key: getattr(self, key) for key in ("id", "prompt", "subject", "target", "success", "why")}
        for when in ("before", "after"):
            flat |= {f"{name}.{when}": value for name, value in getattr(self, when).items()}
            if "target_probability" in self.json:
                flat[f"target_probability.{when}"] = self.json["target_probability"][when]
        flat["loss"] = self.json["value"]["final_loss"]
        return flat


class Report:
    """What a job or an edit did and measured: report.json."""

    def __init__(self, text: str) -> None:
        self.report: dict[str, Any] = json.loads(text)
        """The whole of report.json: docs/report.md."""

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """By name: value before and after, on how many prompts, and the protocol."""
        return self.report["metrics"]

    @property
    def requests(self) -> list[RequestReport]:
        """Each fact, in the order in which they were given."""
        return [RequestReport(row) for row in self.report["requests"]]

    @property
    def warnings(self) -> list[str]:
        """Sentences on what a reader of the figures should know."""
        return self.report["warnings"]

    @property
    def ids(self) -> list[str]:
        """By which `Session.undo` takes single edits back."""
        return [row["id"] for row in self.report["requests"]]

    @property
    def method(self) -> str:
        """The editor's: "memit"."""
        return self.report["method"]

    @property
    def successes(self) -> int:
        """How many edits took: the model says their targets."""
        return self.report["verdicts"]["success"]

    def __getitem__(self, metric: str) -> float | None:
        """The metric after the edit."""
        return self.metrics[metric]["after"]

    def table(self) -> Table:
        """A flat dict for each request."""
        return [request.row() for request in self.requests]

    def to_frame(self) -> "pandas.DataFrame":
        """`table()` as a DataFrame."""
        return frame_of(self.table())

    def __repr__(self) -> str:
        return f"<lancet.{type(self).__name__}: {self.method}, {'; '.join(_page.verdict_lines(self.report))}>"

    def _repr_html_(self) -> str:
        return _page.page(self.report)


Delta = Union["torch.Tensor", "tuple[torch.Tensor, torch.Tensor]"]


class Edit(Report):
    """What `Session.edit` did. Tensors are the session's own memory, not copies: they live on after it, and must not be
    written to."""

    session: Session | None = None
    """The session that `lancet.edit` made it in, or was given."""

    def __init__(self, made: Any) -> None:
        super().__init__(made.report_json)
        self._made = made

    def __getstate__(self) -> dict[str, Any]:
        """Copies of its tensors; a session does not travel."""
        return {"report": self.report, "_made": _KeptTensors(self._made)}

    @property
    def deltas(self) -> dict[str, list[Delta]]:
        """By weight, what was added to it, in this order: (left [out, r], right [r, in]), whose product it is, or one
        full matrix [out, in]."""
        deltas: dict[str, list[Delta]] = {}
        for name, delta in self._made.deltas():
            parts: Delta = (_tensor(delta[0]), _tensor(delta[1])) if isinstance(delta, tuple) else _tensor(delta)
            deltas.setdefault(name, []).append(parts)
        return deltas

    @property
    def keys(self) -> dict[str, list["torch.Tensor"]]:
        """By weight, for each of its low-rank changes: a key a column, [in, n] f64. Empty for methods that solve no
        system of keys."""
        return self._system(1)

    @property
    def residuals(self) -> dict[str, list["torch.Tensor"]]:
        """Likewise what the layer was asked to add for each key: [out, n] f64."""
        return self._system(2)

    @property
    def key_edits(self) -> dict[str, list[list[list[str]]]]:
        """Likewise the ids of the edits that each column is of."""
        ids = self.ids
        columns: dict[str, list[list[list[str]]]] = {}
        for name, _, _, places in self._made.systems():
            columns.setdefault(name, []).append([[ids[place] for place in places_of] for places_of in places])
        return columns

    @property
    def losses(self) -> list["torch.Tensor"]:
        """Of each request the loss at each step of its value's search, f32."""
        return [_tensor(capsule) for capsule in self._made.losses()]

    def _system(self, part: int) -> dict[str, list["torch.Tensor"]]:
        tensors: dict[str, list[Any]] = {}
        for system in self._made.systems():
            tensors.setdefault(system[0], []).append(_tensor(system[part]))
        return tensors


class _KeptTensors:
    """What an edit was made of, apart from the engine's memory."""

    def __init__(self, made: Any) -> None:
        self._deltas = [(name, tuple(_copy(part) for part in delta) if isinstance(delta, tuple) else _copy(delta)) for name, delta in made.deltas()]
        self._systems = [(name, _copy(keys), _copy(residuals), places) for name, keys, residuals, places in made.systems()]
        self._losses = [_copy(losses) for losses in made.losses()]

    def deltas(self) -> list[Any]:
        return self._deltas

    def systems(self) -> list[Any]:
        return self._systems

    def losses(self) -> list[Any]:
        return self._losses


def _tensor(capsule: Any) -> "torch.Tensor":
    """The tensor of a capsule, in the engine's memory; one that was copied already as it is."""
    import torch
    from torch.utils.dlpack import from_dlpack

    return capsule if isinstance(capsule, torch.Tensor) else from_dlpack(capsule)


def _copy(capsule: Any) -> "torch.Tensor":
    return _tensor(capsule).detach().clone()


def _as_after(row: dict[str, Any]) -> dict[str, Any]:
    """A request that was measured once, in the form of one that was measured before and after an edit."""
    said = row["metrics"].get("efficacy_argmax")
    told = {**row, "metrics": {name: {"before": None, "after": value} for name, value in row["metrics"].items()}}
    if "target_probability" in row:
        told["target_probability"] = {"before": None, "after": row["target_probability"]}
    return {**told, "verdict": {"success": None if said is None else said == 1, "why": None}, "value": {"final_loss": None}}


class Evaluation:
    """What `Session.evaluate` measured on the weights as they are."""

    def __init__(self, text: str) -> None:
        self.report: dict[str, Any] = json.loads(text)
        self.metrics: dict[str, dict[str, Any]] = self.report["metrics"]
        """By name: value, number of prompts, unit, protocol."""

    @property
    def requests(self) -> list[RequestReport]:
        """As an edit's: what was measured is `after`, and `before` has nothing."""
        return [RequestReport(_as_after(row)) for row in self.report["requests"]]

    def __getitem__(self, metric: str) -> float | None:
        return self.metrics[metric]["value"]

    def table(self) -> Table:
        """A flat dict for each request."""
        return [{**{key: value for key, value in row.items() if key != "metrics"}, **row["metrics"]} for row in self.report["requests"]]

    def to_frame(self) -> "pandas.DataFrame":
        """`table()` as a DataFrame."""
        return frame_of(self.table())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {metric['value']}" for name, metric in self.metrics.items())
        return f"<lancet.Evaluation: {shown}>"


class ActiveEdit:
    """An edit that stands in a session."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.json = row
        self.id: str = row["id"]
        self.prompt: str = row["prompt"]
        self.subject: str = row["subject"]
        self.target: str = row["target"]
        self.batch: int = row["batch"]
        """Which call of edit(), from 0."""
        self.method: str = row["method"]
        self.before: dict[str, float] = row["before"]
        self.after: dict[str, float] = row["after"]
        """Where it was measured and written down: edits of a job that was restored."""
        self.success: bool | None = row["success"]
        """As it was measured last: `Session.measure` does it again."""
        self.replaced_by: str | None = row["replaced_by"]
        """The id of a later edit of the same fact, with another target."""

    def __repr__(self) -> str:
        replaced = f", replaced by {self.replaced_by!r}" if self.replaced_by is not None else ""
        return f"<edit {self.id!r}: {self.prompt!r} -> {self.target!r}{replaced}>"


class ActiveEdits(Sequence[ActiveEdit]):
    """All edits that stand in a session, in their order."""

    def __init__(self, text: str) -> None:
        self._rows: list[dict[str, Any]] = json.loads(text)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [ActiveEdit(row) for row in self._rows[place]]
        return ActiveEdit(self._rows[place])

    def __iter__(self) -> Iterator[ActiveEdit]:
        return (ActiveEdit(row) for row in self._rows)

    @property
    def ids(self) -> list[str]:
        """By which `Session.undo` takes single edits back."""
        return [row["id"] for row in self._rows]

    def table(self) -> Table:
        """A flat dict for each edit."""
        flat = []
        for row in self._rows:
            plain = {key: value for key, value in row.items() if key not in ("before", "after")}
            for when in ("before", "after"):
                plain |= {f"{name}.{when}": value for name, value in row[when].items()}
            flat.append(plain)
        return flat

    def to_frame(self) -> "pandas.DataFrame":
        """`table()` as a DataFrame."""
        return frame_of(self.table())

    def __repr__(self) -> str:
        return f"<{len(self)} edits: {', '.join(self.ids[:10])}{', ...' if len(self) > 10 else ''}>"
