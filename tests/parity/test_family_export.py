"""What `lancet edit` writes of each family: transformers reads it, and what was not edited has its bytes."""
import json
import math
import shutil

import pytest
import torch
from checkpoints import TOKENIZER_FILES
from edits import deltas_of
from engine import ROOT, assert_rows_close, lancet_logits, run_binary, transformers_logits
from family_checkpoints import VARIANTS, load, make_checkpoint, make_net
from safetensors import safe_open
from test_export import read_raw
from test_families import NMSE_F32, rows
from transformers import AutoConfig

LAYERS = {"down": [1], "up": [2]}
FACTS = ROOT / "data" / "requests" / "demo.json"
CORPUS = ROOT / "data" / "requests" / "demo-corpus.txt"
EDITED = {  # by variant: the tensors of these layers
    "mistral_window": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "qwen2_tied": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "qwen3": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "qwen2_yarn_old_keys": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "qwen2_dynamic": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "phi3": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.gate_up_proj"),
    "gemma": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "gemma2": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "gemma3": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "olmo2": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
    "gpt2": ("transformer.h.1.mlp.c_proj", "transformer.h.2.mlp.c_fc"),
    "gpt2_no_prefix": ("h.1.mlp.c_proj", "h.2.mlp.c_fc"),
    "gptj": ("transformer.h.1.mlp.fc_out", "transformer.h.2.mlp.fc_in"),
    "neox": ("gpt_neox.layers.1.mlp.dense_4h_to_h", "gpt_neox.layers.2.mlp.dense_h_to_4h"),
    "stablelm": ("model.layers.1.mlp.down_proj", "model.layers.2.mlp.up_proj"),
}


def edit(name, scratch, modules):
    """(variant, base, what lancet made of it)"""
    base = make_checkpoint(name, scratch / "base", ROOT / "data" / "demo-model")
    edit_folder(base, scratch, modules)
    return name, base, scratch / "out"


def edit_folder(base, scratch, modules):
    editor = dict(method="ft", modules=modules, steps=2, lr=0.01)
    job = dict(model=str(base), requests=dict(path=str(FACTS), limit=2), editor=editor, evaluate=[])
    job |= dict(output=dict(dir=str(scratch / "out")), run=dict(dtype="f32"))
    (scratch / "job.json").write_text(json.dumps(job))
    run_binary("lancet", "edit", scratch / "job.json")


@pytest.fixture(scope="module", params=EDITED)
def edited(request, tmp_path_factory):
    return edit(request.param, tmp_path_factory.mktemp("family-export"), LAYERS)


def test_only_the_edited_tensors_change(edited):
    name, base, out = edited
    before, after = (read_raw(folder / "model.safetensors")[1] for folder in (base, out))
    assert {tensor: value[:2] for tensor, value in after.items()} == {tensor: value[:2] for tensor, value in before.items()}
    assert {tensor for tensor in before if before[tensor] != after[tensor]} == {stem + ".weight" for stem in EDITED[name]}
    if name == "phi3":  # up is edited; gate is the first half of the same tensor
        old, new = (value[EDITED[name][1] + ".weight"][2] for value in (before, after))
        assert old[: len(old) // 2] == new[: len(new) // 2]


def test_the_change_is_in_one_orientation_whatever_the_files(edited):
    name, base, out = edited
    with safe_open(base / "model.safetensors", "pt") as a, safe_open(out / "model.safetensors", "pt") as b:
        change = b.get_tensor(EDITED[name][0] + ".weight") - a.get_tensor(EDITED[name][0] + ".weight")
    prefix = "transformer." if name == "gpt2_no_prefix" else ""  # a change has the family's own names
    full = torch.tensor(deltas_of(out)[prefix + EDITED[name][0] + ".weight"]).float()
    as_stored = full.T if name.startswith("gpt2") else full  # GPT-2 stores [d_in, d_out]
    assert as_stored.shape == change.shape
    torch.testing.assert_close(as_stored, change, rtol=1e-3, atol=1e-6)


def test_transformers_reads_it(edited, tmp_path):
    _, _, out = edited
    batch = rows([2, 13])
    assert_rows_close(lancet_logits(out, batch, "f32", tmp_path), transformers_logits(load(out), batch), NMSE_F32)


def test_experts_in_one_tensor_are_written_where_they_lie(tmp_path):
    """gpt-oss: [experts, in, out], of which an edit has [out, experts * in]."""
    _, base, out = edit("gpt_oss", tmp_path, {"down": [1]})
    name = "model.layers.1.mlp.experts.down_proj"
    before, after = (read_raw(folder / "model.safetensors")[1] for folder in (base, out))
    assert {tensor for tensor in before if before[tensor] != after[tensor]} == {name}
    with safe_open(base / "model.safetensors", "pt") as a, safe_open(out / "model.safetensors", "pt") as b:
        change = (b.get_tensor(name) - a.get_tensor(name)).permute(2, 0, 1).flatten(1)
    torch.testing.assert_close(torch.tensor(deltas_of(out)[name]).float(), change, rtol=1e-3, atol=1e-6)
    batch = rows([2, 13])
    assert_rows_close(lancet_logits(out, batch, "f32", tmp_path), transformers_logits(load(out), batch), NMSE_F32)


def bare_infinity(folder, key, value):
    """Writes the model's config.json as Python's json does, with a float that JSON cannot say; what it says then."""
    told = json.loads((folder / "config.json").read_text()) | {key: value}
    (folder / "config.json").write_text(json.dumps(told, indent=1))
    assert "Infinity" in json.dumps(told) and "__float__" not in json.dumps(told)
    return told


def test_a_float_that_json_cannot_say_stays_bare(tmp_path):
    """Published files of Nemotron-H have a bare Infinity; transformers writes an object since its version 5."""
    base = make_checkpoint("nemotron_h", tmp_path / "base", ROOT / "data" / "demo-model")
    bare_infinity(base, "time_step_limit", [0.0, math.inf])
    edit_folder(base, tmp_path, {"down": [1]})
    assert (tmp_path / "out" / "config.json").read_bytes() == (base / "config.json").read_bytes()
    assert AutoConfig.from_pretrained(tmp_path / "out").time_step_limit == [0.0, math.inf]
    run_binary("lancet", "inspect", base / "config.json")


def test_a_float_that_json_cannot_say_stays_bare_where_the_rest_changes(tmp_path):
    base, packed = tmp_path / "base", tmp_path / "packed"
    make_net(VARIANTS["qwen3"], dict(hidden_size=128, intermediate_size=128)).save_pretrained(base)
    for file in TOKENIZER_FILES:
        shutil.copyfile(ROOT / "data" / "demo-model" / file, base / file)
    told = bare_infinity(base, "initializer_range", -math.inf)
    run_binary("lancet", "quantise", base, "--format", "gptq", "--corpus", CORPUS, "--tokens", "300", "--out", packed, "--devices", "cpu", "--quiet")
    written = json.loads((packed / "config.json").read_text())
    assert written.pop("quantization_config")["quant_method"] == "gptq"
    assert written == told
    assert AutoConfig.from_pretrained(packed).initializer_range == -math.inf
