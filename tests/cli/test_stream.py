"""Edits in several batches, as a user runs them: what is shown, what a kill leaves, and going on in another process."""
import json
import os
import signal
import subprocess
import time

import pytest
import torch
from conftest import DATA, LANCET, run_ok
from edits import edit_files, edits_of
from safetensors.torch import load_file

STREAM = {"requests__limit": 6, "schedule": {"batch": 2}, "editor__history": True, "run__threads": 1,
          "editor__values": {"steps": 12, "lr": 0.5, "clamp": 4.0}}  # fmt: skip


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def test_a_stream_shows_both_views(lancet):
    result = run_ok(lancet.edit(lancet.job(**STREAM)))
    lines = [line for line in result.stderr.splitlines() if line.startswith("batch ")]
    assert [line.split("  ")[0] for line in lines] == ["batch 1/3", "batch 2/3", "batch 3/3"]
    assert all("efficacy_prob" in line for line in lines) and "first batch" in lines[2]
    assert "right after" in result.stdout
    report = report_of(lancet.out)
    assert [batch["requests"] for batch in report["batches"]] == [[r["id"] for r in report["requests"][i : i + 2]] for i in (0, 2, 4)]
    for batch in report["batches"]:
        assert batch["seconds"] > 0 and batch["steps"] > 0 and set(batch["growth"]) == {w["name"] for w in report["weights"]}
    for name, metric in report["metrics"].items():
        right_after = [batch["metrics"][name]["right_after"] for batch in report["batches"]]
        assert metric["right_after"] == pytest.approx(sum(right_after) / 3)
        after_all = [batch["metrics"][name]["after_all"] for batch in report["batches"]]
        assert metric["after"] == pytest.approx(sum(after_all) / 3)
        assert report["batches"][-1]["metrics"][name]["first_batch"] == after_all[0]
    growth = [batch["growth"]["model.layers.1.mlp.down_proj.weight"] for batch in report["batches"]]
    assert 0 < growth[0] < growth[-1]
    last = next(w for w in report["weights"] if w["name"] == "model.layers.1.mlp.down_proj.weight")
    assert growth[-1] == pytest.approx(last["delta_norm"] / last["weight_norm"])


def kill_after_a_batch(lancet, job):
    progress = lancet.folder / "out.unfinished" / "progress" / "progress.json"
    process = subprocess.Popen([LANCET, "edit", job], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=lancet.folder)
    while process.poll() is None and not progress.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the job was over before it could be killed"
    assert progress.exists() and not lancet.out.exists()
    return progress


