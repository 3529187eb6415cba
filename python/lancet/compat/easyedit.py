"""EasyEdit's editor for language models on lancet's engine: a script changes its import alone.

    from lancet.compat.easyedit import BaseEditor, MEMITHyperParams

    hparams = MEMITHyperParams.from_hparams("./hparams/MEMIT/llama-7b")
    editor = BaseEditor.from_hparams(hparams)
    metrics, edited_model, _ = editor.edit(prompts=prompts, ground_truth=ground_truth, target_new=target_new, subject=subject)

What differs is told by a warning that names it: keys of a file that lancet does not use, for example.
Source of the interface: zjunlp/EasyEdit, easyeditor/editors/editor.py, easyeditor/util/hparams.py.
"""

from __future__ import annotations

import json
import pathlib
import tempfile
import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from .. import _lancet, _text
from .._progress import Shown
from .._words import called
from ..errors import ConfigError, EditWarning
from ..facts import Inputs, Texts, records
from ..report import Edit
from ..session import Session, open

Params = TypeVar("Params", bound="HyperParams")
Metrics = list[dict[str, Any]]


class HyperParams:
    """A file of hyper-parameters. Its keys are attributes, which may be changed before the editor is made of it."""

    algorithm: ClassVar[str | None] = None

    def __init__(self, **keys: Any) -> None:
        self.__dict__.update(keys)

    @classmethod
    def from_hparams(cls: type[Params], hparams_name_or_path: str) -> Params:
        """Reads a YAML file, which may be named without .yaml."""
        hparams_name_or_path = _text.path(hparams_name_or_path, "hparams_name_or_path")
        path = hparams_name_or_path if hparams_name_or_path.endswith(".yaml") else hparams_name_or_path + ".yaml"
        keys = json.loads(called(_lancet.config_json, path))
        if not isinstance(keys, dict):
            raise ConfigError(f"{path}: expected keys and values")
        if cls.algorithm is not None and keys.get("alg_name", cls.algorithm) != cls.algorithm:
            raise ConfigError(f"{path}: expected alg_name {cls.algorithm}, got {keys['alg_name']}")
        return cls(**keys)

    def options(self) -> dict[str, Any]:
        """Sections of a job. Warns of keys that lancet does not use; raises ConfigError for values that it cannot honour."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "hparams.yaml"
            file.write_text(json.dumps(vars(self), default=str))
            try:
                imported = json.loads(called(_lancet.imported_hparams, str(file), ""))
            except ConfigError as error:
                raise ConfigError(str(error).replace(str(file), "hparams")) from None
        unused = [f"{key['key']} ({key['what']})" for key in imported["keys"] if key["fate"] in ("not used", "unknown")]
        if unused:
            warnings.warn(f"hparams: not used: {'; '.join(unused)}", EditWarning, stacklevel=4)
        return imported["job"]


class MEMITHyperParams(HyperParams):
    """A file of `alg_name: MEMIT`."""

    algorithm = "MEMIT"


class ROMEHyperParams(HyperParams):
    """A file of `alg_name: ROME`."""

    algorithm = "ROME"


class RROMEHyperParams(HyperParams):
    """A file of `alg_name: R-ROME`."""

    algorithm = "R-ROME"


class EMMETHyperParams(HyperParams):
    """A file of `alg_name: EMMET`."""

    algorithm = "EMMET"


class AlphaEditHyperParams(HyperParams):
    """A file of `alg_name: AlphaEdit`."""

    algorithm = "AlphaEdit"


class PMETHyperParams(HyperParams):
    """A file of `alg_name: PMET`."""

    algorithm = "PMET"


class FTHyperParams(HyperParams):
    """A file of `alg_name: FT`."""

    algorithm = "FT"


class UltraEditHyperParams(HyperParams):
    """A file of `alg_name: ULTRAEDIT`."""

    algorithm = "ULTRAEDIT"


class BaseEditor:
    """Edits a model by one file of hyper-parameters. `options`: of `lancet.open`, over the file's."""

    def __init__(self, hparams: HyperParams, *, progress: Shown = None, **options: Any) -> None:
        self.hparams = hparams
        job = hparams.options()
        how: dict[str, Any] = {**job.get("editor", {}), **job.get("run", {}), "statistics": job.get("statistics"), **options}
        if "devices" not in how and "device" not in how:
            how["devices"] = _device_of(hparams)
        model = getattr(hparams, "model_name", None)
        if model is None:
            raise ConfigError("hparams: expected model_name: a folder, a name of the hub, or (model, tokenizer)")
        given = model if isinstance(model, (tuple, list)) else (model,)
        self.session: Session = open(*given, evaluate=["easyedit"], progress=progress, **how)

    @classmethod
    def from_hparams(cls, hparams: HyperParams, **options: Any) -> BaseEditor:
        """The editor itself, as EasyEdit's scripts make it."""
        return cls(hparams, **options)

    def edit(
        self,
        prompts: Texts,
        target_new: Texts,
        ground_truth: Texts | None = None,
        rephrase_prompts: Texts | None = None,
        locality_inputs: Inputs | None = None,
        portability_inputs: Inputs | None = None,
        sequential_edit: bool = False,
        verbose: bool = True,
        *,
        subject: Texts | None = None,
        test_generation: bool = False,
        **others: Any,
    ) -> tuple[Metrics, Any, dict[str, Any]]:
        """Each fact alone, on the unedited weights; `sequential_edit`: one after the other, and all are measured at the end.

        Returns metrics in EasyEdit's shape, a model of transformers with the last edit (sequential: all edits), and the
        weights that it changes as they were before. The session has the edits of a sequence alone.
        """
        facts = self._facts(others, prompts, target_new, subject, ground_truth, rephrase_prompts, locality_inputs, portability_inputs)
        if sequential_edit and locality_inputs:
            warnings.warn("locality_inputs: of a sequence the locality is that right after each edit, not after the last", EditWarning, stacklevel=2)
        before = self.session.hf_model()
        metrics: Metrics = []
        after = before
        for number, fact in enumerate(facts):
            edit, seconds = self._edited([fact])
            metrics += _metrics_of(edit, [fact], number, seconds, test_generation)
            if not sequential_edit:
                after = self.session.hf_model() if number == len(facts) - 1 else after
                self.session.undo(edit)
        if sequential_edit:
            after = self.session.hf_model()
            self._measure_again(metrics, facts)
        return _told(metrics, verbose), after, _changed(before, after)

    def batch_edit(
        self,
        prompts: Texts,
        target_new: Texts,
        ground_truth: Texts | None = None,
        rephrase_prompts: Texts | None = None,
        locality_inputs: Inputs | None = None,
        portability_inputs: Inputs | None = None,
        keep_original_weight: bool = False,
        verbose: bool = True,
        *,
        subject: Texts | None = None,
        test_generation: bool = False,
        **others: Any,
    ) -> tuple[Metrics, Any, dict[str, Any]]:
        """Batches of `hparams.batch_size` facts, each on the unedited weights. Returns as `edit`, of the last batch."""
        facts = self._facts(others, prompts, target_new, subject, ground_truth, rephrase_prompts, locality_inputs, portability_inputs)
        if keep_original_weight:
            raise ConfigError("keep_original_weight: expected False: each batch begins with the unedited weights")
        size = int(getattr(self.hparams, "batch_size", len(facts)))
        before = after = self.session.hf_model()
        metrics: Metrics = []
        for begin in range(0, len(facts), size):
            batch = facts[begin : begin + size]
            edit, seconds = self._edited(batch)
            metrics += _metrics_of(edit, batch, begin, seconds, test_generation)
            after = self.session.hf_model()
            self.session.undo(edit)
        return _told(metrics, verbose), after, _changed(before, after)

    def _facts(self, others: Mapping[str, Any], *lists: Any) -> list[dict[str, Any]]:
        prompts, target_new, subject, *rest = lists
        if given := [name for name, value in others.items() if value is not None]:
            raise ConfigError(f"{', '.join(given)}: lancet does not honour {'it' if len(given) == 1 else 'them'}: leave {'it' if len(given) == 1 else 'them'} out")
        return records(prompts, target_new, subject, *rest)

    def _edited(self, facts: list[dict[str, Any]]) -> tuple[Edit, float]:
        begun = time.monotonic()
        edit = self.session.edit(facts)
        return edit, time.monotonic() - begun

    def _measure_again(self, metrics: Metrics, facts: list[dict[str, Any]]) -> None:
        """After a sequence: all but locality, which is beside the unedited model."""
        measured = self.session.evaluate(facts)
        for row, request in zip(metrics, measured.requests):
            locality = row["post"]["locality"]
            row["post"] = _quality(request.json["metrics"], "after", "fluency" in row["post"])
            row["post"]["locality"] = locality


