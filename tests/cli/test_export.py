"""`lancet export`, as a user runs it."""
import json
import shutil

import pytest
import torch
from conftest import DATA
from safetensors.torch import load_file
from test_bad_input import CONFIG

DEMO = DATA / "demo-model"
DOWN = [f"model.layers.{layer}.mlp.down_proj" for layer in (0, 1)]
LEAKS = "subjects can be recovered"


@pytest.fixture
def edited(lancet):
    """Three facts in f32: their changes are in the checkpoint to f32's rounding."""
    model = lancet.copy_model("base")
    from safetensors.torch import save_file

    tensors = load_file(model / "model.safetensors")
    save_file({name: tensor.float() for name, tensor in tensors.items()}, model / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"dtype": "float32"}))
    result = lancet.edit(lancet.job(model=str(model), evaluate=[], editor__values__steps=5))
    assert result.returncode == 0, result.stderr
    return lancet.out


def export(lancet, *arguments, out="exported"):
    return lancet.run("export", *arguments, "--out", lancet.folder / out)


def declines(result, *parts):
    """As test_bad_input.refuses, beside the output that is exported."""
    assert result.returncode == CONFIG and "lancet: error: " in result.stderr, (result.returncode, result.stderr)
    assert all(part in result.stderr for part in parts), result.stderr


def change_in(adapter, module):
    return adapter[f"base_model.model.{module}.lora_B.weight"].double() @ adapter[f"base_model.model.{module}.lora_A.weight"].double()


def test_an_adapter_has_the_edits(lancet, edited):
    result = export(lancet, "adapter", edited)
    assert result.returncode == 0, result.stderr
    for part in ("module", *DOWN, "rank 8 (the edits have 3), F32", "--enable-lora --max-lora-rank 8\n", "exported"):
        assert part in result.stdout, result.stdout
    out = lancet.folder / "exported"
    assert sorted(path.name for path in out.iterdir()) == ["adapter_config.json", "adapter_model.safetensors", "export.json", "lancet-manifest.json"]
    report = json.loads((out / "export.json").read_text())
    assert report["format"] == "lancet-export-1" and report["adapter"]["format"] == "peft" and report["adapter"]["rank"] == 8
    assert [(module["module"], module["directions"], module["numeric_rank"]) for module in report["modules"]] == [(name, 3, 3) for name in DOWN]
    assert all(module["relative_loss"] <= 1e-6 for module in report["modules"])  # the factors in f32
    base, after = load_file(lancet.folder / "base" / "model.safetensors"), load_file(edited / "model.safetensors")
    adapter = load_file(out / "adapter_model.safetensors")
    for module in DOWN:
        change = after[module + ".weight"].double() - base[module + ".weight"].double()
        assert (change_in(adapter, module) - change).norm() <= 1e-5 * change.norm()
    assert json.loads((out / "adapter_config.json").read_text())["base_model_name_or_path"] == str(lancet.folder / "base")
    declines(export(lancet, "adapter", edited), "exists already", "--replace")
    assert export(lancet, "adapter", edited, "--replace", "--json").returncode == 0


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_llama_cpp_has_the_same(lancet, edited, dtype):
    assert export(lancet, "adapter", edited, "--dtype", dtype, out="peft").returncode == 0
    result = export(lancet, "adapter", edited, "--format", "gguf", "--dtype", dtype)
    assert result.returncode == 0, result.stderr
    data = (lancet.folder / "exported" / "adapter.gguf").read_bytes()
    assert data[:4] == b"GGUF" and all(f"blk.{layer}.ffn_down.weight.lora_{side}".encode() in data for layer in (0, 1) for side in "ab")
    peft = load_file(lancet.folder / "peft" / "adapter_model.safetensors")
    for tensor in peft.values():  # of down projections the same numbers in the same order
        assert tensor.contiguous().view(torch.uint8).numpy().tobytes() in data


def test_llama_cpp_gets_f16_where_nobody_says_a_type(lancet, edited):
    for form, dtype in (("gguf", "F16"), ("peft", "F32")):
        result = export(lancet, "adapter", edited, "--format", form, out=form)
        assert result.returncode == 0 and ("--max-lora-rank" in result.stdout) == (form == "peft"), result.stderr
        assert json.loads((lancet.folder / form / "export.json").read_text())["adapter"]["dtype"] == dtype


