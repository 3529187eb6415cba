"""The job end to end, as a user runs it."""
import json
import re
import signal
import subprocess
import time

import pytest
from conftest import DATA, LANCET, run_ok
from edits import edit_files
from pages import documents_of
from test_generate import LLAMA_2

HF_FILES = {
    "config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer.model",
    "tokenizer_config.json",
}  # fmt: skip
RECORDS = {"edits", "report.json", "report.html", "metrics.csv", "requests.csv", "requests.jsonl", "job.yaml", "lancet-manifest.json"}


def test_edit_writes_the_model_and_its_records(lancet):
    job = lancet.job(evaluate=["efficacy", "paraphrase", "specificity", "generation"], accept={"efficacy_prob": 0.9})
    result = run_ok(lancet.edit(job))
    assert {p.name for p in lancet.out.iterdir()} == HF_FILES | RECORDS
    assert "efficacy_prob" in result.stdout and "before:" in result.stdout and str(lancet.out) in result.stdout
    took = "  3 of 3 edits took (the model says the target, efficacy_argmax); for 3 its own text begins with the target (generation_starts)\n"
    assert result.stdout.index("before:") < result.stdout.index(took) < result.stdout.index("metric, %") < result.stdout.index("written:"), result.stdout
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["status"] == "accepted" and all(" of its norm" in warning for warning in report["warnings"]), "this model has few layers, which move far"
    assert report["verdicts"]["subjects"] is None and all(request["subject_answers"] == [] for request in report["requests"]), "not asked for"
    assert report["verdicts"]["success"] == report["verdicts"]["measured"] == report["verdicts"]["written"] == 3
    assert documents_of((lancet.out / "report.html").read_text())["report"] == report
    for request in report["requests"]:
        assert request["verdict"] == {"success": True, "cause": None, "why": None} and request["target_probability"]["after"] > 0.5
        assert set(request["value"]["realised"]["layers"]) == {"0", "1"} and 0.5 < request["value"]["realised"]["total"] < 1.1
    assert report["metrics"]["efficacy_prob"]["before"] < 0.5 < report["metrics"]["efficacy_prob"]["after"]
    assert all(metric["protocol"] for metric in report["metrics"].values())
    for request in report["requests"]:
        assert request["continuation"]["before"] != request["continuation"]["after"]
        assert request["value"]["final_loss"] < request["value"]["initial_loss"]
        assert set(request["metrics"]) == set(report["metrics"])
    # a report's total is the share over all prompts; with one edited prompt per request it is the mean of the requests
    efficacy = [r["metrics"]["efficacy_prob"]["after"] for r in report["requests"]]
    assert report["metrics"]["efficacy_prob"]["after"] == pytest.approx(sum(efficacy) / len(efficacy))
    assert report["statistics"]["tokens_used"] == 4000 and not report["statistics"]["corpus_exhausted"]
    assert all(0 < w["rounding_loss"] < 0.5 for w in report["weights"])


def instruct_model(lancet):
    """The demo model with a chat template."""
    model = lancet.copy_model()
    config = model / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": LLAMA_2}))
    return model


