"""`lancet tune`: what it finds, that its scores are those of real edits, and that it leaves nothing behind."""
import json
import xml.etree.ElementTree

import pytest
import yaml
from conftest import DATA, SMALL_JOB
from edits import edit_files

CONFIG, CHECKPOINT, NUMERIC = 2, 3, 5
OBJECTIVE = ["efficacy_prob", "paraphrase_prob", "specificity_prob"]


def tune_job(lancet, editor=None, **tune):
    requests = {"path": str(DATA / "requests" / "demo.json"), "skip": 100, "limit": 6}
    search = {"values.lr": [0.05, 0.5], "layers": [[0, 1], [1, 2]]}
    job = lancet.job(output=None, requests=None, evaluate=None, tune={"requests": requests, "search": search, "trials": 4} | tune)
    job.pop("output", None)
    job["editor"]["values"]["steps"] = 8
    if editor:
        job["editor"] = editor
    return job


def run_tune(lancet, job, *more):
    return lancet.run("tune", lancet.write(job, "tune.json"), "--out", "tuned.yaml", *more)


def tuned(lancet, job):
    result = run_tune(lancet, job)
    assert result.returncode == 0, result.stderr
    return yaml.safe_load((lancet.folder / "tuned.yaml").read_text()), result


def harmonic(values):
    return 0 if min(values) == 0 else len(values) / sum(1 / value for value in values)


def edit_with(lancet, editor, count, name):
    """A real edit of the first `count` tuning requests."""
    requests = {"path": str(DATA / "requests" / "demo.json"), "skip": 100, "limit": count}
    out = lancet.folder / name
    job = lancet.job(editor=editor, requests=requests, evaluate=["efficacy", "paraphrase", "specificity"], output={"dir": str(out)})
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    return json.loads((out / "report.json").read_text())["metrics"]


def test_scores_are_those_of_real_edits(lancet):
    preset, result = tuned(lancet, tune_job(lancet))
    trials = preset["trials"]
    assert len(trials) == 4 and [len(t["scores"]) for t in trials] == [2, 2, 1, 1]
    assert [score["requests"] for score in trials[0]["scores"]] == [3, 6]
    assert {} in [t["choice"] for t in trials]  # the job's own
    for trial in trials:
        for score in trial["scores"]:
            assert score["objective"] == pytest.approx(harmonic([score[name] for name in OBJECTIVE]), abs=1e-12)
    assert trials[0]["scores"][1]["objective"] >= trials[1]["scores"][1]["objective"]
    assert max(t["scores"][0]["objective"] for t in trials[2:]) <= min(t["scores"][0]["objective"] for t in trials[:2])
    # another process, the preset as a file; and the worst trial, from the job's editor and its choice
    best = edit_with(lancet, {"preset": "./tuned.yaml"}, 6, "best")
    worst_editor = tune_job(lancet)["editor"]
    for key, value in trials[3]["choice"].items():
        if key == "values.lr":
            worst_editor["values"]["lr"] = value
        else:
            worst_editor[key] = value
    worst = edit_with(lancet, worst_editor, 3, "worst")
    for name in OBJECTIVE:
        assert best[name]["after"] == trials[0]["scores"][1][name]
        assert worst[name]["after"] == trials[3]["scores"][0][name]
    assert "unedited" in result.stdout and "values.lr" in result.stdout and "tune  round 1/2, 3 requests, trial 4/4" in result.stderr