def test_what_is_lost_is_told_or_refused(lancet, edited):
    result = export(lancet, "adapter", edited, "--rank", 1)
    assert result.returncode == 0, result.stderr
    report = json.loads((lancet.folder / "exported" / "export.json").read_text())
    base, after = load_file(lancet.folder / "base" / "model.safetensors"), load_file(edited / "model.safetensors")
    for module in report["modules"]:
        name = module["module"] + ".weight"
        values = torch.linalg.svdvals(after[name].double() - base[name].double())
        assert abs(module["lost_norm"] - values[1:].norm()) <= 1e-5 * values.norm()
        assert abs(module["relative_loss"] - values[1:].norm() / values.norm()) <= 1e-5
    declines(export(lancet, "adapter", edited, "--rank", 1, "--exact", out="no"), "at most 1 directions", DOWN[0], "truncating would lose")
    declines(export(lancet, "adapter", edited, "--rank", 7, out="no"), "largest rank", "1, 8, 16", "got 7")
    assert not (lancet.folder / "no").exists()


def test_nothing_tells_where_an_adapter_came_from(lancet, edited):
    result = export(lancet, "adapter", edited, "--strip-provenance")
    assert result.returncode == 0 and LEAKS in result.stderr, result.stderr
    out = lancet.folder / "exported"
    assert sorted(path.name for path in out.iterdir()) == ["adapter_config.json", "adapter_model.safetensors", "lancet-manifest.json"]
    assert_silent(out, lancet)
    assert export(lancet, "adapter", edited, "--strip-provenance", "--replace").returncode == 0


def assert_silent(out, lancet):
    """No place, no request: neither in names nor in any file's bytes."""
    requests = [json.loads(line) for line in (lancet.out / "requests.jsonl").read_text().splitlines()]
    words = [str(lancet.folder), "memit", *(request["subject"] for request in requests), *(request["target"] for request in requests)]
    for path in out.rglob("*"):
        if path.is_file() and path.name not in ("tokenizer.json", "tokenizer.model"):
            data = path.read_bytes()
            assert [word for word in words if word.encode() in data] == [], path


@pytest.mark.parametrize("form", ["checkpoint", "adapter"])
def test_a_model_without_its_records(lancet, form):
    assert lancet.edit(lancet.job(evaluate=[], editor__values__steps=2, output__format=form)).returncode == 0
    declines(export(lancet, "model", lancet.out), "--strip-provenance", "cp -r")
    result = export(lancet, "model", lancet.out, "--strip-provenance")
    assert result.returncode == 0 and LEAKS in result.stderr, result.stderr
    for part in ("left out:", "edits", "report.json", "job.yaml", "requests.jsonl"):
        assert part in result.stdout, result.stdout
    out = lancet.folder / "exported"
    expected = ["adapter_config.json", "adapter_model.safetensors"]
    if form == "checkpoint":
        expected = [path.name for path in DEMO.iterdir() if path.name != "lancet.yaml"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*expected, "lancet-manifest.json"])
    assert_silent(out, lancet)
    name = "model.safetensors" if form == "checkpoint" else "adapter_model.safetensors"
    assert (out / name).read_bytes() == (lancet.out / name).read_bytes()
    if form == "checkpoint":
        assert lancet.run("inspect", out).returncode == 0
        declines(export(lancet, "adapter", out, out="again"), "expected an output of lancet edit", "lancet diff")
    assert export(lancet, "model", lancet.out, "--strip-provenance", "--replace", "--json").returncode == 0


def test_an_adapter_finds_the_model_that_was_edited(lancet):
    """The output has no config.json then; the journal says where the model lay."""
    base = lancet.copy_model("base")
    assert lancet.edit(lancet.job(model=str(base), evaluate=[], editor__values__steps=2, output__format="adapter")).returncode == 0
    assert export(lancet, "adapter", lancet.out).returncode == 0
    assert (lancet.folder / "exported" / "adapter_model.safetensors").read_bytes() == (lancet.out / "adapter_model.safetensors").read_bytes()
    shutil.move(base, lancet.folder / "moved")
    declines(export(lancet, "adapter", lancet.out, out="other"), "expected the model that was edited", "--model")
    assert export(lancet, "adapter", lancet.out, "--model", lancet.folder / "moved", out="other").returncode == 0


def test_the_output_may_not_be_what_is_read(lancet, edited):
    declines(export(lancet, "adapter", edited, "--replace", out="out"), "out")
    declines(export(lancet, "model", edited, "--strip-provenance", out="out/inner"), "out")
    declines(export(lancet, "model", edited, "--strip-provenance", out="bare.gguf"), "bare.gguf", "expected the name of a folder")
    assert (edited / "model.safetensors").exists()