@pytest.mark.parametrize("is_instruct", [False, True])
def test_it_is_said_what_became_of_the_subjects(lancet, is_instruct):
    """Layers of a small model that move far: the edits take, and what else is asked of the subjects is answered otherwise. What the two models'
    next tokens are is asked of them apart, by `lancet eval --baseline`, and by transformers."""
    model = instruct_model(lancet) if is_instruct else DATA / "demo-model"
    job = lancet.job(model=str(model), evaluate=None, editor__values__clamp=20, editor__covariance_weight=1)
    result = run_ok(lancet.edit(job))
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["metrics"]["subject_kept"]["before"] is None and "subject_leak" in report["metrics"], "measured by default"
    subjects = report["verdicts"]["subjects"]
    tokens = [answer for request in report["requests"] for answer in request["subject_answers"] if answer["asked"].endswith("next_token")]
    assert subjects["prompts"] == len(tokens) == (24 if is_instruct else 12)
    assert subjects["kept"] == sum(answer["kept"] for answer in tokens) == round(report["metrics"]["subject_kept"]["after"] * len(tokens))
    assert subjects["is_low"] and subjects["kept"] < 0.7 * len(tokens), "the edits are to spoil the subjects here"
    assert f"  but the subjects are no longer what they were: other prompts about them go on as before in only {subjects['kept']} of {len(tokens)} cases" in result.stdout
    assert result.stdout.index("else about") < result.stdout.index("edits took (") < result.stdout.index("but the subjects")
    warning = next(line for line in result.stderr.splitlines() if "the edits changed more of their subjects" in line)
    assert "What helps: " in warning and "editor.values.clamp (now 20)" in warning and warning.split("warning: ")[1] in report["warnings"]
    texts = {answer["asked"] for request in report["requests"] for answer in request["subject_answers"]} - {"next_token", "chat_next_token"}
    assert texts == ({"text", "chat_text"} if is_instruct else {"text"})
    assert likeliest_after(DATA / "demo-model", tokens) == [answer["before"] for answer in tokens if answer["asked"] == "next_token"]
    assert likeliest_after(lancet.out, tokens) == [answer["after"] for answer in tokens if answer["asked"] == "next_token"]
    again = lancet.run("eval", lancet.write(job | {"output": None, "model": str(lancet.out)}, "eval.json"), "--baseline", model, "--json")
    assert json.loads(run_ok(again).stdout)["metrics"]["subject_kept"]["value"] == pytest.approx(report["metrics"]["subject_kept"]["after"])


def likeliest_after(model, answers):
    """By transformers, in f32: the likeliest token after each prompt in plain text."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network, tokenizer = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32), AutoTokenizer.from_pretrained(model)
    tokens = []
    for answer in answers:
        if answer["asked"] == "next_token":
            logits = network(**tokenizer(answer["prompt"], return_tensors="pt")).logits[0, -1]
            tokens.append(tokenizer.decode([int(logits.argmax())], skip_special_tokens=True))
    return tokens


def test_what_compares_with_nothing_is_left_out(lancet):
    job = lancet.job(evaluate=["efficacy", "subject"], output=None)
    told = lancet.run("eval", lancet.write(job, "eval.json"), "--json")
    assert set(json.loads(run_ok(told).stdout)["metrics"]) == {"efficacy_prob", "efficacy_argmax"}
    assert "not measured: evaluate: subject: it compares with an unedited model: name one with --baseline DIR" in told.stderr
    del job["evaluate"]
    told = lancet.run("eval", lancet.write(job, "eval.json"), "--json")
    assert "subject_kept" not in json.loads(run_ok(told).stdout)["metrics"] and "not measured" not in told.stderr, "nobody asked for it"
    alone = lancet.run("eval", lancet.write(job | {"evaluate": ["subject"]}, "eval.json"))
    assert alone.returncode == 2 and "--baseline DIR" in alone.stderr, alone.stderr


def test_the_summary_says_how_far_each_weight_moved(lancet):
    """As the two models' files have it."""
    from safetensors import safe_open

    result = run_ok(lancet.edit(lancet.job(editor__values__steps=5)))
    line = next(line for line in result.stdout.splitlines() if line.startswith("  moved, by the weight's norm: "))
    told = dict(re.findall(r"(model\.layers\.\d+\.mlp\.down_proj\.weight) ([\d.]+) %", line))
    assert set(told) == {f"model.layers.{layer}.mlp.down_proj.weight" for layer in (0, 1)}
    with safe_open(DATA / "demo-model" / "model.safetensors", "pt") as old, safe_open(lancet.out / "model.safetensors", "pt") as new:
        for name, percent in told.items():
            before, after = old.get_tensor(name).double(), new.get_tensor(name).double()
            moved = float((after - before).norm() / before.norm())
            assert moved > 0.01 and float(percent) == pytest.approx(100 * moved, rel=0.02, abs=0.06), name