def test_a_killed_stream_goes_on_after_its_last_batch(lancet):
    whole = lancet.folder / "whole"
    run_ok(lancet.edit(lancet.job(**STREAM, output={"dir": str(whole)})))
    job = lancet.write(lancet.job(**STREAM))
    kill_after_a_batch(lancet, job)
    result = run_ok(lancet.run("edit", job))
    resumed = report_of(lancet.out)["schedule"]["resumed_batches"]
    assert 1 <= resumed <= 2 and f"{resumed} of 3 batches taken from an interrupted run" in result.stderr
    assert (lancet.out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert edit_files(lancet.out) == edit_files(whole)
    assert report_of(lancet.out)["metrics"] == report_of(whole)["metrics"]
    assert [p.name for p in lancet.folder.iterdir() if "unfinished" in p.name or p.name.startswith(".")] == []


def test_a_damaged_progress_is_named_and_not_used(lancet):
    job = lancet.write(lancet.job(**STREAM))
    progress = kill_after_a_batch(lancet, job)
    progress.write_text(progress.read_text()[:-20])
    result = run_ok(lancet.run("edit", job))
    assert report_of(lancet.out)["schedule"]["resumed_batches"] == 0
    assert "warning: the progress of an interrupted run is not used: " in result.stderr and "progress.json" in result.stderr


def assert_edits_make_the_model(out):
    """docs/report.md: in f32, change by change in their order, each a product in f64 that is rounded to f32."""
    base, edited = load_file(DATA / "demo-model" / "model.safetensors"), load_file(out / "model.safetensors")
    edits = edits_of(out)
    assert len(edits) == 2
    for name, changes in edits.items():
        weight = base[name].float()
        assert len(changes) == 3
        for factors in changes:
            left, right = (torch.from_numpy(factor) for factor in factors)
            assert left.dtype == right.dtype == torch.float64
            weight += (left @ right).float()
        assert torch.equal(weight.to(edited[name].dtype), edited[name]), name


def test_two_processes_make_the_model_of_one(lancet):
    """In f32 and with values in batches, as in use: bit by bit."""
    whole, first = lancet.folder / "whole", lancet.folder / "first"
    run_ok(lancet.edit(lancet.job(**STREAM, output={"dir": str(whole)})))
    run_ok(lancet.edit(lancet.job(**(STREAM | {"requests__limit": 4}), output={"dir": str(first)})))
    second = lancet.job(**(STREAM | {"requests__limit": 2}), requests__skip=4, continue_from="first")
    run_ok(lancet.edit(second))
    for name in ("model.safetensors", "requests.jsonl"):
        assert (lancet.out / name).read_bytes() == (whole / name).read_bytes(), name
    assert edit_files(lancet.out) == edit_files(whole)
    assert report_of(lancet.out)["schedule"]["earlier_edits"] == 4
    assert_edits_make_the_model(lancet.out)
    # the resolved job goes on from there too
    again = lancet.folder / "again"
    run_ok(lancet.run("edit", lancet.out / "job.yaml", "--set", f"output.dir={again}"))
    assert (again / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def trained_job(lancet, revisit, **changes):
    editor = {"method": "ft-m", "modules": {"down": [4]}, "lr": 2e-3, "steps": 25, "batch": 4, "order": "breadth-first", "revisit": revisit}
    return lancet.job(editor=editor, statistics=None, schedule={"batch": 4, "measure_every": 0}, run__threads=1, evaluate=["efficacy"], **changes)


def test_a_trained_stream_keeps_what_it_revisits(lancet):
    """Three batches at once, and in two processes: bit by bit. The first batch holds better than without."""
    kept = {}
    for revisit in (0, 8):
        folder = lancet.folder / f"revisits {revisit}"
        run_ok(lancet.edit(trained_job(lancet, revisit, requests__limit=12, output={"dir": str(folder)})))
        first_batch = report_of(folder)["requests"][:4]
        kept[revisit] = sum(request["target_probability"]["after"] for request in first_batch) / 4
    assert kept[8] > max(0.9, kept[0])
    run_ok(lancet.edit(trained_job(lancet, 8, requests__limit=8, output={"dir": str(lancet.folder / "first")})))
    run_ok(lancet.edit(trained_job(lancet, 8, requests__limit=4, requests__skip=8, continue_from="first")))
    assert edit_files(lancet.out) == edit_files(folder)
    assert (lancet.out / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


def test_what_cannot_be_continued_is_refused_before_the_model_is_loaded(lancet):
    first = lancet.folder / "first"
    small = STREAM | {"requests__limit": 2, "evaluate": []}
    run_ok(lancet.edit(lancet.job(**small, output={"dir": str(first)})))
    for changes, part in [
        ({"editor__layers": [0]}, "editor.layers: expected 'layers: [0, 1]' as there, got 'layers: [0]'"),
        ({"editor__history": False}, "editor.history: expected 'history: true' as there, got 'history: false'"),
        ({"requests__skip": 1}, "one of this id was edited there already"),
        ({"continue_from": "nothing"}, "expected the output of lancet edit with its folder edits/"),
    ]:
        result = lancet.edit(lancet.job(**({**small, "requests__skip": 2, "continue_from": "first"} | changes)))
        assert result.returncode == 2 and part in result.stderr, result.stderr
        assert "loading" not in result.stderr and not lancet.out.exists()
    for part in ("solved", "changes"):
        (name,) = edit_files(first, [part])
        os.remove(first / "edits" / name)
        result = lancet.edit(lancet.job(**small, requests__skip=2, continue_from="first"))
        assert result.returncode == 3 and str(first / "edits" / name) in result.stderr


def test_a_bad_schedule_is_refused(lancet):
    result = lancet.edit(lancet.job(schedule={"batch": -1, "order": "random", "save_every": 0, "size": 3}))
    assert result.returncode == 2
    for part in ("schedule.batch", "schedule.order", "schedule.save_every", "schedule.size"):
        assert part in result.stderr


def test_a_rehearsal_counts_all_batches(lancet):
    job = lancet.job(**STREAM)
    report = json.loads(run_ok(lancet.edit(job, "--rehearse", "--json")).stdout)
    stages = {stage["stage"].split(",")[0]: stage for stage in report["stages"]}
    assert (report["requests"], report["edited"], report["values_at_a_time"]) == (6, 2, 2)
    assert stages["weights"]["estimate_of"].startswith("3 times as measured")
    assert stages["evaluate batches"]["estimate_of"].startswith("6 requests between batches")
    assert stages["evaluate batches"]["estimate_seconds"] > 0
    assert any("of its 3 is not counted" in limit for limit in report["limits"])
    assert any("2 of 6 requests" in limit for limit in report["limits"]), "the last solve sees the history"
    assert not lancet.out.exists()


def test_a_plan_counts_one_batch(lancet):
    def largest(**changes):
        job = lancet.write(lancet.job(requests__limit=1000, **changes))
        plan = json.loads(run_ok(lancet.run("plan", job, "--devices", "80GiB", "--json")).stdout)
        return plan["stages"][0]["solve"]

    together, stream = largest(), largest(schedule={"batch": 50})
    assert stream < together / 3
    assert stream < largest(schedule={"batch": 50}, editor__history=True) < 2 * together
