"""Edits of quantised weights, in each form of output: they are the unpacked model's edits, measured as they are written."""
import json

import pytest
import torch
from engine import ROOT, lancet_logits, lancet_logits_of, nmse, run_binary, run_binary_raw
from quantised_checkpoints import quantise_checkpoint
from safetensors.torch import load_file
from test_export import read_raw
from test_families import rows
from test_quantised_models import edit, job_of

CONFIG_ERROR, INPUT_ERROR = 2, 3
FT = dict(method="ft", modules=dict(down=[1]), steps=2, lr=0.01)
EDITED = "model.layers.1.mlp.down_proj"


def edited(tmp_path, model, form, name, **sections):
    """The output's folder."""
    folder = tmp_path / f"out-{name}"
    sections = dict(editor=FT) | sections
    result = edit(tmp_path, job_of(model, folder, **sections) | {"output": dict(dir=str(folder), format=form) | sections.pop("output", {})})
    assert result.returncode == 0, result.stderr
    return folder


def logits_of(folder, tmp_path):
    return lancet_logits(folder, rows([2, 13]), "f32", tmp_path)


def assert_same(ours, theirs):
    """To rounding: what lies unpacked side by side is one product, what is packed is one of its own."""
    found = [nmse(a, b) for a, b in zip(ours, theirs, strict=True)]
    assert max(found) < 1e-9, found


@pytest.mark.parametrize("name", ["gptq-4", "awq", "nf4", "int8", "fp8-blocks", "compressed-4"])
def test_mixed_is_the_unpacked_models_edit(name, twins_of, tmp_path):
    folder, twin = twins_of("qwen3", name)
    mixed, theirs = edited(tmp_path, folder, "mixed", "mixed"), edited(tmp_path, twin, "auto", "twin")
    assert_same(*lancet_logits_of([mixed, theirs], rows([2, 13]), "f32", tmp_path))
    before, after = (read_raw(place / "model.safetensors")[1] for place in (folder, mixed))
    assert {key for key in after if before.get(key) != after[key]} == {EDITED + ".weight"}
    assert all(key.startswith(EDITED + ".") for key in before if key not in after)
    assert_same(*([load_file(folder / "model.safetensors")[EDITED + ".weight"]] for folder in (mixed, theirs)))


@pytest.mark.parametrize("model, module", [("phi3", "gate"), ("phi3", "down"), ("gpt2", "down"), ("qwen3_moe", "down")])
def test_mixed_of_fused_turned_and_experts_matrices(model, module, twins_of, tmp_path):
    name = "nf4"
    folder, twin = twins_of(model, name)
    editor = dict(FT, modules={module: [1]})
    mixed, theirs = edited(tmp_path, folder, "mixed", "mixed", editor=editor), edited(tmp_path, twin, "auto", "twin", editor=editor)
    assert_same(*lancet_logits_of([mixed, theirs], rows([2, 13]), "f32", tmp_path))


def test_an_adapter_is_the_default_and_leaves_the_model_alone(twins_of, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    folder, twin = twins_of("qwen3", "gptq-4")
    adapter, theirs = edited(tmp_path, folder, "auto", "adapter"), edited(tmp_path, twin, "auto", "twin")
    report = json.loads((adapter / "report.json").read_text())
    assert report["output_format"] == "adapter" and not (adapter / "model.safetensors").exists()
    assert json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == str(folder)
    model = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(twin, dtype=torch.float32), adapter)
    with torch.no_grad():
        for row, ours in zip(rows([2, 13]), logits_of(theirs, tmp_path), strict=True):
            with_adapter = model(torch.tensor([row])).logits[0]
            assert ((with_adapter - ours) ** 2).sum() / (ours**2).sum() <= 1e-6


def figures(report):
    return {name: metric["after"] for name, metric in report["metrics"].items()}


