"""Decides what a transformers model computes in float64: everything.

transformers takes norms, softmax, rotary embeddings and routers in float32 whatever the model's dtype, so that a model in
double agrees with another program to 1e-7 alone. Inside `double_precision()` each request for float32 is one for float64,
when the model is made and when it runs.
"""
import contextlib

import torch
from torch.overrides import TorchFunctionMode


def widened(value):
    return torch.float64 if value is torch.float32 else value


class Widen(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        result = function(*map(widened, args), **{name: widened(value) for name, value in (kwargs or {}).items()})
        is_narrow = isinstance(result, torch.Tensor) and result.dtype == torch.float32
        assert not is_narrow, f"{function} gave float32"
        return result


@contextlib.contextmanager
def double_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Widen():
            yield
    finally:
        torch.set_default_dtype(before)


def load_double(folder):
    """The causal language model of a folder, weights and buffers in float64; run it inside `double_precision()`."""
    from transformers import AutoModelForCausalLM

    plain = dict(attn_implementation="eager", experts_implementation="eager")
    with double_precision():
        net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, **plain).eval()
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        assert tensor.dtype == torch.float64 or not tensor.is_floating_point(), f"{name} is {tensor.dtype}"
    return net
