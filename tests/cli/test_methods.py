"""Every method end to end on the demo model: the edit takes, what it costs elsewhere is reported, the records can be used again."""
import json

import numpy
import pytest
import torch
import yaml
from cached_statistics import read_moments
from conftest import DATA, SMALL_JOB, run_ok
from edits import column_ids, edit_files, edits_of, standing

LOCATED = {key: SMALL_JOB["editor"][key] for key in ("values", "contexts")}
AT_THE_MLP = LOCATED | {"values": LOCATED["values"] | {"clamp": 20.0}}  # the MLP's output is a small part of the layer's
METHODS = {
    "memit": {"layers": [0, 1], "covariance_weight": 20, "history": True, **LOCATED},
    "rome": {"layers": [1], **AT_THE_MLP},
    "r-rome": {"layers": [1], "keys": "prompt", "covariance": False, **AT_THE_MLP},
    "emmet": {"layers": [1], "covariance_weight": 20, **LOCATED},
    "alphaedit": {"layers": [0, 1], "null_space_below": 0.5, "ridge": 0.5, **LOCATED},
    "pmet": {"layers": [0, 1], "covariance_weight": 20, **LOCATED},
    "nse": {"layers": [0, 1], "covariance_weight": 20, "residual_below": 1000, **LOCATED},
    "evoedit": {"layers": [0, 1], "null_space_below": 0.5, "ridge": 0.5, **LOCATED},
    "betaedit": {"layers": [0, 1], "null_space_below": 0.5, "covariance_weight": 1, "ridge": 0.5, **LOCATED},
    "ultraedit": {"modules": {"gate": [3, 4, 5], "up": [3, 4, 5], "down": [3, 4, 5]}, "lr": 3e-3},
    "stableedit": {"modules": {"down": [2, 3, 4, 5]}, "lr": 3e-3},
    "ft": {"modules": {"down": [4, 5]}, "lr": 1e-3},
    "ft-l": {"modules": {"down": [4, 5]}, "lr": 1e-3, "norm_constraint": 0.03},
    "ft-m": {"modules": {"down": [4, 5]}, "lr": 2e-3, "batch": 3},
    "zerounlearn": {"layers": [0, 1], "covariance_weight": 20, **LOCATED},
    "crispedit": {"modules": {"down": [4, 5]}, "lr": 4e-3, "steps": 20},
}
LEAST_EFFICACY = 2 / 3


def job_of(lancet, method, **changes):
    return lancet.job(editor={"method": method, **METHODS[method]}, evaluate=["efficacy", "specificity"], **changes)


@pytest.mark.parametrize("method", METHODS)
def test_the_edit_takes_and_its_cost_is_reported(lancet, method):
    run_ok(lancet.edit(job_of(lancet, method)))
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["method"] == method
    assert report["metrics"]["efficacy_prob"]["before"] < LEAST_EFFICACY <= report["metrics"]["efficacy_prob"]["after"]
    assert 0 <= report["metrics"]["specificity_prob"]["after"] <= 1 and report["metrics"]["specificity_prob"]["prompts"] > 0
    assert all(row["skipped"] is None and row["value"]["initial_loss"] > 0 for row in report["requests"])
    for row in report["requests"]:
        assert row["verdict"]["success"] == (row["metrics"]["efficacy_argmax"]["after"] == 1)
        if "layers" in METHODS[method]:
            assert set(row["value"]["realised"]["layers"]) == {str(layer) for layer in METHODS[method]["layers"]}
        else:
            assert row["value"]["realised"] is None, "a method without residuals"
    (batch,), _ = standing(lancet.out)
    ids = {row["id"] for row in report["requests"]}
    assert {edit["request"]["id"] for edit in batch["edits"]} == ids
    for changes in edits_of(lancet.out).values():
        low_rank = [change for change in changes if isinstance(change, tuple)]
        assert sum(len(right) for _, right in low_rank) == len(batch["columns"])
        assert set(column_ids(lancet.out)) == (ids if low_rank else set())