def memit_on_demo(tmp_path, base, name, form, count=6, **output):
    folder = tmp_path / name
    job = dict(
        model=str(base),
        requests=dict(path=str(ROOT / "data" / "requests" / "demo.json"), limit=count),
        editor=dict(method="memit", layers=[0, 1], covariance_weight=300, values=dict(steps=12, lr=0.5), contexts=["{}", "I know that. {}"]),
        statistics=dict(corpus=str(ROOT / "data" / "requests" / "demo-corpus.txt"), tokens=20000, cache=str(tmp_path / "cache")),
        evaluate=["efficacy", "paraphrase", "specificity"],
        output=dict(dir=str(folder), format=form) | output,
    )
    result = edit(tmp_path, job)
    assert result.returncode == 0, result.stderr
    return folder, json.loads((folder / "report.json").read_text()), job


@pytest.fixture(scope="module")
def demo_base(tmp_path_factory):
    made = {}

    def base(name):
        if name not in made:
            made[name] = quantise_checkpoint(ROOT / "data" / "demo-model", tmp_path_factory.mktemp("demo") / name, name)
        return made[name]

    return base


@pytest.fixture(scope="module")
def memit(demo_base, tmp_path_factory):
    """memit_on_demo() of a format's name. What was edited alike is one edit, and all have the same cache of statistics."""
    root, made = tmp_path_factory.mktemp("memit"), {}

    def edited_once(base, form, **options):
        key = json.dumps([base, form, options], sort_keys=True)
        if key not in made:
            made[key] = memit_on_demo(root, demo_base(base), f"{len(made)}", form, **options)
        return made[key]

    return edited_once


@pytest.mark.parametrize("base, form", [("gptq-4", "quantised"), ("nf4", "quantised"), ("int8", "quantised"), ("gptq-4", "mixed")])
def test_what_is_measured_is_what_is_written(base, form, memit, demo_base, tmp_path):
    folder, report, job = memit(base, form)
    (tmp_path / "eval.json").write_text(json.dumps({key: value for key, value in job.items() if key in ("requests", "evaluate")} | {"model": str(folder)}))
    measured = json.loads(run_binary("lancet", "eval", tmp_path / "eval.json", "--json"))
    assert {name: metric["value"] for name, metric in measured["metrics"].items()} == figures(report)
    before, after = (load_file(place / "model.safetensors") for place in (demo_base(base), folder))
    changed = {key for key in after if key not in before or not torch.equal(before[key], after[key])}
    assert changed and all(key.startswith(("model.layers.0.mlp.down_proj", "model.layers.1.mlp.down_proj")) for key in changed)
    assert form == "mixed" or {key: (t.dtype, t.shape) for key, t in before.items()} == {key: (t.dtype, t.shape) for key, t in after.items()}


def test_rounding_for_the_edits_keeps_them(memit):
    """Issue: at most half of what plain rounding loses of the edit, with at most a fifth more error on text than H = C."""
    lost, text = {}, {}
    for rounding in ("edits", "statistics", "nearest"):
        _, report, _ = memit("gptq-4", "quantised", **({} if rounding == "edits" else dict(rounding=rounding)))  # edits: the default
        assert len(report["weights"]) == 2
        lost[rounding] = [weight["edit_lost"] for weight in report["weights"]]
        text[rounding] = [weight["text_error"] for weight in report["weights"]]
    for layer in range(2):
        assert lost["edits"][layer] <= 0.5 * lost["nearest"][layer], lost
        assert text["edits"][layer] <= 1.2 * text["statistics"][layer] < text["nearest"][layer], text


def test_the_weight_of_text_is_an_option(memit):
    losses = [memit("gptq-4", "quantised", covariance_weight=weight)[1]["weights"][0] for weight in (1, 3000)]
    assert losses[0]["edit_lost"] < losses[1]["edit_lost"] and losses[0]["text_error"] > losses[1]["text_error"]


def test_a_stream_goes_on_from_a_quantised_output(memit, tmp_path):
    """Two jobs, one after the other, write the bytes of one job of two batches."""
    common = dict(covariance_weight=30)
    first, _, job = memit("gptq-4", "quantised", count=3, **common)
    second = job | {"continue_from": str(first), "requests": job["requests"] | {"skip": 3}, "output": dict(dir=str(tmp_path / "second"), format="quantised") | common}
    whole = job | {"requests": job["requests"] | {"limit": 6}, "schedule": dict(batch=3), "output": dict(dir=str(tmp_path / "whole"), format="quantised") | common}
    for each in (second, whole):
        result = edit(tmp_path, each)
        assert result.returncode == 0, result.stderr
    assert read_raw(tmp_path / "second" / "model.safetensors")[1] == read_raw(tmp_path / "whole" / "model.safetensors")[1]


