"""lm-evaluation-harness on a model that lancet has loaded.

``lm_eval --model lancet --model_args path=out/demo`` measures a folder, ``evaluate(session, tasks)`` an open session,
and ``evaluate: {lm_eval: [...]}`` in a job that ``lancet.run`` runs measures before and after the edit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from lm_eval import simple_evaluate, utils
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import (
    handle_stop_sequences,
    has_bos_prefix,
    normalize_gen_kwargs,
    postprocess_generated_text,
)
from lm_eval.tasks import TaskManager

import lancet
from lancet.errors import ConfigError

_log = logging.getLogger("lancet")

#: What lm-evaluation-harness calls the metrics that are shares of questions; the others are numbers of their own.
_SHARES = {"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em", "f1", "mc1", "mc2"}
_UNITS = {"perplexity": "perplexity", "word_perplexity": "perplexity", "byte_perplexity": "perplexity", "bits_per_byte": "bits"}


@register_model("lancet")
class LancetLM(TemplateLM):
    """A model as lm-evaluation-harness asks one; greedy generation alone.

    Rows are put together as lancet's own evaluation does it: by their tokens, with what they begin with in common run
    once. ``batch_size`` is taken and changes nothing.
    """

    def __init__(
        self,
        path: str | None = None,
        session: lancet.Session | None = None,
        *,
        devices: str | list[str] | None = None,
        device: str | None = None,
        dtype: str | None = None,
        max_length: int | None = None,
        max_gen_toks: int = 256,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        model: Any = None,
    ) -> None:
        super().__init__()
        if [path, session, model].count(None) != 2:
            raise ConfigError("LancetLM: expected a path or a session, one of them")
        self._owned = None
        if path is not None:
            where = devices if devices is not None else _device_at_hand(device)
            if isinstance(where, str):
                where = where.split("+")  # commas separate model_args
            session = self._owned = lancet.open(path, devices=where, dtype=dtype, progress=False)
        elif devices is not None or dtype is not None:
            raise ConfigError("LancetLM: devices and dtype are the session's: expected a path with them")
        self._path = path
        self._model = model if session is None else session._engine
        self._max_length = int(max_length) if max_length is not None else self._model.max_positions()
        self._max_gen_toks = int(max_gen_toks)
        self._bos, self._eos = self._model.bos_id(), self._model.eos_id()

    def close(self) -> None:
        """Frees a model that was opened by its path."""
        if self._owned is not None:
            self._owned.close()

    @property
    def eot_token_id(self) -> int:
        if self._eos is None:
            raise ConfigError("LancetLM: this tokenizer has no EOS, which stands for an empty context")
        return self._eos

    @property
    def prefix_token_id(self) -> int:
        return self._bos if self._bos is not None else self.eot_token_id

    @property
    def max_length(self) -> int:
        return self._max_length

    @property
    def max_gen_toks(self) -> int:
        return self._max_gen_toks

    @property
    def tokenizer_name(self) -> str:
        return (self._path or "").replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, left_truncate_len: int | None = None, **kwargs: Any) -> list[int]:
        if add_special_tokens is None:
            add_special_tokens = not has_bos_prefix(string, self._model.piece(self.prefix_token_id))
        ids = self._model.encode([string], "add" if add_special_tokens else "none")[0]
        return ids[-left_truncate_len:] if left_truncate_len else ids

    def tok_decode(self, tokens: Sequence[int]) -> str:
        return self._model.decode([list(tokens)])[0]

    def _loglikelihood_tokens(self, requests: Sequence[Any], disable_tqdm: bool = False, **kwargs: Any) -> list[tuple[float, bool]]:
        pairs, n_cut = [], 0
        for _, context, continuation in requests:
            ids = (list(context) + list(continuation))[-(self.max_length + 1) :]
            if len(continuation) >= len(ids):
                raise ConfigError(f"LancetLM: a continuation of {len(continuation)} tokens leaves no room for a context in {self.max_length}")
            n_cut += len(ids) < len(context) + len(continuation)
            pairs.append((ids[: -len(continuation)], list(continuation)))
        if n_cut:
            _log.warning("%d contexts were cut from the left to the model's %d tokens", n_cut, self.max_length)
        answers = self._model.score(pairs)
        for (texts, _, _), answer in zip(requests, answers):
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, answer)
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        texts = [request.args[0] for request in requests]
        windows = []
        for index, text in enumerate(texts):
            for window in utils.get_rolling_token_windows(
                token_list=self.tok_encode(text), prefix_token=self.prefix_token_id, max_seq_len=self.max_length, context_len=1
            ):
                windows.append((index, None, *utils.make_disjoint_window(window)))
        sums = [0.0] * len(texts)
        for (index, *_), (value, _) in zip(windows, self._loglikelihood_tokens([window[1:] for window in windows])):
            sums[index] += value
        for text, value in zip(texts, sums):
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), value)
        return sums

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        answers = [""] * len(requests)
        by_options = sorted(range(len(requests)), key=lambda i: repr(requests[i].args[1]))
        for _, group in groupby(by_options, key=lambda i: repr(requests[i].args[1])):
            self._generate([(i, requests[i].args) for i in group], answers)
        return answers

    def _generate(self, asked: Sequence[Any], answers: list[str]) -> None:
        """Of requests with the same options."""
        options = normalize_gen_kwargs(asked[0][1][1], self.max_gen_toks)
        if options.pop("do_sample") or options.pop("temperature", 0.0):
            raise ConfigError("LancetLM: generates greedily; expected a task without do_sample and temperature")
        stops = handle_stop_sequences(options.pop("until", None), eos=self._model.piece(self.eot_token_id))
        tokens = options.pop("max_gen_toks")
        if options:
            raise ConfigError(f"LancetLM: expected no other options of generation than until and max_gen_toks, got {', '.join(options)}")
        room = self.max_length - tokens
        if room <= 0:
            raise ConfigError(f"LancetLM: max_gen_toks {tokens}: expected less than the model's {self.max_length} tokens")
        prompts = [(self.tok_encode(context, left_truncate_len=room), tokens) for _, (context, _) in asked]
        rows = self._model.continue_greedily(prompts, stops)
        for (index, arguments), text in zip(asked, self._model.decode(rows)):
            answers[index] = postprocess_generated_text(generation=text, stop=stops, think_end_token=None)
            self.cache_hook.add_partial("generate_until", arguments, answers[index])


def _device_at_hand(device: str | None) -> str | None:
    """The harness's default is cuda:0 also where there is none."""
    import torch

    if device is None or device == "cuda" or (device.startswith("cuda") and not torch.cuda.is_available()):
        return None
    return device


