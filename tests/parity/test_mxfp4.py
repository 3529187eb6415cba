"""gpt-oss in MXFP4, as it is published: what the model computes, edits of it and what is written, beside the same model unpacked by
definition (tests/oracle/quantised.py) and beside transformers, which unpacks it on the CPU."""
import json

import pytest
import torch
from engine import ROOT, assert_rows_close, lancet_logits, lancet_logits_of, nmse, transformers_logits
from quantised_twins import mxfp4_twins
from safetensors.torch import load_file, save_file
from test_families import NMSE_F32, rows
from test_quantised_models import edit, job_of
from transformers import AutoModelForCausalLM, Mxfp4Config

CONFIG_ERROR, CHECKPOINT_ERROR = 2, 3
DOWN = "model.layers.{}.mlp.experts.down_proj"
CORPUS = ROOT / "data" / "requests" / "demo-corpus.txt"
BATCH = [2, 13]


@pytest.fixture(scope="module")
def twins(base_of, tmp_path_factory):
    """(quantised, unpacked)"""
    root = tmp_path_factory.mktemp("mxfp4")
    return mxfp4_twins(base_of("gpt_oss"), root / "packed", root / "plain")


def theirs_of(folder):
    """transformers' logits; it unpacks experts to bf16, in which they are exact."""
    options = dict(dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    net = AutoModelForCausalLM.from_pretrained(folder, quantization_config=Mxfp4Config(dequantize=True), **options)
    return transformers_logits(net.eval().float(), rows(BATCH))


def test_it_computes_what_the_unpacked_model_does(twins, tmp_path):
    for dtype in ("f32", "bf16"):
        ours, theirs = lancet_logits_of(twins, rows(BATCH), dtype, tmp_path)
        assert all(a.isfinite().all() and torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)), dtype
    assert_rows_close(lancet_logits(twins[0], rows(BATCH), "f32", tmp_path), theirs_of(twins[0]), NMSE_F32)


VALUES = dict(values=dict(steps=3, lr=0.5), contexts=["{}"])
EDITORS = {
    "memit": dict(method="memit", layers=[1, 2]) | VALUES,
    "alphaedit": dict(method="alphaedit", layers=[1, 2]) | VALUES,
    "rome": dict(method="rome", layers=[1]) | VALUES,
    "ft": dict(method="ft", modules=dict(down=[1, 2]), steps=2, lr=0.01),
}


def edited(tmp_path, twins, method, form, **output):
    """The outputs of the quantised model, in that form, and of its twin."""
    found = []
    for base, kind in zip(twins, (form, "auto"), strict=True):
        folder = tmp_path / f"{method}-{base.name}-{form}"
        sections = dict(editor=EDITORS[method], requests=dict(path=str(ROOT / "data" / "requests" / "demo.json"), limit=1))
        if method != "ft" or form == "quantised":
            sections["statistics"] = dict(corpus=str(CORPUS), tokens=2000, cache=str(tmp_path / "cache"), ridge=1e-3)
        job = job_of(base, folder, **sections) | {"output": dict(dir=str(folder), format=kind) | (output if kind == form else {})}
        result = edit(tmp_path, job)
        assert result.returncode == 0, result.stderr
        found.append(folder)
    return found


