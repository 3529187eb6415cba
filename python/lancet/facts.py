"""Facts as parallel lists, as EasyEdit takes them, and `lancet.edit` of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _options
from ._progress import Shown
from .errors import ConfigError
from .report import Edit
from .session import Session, open

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._editor_options import EditorOptions

Texts = Union[str, Sequence[Any]]
Inputs = Mapping[str, Mapping[str, Texts]]
"""By section: {"neighborhood": {"prompt": [...], "ground_truth": [...]}}."""


def _listed(name: str, given: Texts, count: int | None) -> list[Any]:
    listed = [given] if isinstance(given, str) else list(given)
    if count is not None and len(listed) != count:
        raise ConfigError(f"{name}: expected one for each of the {count} prompts, got {len(listed)}")
    return listed


def _sections(name: str, inputs: Inputs | None, count: int) -> list[dict[str, Any]]:
    """Of each request its sections."""
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for section, lists in (inputs or {}).items():
        if not isinstance(lists, Mapping) or set(lists) != {"prompt", "ground_truth"}:
            raise ConfigError(f"{name}: {section}: expected a dict of prompt and ground_truth")
        prompts = _listed(f"{name}: {section}: prompt", lists["prompt"], count)
        answers = _listed(f"{name}: {section}: ground_truth", lists["ground_truth"], count)
        for row, prompt, answer in zip(rows, prompts, answers):
            if prompt is not None:
                row[section] = {"prompt": prompt, "ground_truth": answer}
    return rows


def records(
    prompts: Texts,
    target_new: Texts,
    subjects: Texts | None = None,
    ground_truth: Texts | None = None,
    rephrase_prompts: Texts | None = None,
    locality_inputs: Inputs | None = None,
    portability_inputs: Inputs | None = None,
) -> list[dict[str, Any]]:
    """A dict for each fact, for `Session.edit`."""
    listed = _listed("prompts", prompts, None)
    rows: list[dict[str, Any]] = [{"prompt": prompt} for prompt in listed]
    for key, name, given in (
        ("target", "target_new", target_new),
        ("subject", "subjects", subjects),
        ("target_true", "ground_truth", ground_truth),
        ("paraphrases", "rephrase_prompts", rephrase_prompts),
    ):
        if given is None:
            continue
        for row, value in zip(rows, _listed(name, given, len(rows))):
            if value is not None:
                row[key] = [value] if key == "paraphrases" and isinstance(value, str) else value
    for key, inputs in (("locality", locality_inputs), ("portability", portability_inputs)):
        for row, sections in zip(rows, _sections(f"{key}_inputs", inputs, len(rows))):
            if sections:
                row[key] = sections
    return rows


@_options.expanded
def edit(
    model: Any,
    tokenizer: Any = None,
    *,
    prompts: Texts,
    target_new: Texts,
    subjects: Texts | None = None,
    ground_truth: Texts | None = None,
    rephrase_prompts: Texts | None = None,
    locality_inputs: Inputs | None = None,
    portability_inputs: Inputs | None = None,
    method: str | None = None,
    evaluate: Sequence[Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    device: Any = None,
    dtype: str | None = None,
    progress: Shown = None,
    **options: Unpack[EditorOptions],
) -> Edit:
    """Edits facts that are given as lists, one entry a fact, as one batch.

    `model`: what `lancet.open` takes, opened with `device`, `dtype` and `progress`; or a session. `prompts`: with {} where
    the subject stands, or with the subject in them. `edit.session` is the session: `edit.session.generate(...)`.
    """
    _options.refuse_misspelt(edit, options)
    requests = records(prompts, target_new, subjects, ground_truth, rephrase_prompts, locality_inputs, portability_inputs)
    how: dict[str, Any] = {"method": method, "evaluate": evaluate, "statistics": statistics, "set": set, **options}
    if isinstance(model, Session):
        if given := [name for name, value in (("tokenizer", tokenizer), ("device", device), ("dtype", dtype), ("progress", progress)) if value is not None]:
            raise ConfigError(f"{', '.join(given)}: the session is open already: give it to lancet.open")
        made = model.edit(requests, **how)
        made.session = model
        return made
    session = open(model, tokenizer, device=device, dtype=dtype, progress=progress, planned_requests=max(len(requests), 1), **how)
    try:
        made = session.edit(requests)
    except BaseException:
        session.close()
        raise
    made.session = session
    return made
