"""A session's weights and transformers' models: shared, written through a folder, or changed in place."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from ._progress import logger
from .errors import ConfigError

Writer = Callable[[str], None]
"""Writes the session's checkpoint into a new folder."""

INSTEAD = "save the session (session.save) and load that folder with from_pretrained instead"


def model_of(folder: str, capsules: list[tuple[str, Any]], model: Any) -> Any:
    """`capsules`: by the names of the tensors in the files. `model`: one that was made here before; else a new one."""
    from torch.utils.dlpack import from_dlpack

    _check_made(model)
    tensors = {name: from_dlpack(capsule) for name, capsule in capsules}
    devices = sorted({str(tensor.device) for tensor in tensors.values()})
    if len(devices) > 1:
        raise ConfigError(f"hf_model: the weights lie on {', '.join(devices)}, and transformers would not bring hidden states from one to the next: {INSTEAD}")
    made = _empty_model(folder, tensors) if model is None else model
    _assign(made, tensors)
    return made.eval()


def _check_made(model: Any) -> None:
    """Throws: ConfigError for what is no model of transformers."""
    if model is None:
        return
    if not hasattr(model, "base_model_prefix"):
        raise ConfigError(f"hf_model: model: expected a transformers model that hf_model returned before, got {type(model).__name__}")
    refuse_adapters(model, "hf_model: model")


def unwrapped(model: Any) -> Any:
    """The module itself, whose memory torch.compile and data parallelism share under names of their own."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            inner = model.module
        if inner is None:
            return model
        model = inner


def refuse_adapters(model: Any, where: str) -> None:
    """Throws: ConfigError where an adapter is in the model: its weights are others than those that it computes with, have
    other names, and save_pretrained writes the adapter alone."""
    if any(each.__name__ in ("PeftModel", "PeftMixedModel") for each in type(model).__mro__):
        raise ConfigError(f"{where}: a {type(model).__name__} keeps its adapter beside the weights: give model.merge_and_unload(), which adds it to them")
    inside = next((name for name, module in model.named_modules() if hasattr(module, "base_layer")), None) if hasattr(model, "named_modules") else None
    if inside is not None or getattr(model, "_hf_peft_config_loaded", False):
        at = f" (at {inside})" if inside is not None else ""
        raise ConfigError(
            f"{where}: a {type(model).__name__} with an adapter of PEFT in it{at}: give PeftModel.from_pretrained(model, ADAPTER).merge_and_unload(), of the model without it"
        )


def _empty_model(folder: str, tensors: dict[str, Any]) -> Any:
    """The architecture, with memory for its buffers alone."""
    import torch

    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise ConfigError("hf_model: transformers is not installed: pip install transformers") from error
    first = next(iter(tensors.values()))
    config = AutoConfig.from_pretrained(folder)
    with _ParametersOnMeta():
        model = AutoModelForCausalLM.from_config(config, dtype=first.dtype)
    return model.to(first.device) if first.device != torch.device("cpu") else model


class _ParametersOnMeta:
    """While it holds, parameters of this thread's new modules have no memory; buffers, which are computed, have theirs."""

    def __enter__(self) -> None:
        import threading

        import torch

        self.before, here = torch.nn.Module.register_parameter, threading.get_ident()
        before = self.before

        def register(module: Any, name: str, parameter: Any) -> None:
            before(module, name, parameter)
            if parameter is not None and threading.get_ident() == here:
                module._parameters[name] = torch.nn.Parameter(module._parameters[name].to("meta"), requires_grad=False)

        setattr(torch.nn.Module, "register_parameter", register)

    def __exit__(self, *_: object) -> None:
        import torch

        setattr(torch.nn.Module, "register_parameter", self.before)


