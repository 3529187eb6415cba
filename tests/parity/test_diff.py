"""`lancet diff` on a checkpoint that another program edited: its low-rank change comes back as data.

The program is bench/plain_memit.py, whose own f32 result is the oracle. Its change of each weight has as many
directions as it edited facts.
"""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from engine import ROOT, nmse, run_binary
from safetensors.torch import load_file, save_file
from test_adapters import DEMO

REFERENCE = ROOT / "bench" / "plain_memit.py"
FACTS = 4
WEIGHTS = [f"model.layers.{layer}.mlp.down_proj" for layer in (0, 1)]


@pytest.fixture(scope="module")
def deltas(tmp_path_factory):
    """What the reference added to each weight, f32."""
    dump = tmp_path_factory.mktemp("reference") / "dump.npz"
    data = ROOT / "data" / "requests"
    command = [sys.executable, REFERENCE, "--model", DEMO, "--facts", data / "demo.json", "--corpus", data / "demo-corpus.txt", "--no-eval"]
    command += ["--n", FACTS, "--lines", 100, "--steps", 3, "--threads", 1, "--dump", dump]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=os.environ | dict(OMP_NUM_THREADS="1"))
    assert done.returncode == 0, done.stderr
    archive = np.load(dump)
    return {name: torch.from_numpy(archive[f"delta{layer}"]) for layer, name in enumerate(WEIGHTS)}


def edited(deltas, folder, dtype):
    """The model folder as the reference would save it: its f32 weights, rounded to the type."""
    folder.mkdir()
    for file in DEMO.iterdir():
        if file.name != "model.safetensors":
            (folder / file.name).write_bytes(file.read_bytes())
    tensors = {name: tensor.float() for name, tensor in load_file(DEMO / "model.safetensors").items()}
    for name, delta in deltas.items():
        tensors[name + ".weight"] += delta
    save_file({name: tensor.to(dtype) for name, tensor in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    return {name: tensors[name + ".weight"] for name in deltas}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_an_edit_of_another_program_becomes_data(deltas, dtype, tmp_path):
    results = edited(deltas, tmp_path / "edited", dtype)
    run_binary("lancet", "diff", DEMO, tmp_path / "edited", "--out", tmp_path / "found", "--devices", "cpu", "--quiet")
    report = json.loads((tmp_path / "found" / "diff.json").read_text())
    is_exact = dtype == torch.float32
    assert [weight["weight"] for weight in report["different"]] == [name + ".weight" for name in WEIGHTS]
    equal = report["weights"]
    assert equal["equal_bytes"] + equal["equal_numbers"] == 72 and equal["equal_bytes"] == (0 if is_exact else 72)
    base, stored = load_file(DEMO / "model.safetensors"), load_file(tmp_path / "edited" / "model.safetensors")
    adapter = load_file(tmp_path / "found" / "adapter_model.safetensors")
    for weight, (name, result) in zip(report["different"], results.items(), strict=True):
        spectrum = weight["spectrum"]
        assert spectrum["rank"] == FACTS and spectrum["low_rank"], spectrum
        assert spectrum["rule"] == ("tolerance" if is_exact else "rounding")
        values = torch.linalg.svdvals(stored[name + ".weight"].double() - base[name + ".weight"].double())
        assert torch.allclose(torch.tensor(spectrum["singular_values"][:FACTS]).double(), values[:FACTS], rtol=1e-6)
        assert abs(weight["norm"] - values.norm()) <= 1e-9 * values.norm()
        left, right = (adapter[f"base_model.model.{name}.lora_{side}.weight"].double() for side in "BA")
        applied = base[name + ".weight"].double() + left @ right
        lost = (stored[name + ".weight"].double() - applied).norm()
        assert abs(weight["adapter"]["lost_norm"] - lost) <= 1e-3 * lost + 1e-6 * weight["norm"]
        error = nmse(applied, result)
        if is_exact:
            assert error <= 1e-12, error
        else:  # what rounding took is gone in part: the factors are nearer to the f32 result than what was stored
            assert error <= 0.3 * nmse(stored[name + ".weight"], result), error
            assert (applied.bfloat16() == stored[name + ".weight"]).double().mean() > 0.7


def test_peft_and_lancet_read_what_was_found(deltas, tmp_path):
    peft = pytest.importorskip("peft")
    from engine import answer_jobs
    from test_adapters import load

    results = edited(deltas, tmp_path / "edited", torch.float32)
    run_binary("lancet", "diff", DEMO, tmp_path / "edited", "--out", tmp_path / "found", "--devices", "cpu", "--quiet")
    merged = peft.PeftModel.from_pretrained(load(DEMO), tmp_path / "found").merge_and_unload().state_dict()
    job = dict(model=str(DEMO), adapter=str(tmp_path / "found"), out=str(tmp_path / "sums.safetensors"))
    assert answer_jobs("adapter_files", {"a": job}, tmp_path)["a"] == [name + ".weight" for name in WEIGHTS]
    sums = load_file(tmp_path / "sums.safetensors")
    for name, result in results.items():
        assert nmse(merged[name + ".weight"], result) <= 1e-12
        assert nmse(sums[name + ".weight"], deltas[name]) <= 1e-11