def evaluate(session: lancet.Session, tasks: list[str], **options: Any) -> dict[str, Any]:
    """lm-evaluation-harness's results for tasks on the session's weights as they are.

    ``options``: of ``lm_eval.simple_evaluate`` (num_fewshot, limit, task_manager, ...).
    """
    seeds: dict[str, Any] = {"random_seed": None, "numpy_random_seed": None, "torch_random_seed": None}
    return simple_evaluate(model=LancetLM(session=session), tasks=list(tasks), **{**seeds, **options})


@lru_cache(maxsize=4)
def _manager(include: str, tasks: tuple[str, ...]) -> TaskManager:
    """Knows the tasks. The harness's own are thousands of files, which are read only where `include` has not all."""
    if include:
        manager = TaskManager(include_path=include, include_defaults=False)
        if all(manager.match_tasks([task]) for task in tasks):
            return manager
    return TaskManager(include_path=include or None)


def check_tasks(options: str) -> None:
    """Called by a job before it loads a model."""
    asked = json.loads(options)
    manager = _manager(asked["include"], tuple(asked["tasks"]))
    unknown = [task for task in asked["tasks"] if not manager.match_tasks([task])]
    if unknown:
        raise ConfigError(f"{', '.join(unknown)}: no tasks of lm-evaluation-harness, nor of {asked['include'] or 'evaluate.lm_eval.include'}")


def run_tasks(model: Any, options: str) -> str:
    """Called by a job; its scores as JSON."""
    asked = json.loads(options)
    results = simple_evaluate(
        model=LancetLM(model=model),
        tasks=asked["tasks"],
        task_manager=_manager(asked["include"], tuple(asked["tasks"])),
        num_fewshot=asked["shots"],
        limit=asked["limit"],
        log_samples=False,
        bootstrap_iters=0,
        random_seed=None,
        numpy_random_seed=None,
        torch_random_seed=None,
    )
    return json.dumps(list(_scores(results)))


def _scores(results: dict[str, Any]) -> Iterator[dict[str, Any]]:
    counts = {task: entry["effective"] for task, entry in results["n-samples"].items()}
    for task, metrics in results["results"].items():
        questions = counts.get(task) or sum(counts.get(part, 0) for part in results["group_subtasks"].get(task, []))
        better = results["higher_is_better"].get(task) or {}
        for name, value in metrics.items():
            metric = name.split(",")[0]
            if "," not in name or metric.endswith("_stderr") or not isinstance(value, (int, float)):
                continue
            yield {
                "task": task,
                "metric": name,
                "value": float(value),
                "questions": questions,
                "unit": "share" if metric in _SHARES else _UNITS.get(metric, "number"),
                "higher_is_better": bool(better.get(metric, True)),
            }
