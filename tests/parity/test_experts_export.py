"""What `lancet edit` writes of models with experts: those that a request reaches change, the others keep their bytes."""
import json

import pytest
import torch
from edits import deltas_of
from engine import ROOT, assert_rows_close, lancet_logits, run_binary, run_binary_raw, transformers_logits
from family_checkpoints import load, make_checkpoint
from safetensors import safe_open
from test_export import read_raw
from test_families import NMSE_F32, rows

LAYERS, CONFIG_ERROR = [1, 2], 2
CORPUS = ROOT / "data" / "requests" / "demo-corpus.txt"
EXPERTS = {  # by variant: how many a layer has, and the name of an expert's down projection
    "qwen3_moe": (6, "model.layers.{}.mlp.experts.{}.down_proj.weight"),
    "mixtral": (5, "model.layers.{}.block_sparse_moe.experts.{}.w2.weight"),
}


def job_of(base, out, editor, **sections):
    requests = dict(path=str(ROOT / "data" / "requests" / "demo.json"), limit=1)
    return dict(model=str(base), requests=requests, editor=editor, evaluate=[], output=dict(dir=str(out)), run=dict(dtype="f32")) | sections


@pytest.fixture(scope="module", params=EXPERTS)
def edited(request, tmp_path_factory):
    """(variant, base, what lancet made of it)"""
    scratch = tmp_path_factory.mktemp("experts-export")
    base = make_checkpoint(request.param, scratch / "base", ROOT / "data" / "demo-model")
    editor = dict(method="memit", layers=LAYERS, values=dict(steps=3, lr=0.5), contexts=["{}"])
    statistics = dict(corpus=str(CORPUS), tokens=3000, cache=str(scratch / "cache"), ridge=1e-3)
    (scratch / "job.json").write_text(json.dumps(job_of(base, scratch / "out", editor, statistics=statistics)))
    run_binary("lancet", "edit", scratch / "job.json")
    return request.param, base, scratch / "out"


def changed_tensors(base, out):
    before, after = (read_raw(folder / "model.safetensors")[1] for folder in (base, out))
    assert {tensor: value[:2] for tensor, value in after.items()} == {tensor: value[:2] for tensor, value in before.items()}
    return {tensor for tensor in before if before[tensor] != after[tensor]}


def test_only_experts_that_the_request_reaches_change(edited):
    """A token chooses two experts, so one request with one context reaches two of each layer."""
    name, base, out = edited
    n_experts, pattern = EXPERTS[name]
    changed = changed_tensors(base, out)
    for layer in LAYERS:
        assert len(changed & {pattern.format(layer, expert) for expert in range(n_experts)}) == 2
    assert len(changed) == 2 * len(LAYERS)


def test_the_change_has_their_columns_one_after_the_other(edited):
    name, base, out = edited
    n_experts, pattern = EXPERTS[name]
    changed = changed_tensors(base, out)
    with safe_open(base / "model.safetensors", "pt") as a, safe_open(out / "model.safetensors", "pt") as b:
        delta = torch.tensor(deltas_of(out)[pattern.format(LAYERS[0], "*")]).float()
        for expert, part in enumerate(delta.chunk(n_experts, 1)):
            tensor = pattern.format(LAYERS[0], expert)
            assert part.any() == (tensor in changed)
            assert (b.get_tensor(tensor) - a.get_tensor(tensor) - part).abs().max() < 1e-6


def test_transformers_reads_it(edited, tmp_path):
    _, _, out = edited
    batch = rows([2, 13])
    assert_rows_close(lancet_logits(out, batch, "f32", tmp_path), transformers_logits(load(out), batch), NMSE_F32)


@pytest.mark.parametrize(
    ("editor", "statistics", "parts"),
    [
        (dict(method="ft", modules={"up": [1]}), None, ["editor.modules: layer 1 has 6 experts", "expected it in down alone"]),
        (
            dict(method="memit", layers=[2]),
            {"import": "layer-{}.npz"},
            ["statistics.import: layer 2 has 6 experts", "statistics.corpus"],
        ),
        (
            dict(method="alphaedit", layers=[2]),
            dict(import_null_space="null_space_project.pt"),
            ["statistics.import_null_space: layer 2 has 6 experts"],
        ),
    ],
)
def test_what_experts_have_not_is_refused(editor, statistics, parts, tmp_path):
    base = make_checkpoint("qwen3_moe", tmp_path / "base", ROOT / "data" / "demo-model")
    sections = {} if statistics is None else dict(statistics=statistics)
    (tmp_path / "job.json").write_text(json.dumps(job_of(base, tmp_path / "out", editor, **sections)))
    result = run_binary_raw("lancet", "edit", tmp_path / "job.json")
    assert result.returncode == CONFIG_ERROR and all(part in result.stderr for part in parts), result.stderr
    assert not (tmp_path / "out").exists()
