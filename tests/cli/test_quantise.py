"""`lancet quantise`, as a user runs it."""
import json
import shutil

import pytest
from conftest import DATA
from test_bad_input import CONFIG, refuses

CORPUS = DATA / "requests" / "demo-corpus.txt"


def quantise(lancet, model, *arguments, out="quantised"):
    common = ["--corpus", CORPUS, "--tokens", 4000, "--devices", "cpu"]
    return lancet.run("quantise", model, *common, "--out", lancet.folder / out, *arguments)


@pytest.fixture
def edited(lancet):
    """Thirty facts, few enough for every edit to be tight."""
    job = lancet.job(evaluate=[], requests__limit=30, editor__covariance_weight=100)
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    return lancet.out


def mean(report, key):
    values = [matrix[key] for matrix in report["matrices"]]
    return sum(values) / len(values)


def test_edits_hold_better_than_rounded_to_the_nearest(lancet, edited, shallow):
    result = quantise(lancet, edited, "--format", "gptq", "--bits", 4)
    assert result.returncode == 0, result.stderr
    for part in ("metric, %", "quantised", "by what matters", "at the edits", "means over 56 matrices", "of the model's bytes"):
        assert part in result.stdout, result.stdout
    out = lancet.folder / "quantised"
    report = json.loads((out / "quantise.json").read_text())
    assert report["format"] == "lancet-quantise-1" and report["requests"]["count"] == 30
    assert report["quantised"] == {"format": "gptq", "bits": 4, "group": 128} and report["in_full_precision"] == []
    assert (out / "requests.jsonl").read_text() == (edited / "requests.jsonl").read_text()
    assert report["bytes"]["after"] < 0.45 * report["bytes"]["before"]
    assert mean(report, "error") < 0.7 * mean(report, "nearest_error")
    assert mean(report, "residual") < 0.6 * mean(report, "nearest_residual")
    metrics = report["metrics"]
    assert metrics["efficacy_argmax"]["prompts"] == 30
    assert metrics["efficacy_argmax"]["after"] > metrics["efficacy_argmax"]["before"] - 0.1
    told = lancet.run("eval", "--model", out, "--requests", out / "requests.jsonl", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["metrics"]["efficacy_argmax"]["value"] == metrics["efficacy_argmax"]["after"]

    # without the edits in H, text counts alone, and the edits are rounded worse
    plain = shutil.copytree(edited, lancet.folder / "plain")
    (plain / "requests.jsonl").unlink()
    assert quantise(lancet, shallow, "--format", "gptq", "--json", out="by-text").returncode == 0
    by_text = json.loads((lancet.folder / "by-text" / "quantise.json").read_text())
    assert by_text["requests"] is None and "metrics" not in by_text and by_text["matrices"][0]["residual"] is None
    again = quantise(lancet, plain, "--format", "gptq", "--edits", edited, "--covariance-weight", 1e9, "--json", out="text-weighs")
    assert again.returncode == 0, again.stderr
    assert mean(report, "residual") < 0.9 * mean(json.loads(again.stdout), "residual")


def test_its_output_is_replaced_only_when_asked(lancet, shallow):
    assert quantise(lancet, shallow, "--format", "compressed-tensors", "--bits", 8).returncode == 0
    config = json.loads((lancet.folder / "quantised" / "config.json").read_text())["quantization_config"]
    assert config["quant_method"] == "compressed-tensors" and config["config_groups"]["group_0"]["weights"]["num_bits"] == 8
    refuses(lancet, quantise(lancet, shallow, "--format", "gptq"), CONFIG, "exists already", "--replace")
    assert quantise(lancet, shallow, "--format", "gptq", "--replace").returncode == 0
    config = json.loads((lancet.folder / "quantised" / "config.json").read_text())["quantization_config"]
    expected = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True, "checkpoint_format": "gptq", "lm_head": False}
    assert config == expected
    refuses(lancet, quantise(lancet, lancet.folder / "quantised", "--format", "gptq", out="out"), CONFIG, "is quantised already (gptq)")


def test_the_model_writes_the_text(lancet, shallow):
    result = lancet.run("quantise", shallow, "--format", "gptq", "--out", lancet.out, "--tokens", 1000, "--devices", "cpu", "--json")
    assert result.returncode == 0, result.stderr
    protocol = json.loads(result.stdout)["protocol"]
    assert protocol["text"] == "self: sampled from the model" and protocol["tokens"] == 1000


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["--format", "awq"], ["--format", "gptq"]),
        (["--format", "gptq", "--bits", "3"], ["--bits 3: expected 4 or 8"]),
        (["--format", "gptq", "--edits", DATA / "demo-model"], ["--edits", "requests.jsonl", "there is none"]),
        (["--format", "gptq", "--tokens", "10"], ["--tokens 10: expected at least"]),
        (["--format", "gptq", "--corpus", "nowhere.txt"], ["nowhere.txt"]),
        (["--format", "gptq", "--covariance-weight", "0"], ["--covariance-weight"]),
    ],
)
def test_bad_input(lancet, arguments, parts):
    result = lancet.run("quantise", DATA / "demo-model", "--out", lancet.out, "--devices", "cpu", *arguments)
    refuses(lancet, result, CONFIG, *parts)