def test_edits_that_did_not_take_are_said_to_and_why(lancet):
    """A model without a preset, and lambda of a 7B model: values are found, and the weights do not follow."""
    model = lancet.copy_model()
    (model / "lancet.yaml").unlink()
    job = lancet.job(model=str(model), requests__limit=5, editor__covariance_weight=15000, statistics__tokens=20000)
    result = run_ok(lancet.edit(job))
    report = json.loads((lancet.out / "report.json").read_text())
    assert "0 of 5 edits took (the model says the target, efficacy_argmax)" in result.stdout
    assert result.stdout.count("the weights followed") >= 4 and "warning: no edit took" in result.stderr
    warning = next(line for line in result.stderr.splitlines() if "did not follow" in line)
    assert "editor.covariance_weight: 15000" in warning and "auto" in warning and warning.split("warning: ")[1] in report["warnings"]
    assert report["status"] == "done" and report["verdicts"]["did_not"]["did_not_follow"] >= 4
    assert all(0 < request["value"]["realised"]["total"] < 0.5 for request in report["requests"])
    assert documents_of((lancet.out / "report.html").read_text())["report"]["verdicts"] == report["verdicts"]


def test_whether_edits_took_is_not_guessed(lancet):
    result = run_ok(lancet.edit(lancet.job(evaluate=[], requests__limit=1, schedule={"batch": 1})))
    assert "  whether the edits took was not measured: add efficacy to evaluate\n" in result.stdout and "subjects" not in result.stdout
    assert "1 request," in result.stdout and "first batch" not in result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["requests"][0]["verdict"]["success"] is None and report["verdicts"]["measured"] == 0


@pytest.mark.parametrize(
    ("editor", "part"),
    [
        ({"method": "ft", "modules": {"down": [4]}, "lr": 1e30}, "lr"),
        ({"method": "rome", "layers": [0], "values": {"lr": 1e30, "steps": 3}, "contexts": ["{}"]}, "editor.values.lr: 1e+30"),
        ({"method": "nse", "layers": [0], "values": {"lr": 1e30, "steps": 3}, "contexts": ["{}"]}, "editor.values.lr: 1e+30"),
    ],
)
@pytest.mark.parametrize("evaluate", [["efficacy"], []])
def test_a_rate_that_diverges_writes_nothing(lancet, editor, part, evaluate):
    result = lancet.edit(lancet.job(editor=editor, evaluate=evaluate, run__dtype=None))
    assert result.returncode == 5 and part in result.stderr, result.stderr
    assert [path.name for path in lancet.folder.iterdir() if path.name.startswith(("out", ".out"))] == []


def test_a_damaged_weight_is_named(lancet):
    model = lancet.copy_model()
    path = model / "model.safetensors"
    data = bytearray(path.read_bytes())
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    name = "model.layers.5.mlp.up_proj.weight"
    begin = 8 + int.from_bytes(data[:8], "little") + header[name]["data_offsets"][0]
    data[begin : begin + 2] = b"\x80\x7f"  # bf16's infinity
    path.write_bytes(data)
    result = lancet.edit(lancet.job(model=str(model)))
    assert result.returncode == 5 and f"the model itself is damaged: {name}" in result.stderr, result.stderr
    assert "lr" not in result.stderr and not lancet.out.exists()


def test_the_report_tells_peak_memory_by_stage_and_device(lancet):
    result = run_ok(lancet.edit(lancet.job(editor__values__steps=2)))
    report = json.loads((lancet.out / "report.json").read_text())
    assert set(report["stage_peak_bytes"]) == set(report["seconds"])
    stages = [peaks["cpu"] for peaks in report["stage_peak_bytes"].values()]
    assert report["peak_bytes"] == {"cpu": max(stages)}
    assert (DATA / "demo-model" / "model.safetensors").stat().st_size < min(stages)
    assert f"peak memory: cpu {max(stages) / 1e6:.1f} MB\n" in result.stdout