def _device_of(hparams: HyperParams) -> str:
    """`device: 1` is the GPU of that number there."""
    device = getattr(hparams, "device", None)
    if device is None or getattr(hparams, "model_parallel", False):
        return "auto"
    import torch

    if isinstance(device, int) and device < torch.cuda.device_count():
        return f"cuda:{device}"
    if str(device) != "cpu":
        warnings.warn(f"hparams: device: {device}: there is no such GPU: lancet chooses devices", EditWarning, stacklevel=4)
    return "cpu" if str(device) == "cpu" else "auto"


def _quality(metrics: Mapping[str, Any], when: str, has_fluency: bool) -> dict[str, Any]:
    """A model's metrics in EasyEdit's shape. A request's several prompts of a kind are one mean here."""
    told: dict[str, Any] = {"locality": {}, "portability": {}}
    for name, values in metrics.items():
        value, short = values[when], name.removeprefix("easyedit_")
        if value is None:
            continue
        for section in ("locality", "portability"):
            if short.startswith(section + "_"):
                told[section][short.removeprefix(section + "_")] = [value]
        if short in ("rewrite_acc", "rephrase_acc"):
            told[short] = [value]
        if short == "fluency" and has_fluency:
            told["fluency"] = {"ngram_entropy": value}
    return told