def test_an_edit_after_a_tune_is_the_one_without_it(lancet):
    lancet.cache = lancet.folder / "cache"
    def edited(name):
        out = lancet.folder / name
        job = lancet.job(editor__contexts={"generate": 2, "length": 8}, statistics__corpus="self", output={"dir": str(out)})
        job["editor"]["layers"] = [1]
        result = lancet.edit(job)
        assert result.returncode == 0, result.stderr
        return (out / "model.safetensors").read_bytes(), edit_files(out)

    without = edited("without")
    cache = lancet.folder / "cache"
    cache.rename(lancet.folder / "other-cache")
    job = tune_job(lancet)
    job["editor"]["contexts"] = {"generate": 2, "length": 8}
    job["statistics"]["corpus"] = "self"
    model = (DATA / "demo-model" / "model.safetensors").read_bytes()
    tuned(lancet, job)
    assert (DATA / "demo-model" / "model.safetensors").read_bytes() == model
    assert {path.name for path in lancet.folder.iterdir()} >= {"cache", "tuned.yaml", "tuned.svg", "tune.json"}
    assert not [path for path in lancet.folder.rglob("*") if "unfinished" in path.name or "partial" in path.name]
    assert edited("after") == without


def test_the_same_job_finds_the_same_and_plots_it(lancet):
    first, _ = tuned(lancet, tune_job(lancet))
    text = (lancet.folder / "tuned.svg").read_text()
    root = xml.etree.ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}g")
    assert len(lines) == 4 and all(line.find("{http://www.w3.org/2000/svg}title").text for line in lines)
    assert "href" not in text and "url(" not in text and text.count("http") == 1  # one file, nothing from elsewhere
    (lancet.folder / "tuned.yaml").unlink()
    (lancet.folder / "tuned.svg").unlink()
    assert tuned(lancet, tune_job(lancet))[0] == first
    assert (lancet.folder / "tuned.svg").read_text() == text


def test_a_trial_that_fails_loses(lancet):
    editor = {"method": "alphaedit", "layers": [0, 1], "null_space_below": 1e-9, "values": {"steps": 10, "lr": 0.5}, "contexts": ["{}"]}
    preset, _ = tuned(lancet, tune_job(lancet, editor, search={"null_space_below": [1e-9, 1.0, 1e-8]}, trials=3))
    assert preset["editor"]["null_space_below"] == 1.0
    assert [("failed" in trial) for trial in preset["trials"]] == [False, True, True]
    assert "no eigenvalue" in preset["trials"][1]["failed"] and "scores" not in preset["trials"][1]
    for file in ["tuned.yaml", "tuned.svg"]:
        (lancet.folder / file).unlink()
    result = run_tune(lancet, tune_job(lancet, editor, search={"null_space_below": [1e-9, 1e-8]}, trials=2))
    assert result.returncode == NUMERIC and "every trial failed" in result.stderr
    assert not (lancet.folder / "tuned.yaml").exists() and not (lancet.folder / "tuned.svg").exists()


def test_searches_around_the_jobs_values_when_none_are_named(lancet):
    editor = {"method": "ft-l", "modules": {"down": [1]}, "steps": 2}
    job = tune_job(lancet, editor, trials=5, requests={"path": str(DATA / "requests" / "demo.json"), "limit": 2}, objective=["efficacy_prob"])
    job["tune"].pop("search")
    job.pop("statistics")
    preset, _ = tuned(lancet, job)
    chosen = [trial["choice"] for trial in preset["trials"] if trial["choice"]]
    assert len(chosen) == 4 and all(set(choice) == {"lr", "norm_constraint", "modules"} for choice in chosen)
    for key, own in [("lr", 5e-4), ("norm_constraint", 5e-5)]:
        factors = {round(float(choice[key]) / own, 6) for choice in chosen}
        assert factors <= {0.1, 0.3, 1, 3, 10} and len(factors) > 1
    assert all(choice["modules"]["down"] in [[0], [1], [2], [3]] for choice in chosen)  # there is no layer -1
    assert len({json.dumps(choice) for choice in chosen}) == 4


