"""AutoGPTQ's and AutoAWQ's own modules hold what is written of edited models, and compute what lancet does.

`make test-full` installs them (requirements-full.txt); elsewhere the test is skipped without them. AutoGPTQ as a whole does not import beside
transformers 5 (`no_init_weights` is gone), and AutoAWQ's matrix product needs a GPU: so a file of the one and the unpacking of the other
are used, in transformers' own model.
"""
import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch
from engine import ROOT, lancet_logits, nmse
from quantised_checkpoints import GROUP, quantise_checkpoint
from safetensors.torch import load_file
from test_families import rows
from test_quantised_edits import memit_on_demo
from transformers import AutoConfig, AutoModelForCausalLM

FULL = bool(os.environ.get("LANCET_TEST_FULL"))
BESIDE = Path(sys.prefix) / "beside"


@pytest.fixture(scope="module", autouse=True)
def packages():
    """On the path for these tests alone: PEFT and transformers use what they find."""
    if not all((BESIDE / name).is_dir() for name in ("auto_gptq", "awq")):
        assert not FULL, f"AutoGPTQ and AutoAWQ are not in {BESIDE}: make setup-full"
        pytest.skip("AutoGPTQ and AutoAWQ are not installed: make setup-full")
    there = set(sys.modules)
    sys.path.append(str(BESIDE))
    yield
    sys.path.remove(str(BESIDE))
    for name in set(sys.modules) - there:
        if name.split(".")[0] in ("awq", "auto_gptq_qlinear"):
            del sys.modules[name]


def gptq_module(size_in, size_out):
    if "auto_gptq_qlinear" not in sys.modules:
        file = BESIDE / "auto_gptq" / "nn_modules" / "qlinear" / "qlinear_cuda.py"
        of_file = importlib.util.spec_from_file_location("auto_gptq_qlinear", file)
        sys.modules["auto_gptq_qlinear"] = importlib.util.module_from_spec(of_file)
        of_file.loader.exec_module(sys.modules["auto_gptq_qlinear"])

    class OnHost(sys.modules["auto_gptq_qlinear"].QuantLinear):
        def forward(self, x):
            """By its own weights, in f16 as its scales are: what it makes of the unit vectors."""
            return x @ super().forward(torch.eye(self.infeatures, dtype=torch.float16)).float()

    return OnHost(4, GROUP, size_in, size_out, bias=False)


def awq_module(size_in, size_out):
    from awq.modules.linear import gemm

    class OnHost(gemm.WQLinear_GEMM):
        def forward(self, x):
            return x @ gemm.dequantize_gemm(self.qweight, self.qzeros, self.scales, self.w_bit, self.group_size).float()

    return OnHost(4, GROUP, size_in, size_out, False, "cpu")


def load_with(folder, make_module):
    """transformers' model of the folder, with the package's modules where the file has packed matrices; how many those are."""
    config = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    net, tensors = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval(), load_file(folder / "model.safetensors")
    packed = [name.removesuffix(".qweight") for name in tensors if name.endswith(".qweight")]
    for name in packed:
        linear = net.get_submodule(name)
        net.set_submodule(name, make_module(linear.in_features, linear.out_features))
    found = net.load_state_dict(tensors, strict=False)
    assert not found.unexpected_keys and set(found.missing_keys) <= {"lm_head.weight"}
    net.tie_weights()
    return net, len(packed)


FORMATS = {"gptq-4": gptq_module, "awq": awq_module}


@pytest.mark.parametrize("form", ["mixed", "quantised"])
@pytest.mark.parametrize("name", FORMATS)
@torch.no_grad()
def test_modules_of_their_own_compute_the_same(name, form, tmp_path):
    base = quantise_checkpoint(ROOT / "data" / "demo-model", tmp_path / name, name)
    folder, _, _ = memit_on_demo(tmp_path, base, "out", form, count=3)
    net, packed = load_with(folder, FORMATS[name])
    layers = net.config.num_hidden_layers
    assert packed == 7 * layers - (2 if form == "mixed" else 0)
    for row, ours in zip(rows([2, 13]), lancet_logits(folder, rows([2, 13]), "f32", tmp_path), strict=True):
        error = nmse(ours, net(torch.tensor([row])).logits[0])
        print(name, form, error)
        assert error <= 1e-11
