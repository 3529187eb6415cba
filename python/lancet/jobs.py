"""Whole jobs, as the program runs them: from files to files."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from . import _lancet, _options, _text
from ._hub import model_folder
from ._progress import Listener, Shown
from ._words import called
from .errors import ConfigError, NumericError
from .report import Report

Path = Union[str, "os.PathLike[str]"]


def run(job: Path | Mapping[str, Any], *, set: Mapping[str, Any] | None = None, overwrite: bool = False, progress: Shown = None) -> Report:
    """`lancet edit JOB`: a job file, or the job as a dict, whose relative paths are taken from the current folder.

    `overwrite`: an output that lancet wrote may be there. Raises NumericError with the report as `.report` when thresholds of `accept` are not met.
    """
    text = _job_text("run", job, set, overwrite)
    report = Report(_worked(progress, lambda engine: _lancet.run_edit(engine, text)))
    if unmet := report.report["unmet"]:
        error = NumericError("accept: not met, nothing was exported: " + "; ".join(unmet))
        error.report = report
        raise error
    return report


def erase(job: Path | Mapping[str, Any], *, set: Mapping[str, Any] | None = None, overwrite: bool = False, progress: Shown = None) -> dict[str, Any]:
    """`lancet erase JOB`: facts that the model shall no longer say (docs/erase.md). The audit, as audit.json has it.

    `job` and `overwrite` are `run`'s.
    """
    text = _job_text("erase", job, set, overwrite)
    return json.loads(_worked(progress, lambda engine: _lancet.run_erase(engine, text)))


def _job_text(function: str, job: Path | Mapping[str, Any], changed: Mapping[str, Any] | None, overwrite: bool) -> _lancet.JobText:
    tree, file = (_options.to_json(job, "job"), "") if isinstance(job, Mapping) else ("", _text.path(job, "job"))
    if not tree and not file:
        raise ConfigError(f"{function}: expected a job file or a dict, got an empty name")
    return _lancet.JobText(tree, file, _options.changes(changed) + _options.changes({"output.replace": True} if overwrite else None))


def apply(
    edits: Path,
    out: Path,
    *,
    model: Path | None = None,
    other_base: str = "refuse",
    overwrite: bool = False,
    set: Mapping[str, Any] | None = None,
    progress: Shown = None,
) -> Report:
    """`lancet apply`: a model made of edits that are data (docs/edits.md). `model`: the base, where it is not where the
    edits' lay. `other_base`: what becomes of edits on another base than theirs: "refuse", "add" or "rebase"."""
    job = {"edits": edits, "other_base": other_base, **_output(out, model, overwrite, set)}
    return _made(_lancet.run_apply, job, progress)


def undo(
    output: Path,
    ids: Sequence[str] = (),
    *,
    where: Sequence[str] = (),
    last: int = _options.default("undo", "last"),
    mode: str | None = None,
    out: Path | None = None,
    model: Path | None = None,
    overwrite: bool = False,
    set: Mapping[str, Any] | None = None,
    progress: Shown = None,
) -> Report:
    """`lancet undo`: an output of `lancet edit` without some of its edits (docs/edits.md): those of `ids`, else those for
    which all of `where` hold ("success == false"), else the last batches. `out`: None: the output itself is replaced."""
    how = _options.given("undo", locals())
    job = {"output": output, "ids": [ids] if isinstance(ids, str) else list(ids), "where": list(where), "how": how}
    return _made(_lancet.run_undo, job | _output(out or "", model, overwrite, set), progress)


def merge(
    edits: Sequence[Path],
    out: Path,
    *,
    model: Path | None = None,
    prefer: Path | None = None,
    drop: Sequence[str] = (),
    solve: bool = False,
    overwrite: bool = False,
    set: Mapping[str, Any] | None = None,
    progress: Shown = None,
) -> Report:
    """`lancet merge`: the edits of several outputs of one base model in one (docs/edits.md). `prefer`: that of `edits`
    whose edits stay where two are at odds. `drop`: ids that stay out. `solve`: one joint solve."""
    folders = [_text.path(folder, "edits") for folder in edits]
    preferred = None if prefer is None else _text.path(prefer, "prefer")
    if preferred is not None and preferred not in folders:
        raise ConfigError(f"prefer: expected one of {', '.join(folders)}, got {preferred}")
    place = None if preferred is None else folders.index(preferred)
    job = {"edits": folders, "prefer": place, "drop": list(drop), "solve": solve}
    return _made(_lancet.run_merge, job | _output(out, model, overwrite, set), progress)


def _output(out: Path, model: Path | None, overwrite: bool, changed: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"out": out, "model": model or "", "exists": "replace" if overwrite else "error", "set": _options.changes(changed)}


def _made(run_job: Callable[[Any, str], str], job: Mapping[str, Any], progress: Shown) -> Report:
    text = _options.to_json(job, "")
    return Report(_worked(progress, lambda engine: run_job(engine, text)))


def load_requests(path: Path, *, format: str = "auto", skip: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
    """Records of a request file in any format that lancet reads (docs/job-file.md), as dicts for `Session.edit`."""
    return [json.loads(line) for line in called(_lancet.request_lines, _text.path(path, "path"), _text.text(format, "format"), skip, limit)]


def list_presets(model: Path | None = None) -> list[dict[str, Any]]:
    """Published options of methods, as `lancet presets` has them: name, method, whether `preset: auto` takes it, models,
    source, and `editor`, for `lancet.open(**preset["editor"])`. `model`: those for a model folder's config.json."""
    return json.loads(called(_lancet.presets, "" if model is None else model_folder(_text.path(model, "model"))))


def undo_push(edits: Path, *, url: str | None = None, token: str | None = None, timeout_s: int = 60, progress: Shown = None) -> dict[str, Any]:
    """Takes the last push of a folder of edits back (docs/push.md). `edits`: the folder that `Session.push` was given, or
    an output of `lancet push`. `url`: the server, where it is not found at the address that was pushed to."""
    texts = {"to": _text.text(url or "", "url"), "token": token or "", "timeout_s": timeout_s}
    job = _options.to_json({"edits": edits, **texts}, "")
    return json.loads(_worked(progress, lambda engine: _lancet.run_undo_push(engine, job)))


def push_edits(job: Mapping[str, Any], progress: Shown) -> dict[str, Any]:
    """`lancet push` of a folder of edits; `job` has every key. Raises NumericError with the report as `.report` where
    `accept` is not met: it was taken back."""
    text = _options.to_json(job, "")
    report = json.loads(_worked(progress, lambda engine: _lancet.run_push(engine, text)))
    if report["unmet"]:
        error = NumericError("accept: not met, the push was taken back: " + "; ".join(report["unmet"]))
        error.report = report
        raise error
    return report


def _worked(progress: Shown, work: Callable[[Any], str]) -> str:
    """On a worker thread of its own, which ends with it."""
    listener = Listener(progress)
    engine = _lancet.Engine(weakref.proxy(listener), listener.delivery)
    end = weakref.finalize(listener, _lancet.Engine.close_at_exit, engine)
    try:
        return called(work, engine)
    finally:
        listener.end()
        engine.close()
        end.detach()