def test_what_is_automatic_is_searched_by_its_share(lancet):
    editor = {"method": "alphaedit", "values": {"steps": 1}, "contexts": ["{}"]}
    job = tune_job(lancet, editor, trials=8, requests={"path": str(DATA / "requests" / "demo.json"), "limit": 2}, objective=["efficacy_prob"])
    job["tune"].pop("search")
    preset, _ = tuned(lancet, job)
    assert {} in [trial["choice"] for trial in preset["trials"]]
    chosen = [trial["choice"] for trial in preset["trials"] if trial["choice"]]
    assert all(set(choice) == {"values.lr", "values.clamp", "ridge", "null_space_below", "layers"} for choice in chosen)
    shares = [{"realised_share": share} for share in (0.826, 0.905, 0.974, 0.987)]  # of the odds of 0.95
    assert all(choice["ridge"] in ["auto", *shares] for choice in chosen) and len({str(choice["ridge"]) for choice in chosen}) > 1
    assert all(choice["layers"] in ["auto", [1, 2], [2, 3]] for choice in chosen)  # auto is [0, 1]
    assert all(0 < choice["null_space_below"]["share"] < 1 for choice in chosen if choice["null_space_below"] != "auto")


def test_metrics_are_measured_as_evaluate_says(lancet):
    editor = {"method": "ft-l", "modules": {"down": [1]}, "steps": 1}
    job = tune_job(lancet, editor, trials=2, requests={"path": str(DATA / "requests" / "demo.json"), "limit": 2}, objective=["chat_contains"])
    job["tune"]["search"] = {"lr": [1.0e-4, 1.0e-3]}
    result = run_tune(lancet, job)
    assert result.returncode == CHECKPOINT and "no chat_template.jinja" in result.stderr
    tuned(lancet, job | {"evaluate": {"metrics": ["chat"], "tokens": 4, "chat_template": "USER: {} ASSISTANT:"}})


def test_a_job_without_the_section_is_tuned_on_half_of_its_requests(lancet):
    facts = [{"prompt": "{}, created in", "subject": name, "target": "London"} for name in ("Piranha Games", "Nokia", "Volvo")]
    job = lancet.job(requests=facts, editor={"method": "ft-l", "modules": {"down": [1]}, "steps": 1}, statistics=None, output=None)
    result = lancet.run("tune", lancet.write(job))
    assert result.returncode == 0, result.stderr
    assert "the first 2 of the job's 3 requests" in result.stderr and "tune  objective: efficacy_argmax;" in result.stderr
    trials = yaml.safe_load((lancet.folder / "preset.yaml").read_text())["trials"]
    assert len(trials) == 16 and trials[0]["scores"][-1]["requests"] == 2


def test_bad_input(lancet):
    def refuses(job, code, *parts):
        result = run_tune(lancet, job)
        assert result.returncode == code, result.stderr
        for part in parts:
            assert part in result.stderr
        assert not (lancet.folder / "tuned.yaml").exists()

    refuses(tune_job(lancet, search={"values.lrr": [1, 2]}), CONFIG, "tune.search", "values.lrr", "lr")
    refuses(tune_job(lancet, search={"values.lr": 1}), CONFIG, "values.lr", "list")
    refuses(tune_job(lancet, search={"layers.first": [1, 2]}), CONFIG, "tune.search: layers.first: layers is a list, expected a map")
    refuses(tune_job(lancet, search={"layers": [[0, 1], [99]]}), CONFIG, "editor.layers: 99")
    refuses(tune_job(lancet, search={"values.lr": [SMALL_JOB["editor"]["values"]["lr"]]}), CONFIG, "nothing to choose from")
    refuses(tune_job(lancet, objective=["efficacy"]), CONFIG, "efficacy_prob")
    requests = [{"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}] * 1
    refuses(tune_job(lancet, requests=requests, objective=["efficacy_prob"]), CONFIG, "efficacy_prob", "target_true")
    (lancet.folder / "tuned.svg").write_text("mine")
    refuses(tune_job(lancet), CONFIG, "tuned.svg", "exists")
    assert (lancet.folder / "tuned.svg").read_text() == "mine"


def test_other_commands_check_the_section(lancet):
    job = lancet.job(evaluate=[])
    job["tune"] = {"requests": {"path": "none.json"}, "trails": 5}
    result = lancet.edit(job)
    assert result.returncode == CONFIG and "trails" in result.stderr and "trials" in result.stderr