def test_every_method_is_tried(lancet):
    problem = lancet.edit(lancet.job(editor={"method": "none"})).stderr
    names = problem.split("expected one of ", 1)[1].split(", got", 1)[0]
    assert names.split(", ") == list(METHODS)


def test_crispedit_takes_moments_of_keys_and_gradients_from_files(lancet):
    job = job_of(lancet, "crispedit")
    job["editor"]["steps"] = 2
    run_ok(lancet.edit(job))
    whole = edits_of(lancet.out)
    stats = json.loads(run_ok(lancet.run("stats", lancet.out / "job.yaml", "--json")).stdout)["layers"]
    assert [layer["layer"] for layer in stats] == [4, 5] and all(layer["from_cache"] for layer in stats)
    for layer in stats:
        for side in ("factor_file", "gradients_file"):
            moments, tokens = read_moments(layer[side].replace(".spectrum", ""))
            arrays = {"mom2.mom2": moments * tokens, "mom2.count": numpy.array(tokens)}
            numpy.savez(lancet.folder / f"{side}.{layer['layer']}.npz", **arrays)
    job["statistics"] = {"import": str(lancet.folder / "factor_file.{}.npz"), "cache": str(lancet.folder / "other")}
    refused = lancet.edit(job)
    assert refused.returncode == 2 and "import_gradients" in refused.stderr
    job["statistics"]["import_gradients"] = str(lancet.folder / "gradients_file.{}.npz")
    job["output"]["dir"] = str(lancet.folder / "imported")
    run_ok(lancet.edit(job))
    for name, changes in edits_of(lancet.folder / "imported").items():
        for change, expected in zip(changes, whole[name], strict=True):
            difference = torch.as_tensor(change).double() - torch.as_tensor(expected).double()
            assert difference.norm() < 1e-3 * torch.as_tensor(expected).double().norm() > 0


@pytest.mark.parametrize("method", ["ultraedit", "alphaedit"])
def test_the_resolved_job_runs_again(lancet, method):
    lancet.cache = lancet.folder / "cache"
    run_ok(lancet.edit(job_of(lancet, method)))
    again = lancet.folder / "again"
    run_ok(lancet.run("edit", lancet.out / "job.yaml", "--set", f"output.dir={again}"))
    assert (again / "model.safetensors").read_bytes() == (lancet.out / "model.safetensors").read_bytes()
    report = json.loads((again / "report.json").read_text())
    if method == "alphaedit":
        assert report["statistics"]["factors_from_cache"] == [0, 1]
        assert len(list((lancet.folder / "cache").glob("*.null-space-0.5.safetensors"))) == 2
        assert list((lancet.folder / "cache").glob("*.factor-*")) == []
    else:
        assert report["statistics"] is None and report["contexts"] == []


def model_without_options(lancet):
    """The demo model as somebody's own: no lancet.yaml beside it, no preset is asked for."""
    model = lancet.copy_model()
    (model / "lancet.yaml").unlink()
    return str(model)


def test_a_method_alone_is_an_editor_for_any_model(lancet):
    contexts = {"contexts": ["{}", "The answer is known. {}"]}  # fewer than are generated: less time
    alone = {"memit": {"method": "memit"}}
    alone |= {method: {"method": method, **contexts} for method in ["emmet", "alphaedit", "pmet", "nse", "rome"]}
    job = lancet.job(model=model_without_options(lancet), editor=None, compare=alone, requests__limit=5)
    run_ok(lancet.run("compare", lancet.write(job)))
    for method in alone:
        report = json.loads((lancet.out / method / "report.json").read_text())
        efficacy = report["metrics"]["efficacy_prob"]
        assert efficacy["before"] == 0 and efficacy["after"] >= (0.6 if method == "rome" else 0.8), method
        chosen = [(row["option"], row["layer"]) for row in report["chosen"] if row["value"] > 0]
        if method == "alphaedit":
            assert chosen == [("null_space_below", 0), ("null_space_below", 1), ("ridge", 0), ("ridge", 1)]
        elif method == "nse":
            assert chosen[:2] == [("residual_above", 1), ("residual_below", 1)] and len(chosen) == 4
        else:
            assert chosen == ([] if method == "rome" else [("covariance_weight", 0), ("covariance_weight", 1)])


