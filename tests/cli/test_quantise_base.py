"""`run.quantise_base`: matrices that are not edited are quantised while they are loaded, and everything says so."""
import json

import pytest
from conftest import DATA, ROOT, run_ok
from test_bad_input import CONFIG, refuses
from test_tune import tune_job, tuned

LLAMA_70B = ROOT / "tests" / "fixtures" / "llama-3-70b"
EDITED = {f"model.layers.{layer}.mlp.down_proj.weight" for layer in (0, 1)}


def read_tensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length + entry["data_offsets"][0] : 8 + length + entry["data_offsets"][1]] for name, entry in header.items()}


def cached(lancet):
    return {path.name for path in (lancet.folder / "cache").iterdir()}


@pytest.mark.parametrize("quantise_base", ["int8", "nf4", "fp8"])
def test_an_edit_says_how_its_weights_were_kept(lancet, quantise_base):
    run = run_ok(lancet.edit(lancet.job(run__quantise_base=quantise_base, run__dtype="bf16", requests__limit=1)))
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["model"]["run_dtype"] == f"BF16, quantised weights {quantise_base}"
    assert f"BF16, quantised weights {quantise_base}" in run.stdout
    assert f'quantise_base: "{quantise_base}"' in (lancet.out / "job.yaml").read_text()
    before, after = read_tensors(DATA / "demo-model" / "model.safetensors"), read_tensors(lancet.out / "model.safetensors")
    assert {name for name in before if before[name] != after[name]} == EDITED, "what was quantised is written as it was read"


def test_statistics_are_apart_from_those_without(lancet):
    """Another model's keys have another name in the cache; the second time each finds its own."""
    lancet.cache = lancet.folder / "cache"
    plain, quantise_base = (lancet.job(run__quantise_base=how, requests__limit=1, output__replace=True) for how in ("none", "nf4"))
    names = []
    for job, is_cached in ((plain, False), (quantise_base, False), (quantise_base, True), (plain, True)):
        run_ok(lancet.edit(job))
        report = json.loads((lancet.out / "report.json").read_text())
        assert report["statistics"]["layers_from_cache"] == ([0, 1] if is_cached else []), job["run"]
        names.append(cached(lancet))
    assert names[0] < names[1] and len(names[1]) == 2 * len(names[0])
    assert names[1] == names[2] == names[3]


def test_what_is_not_known_is_refused(lancet):
    refuses(lancet, lancet.edit(lancet.job(run__quantise_base="int4")), CONFIG, "run.quantise_base", "none, int8, nf4, fp8")
    for command in (["plan", "--model", LLAMA_70B], ["generate", "--model", DATA / "demo-model", "--prompt", "x"]):
        run = lancet.run(*command, "--quantise-base", "int4")
        assert run.returncode == 2 and "--quantise-base: expected one of none, int8, nf4, fp8, got int4; did you mean int8?" in run.stderr, run.stderr


def test_generate_and_trace_take_it(lancet):
    model = ["--model", DATA / "demo-model"]
    texts = {
        how: run_ok(lancet.run("generate", *model, "--prompt", "Piranha Games, created in", "--tokens", "3", "--quantise-base", how)).stdout
        for how in ("none", "int8")
    }
    assert texts["none"] == texts["int8"] != ""  # eight bits leave so clear an answer
    run = run_ok(
        lancet.run("trace", *model, "--prompt", "Piranha Games, created in", "--subject", "Piranha Games", "--samples", "1",
                   "--out", lancet.out, "--quantise-base", "fp8")
    )  # fmt: skip
    assert json.loads((lancet.out / "trace.json").read_text())["model"]["run_dtype"].endswith("quantised weights fp8"), run.stderr


def test_a_plan_counts_it(lancet):
    stages = {}
    for how in ("none", "int8", "nf4", "fp8"):
        run = lancet.run("plan", "--model", LLAMA_70B, "--devices", "8x80GiB", "--json", "--quantise-base", how)
        stages[how] = json.loads(run_ok(run).stdout)["stages"]
    weights = {how: sum(stage["weights"] for stage in stages[how]) for how in stages}
    # embedding, head, norms and the five edited layers' down projections in bf16; of the rest int8 and fp8 have a byte and
    # a f32 scale a row, nf4 half a byte, a f32 scale for every 64, and in each matrix a table of what pairs of codes mean
    numbers, d, ffn, kv, layers, edited = 70_553_706_496, 8192, 28672, 1024, 80, 5
    packed = layers * (2 * d * d + 2 * d * kv + 3 * d * ffn) - edited * d * ffn
    rows = layers * (2 * d + 2 * kv + 2 * ffn + d) - edited * d
    assert weights["none"] == 2 * numbers
    assert weights["int8"] == weights["fp8"] == 2 * (numbers - packed) + packed + 4 * rows
    assert weights["nf4"] == 2 * (numbers - packed) + packed // 2 + 4 * (packed // 64) + (7 * layers - edited) * 256 * 2 * 4
    assert all(stage["unpacked"] == stage["loading"] == 0 for stage in stages["none"])
    assert all(stage["unpacked"] >= stage["loading"] >= 2 * d * ffn for stage in stages["nf4"])


def test_a_plan_of_a_job_counts_it_and_a_refusal_names_it(lancet):
    job = lancet.write(lancet.job())
    plans = {
        how: json.loads(run_ok(lancet.run("plan", job, "--set", f"run.quantise_base={how}", "--devices", "10GiB", "--json")).stdout)["stages"][0]
        for how in ("none", "nf4")
    }
    assert plans["nf4"]["weights"] < plans["none"]["weights"] and plans["nf4"]["unpacked"] > 0
    run = lancet.run("plan", "--model", LLAMA_70B, "--devices", "130GiB")
    assert run.returncode == 4 and "run.quantise_base: int8" in run.stderr, run.stderr
    run = lancet.run("plan", "--model", LLAMA_70B, "--devices", "130GiB", "--quantise-base", "int8")
    assert run.returncode == 0 and "unpacked" in run.stdout, run.stderr


def test_trials_of_other_layers_are_tuned(lancet):
    """Every trial's weights are in full precision, not the first one's alone."""
    job = tune_job(lancet, search={"layers": [[0, 1], [1, 2]]}, trials=2)
    job["run"]["quantise_base"] = "int8"
    preset, _ = tuned(lancet, job)
    assert len(preset["trials"]) == 2 and all(trial["scores"] for trial in preset["trials"])
