"""Layouts that checkpoints have beside the usual one: names as torch.compile leaves them, names without their beginning, and words for a
state that says nothing about the bytes. They compute what the usual layout does, and transformers reads what is made of them."""
import json

import pytest
import torch
from engine import lancet_logits, lancet_logits_of, load_transformers, nmse, run_binary_raw, transformers_logits
from quantised_twins import quantise
from safetensors.torch import load_file, save_file
from test_families import rows

NMSE_F32 = 1e-9
BEGINNINGS = {"qwen3": "model.", "gpt2": "transformer.", "neox": "gpt_neox.", "phi3": "model."}


def renamed(base, folder, new_name):
    """The model folder with other names of its tensors."""
    folder.mkdir()
    for file in base.iterdir():
        if file.suffix in (".json", ".model"):
            (folder / file.name).write_bytes(file.read_bytes())
    tensors = load_file(base / "model.safetensors")
    names = {name: new_name(name) for name in tensors}
    assert len(set(names.values())) == len(names) and names != dict.fromkeys(names)
    save_file({names[name]: tensor.clone() for name, tensor in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("family", BEGINNINGS)
def test_a_model_that_was_saved_as_it_ran_compiled(family, base_of, tmp_path):
    """`torch.compile(model)` has these names in its state_dict, which people save; torch's own way to load them is to take the word off."""
    base = base_of(family)
    compiled = torch.compile(load_transformers(base, "f32"))
    assert all(name.startswith("_orig_mod.") for name in compiled.state_dict())
    folder = renamed(base, tmp_path / "compiled", lambda name: "_orig_mod." + name)
    ours = lancet_logits(folder, rows([2, 13]), "f32", tmp_path)
    theirs = transformers_logits(load_transformers(base, "f32"), rows([2, 13]))
    assert max(nmse(a, b) for a, b in zip(ours, theirs, strict=True)) <= NMSE_F32


@pytest.mark.parametrize("family", BEGINNINGS)
def test_names_without_their_beginning_are_read_as_transformers_reads_them(family, base_of, tmp_path):
    folder = renamed(base_of(family), tmp_path / "short", lambda name: name.removeprefix(BEGINNINGS[family]))
    assert not any(name.startswith(BEGINNINGS[family]) for name in load_file(folder / "model.safetensors"))
    ours = lancet_logits(folder, rows([2, 13]), "f32", tmp_path)
    theirs = transformers_logits(load_transformers(folder, "f32"), rows([2, 13]))
    assert max(nmse(a, b) for a, b in zip(ours, theirs, strict=True)) <= NMSE_F32


def edited(folder, tmp_path):
    """The folder's output of an edit, and what was said."""
    job = dict(model=str(folder), requests=[dict(prompt="{} is in", subject="Lyon", target="Italy")], evaluate=[], run=dict(dtype="f32"), output=dict(dir=str(tmp_path / "out")),
               editor=dict(method="ft", modules=dict(down=[1]), steps=3, lr=0.05))  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = run_binary_raw("lancet", "edit", tmp_path / "job.json")
    assert done.returncode == 0, done.stderr
    before, after = lancet_logits_of([folder, tmp_path / "out"], rows([13]), "f32", tmp_path)
    assert nmse(after[0], before[0]) > 1e-6
    return after, done.stderr


def test_what_is_edited_of_short_names_is_read_by_transformers(base_of, tmp_path):
    after, said = edited(renamed(base_of("qwen3"), tmp_path / "short", lambda name: name.removeprefix("model.")), tmp_path)
    theirs = transformers_logits(load_transformers(tmp_path / "out", "f32"), rows([13]))
    assert nmse(after[0], theirs[0]) <= NMSE_F32 and "_orig_mod" not in said


def test_what_is_edited_of_a_compiled_model_keeps_its_names_with_a_warning(base_of, tmp_path):
    """transformers takes random weights for such a folder, the original's too; without the word it reads what was edited."""
    after, said = edited(renamed(base_of("qwen3"), tmp_path / "compiled", lambda name: "_orig_mod." + name), tmp_path)
    assert "names begin with _orig_mod." in said and "model._orig_mod.save_pretrained('OUT')" in said, said
    plain = renamed(tmp_path / "out", tmp_path / "plain", lambda name: name.removeprefix("_orig_mod."))
    theirs = transformers_logits(load_transformers(plain, "f32"), rows([13]))
    assert nmse(after[0], theirs[0]) <= NMSE_F32


def test_a_name_that_fits_neither_way_is_refused_with_the_names(base_of, tmp_path):
    folder = renamed(base_of("qwen3"), tmp_path / "other", lambda name: "net." + name)
    done = run_binary_raw("lancet", "generate", "--model", folder, "--prompt", "x", "--tokens", "1")
    assert done.returncode == 3 and "the weights do not fit config.json" in done.stderr and "model.embed_tokens.weight: missing" in done.stderr, done.stderr


@pytest.mark.parametrize("status", ["frozen", "compressed"])
def test_the_status_of_compressed_tensors_says_nothing_about_the_bytes(status, base_of, tmp_path):
    folder, twin = quantise(base_of("qwen3"), tmp_path / "quantised", tmp_path / "twin", "compressed-4")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"]["quantization_status"] = status
    (folder / "config.json").write_text(json.dumps(config))
    ours, theirs = lancet_logits_of([folder, twin], rows([2, 13]), "f32", tmp_path)
    assert all(a.isfinite().all() and torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    done = run_binary_raw("lancet", "inspect", folder, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["quantised"] == "compressed-tensors" and status not in done.stderr, done.stderr
