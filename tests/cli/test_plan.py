"""`lancet plan`: tables without a GPU and without weights."""
import json
import re
import shutil

from conftest import DATA, ROOT

LLAMA_70B = ROOT / "tests" / "fixtures" / "llama-3-70b"
GIB = 2**30


def test_a_published_config_is_enough(lancet):
    for model in [LLAMA_70B, LLAMA_70B / "config.json"]:
        run = lancet.run("plan", "--model", model, "--devices", "8x80GiB", "--json")
        assert run.returncode == 0, run.stderr
        plan = json.loads(run.stdout)
        assert plan["fits"] and len(plan["stages"]) == 8
        assert sum(stage["weights"] for stage in plan["stages"]) == 2 * 70_553_706_496
        assert all(stage["total"] <= stage["budget"] == 80 * GIB for stage in plan["stages"])
    table = lancet.run("plan", "--model", LLAMA_70B, "--devices", "80GiB,cpu=256GiB")
    assert table.returncode == 0 and "cuda:0" in table.stdout and "cpu" in table.stdout and "assumed: MEMIT" in table.stdout


def test_what_does_not_fit_is_refused_with_remedies(lancet):
    run = lancet.run("plan", "--model", LLAMA_70B, "--devices", "4x24GiB")
    assert run.returncode == 4
    assert "too much" in run.stdout
    assert "more devices: 3 more of 24.0 GiB" in run.stderr and "layers on the CPU" in run.stderr


def test_where_solves_lie_is_said(lancet):
    run = lancet.run("plan", "--model", LLAMA_70B, "--devices", "150GiB", "--json")
    assert run.returncode == 0, run.stderr
    plan = json.loads(run.stdout)
    assert plan["solve_on"] == "host" and plan["host"]["statistics"] >= 5 * 8 * 28672**2 and plan["host"]["weights"] == 0
    assert plan["stages"][0]["edited"] == 0
    table = lancet.run("plan", "--model", LLAMA_70B, "--devices", "150GiB").stdout
    assert "lie on the CPU: the devices have no room for them" in table and re.search(r"\n +cpu +- ", table)
    job = lancet.write(lancet.job(run__solve_on="host"))
    asked = lancet.run("plan", job, "--devices", "10GiB")
    assert "lie on the CPU (run.solve_on)" in asked.stdout, asked.stderr
    there = json.loads(lancet.run("plan", job, "--set", "run.solve_on=auto", "--devices", "10GiB", "--json").stdout)
    assert there["solve_on"] == "device" and there["host"] is None and there["stages"][0]["edited"] > 0


def test_a_job_is_planned_without_its_weights(lancet):
    model = lancet.folder / "model"
    model.mkdir()
    shutil.copy(DATA / "demo-model" / "config.json", model)
    job = lancet.write(lancet.job(model=str(model)))
    assumed = lancet.run("plan", job, "--devices", "2x10GiB", "--json")
    assert assumed.returncode == 0, assumed.stderr
    assert any("no tokenizer" in note for note in json.loads(assumed.stdout)["notes"])
    shutil.copy(DATA / "demo-model" / "tokenizer.json", model)
    known = json.loads(lancet.run("plan", job, "--devices", "2x10GiB", "--json").stdout)
    assert not any("no tokenizer" in note for note in known["notes"])
    assert [stage["device"] for stage in known["stages"]] == ["cuda:0", "cuda:1"]
    assert known["dtype"] == "F32"


def test_a_job_that_does_not_fit_ends_before_anything_is_loaded(lancet):
    run = lancet.edit(lancet.job(run__devices=["cpu=4MiB"]))
    assert run.returncode == 4, run.stderr
    assert "the job does not fit on the devices" in run.stderr and "loading" not in run.stderr
    assert not lancet.out.exists()


def test_bad_arguments(lancet):
    for arguments, code, message in [
        ([], 2, "expected either a job file or --model DIR"),
        (["--model", LLAMA_70B, "--devices", "many"], 2, "--devices: 'many'"),
        (["--model", LLAMA_70B, "--dtype", "f8"], 2, "f8"),
        (["--model", lancet.folder / "absent"], 3, "absent"),
    ]:
        run = lancet.run("plan", *arguments)
        assert run.returncode == code and message in run.stderr, (arguments, run.stderr)
    run = lancet.edit(lancet.job(run__balance="speed"))
    assert run.returncode == 2 and "expected one of memory, work" in run.stderr, run.stderr