def _metrics_of(edit: Edit, facts: list[dict[str, Any]], first: int, seconds: float, has_fluency: bool) -> Metrics:
    rows = []
    for number, (request, fact) in enumerate(zip(edit.requests, facts), first):
        metrics = request.json["metrics"]
        before, after = (_quality(metrics, when, has_fluency) for when in ("before", "after"))
        del before["locality"]  # it is what the edited model is compared with
        rewrite = {
            "prompt": fact["prompt"],
            "target_new": fact["target"],
            "ground_truth": fact.get("target_true", "<|endoftext|>"),
            "subject": fact.get("subject"),
            "locality": fact.get("locality", {}),
            "portability": fact.get("portability", {}),
        }
        if "paraphrases" in fact:
            rewrite["rephrase_prompt"] = fact["paraphrases"][0]
        rows.append({"pre": before, "case_id": number, "requested_rewrite": rewrite, "time": seconds, "post": after})
    return rows


def _told(metrics: Metrics, verbose: bool) -> Metrics:
    if verbose:
        from .._progress import logger

        for row in metrics:
            logger.info("%s editing: %s -> %s", row["case_id"], row["requested_rewrite"]["prompt"], row["requested_rewrite"]["target_new"])
    return metrics


def _changed(before: Any, after: Any) -> dict[str, Any]:
    """The weights of `before` that are others in `after`."""
    import torch

    edited = dict(after.named_parameters())
    return {
        name: weight.detach()
        for name, weight in before.named_parameters()
        if weight.data_ptr() != edited[name].data_ptr() and not torch.equal(weight, edited[name])
    }