def test_the_resolved_job_gives_the_same_model_again(lancet):
    run_ok(lancet.edit(lancet.job(editor__contexts={"generate": 3, "length": 8}, editor__values__steps=5)))
    again = lancet.folder / "again"
    run_ok(lancet.run("edit", lancet.out / "job.yaml", "--set", f"output.dir={again}"))
    assert (again / "model.safetensors").read_bytes() == (lancet.out / "model.safetensors").read_bytes()
    assert edit_files(again) == edit_files(lancet.out)
    contexts = json.loads((lancet.out / "report.json").read_text())["contexts"]
    assert contexts[0] == "{}" and len(contexts) == 4
    assert json.loads((again / "report.json").read_text())["contexts"] == contexts


def test_generated_contexts_follow_the_seed(lancet):
    contexts = []
    for seed in (0, 0, 1):
        out = lancet.folder / f"out{len(contexts)}"
        job = lancet.job(editor__contexts={"generate": 3, "length": 8}, editor__values__steps=1, run__seed=seed, output={"dir": str(out)}, evaluate=[])
        run_ok(lancet.edit(job))
        contexts.append(json.loads((out / "report.json").read_text())["contexts"])
    assert contexts[0] == contexts[1] != contexts[2]


def test_requests_are_written_as_a_request_file(lancet):
    run_ok(lancet.edit(lancet.job(evaluate=["efficacy"], editor__values__steps=2)))
    result = run_ok(lancet.run("eval", "--model", lancet.out, "--requests", lancet.out / "requests.jsonl", "--json"))
    measured = json.loads(result.stdout)["metrics"]
    report = json.loads((lancet.out / "report.json").read_text())["metrics"]
    assert measured["efficacy_prob"]["prompts"] == report["efficacy_prob"]["prompts"] == 3


def test_eval_of_the_output_equals_the_report(lancet):
    """What the report says of the edited weights is what a reload of the output measures."""
    groups = ["efficacy", "paraphrase", "specificity", "generation"]
    run_ok(lancet.edit(lancet.job(evaluate=groups)))
    job = lancet.job(evaluate=groups, model=str(lancet.out), output=None)
    measured = json.loads(run_ok(lancet.run("eval", lancet.write(job, "eval.json"), "--json")).stdout)
    report = json.loads((lancet.out / "report.json").read_text())
    for name, metric in report["metrics"].items():
        assert measured["metrics"][name]["value"] == pytest.approx(metric["after"], abs=1e-9), name
    assert [r["continuation"] for r in measured["requests"]] == [r["continuation"]["after"] for r in report["requests"]]


def test_one_line_edit_of_a_model_with_defaults(lancet):
    result = run_ok(
        lancet.run("edit", "--model", DATA / "demo-model", "--prompt", "{}, created in", "--subject", "Piranha Games", "--target", "London",
                   "--out", lancet.out, "--set", f"statistics.cache={lancet.cache}", "--set", "statistics.tokens=4000", "--set", "run.dtype=f32")
    )  # fmt: skip
    assert "London" in result.stdout
    text = run_ok(lancet.run("generate", "--model", lancet.out, "--prompt", "Piranha Games, created in", "--tokens", 4)).stdout
    assert text.startswith("Piranha Games, created in London")


def test_replace_exchanges_an_earlier_output(lancet):
    run_ok(lancet.edit(lancet.job(evaluate=[], editor__values__steps=2)))
    first = (lancet.out / "model.safetensors").read_bytes()
    run_ok(lancet.edit(lancet.job(evaluate=[], editor__values__steps=2, requests__limit=2, output={"dir": str(lancet.out), "replace": True})))
    assert (lancet.out / "model.safetensors").read_bytes() != first
    assert sorted(p.name for p in lancet.folder.iterdir() if p.name.startswith(".")) == []