def _assign(model: Any, tensors: dict[str, Any]) -> None:
    """Throws: ConfigError where transformers has other names or shapes than the files."""
    import torch

    parameters = dict(model.named_parameters(remove_duplicate=False))
    prefix = f"{model.base_model_prefix}."
    tied = set(getattr(model, "_tied_weights_keys", None) or ()) if model.config.tie_word_embeddings else set()
    assigned = {}
    for name, tensor in tensors.items():
        there = next((each for each in (name, prefix + name, name.removeprefix(prefix)) if each in parameters), None)
        if there is None:
            raise ConfigError(f"hf_model: {name}: transformers has no weight of this name in {type(model).__name__}, but may make it of several: {INSTEAD}")
        if parameters[there].shape != tensor.shape:
            raise ConfigError(f"hf_model: {name}: {list(tensor.shape)} in the files, {list(parameters[there].shape)} in transformers: {INSTEAD}")
        assigned[there] = torch.nn.Parameter(tensor, requires_grad=False)
    if missing := sorted(parameters.keys() - assigned.keys() - tied):
        raise ConfigError(f"hf_model: {missing[0]}: not among the files' tensors, nor {len(missing) - 1} more: {INSTEAD}")
    for name, parameter in assigned.items():
        module, _, last = name.rpartition(".")
        model.get_submodule(module)._parameters[last] = parameter
    model.tie_weights()
    left = [name for name, parameter in model.named_parameters() if parameter.is_meta]
    if left:
        raise ConfigError(f"hf_model: {left[0]}: transformers did not tie it to another weight: {INSTEAD}")


def is_packed(reason: ConfigError) -> bool:
    """Whether the session's weights are others than those that a saved folder has."""
    return "kept packed" in str(reason)


def tell_copied(reason: ConfigError) -> None:
    logger.info("hf_model: a copy, not the session's own memory: %s", str(reason).removeprefix("hf_model: ").removesuffix(f": {INSTEAD}"))


def stored(model: Any, tokenizer: Any) -> tuple[str, Any]:
    """A folder with a copy of the model and its tokenizer, and what keeps it."""
    model = unwrapped(model)
    for name, given in (("model", model), ("tokenizer", tokenizer)):
        if not hasattr(given, "save_pretrained"):
            raise ConfigError(f"{name}: expected {'a folder, a name of the hub, or a model' if name == 'model' else 'the tokenizer'} of transformers, got {type(given).__name__}")
    refuse_adapters(model, "model")
    kept = tempfile.TemporaryDirectory(prefix="lancet-model-")
    model.save_pretrained(kept.name)
    tokenizer.save_pretrained(kept.name)
    logger.info("open: a copy of the %s, which stays as it is: session.apply_to(model) brings edits into it", type(model).__name__)
    return kept.name, kept


def loaded(write: Writer) -> Any:
    """A model of its own, of the checkpoint that is written."""
    with tempfile.TemporaryDirectory(prefix="lancet-model-") as folder:
        target = str(pathlib.Path(folder) / "edited")
        write(target)
        return _from_folder(target)


def _from_folder(folder: str) -> Any:
    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise ConfigError("transformers is not installed: pip install transformers") from error
    return AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()


class Applied:
    """Edits in a model of transformers, which `undo` takes out again. At the end of a `with` they go by themselves."""

    def __init__(self, model: Any, before: Mapping[str, Any]) -> None:
        self._model, self._before = model, dict(before)

    @property
    def weights(self) -> list[str]:
        """The names of the weights that were changed; none after `undo`."""
        return list(self._before)

    def undo(self) -> None:
        """Puts the bits back that were there before. A second call does nothing."""
        _put(self._model.state_dict(keep_vars=True), self._before)
        self._before = {}

    def __enter__(self) -> Applied:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<lancet.Applied: {len(self._before)} weights of {type(self._model).__name__}>"


def _put(there: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    import torch

    with torch.no_grad():
        for name, tensor in tensors.items():
            there[name].copy_(tensor)


def apply_edits(model: Any, base: str, write: Writer) -> Applied:
    """Checks all before anything is changed."""
    import torch

    model = unwrapped(model)
    refuse_adapters(model, "apply_to: model")
    if not hasattr(model, "base_model_prefix"):
        raise ConfigError(f"apply_to: expected a model of transformers, got {type(model).__name__}")
    there = model.state_dict(keep_vars=True)
    unedited, edited = _from_folder(base).state_dict(), loaded(write).state_dict()
    if missing := sorted(edited.keys() - there.keys()):
        raise ConfigError(f"apply_to: {missing[0]}: {type(model).__name__} has no weight of this name, nor {len(missing) - 1} more")
    changed = {name: tensor for name, tensor in edited.items() if not torch.equal(tensor, unedited[name])}
    for name in changed:
        own = there[name].detach()
        if own.shape != unedited[name].shape or not torch.equal(own, unedited[name].to(own)):
            raise ConfigError(f"apply_to: {name}: expected the session's unedited weights, got others: take back what was applied before")
    before = {name: there[name].detach().clone() for name in changed}
    _put(there, changed)
    return Applied(model, before)
