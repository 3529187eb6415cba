"""A session's weights as a transformers model, without a copy."""

from __future__ import annotations

from typing import Any

from .errors import ConfigError

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
    if model is not None and not hasattr(model, "base_model_prefix"):
        raise ConfigError(f"hf_model: model: expected a transformers model that hf_model returned before, got {type(model).__name__}")


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

        torch.nn.Module.register_parameter = register  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        import torch

        torch.nn.Module.register_parameter = self.before  # type: ignore[method-assign]


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