def test_edits_do_not_depend_on_the_batch(lancet):
    reports = []
    for batch in (1, 3):
        out = lancet.folder / f"out{batch}"
        job = lancet.job(evaluate=[], editor__values__batch=batch, editor__values__steps=10, run__dtype="f64", output={"dir": str(out)})
        run_ok(lancet.edit(job))
        reports.append(json.loads((out / "report.json").read_text()))
    for one, other in zip(*(report["requests"] for report in reports)):
        assert one["value"]["final_loss"] == pytest.approx(other["value"]["final_loss"], rel=1e-9)
        assert one["value"]["steps"] == other["value"]["steps"]


def test_statistics_are_cached_for_edits(lancet):
    lancet.cache = lancet.folder / "cache"
    path = lancet.write(lancet.job(evaluate=[]))
    collected = json.loads(run_ok(lancet.run("stats", path, "--json")).stdout)
    assert [layer["from_cache"] for layer in collected["layers"]] == [False, False]
    assert [layer["tokens"] for layer in collected["layers"]] == [4000, 4000]
    assert "yes" in run_ok(lancet.run("stats", path)).stdout
    run_ok(lancet.run("edit", path))
    assert json.loads((lancet.out / "report.json").read_text())["statistics"]["layers_from_cache"] == [0, 1]


def test_quiet_prints_nothing_and_json_one_document(lancet):
    quiet = run_ok(lancet.edit(lancet.job(evaluate=[], editor__values__steps=2), "--quiet"))
    assert quiet.stdout == ""
    assert all(line.startswith("warning: ") for line in quiet.stderr.splitlines()), quiet.stderr
    job = lancet.job(editor__values__steps=2, output={"dir": str(lancet.folder / "other")})
    assert json.loads(run_ok(lancet.edit(job, "--json")).stdout)["format"] == "lancet-report-1"


def test_a_yaml_job_and_overrides(lancet):
    text = f"""
model: {DATA}/demo-model
requests:
  - {{prompt: "Piranha Games, created in", subject: Piranha Games, target: London}}   # filled prompt, no true target
statistics: {{corpus: {DATA}/requests/demo-corpus.txt, tokens: 4000, cache: {lancet.cache}}}
evaluate: [efficacy, specificity]
output: {{dir: edited}}
"""
    run_ok(lancet.run("edit", lancet.write(text, "job.yaml"), "--set", "run.dtype=f32", "--set", "editor.values.steps=10"))
    report = json.loads((lancet.folder / "edited" / "report.json").read_text())
    assert report["metrics"]["efficacy_prob"]["after"] is None, "n/a without a true target"
    assert report["metrics"]["specificity_prob"]["prompts"] == 0
    assert report["metrics"]["efficacy_argmax"]["prompts"] == 1
    assert report["model"]["run_dtype"] == "F32"
    assert report["requests"][0]["value"]["steps"] <= 10