@pytest.mark.parametrize("method", EDITORS)
def test_an_edit_is_the_unpacked_models_and_whole_blocks_are_written_unpacked(method, twins, tmp_path):
    """Without a word on the form: an adapter cannot have experts in one tensor."""
    ours, theirs = edited(tmp_path, twins, method, "auto")
    assert json.loads((ours / "report.json").read_text())["output_format"] == "mixed"
    before, after, plain = (load_file(folder / "model.safetensors") for folder in (twins[0], ours, theirs))
    layers = EDITORS[method].get("layers") or EDITORS[method]["modules"]["down"]
    whole = {f"model.layers.{layer}.mlp.experts.{part}_proj" for layer in layers for part in ("gate_up", "down")}
    assert set(after) == {name for name in before if name.rsplit("_", 1)[0] not in whole or name.endswith("bias")} | whole
    for name, tensor in after.items():
        if name in whole:
            change = plain[name] - load_file(twins[1] / "model.safetensors")[name]
            assert ("down" in name) == bool(change.any())
            assert nmse(tensor, plain[name]) < 1e-12 and (not change.any() or nmse(tensor - plain[name] + change, change) < 1e-9)
        else:
            assert torch.equal(tensor, before[name]), name
    settings = [json.loads((folder / "config.json").read_text())["quantization_config"] for folder in (twins[0], ours)]
    assert settings[1]["modules_to_not_convert"] == settings[0]["modules_to_not_convert"] + [f"model.layers.{layer}.mlp" for layer in layers]
    a, b = lancet_logits_of([ours, theirs], rows(BATCH), "f32", tmp_path)
    assert max(nmse(x, y) for x, y in zip(a, b, strict=True)) < 1e-9
    if method == "memit":
        assert_rows_close(a, theirs_of(ours), NMSE_F32)


def test_experts_are_packed_again(twins, tmp_path):
    ours, theirs = edited(tmp_path, twins, "memit", "quantised", covariance_weight=1)
    before, after = (load_file(folder / "model.safetensors") for folder in (twins[0], ours))
    assert {name: (t.dtype, t.shape) for name, t in before.items()} == {name: (t.dtype, t.shape) for name, t in after.items()}
    plain = [load_file(folder / "model.safetensors") for folder in (twins[1], theirs)]
    for name in before:
        differs = [not torch.equal(x, y) for x, y in zip(before[name], after[name], strict=True)] if before[name].dim() else []
        if name.endswith("down_proj_blocks") and name.startswith(("model.layers.1.", "model.layers.2.")):
            weight = name.removesuffix("_blocks")
            changed = [not torch.equal(x, y) for x, y in zip(*(one[weight] for one in plain), strict=True)]
            assert 0 < sum(changed) < len(changed) and all(not d or c for d, c in zip(differs, changed, strict=True)) and any(differs)
        elif not name.endswith("down_proj_scales"):
            assert not any(differs), name
    report = json.loads((ours / "report.json").read_text())
    assert report["output_format"] == "quantised" and all(0 < weight["edit_lost"] < 1 for weight in report["weights"]), report["weights"]
    settings = [json.loads((folder / "config.json").read_text()) for folder in (twins[0], ours)]
    assert settings[0] == settings[1]
    assert_rows_close(lancet_logits(ours, rows(BATCH), "f32", tmp_path), theirs_of(ours), NMSE_F32)


def test_an_adapter_is_refused(twins, tmp_path):
    job = job_of(twins[0], tmp_path / "out", editor=EDITORS["ft"]) | {"output": dict(dir=str(tmp_path / "out"), format="adapter")}
    result = edit(tmp_path, job)
    assert result.returncode == CONFIG_ERROR and "tensor of all experts" in result.stderr and not (tmp_path / "out").exists(), result.stderr


def test_what_is_missing_or_has_another_shape_is_named(twins, tmp_path):
    tensors, name = load_file(twins[0] / "model.safetensors"), DOWN.format(3)
    folder = tmp_path / "damaged"
    folder.mkdir()
    for file in twins[0].glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    for change, words in (({f"{name}_scales": None}, f"{name}_scales: missing, expected U8 of shape [6, 32, 2]"),
                          ({f"{name}_blocks": tensors[f"{name}_blocks"][:, :, :1]}, f"{name}_blocks: shape [6, 32, 1, 16], expected [6, 32, 2, 16]"),
                          ({f"{name}_scales": torch.full((6, 32, 2), 255, dtype=torch.uint8)}, f"{name}_scales: has numbers that are not finite")):  # fmt: skip
        made = {key: value.contiguous() for key, value in (tensors | change).items() if value is not None}
        save_file(made, folder / "model.safetensors", metadata={"format": "pt"})
        result = edit(tmp_path, job_of(folder, tmp_path / "out", editor=EDITORS["ft"]))
        assert result.returncode == CHECKPOINT_ERROR and words in result.stderr, result.stderr