def test_what_was_automatic_is_told_and_stays_so(lancet):
    job = lancet.job(model=model_without_options(lancet), editor={"method": "memit", "contexts": ["{}"]})
    result = run_ok(lancet.edit(job))
    chosen = json.loads((lancet.out / "report.json").read_text())["chosen"]
    numbers = ", ".join(f"{row['value']:.4g} (layer {row['layer']})" for row in chosen)
    assert f"memit  covariance_weight: auto: {numbers}\n" in result.stderr
    editor = yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]
    assert editor["layers"] == "auto" and editor["covariance_weight"] == "auto"
    # other commands take such a job too
    run_ok(lancet.run("plan", lancet.out / "job.yaml"))
    run_ok(lancet.run("edit", lancet.out / "job.yaml", "--rehearse", "--set", f"output.dir={lancet.folder / 'other'}"))


def test_a_method_without_a_subject_takes_requests_without_one(lancet):
    requests = [{"prompt": "Piranha Games, created in", "target": "London"}]
    run_ok(lancet.edit(job_of(lancet, "ft-m", requests=requests)))
    refused = lancet.edit(job_of(lancet, "emmet", requests=requests, output={"dir": str(lancet.folder / "other")}))
    assert refused.returncode == 2 and "no subject" in refused.stderr


def test_a_threshold_outside_the_spectrum_is_refused_with_its_range(lancet):
    job = job_of(lancet, "alphaedit")
    job["editor"]["null_space_below"] = 1e-9
    result = lancet.edit(job)
    assert result.returncode == 5 and "null_space_below" in result.stderr and "layer 0" in result.stderr
    assert not lancet.out.exists()


def test_skipped_requests_are_reported(lancet):
    job = job_of(lancet, "memit", requests={"path": str(DATA / "requests" / "demo.json"), "limit": 4})
    job["editor"]["norm_anchor"] = {"mode": "skip", "limit": 1.05}
    run_ok(lancet.edit(job))
    skipped = [row["skipped"] for row in json.loads((lancet.out / "report.json").read_text())["requests"]]
    assert 0 < sum(why is not None for why in skipped) < 4
    assert all(why is None or "norm" in why for why in skipped)


def test_rect_changes_a_share_of_the_entries(lancet):
    job = job_of(lancet, "memit", run__dtype="f32")
    job["editor"]["rect"] = {"keep": 0.1}
    run_ok(lancet.edit(job))
    for (change,) in edits_of(lancet.out).values():
        assert not isinstance(change, tuple) and 0.09 < (change != 0).mean() <= 0.1


def test_published_tokenisation_is_another_edit_and_is_recorded(lancet):
    requests = [{"prompt": "The mother tongue of {} is", "subject": "Leon Blum", "target": "a language of the north"}]  # several tokens
    values = {}
    for compat in ["none", "memit", "easyedit"]:
        out = lancet.folder / compat
        run_ok(lancet.edit(job_of(lancet, "memit", editor__compat=compat, requests=requests, output={"dir": str(out)})))
        assert f'compat: "{compat}"' in (out / "job.yaml").read_text()
        values[compat] = edit_files(out)
    assert len({frozenset(files.items()) for files in values.values()}) == 3
    again = lancet.folder / "again"
    run_ok(lancet.run("edit", lancet.folder / "easyedit" / "job.yaml", "--set", f"output.dir={again}"))
    assert edit_files(again) == values["easyedit"]


def test_labels_before_the_subjects_end_are_refused_before_the_model_is_loaded(lancet):
    job = job_of(lancet, "memit", requests=[{"prompt": "The mother tongue of {}", "subject": "Leon Blum", "target": "English"}])
    job["editor"]["compat"] = "easyedit"
    result = lancet.edit(job)
    assert result.returncode == 2 and "request 0" in result.stderr and "editor.compat" in result.stderr
    assert "loading" not in result.stderr