@pytest.mark.parametrize("form, words", [
    ("checkpoint", "model.layers.1.mlp.down_proj.weight is quantised (bitsandbytes): expected adapter, mixed"),
    ("sharp", "output.format"),
])
def test_forms_that_a_quantised_model_does_not_have(form, words, twins_of, tmp_path):
    folder, _ = twins_of("qwen3", "nf4")
    result = edit(tmp_path, job_of(folder, tmp_path / "out", editor=FT) | {"output": dict(dir=str(tmp_path / "out"), format=form)})
    assert result.returncode == CONFIG_ERROR and words in result.stderr and not (tmp_path / "out").exists(), result.stderr


@pytest.mark.parametrize("form", ["mixed", "quantised"])
def test_forms_of_quantised_models_alone(form, base_of, tmp_path):
    result = edit(tmp_path, job_of(base_of("qwen3"), tmp_path / "out", editor=FT) | {"output": dict(dir=str(tmp_path / "out"), format=form)})
    assert result.returncode == CONFIG_ERROR and "none of the weights that are edited is quantised" in result.stderr


def test_what_cannot_be_quantised_again_is_named(twins_of, tmp_path):
    folder, _ = twins_of("phi3", "nf4")
    for modules, more, words in (
        (dict(gate=[1]), {}, "shares its quantised tensor"),
        (dict(down=[1]), {}, "expected a section statistics"),
    ):
        job = job_of(folder, tmp_path / "out", editor=dict(FT, modules=modules)) | {"output": dict(dir=str(tmp_path / "out"), format="quantised") | more}
        result = edit(tmp_path, job)
        assert result.returncode == CONFIG_ERROR and words in result.stderr, result.stderr
    out = edited(tmp_path, folder, "quantised", "nearest", output=dict(rounding="nearest"))
    assert all(tensor.isfinite().all() for tensor in logits_of(out, tmp_path))
    weights = json.loads((out / "report.json").read_text())["weights"]
    assert weights[0]["edit_lost"] > 0 and weights[0]["text_error"] is None


def test_projections_that_are_imported_have_no_moments_to_round_by(twins_of, tmp_path):
    folder, _ = twins_of("qwen3", "gptq-4")
    projection = torch.eye(json.loads((folder / "config.json").read_text())["intermediate_size"])
    projection[0, 0] = 0  # one of full rank is refused
    torch.save(projection[None], tmp_path / "null_space_project.pt")
    sections = dict(
        editor=dict(method="alphaedit", layers=[1], values=dict(steps=2, lr=0.1), contexts=["{}"]),
        statistics=dict(import_null_space=str(tmp_path / "null_space_project.pt")),
    )
    out = edited(tmp_path, folder, "quantised", "nearest", output=dict(rounding="nearest"), **sections)
    weights = json.loads((out / "report.json").read_text())["weights"]
    assert weights[0]["edit_lost"] > 0 and weights[0]["text_error"] is None
    job = job_of(folder, tmp_path / "out", **sections) | {"output": dict(dir=str(tmp_path / "out"), format="quantised", rounding="edits")}
    result = edit(tmp_path, job)
    assert result.returncode == CONFIG_ERROR and "output.rounding" in result.stderr and not (tmp_path / "out").exists(), result.stderr
    assert "statistics.import_null_space has none: expected output.rounding: nearest" in result.stderr


def test_an_unquantised_model_gives_an_adapter_too(base_of, tmp_path):
    adapter = edited(tmp_path, base_of("qwen3"), "adapter", "adapter")
    assert (adapter / "adapter_model.safetensors").exists() and not (adapter / "config.json").exists()
    result = run_binary_raw("lancet", "generate", "--model", adapter, "--prompt", "x", "--tokens", "1")
    assert result.returncode == INPUT_ERROR
    assert f"{adapter}: expected a model folder" in result.stderr
    assert f"lancet apply {adapter} --to MODEL --out DIR makes the model of it" in result.stderr
