"""Edits of a GGUF file as an adapter: `lancet export adapter` finds the model without an option, and the factors have what the file's matrices have."""
import json
import sys

import pytest
from conftest import DATA, ROOT, SMALL_JOB, run_lancet, run_ok
from safetensors.torch import load_file

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import gguf_files  # noqa: E402

DEMO = DATA / "demo-model"
LAYERS = (0, 1)


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """A file of BF16, and the output in which its edited matrices are F32."""
    folder = tmp_path_factory.mktemp("edited")
    base = gguf_files.demo_model(DEMO, folder / "demo.gguf", "BF16")
    job = SMALL_JOB | {"model": str(base), "output": {"dir": str(folder / "out"), "gguf_type": "F32"}}
    (folder / "job.json").write_text(json.dumps(job))
    run_ok(run_lancet(folder, "edit", folder / "job.json"))
    return folder


def matrix_of(path, layer):
    kind, shape, data = gguf_files.read_tensors(path)[0][f"blk.{layer}.ffn_down.weight"]
    name = next(name for name, row in gguf_files.TYPES.items() if row[0] == kind)
    return gguf_files.decode(name, list(shape), data).double()


def is_change(edited, layer, b, a):
    change = matrix_of(edited / "out" / "model.gguf", layer) - matrix_of(edited / "demo.gguf", layer)
    return (b.double() @ a.double() - change).norm() <= 2e-3 * change.norm() and change.norm() > 0


def test_for_peft(edited):
    run_ok(run_lancet(edited, "export", "adapter", edited / "out", "--out", edited / "peft"))
    factors = load_file(edited / "peft" / "adapter_model.safetensors")
    for layer in LAYERS:
        name = f"base_model.model.model.layers.{layer}.mlp.down_proj"
        assert is_change(edited, layer, factors[f"{name}.lora_B.weight"], factors[f"{name}.lora_A.weight"])


def test_for_llama_cpp(edited):
    run_ok(run_lancet(edited, "export", "adapter", edited / "out", "--format", "gguf", "--dtype", "f32", "--out", edited / "gguf"))
    tensors, metadata = gguf_files.read_tensors(edited / "gguf" / "adapter.gguf")
    assert b"llama" in metadata["general.architecture"]
    for layer in LAYERS:
        b, a = (gguf_files.decode("F32", list(tensors[key][1]), tensors[key][2]) for key in (f"blk.{layer}.ffn_down.weight.lora_{x}" for x in "ba"))
        assert is_change(edited, layer, b, a)