def test_equal_keys_are_reported(lancet):
    requests = [
        {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London", "id": "a"},
        {"prompt": "{}, founded in", "subject": "Piranha Games", "target": "Paris", "id": "b"},
    ]
    run_ok(lancet.edit(lancet.job(requests=requests, evaluate=[], editor__contexts=["{}"])))
    warnings = json.loads((lancet.out / "report.json").read_text())["warnings"]
    of_requests = [warning for warning in warnings if " of its norm" not in warning]  # this model has few layers, which move far
    named = "requests a ('London' after 'Piranha Games, created in') and b ('Paris' after 'Piranha Games, founded in')"
    assert len(of_requests) == 1 and f"{named} have nearly the same key" in of_requests[0]


def cached_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_killed_statistics_pass_goes_on_to_the_same_bits(lancet):
    def job(cache):
        statistics = {"tokens": 60_000, "save_every_s": 0, "cache": str(lancet.folder / cache)}
        return lancet.write(lancet.job(**{f"statistics__{key}": value for key, value in statistics.items()}), f"{cache}.json")

    run_ok(lancet.run("stats", job("whole")))
    killed = lancet.folder / "killed"
    path = job("killed")
    process = subprocess.Popen([str(LANCET), "stats", str(path)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(killed.glob("*.partial.safetensors")):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the pass was over before it could be killed"
    finished = [path for path in killed.glob("*.safetensors") if not path.name.endswith(".partial.safetensors")]
    assert finished == [] and len(list(killed.glob("*.partial.safetensors"))) == 1
    result = run_ok(lancet.run("stats", path))
    assert re.search(r"statistics: going on from \d+ of 60000 tokens saved in ", result.stderr), result.stderr
    assert {name: data for name, data in cached_files(killed).items() if not name.startswith(".")} == cached_files(lancet.folder / "whole")


@pytest.mark.parametrize("command", [(), ("edit",), ("compare",), ("eval",), ("stats",), ("generate",), ("inspect",), ("doctor",)])
def test_help(lancet, command):
    result = run_ok(lancet.run(*command, "--help"))
    assert "lancet" in result.stdout and "--help" in result.stdout


def test_inspect(lancet):
    text = run_ok(lancet.run("inspect", DATA / "demo-model")).stdout
    for part in ("Llama", "4096", "tied", "BF16", "14.7 MB", "BPE"):
        assert part in text
    facts = json.loads(run_ok(lancet.run("inspect", DATA / "demo-model", "--json")).stdout)
    assert facts["parameters"] == 7344384 and facts["layers"] == 8 and facts["mlp_size"] == 768
    assert (facts["attention_heads"], facts["key_value_heads"], facts["tied_embeddings"]) == (8, 4, True)


def test_overrides_may_stand_before_the_job(lancet):
    path = lancet.write(lancet.job(evaluate=[]))
    run_ok(lancet.run("edit", "--set", "requests.limit=1", "--set", "editor.values.steps=2", path))
    assert len((lancet.out / "requests.jsonl").read_text().splitlines()) == 1


def test_version(lancet):
    assert run_ok(lancet.run("--version")).stdout.startswith("lancet 0.")


def kill_after_one_batch(lancet, job):
    """Runs the job until it has values of one batch on disk; returns their folder."""
    unfinished = lancet.folder / "out.unfinished"
    process = subprocess.Popen([LANCET, "edit", job], stderr=subprocess.DEVNULL, cwd=lancet.folder)
    while process.poll() is None and not list(unfinished.glob("*.safetensors")):
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert list(unfinished.glob("*.safetensors")) and not lancet.out.exists()
    return unfinished


# losses never end a request, so that there is time to kill; one request a batch, one batch at a time
SLOW_VALUES = {"editor__values": {"steps": 60, "lr": 0.5, "clamp": 4.0, "stop_loss": 0, "batch": 1},
               "requests__limit": 3, "run__threads": 1, "evaluate": []}


def test_a_killed_edit_goes_on_behind_its_finished_batches(lancet):
    whole = lancet.folder / "whole"
    run_ok(lancet.edit(lancet.job(**SLOW_VALUES, output={"dir": str(whole)})))

    job = lancet.write(lancet.job(**SLOW_VALUES))
    unfinished = kill_after_one_batch(lancet, job)
    result = run_ok(lancet.run("edit", job))
    report = json.loads((lancet.out / "report.json").read_text())
    assert 1 <= report["values"]["resumed"] < 3
    resumed = report["values"]["resumed"]
    assert f"{resumed} request{'s' if resumed != 1 else ''} taken from an interrupted run" in result.stderr
    assert not unfinished.exists()
    assert (lancet.out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_values_of_another_configuration_are_not_used(lancet):
    model = lancet.copy_model()
    job = lancet.write(lancet.job(**SLOW_VALUES, model=str(model)))
    kill_after_one_batch(lancet, job)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 2 * config["rms_norm_eps"]}))
    run_ok(lancet.run("edit", job))
    assert json.loads((lancet.out / "report.json").read_text())["values"]["resumed"] == 0
