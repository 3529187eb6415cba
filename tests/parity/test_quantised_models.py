"""Models with quantised matrices: they compute what the same model does whose matrices were unpacked by definition, to the bit."""
import json

import pytest
import torch
from engine import ROOT, lancet_logits_of, nmse, run_binary, run_binary_raw
from quantised_twins import FORMATS, quantise
from safetensors.torch import load_file, save_file
from test_export import read_raw
from test_families import rows

# The second and the last two have fused matrices, of GPT-NeoX head by head; the third has experts. Programs that quantise keep
# GPT-2's matrices as [out, in], which its own checkpoints turn.
MODELS = ["qwen3", "phi3", "qwen3_moe", "gpt2", "neox"]


@pytest.mark.parametrize("name", FORMATS)
def test_logits_are_those_of_the_unpacked_model(name, twins_of, tmp_path):
    folder, twin = twins_of("qwen3", name)
    for dtype in ("f32", "bf16"):
        ours, theirs = lancet_logits_of([folder, twin], rows([2, 13]), dtype, tmp_path)
        for a, b in zip(ours, theirs, strict=True):
            assert a.isfinite().all() and torch.equal(a, b), dtype


@pytest.mark.parametrize("model", MODELS[1:])
@pytest.mark.parametrize("name", ["gptq-4", "nf4"])
def test_fused_matrices_and_experts_too(name, model, twins_of, tmp_path):
    folder, twin = twins_of(model, name)
    ours, theirs = lancet_logits_of([folder, twin], rows([2, 13]), "f32", tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def job_of(folder, out, **sections):
    requests = dict(path=str(ROOT / "data" / "requests" / "demo.json"), limit=2)
    return dict(model=str(folder), requests=requests, evaluate=[], run=dict(dtype="f32"), output=dict(dir=str(out))) | sections


def edit(tmp_path, job):
    (tmp_path / "job.json").write_text(json.dumps(job))
    return run_binary_raw("lancet", "edit", tmp_path / "job.json")


def test_layers_that_are_not_quantised_are_edited(base_of, tmp_path):
    """The rest keeps its bytes, packed as it is; the result computes what the twin's does."""
    edited = "model.layers.1.mlp.down_proj"
    folder, twin = quantise(base_of("qwen3"), tmp_path / "quantised", tmp_path / "twin", "nf4", plain=[edited])
    for place in (folder, twin):
        job = job_of(place, tmp_path / f"out-{place.name}", editor=dict(method="ft", modules=dict(down=[1]), steps=2, lr=0.01))
        assert edit(tmp_path, job).returncode == 0
    before, after = (read_raw(place / "model.safetensors")[1] for place in (folder, tmp_path / "out-quantised"))
    assert {name for name in before if before[name] != after[name]} == {edited + ".weight"} and set(after) == set(before)
    assert json.loads((tmp_path / "out-quantised" / "config.json").read_text()) == json.loads((folder / "config.json").read_text())
    ours, theirs = lancet_logits_of([tmp_path / f"out-{kind}" for kind in ("quantised", "twin")], rows([13]), "f32", tmp_path)
    assert nmse(ours[0], theirs[0]) < 1e-10  # gradients go through products of another graph: on some processors of another last bit


def test_inspect_and_eval_take_it(twins_of, tmp_path):
    folder, twin = twins_of("qwen3", "gptq-4")
    assert json.loads(run_binary("lancet", "inspect", folder, "--json"))["quantised"] == "gptq"
    figures = []
    for place in (folder, twin):
        (tmp_path / "job.json").write_text(json.dumps(job_of(place, tmp_path / "out", evaluate=["efficacy"])))
        report = json.loads(run_binary("lancet", "eval", tmp_path / "job.json", "--json"))
        figures.append({name: metric["value"] for name, metric in report["metrics"].items()})
    assert figures[0] == figures[1] and figures[0]


def test_eval_beside_the_original(twins_of, base_of, tmp_path):
    folder, twin = twins_of("qwen3", "nf4")
    (tmp_path / "job.json").write_text(json.dumps(job_of(folder, tmp_path / "out", evaluate=["efficacy"])))
    for original, is_same in ((twin, True), (base_of("qwen3"), False)):
        report = json.loads(run_binary("lancet", "eval", tmp_path / "job.json", "--baseline", original, "--json"))
        answers = [(request["metrics"], request["baseline"]["metrics"]) for request in report["requests"]]
        assert all(ours == theirs for ours, theirs in answers) == is_same, answers


def test_what_is_wrong_is_named(base_of, tmp_path):
    folder, _ = quantise(base_of("qwen3"), tmp_path / "quantised", tmp_path / "twin", "gptq-4")
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.mlp.up_proj.scales"][0, 0] = float("nan")
    del tensors["model.layers.2.mlp.up_proj.scales"]
    save_file(tensors, folder / "model.safetensors")
    result = run_binary_raw("lancet", "inspect", folder)
    assert result.returncode == 3 and "model.layers.2.mlp.up_proj" in result.stderr, result.stderr
    tensors["model.layers.2.mlp.up_proj.scales"] = tensors["model.layers.1.mlp.up_proj.scales"].clone()
    save_file(tensors, folder / "model.safetensors")
    result = run_binary_raw("lancet", "generate", "--model", folder, "--prompt", "x", "--tokens", "1")
    assert result.returncode == 3 and "model.layers.0.mlp.up_proj.scales" in result.stderr and str(folder) in result.stderr, result.stderr
