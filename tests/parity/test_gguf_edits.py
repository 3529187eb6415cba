"""Edits of a GGUF file, against the same edits of the folder that it was made of: matrices that the file has in another form."""
import json

import gguf_files
import numpy as np
import pytest
import torch
from engine import ROOT, run_binary
from safetensors.torch import load_file
from test_gguf_export import family_folder
from test_tokenizer import DEMO

REQUESTS = ROOT / "data" / "requests"
# the folder's tensor, and its form in the file: GPT-2's matrices are turned, gpt-oss' are turned for each expert
FAMILIES = {
    "gpt2": ("transformer.h.{}.mlp.c_proj.weight", "ffn_down", lambda tensor: tensor.t()),
    "neox": ("gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", "ffn_down", lambda tensor: tensor),
    "falcon_two_norms": ("transformer.h.{}.mlp.dense_4h_to_h.weight", "ffn_down", lambda tensor: tensor),
    "gpt_oss": ("model.layers.{}.mlp.experts.down_proj", "ffn_down_exps", lambda tensor: tensor.transpose(1, 2)),
    "qwen35": ("model.layers.{}.mlp.down_proj.weight", "ffn_down", lambda tensor: tensor),
    "deepseek_v3": ("model.layers.{}.mlp.experts.{}.down_proj.weight", "ffn_down_exps", lambda tensor: tensor),
}
LAYERS = [1, 2]


def edited(model, out):
    editor = dict(method="memit", layers=LAYERS, covariance_weight=20, values=dict(steps=5, lr=0.5, clamp=4.0), contexts=["{}"])
    statistics = dict(corpus=str(REQUESTS / "demo-corpus.txt"), tokens=600, cache=str(out.parent / f"{out.name}.cache"))
    requests = dict(path=str(REQUESTS / "demo.json"), limit=2)
    job = dict(model=str(model), requests=requests, editor=editor, statistics=statistics, evaluate=["efficacy"], output=dict(dir=str(out)))
    path = out.parent / f"{out.name}.json"
    path.write_text(json.dumps(job | dict(run=dict(devices="cpu", dtype="f32"))))
    run_binary("lancet", "edit", path)
    return out


def tensors_of_file(path):
    """Of F32."""
    return {name: torch.from_numpy(np.frombuffer(data, np.float32).reshape(shape).copy()) for name, (_, shape, data) in gguf_files.read_tensors(path)[0].items()}


def tensor_of(weights, name, layer):
    if name.count("{}") == 1:
        return weights[name.format(layer)]
    return torch.stack([weights[name.format(layer, i)] for i in range(100) if name.format(layer, i) in weights])


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edit_changes_what_it_changes_in_the_folder(family, tmp_path):
    folder = family_folder(family, tmp_path / "folder")
    file = gguf_files.from_checkpoint(folder, tmp_path / "model.gguf", tokenizer=DEMO / "tokenizer.model")
    base, expected = load_file(folder / "model.safetensors"), load_file(edited(folder, tmp_path / "of-folder") / "model.safetensors")
    before, after = tensors_of_file(file), tensors_of_file(edited(file, tmp_path / "of-file") / "model.gguf")
    name, stem, form = FAMILIES[family]
    assert {key for key in before if not torch.equal(before[key], after[key])} == {f"blk.{layer}.{stem}.weight" for layer in LAYERS}
    for layer in LAYERS:
        change = form(tensor_of(expected, name, layer) - tensor_of(base, name, layer))
        ours = after[f"blk.{layer}.{stem}.weight"] - before[f"blk.{layer}.{stem}.weight"]
        assert change.norm() > 0
        assert (ours - change).norm() <= 2e-2 * change.norm(), (ours - change).norm() / change.norm()
