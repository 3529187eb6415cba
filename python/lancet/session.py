"""A model in memory that is edited, measured, asked, put back and saved."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Union, overload

from . import _lancet, _options, _text
from ._hub import model_folder
from ._progress import Listener, Shown
from ._table import Requests, records_of
from ._words import called, of_session
from .errors import ConfigError
from .jobs import push_edits
from .report import Edit, Evaluation, ActiveEdits

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._editor_options import EditorOptions
    from ._hf import Applied

Path = Union[str, "os.PathLike[str]"]


class Generation(TypedDict, total=False):
    """Keywords of `Session.generate`."""

    tokens: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    max_new_tokens: int | None
    do_sample: bool | None


class Session:
    """A model, and the edits that stand in it. Made by `lancet.open`.

    One call at a time: a second thread waits. Each call is all or nothing: after an exception, KeyboardInterrupt among
    them, the weights are what they were before it.
    """

    def __init__(self, model: Path, run: list[str], editor: _Editor, progress: Shown, planned_requests: int) -> None:
        self._model, self._run, self._editor = _text.path(model, "model"), run, editor
        self._listener = Listener(progress)
        # A user's function may refer to the session: what lives until the session ends must not refer to it.
        self._engine = _lancet.Engine(weakref.proxy(self._listener), self._listener.delivery)
        # Also at the interpreter's end, while threads can still leave their calls.
        self._end = weakref.finalize(self, _lancet.Engine.close_at_exit, self._engine)
        self._in_use = editor
        self._temporary: Any = None
        try:
            self._call(self._engine.open, self._job(editor), planned_requests)
        except BaseException:
            self.close()
            raise

    @_options.expanded
    def edit(
        self,
        requests: Requests,
        *,
        method: str | None = None,
        evaluate: Sequence[Any] | None = None,
        statistics: Mapping[str, Any] | None = None,
        set: Mapping[str, Any] | None = None,
        **options: Unpack[EditorOptions],
    ) -> Edit:
        """One batch of edits, on the weights as they are.

        `requests`: dicts with `prompt`, `subject` and `target`, and what else a request file may have, or a DataFrame
        with such columns. `method`, `options`: of the editor (docs/options.md), over those of `lancet.open`; another
        method begins without them.
        """
        _options.refuse_misspelt(Session.edit, options)
        self._use(self._editor.with_more(_with_method(method, options), evaluate, statistics, set))
        records = self._with_ids(requests)
        made = self._call(self._engine.edit, _options.to_json(records, "requests"))
        return Edit(made)

    def evaluate(self, requests: Requests, *, evaluate: Sequence[Any] | None = None) -> Evaluation:
        """How well requests hold on the weights as they are. `evaluate`: by which protocols (docs/metrics.md); those of
        `lancet.open` where it is not given."""
        editor = self._in_use  # of what stands
        protocols = self._editor.evaluate if evaluate is None else evaluate
        self._use(_Editor(editor.options, protocols, editor.statistics, editor.changes))
        records = [{"id": str(i), **record} for i, record in enumerate(records_of(requests))]
        return Evaluation(self._call(self._engine.evaluate, _options.to_json(records, "requests")))

    def measure(self) -> ActiveEdits:
        """How the edits that stand hold now, by the protocols of `lancet.open` but `easyedit`: what stands, with it."""
        editor = self._in_use
        self._use(_Editor(editor.options, self._editor.evaluate, editor.statistics, editor.changes))
        self._call(self._engine.measure)
        return self.edits

    @overload
    def generate(self, prompts: str, **how: Unpack[Generation]) -> str: ...  # type: ignore[overload-overlap]  # a str is a sequence of str too
    @overload
    def generate(self, prompts: Sequence[str], **how: Unpack[Generation]) -> list[str]: ...

    def generate(
        self,
        prompts: str | Sequence[str],
        *,
        tokens: int = _options.default("generate", "tokens"),
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        max_new_tokens: int | None = None,
        do_sample: bool | None = None,
    ) -> str | list[str]:
        """Continues a prompt, or each of a list, with the likeliest token each time.

        Any of `temperature` (of the logits), `top_k` (so many likeliest tokens; 0: all) and `top_p` (the fewest whose
        probabilities sum to this) samples instead, with random numbers by `seed`; `do_sample=True` alone samples from
        the model's own distribution. `max_new_tokens`: transformers' name of `tokens`.
        """
        keywords = _transformers_keywords(dict(locals()))
        how = _options.to_json(_options.given("generate", keywords), "generate")
        texts = [text for text, _ in self._call(self._engine.generate, _text.texts(prompts, "prompts"), how)]
        return texts[0] if isinstance(prompts, str) else texts

    @overload
    def undo(self, edits: Edit | str | Iterable[str]) -> dict[str, Any]: ...
    @overload
    def undo(self, edits: None = None) -> dict[str, Any] | None: ...

    def undo(self, edits: Edit | str | Iterable[str] | None = None) -> dict[str, Any] | None:
        """Takes edits back: an Edit, ids, or nothing for the last call of edit(). The last ones go to the very bits from
        before them; others as `lancet undo --mode downdate` does. Returns what was taken back, and how; None: no edit
        stands."""
        if edits is None:
            if not self._call(self._engine.undo):
                return None
            return {"mode": "last", "gives_up": ""}
        ids = edits.ids if isinstance(edits, Edit) else _text.texts(edits, "edits")
        return json.loads(self._call(self._engine.undo_ids, ids))

    @property
    def edits(self) -> ActiveEdits:
        """What stands."""
        return ActiveEdits(self._call(self._engine.standing))

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """The edited model as `lancet edit` writes it, but for the report: for transformers, and for `edits=`. The
        folder appears complete or not at all. `overwrite`: one that lancet wrote may be there."""
        self._call(self._engine.save, _text.path(folder, "folder"), _exists(overwrite))

    def save_edits(self, folder: Path) -> None:
        """The edits alone, for `lancet.open(..., edits=folder)`. A folder that is there is replaced."""
        self._call(self._engine.save_edits, _text.path(folder, "folder"))

    def export_adapter(
        self,
        folder: Path,
        *,
        format: str = _options.default("adapter", "format"),
        dtype: str = _options.default("adapter", "dtype"),
        rank: int = _options.default("adapter", "rank"),
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """The edits as a LoRA adapter, for PEFT ("peft") or llama.cpp ("gguf"). `dtype`: of the factors; "auto": f16 in
        "gguf", f32 in "peft". `rank`: the largest."""
        how = _options.to_json(_options.given("adapter", locals()), "adapter")
        return json.loads(self._call(self._engine.export_adapter, _text.path(folder, "folder"), how, _exists(overwrite)))

    def push(
        self,
        url: str,
        edits: Path,
        *,
        server: str = "auto",
        name: str | None = None,
        instead_of: str | None = None,
        accept: Mapping[str, float] | None = None,
        asked: int = 50,
        rank: int = _options.default("adapter", "rank"),
        adapter_dir: Path | None = None,
        server_path: Path | None = None,
        token: str | None = None,
        timeout_s: int = 60,
    ) -> dict[str, Any]:
        """Loads the edits that stand into a running vLLM, SGLang or llama.cpp server, and asks it (docs/push.md).

        `edits`: the folder that they are kept in, replaced if it is there; what was pushed is noted beside it, for
        `lancet.undo_push(edits)` and `lancet push`. `accept`: {"efficacy": 0.9}; below it the push is taken back, and
        NumericError has the report. Returns the report.
        """
        job = {"edits": _text.path(edits, "edits"), "to": _text.text(url, "url"), "server": server, "name": name or "", "instead_of": instead_of or "", "accept": accept or {}, "asked": asked, "rank": rank}
        job |= {"adapter_dir": adapter_dir or "", "server_path": server_path or "", "token": token or "", "timeout_s": timeout_s, "model": self._model}
        _options.to_json(job, "")  # what is wrong with it is found before anything is written
        self.save_edits(edits)
        return push_edits(job, self._listener.shown)

    def restore(self, folder: Path) -> None:
        """The edits of a `save`, a `save_edits` or a `lancet edit` of the same model: the same bits."""
        self._call(self._engine.restore, _text.path(folder, "folder"))

    def hf_model(self, model: Any = None) -> Any:
        """The weights as they are as a transformers model, in the same memory where its tensors can be, else a copy,
        which a line of the log says.

        `model`: one that this returned before, which gets the weights as they are now. Edits put other tensors in the
        place of the session's own: a model that was made before them shows the weights from before.
        Raises ConfigError for weights that are kept packed.
        """
        from . import _hf

        folder = self._call(self._engine.folder)
        try:
            return _hf.model_of(folder, self._call(self._engine.tensors), model)
        except ConfigError as reason:
            if model is not None or _hf.is_packed(reason):
                raise
            _hf.tell_copied(reason)
            return self.to_transformers()

    def to_transformers(self) -> Any:
        """The weights as they are as a transformers model of its own, as `from_pretrained` makes it of a saved folder."""
        from . import _hf

        return _hf.loaded(self._written)

    def apply_to(self, model: Any) -> Applied:
        """Brings the edits that stand into a model of transformers, in place. It has to have the session's unedited
        weights. `Applied.undo()`, or the end of a `with`, puts the very bits back."""
        from . import _hf

        return _hf.apply_edits(model, self._model, self._written)

    def _written(self, folder: str) -> None:
        """The checkpoint in a new folder."""
        self.save(folder)

    def cancel(self) -> None:
        """From any thread: ends the call that runs, which raises Cancelled. Nothing where none runs."""
        self._engine.cancel()

    def close(self) -> None:
        """Frees the model. A call that runs in another thread is cancelled first."""
        self._engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        self._end.detach()

    @property
    def closed(self) -> bool:
        """Whether the model was freed: every call but `close` raises then."""
        return self._engine.is_closed

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lancet.Session of {self._model}{', closed' if self.closed else ''}>"

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return called(function, *arguments, say=of_session)
        finally:
            self._listener.end()

    def _job(self, editor: _Editor) -> _lancet.JobText:
        return _lancet.JobText(_options.to_json({"model": self._model}, "model"), "", self._run + editor.assignments())

    def _use(self, editor: _Editor) -> None:
        if editor.assignments() != self._in_use.assignments():
            self._call(self._engine.use, self._job(editor))
        self._in_use = editor

    def _with_ids(self, requests: Requests) -> list[dict[str, Any]]:
        """Those without an id get the next number that no edit has or had, from 0 on."""
        records = [dict(record) for record in records_of(requests)]
        given = [_text.text(str(record["id"]), "requests: id") for record in records if "id" in record]
        ids = iter(self._call(self._engine.new_ids, given, len(records) - len(given)))
        return [record if "id" in record else {"id": next(ids), **record} for record in records]


class _Editor:
    """What edits, and by what it is measured: sections of a job but for `model` and `run`."""

    def __init__(self, options: Mapping[str, Any], evaluate: Any, statistics: Any, changes: Mapping[str, Any] | None) -> None:
        self.options, self.evaluate, self.statistics, self.changes = dict(options), evaluate, statistics, dict(changes or {})

    def with_more(self, options: Mapping[str, Any], evaluate: Any, statistics: Any, changes: Mapping[str, Any] | None) -> _Editor:
        """Options of one method say nothing about another."""
        begun = dict(self.options) if options.get("method") in (None, self.options.get("method")) else {}
        return _Editor(
            {**begun, **options},
            self.evaluate if evaluate is None else evaluate,
            {**(self.statistics or {}), **(statistics or {})},
            {**self.changes, **(changes or {})},
        )

    def assignments(self) -> list[str]:
        told = _options.section("editor", self.options) + _options.section("statistics", self.statistics or {})
        if self.evaluate is not None:
            told += [f"evaluate={_options.to_json(list(self.evaluate), 'evaluate')}"]
        return told + _options.changes(self.changes)


@_options.expanded
def open(
    model: Any,
    tokenizer: Any = None,
    *,
    edits: Path | None = None,
    devices: str | Sequence[str] | None = None,
    balance: str | None = None,
    dtype: str | None = None,
    quantise_base: str | None = None,
    solve_on: str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    cuda_graphs: bool | None = None,
    method: str | None = None,
    evaluate: Sequence[Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    planned_requests: int = 100,
    progress: Shown = None,
    device: Any = None,
    **options: Unpack[EditorOptions],
) -> Session:
    """Loads a model: a folder, a name of the hub that was downloaded, or a model of transformers with its tokenizer.

    A model of transformers is copied, which a line of the log says, through a folder that lasts as long as the session.
    `edits`: a folder of edits that shall stand in it. `devices` to `cuda_graphs`: the job's `run` (docs/options.md).
    `method`, `options`, `statistics`, `evaluate`: what edits and measures where a call of edit() says nothing else; what
    is not given is chosen as by `lancet edit --model`. `set`: any key of the job, {"run.dtype": "f32"}.
    `planned_requests`: of one edit, for which there is to be memory on the devices. `progress`: False for none, or a
    function that gets each `Progress`; an exception of it ends the call. `device`: another name of `devices`, which may
    be a torch.device; "cuda" is the first GPU, as torch's.
    """
    keywords = dict(locals())
    _options.refuse_misspelt(open, options)
    if device is not None:
        if devices is not None:
            raise ConfigError("device is another name of devices: expected one of the two")
        keywords["devices"] = "cuda:0" if str(device) == "cuda" else str(device)
    run = _options.section("run", _options.given("run", keywords))
    given = dict(set or {})
    run += _options.changes({key: given.pop(key) for key in list(given) if key == "run" or key.startswith("run.")})
    if "model" in given:
        raise ConfigError("set: model: it is the first argument of lancet.open")
    folder, temporary = _folder_of(model, tokenizer)
    session = Session(folder, run, _Editor(_with_method(method, options), evaluate, statistics, given), progress, planned_requests)
    session._temporary = temporary
    if edits is not None:
        try:
            session.restore(edits)
        except BaseException:
            session.close()
            raise
    return session


def _folder_of(model: Any, tokenizer: Any) -> tuple[str, Any]:
    """Where the model lies, and what keeps a folder that was made for it."""
    if isinstance(model, (str, os.PathLike)):
        if tokenizer is not None:
            raise ConfigError("tokenizer: a model's folder has its own: expected none")
        return model_folder(_text.path(model, "model")), None
    from . import _hf

    return _hf.stored(model, tokenizer)


def _transformers_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """`max_new_tokens` and `do_sample` as the options that they stand for."""
    if keywords["max_new_tokens"] is not None:
        if keywords["tokens"] != _options.default("generate", "tokens"):
            raise ConfigError("max_new_tokens is another name of tokens: expected one of the two")
        keywords["tokens"] = keywords["max_new_tokens"]
    drawing = [key for key in ("temperature", "top_k", "top_p", "seed") if keywords[key] is not None]
    if keywords["do_sample"] is False and drawing:
        raise ConfigError(f"do_sample=False: the likeliest token is taken each time, so {', '.join(drawing)} would change nothing")
    if keywords["do_sample"] and drawing in ([], ["seed"]):
        keywords["temperature"] = 1.0
    return keywords


def _with_method(method: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(options) if method is None else {"method": method, **options}


def _exists(overwrite: bool) -> str:
    return "replace" if overwrite else "error"
