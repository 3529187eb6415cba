"""`lancet doctor` on the machine that runs the tests, with and without a job."""
import json
import os
import re

import pytest


def findings(result):
    return {(f["topic"], f["state"]): f for f in json.loads(result.stdout)["findings"]}


def test_doctor_tells_what_it_found_as_text(lancet):
    result = lancet.run("doctor")
    assert result.returncode in (0, 4), result.stderr
    for topic in ("versions", "numerics", "devices", "collectives", "processor", "memory", "disk", "limits"):
        assert re.search(rf"^  (ok|note|problem) +{topic} ", result.stdout, re.M), result.stdout
    problems = int(re.search(r"(\d+) problems?, \d+ notes?\n$", result.stdout)[1])
    assert problems == len(re.findall(r"^  problem ", result.stdout, re.M))
    assert result.returncode == (4 if problems else 0)


def test_doctor_tells_facts_as_json(lancet, monkeypatch):
    monkeypatch.setenv("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")  # as some images have it
    result = lancet.run("doctor", "--json")
    document = json.loads(result.stdout)
    facts = document["facts"]
    assert document["format"] == "lancet-doctor-1"
    assert (document["state"] == "problem") == (result.returncode == 4)
    assert facts["versions"]["torch"] == "2.11.0" and facts["versions"]["cuda_runtime"] == 13000
    assert facts["versions"]["nccl"] and facts["versions"]["gloo"]
    assert facts["processor"]["cores"] == len(os.sched_getaffinity(0))
    assert facts["processor"]["f32_flops"] > 1e8 and facts["processor"]["bf16_flops"] > 1e7
    assert 0 < facts["memory"]["available_bytes"] <= facts["memory"]["total_bytes"]
    assert facts["folders"][0]["path"] == str(lancet.folder)
    assert facts["numerics"] == {"tf32": False, "reduced_sums": False, "cudnn_attention": False}
    assert len(facts["gpus"]) >= facts["usable_gpus"]
    if not facts["gpus"] and not facts["gpus_on_bus"]:
        assert "no GPU: jobs run on the CPU" in result.stdout


def test_doctor_looks_at_a_job(lancet):
    lancet.cache = lancet.folder / "cache"
    result = lancet.run("doctor", lancet.write(lancet.job()), "--json")
    assert result.returncode == 0, result.stdout
    by_role = {folder["role"]: folder for folder in json.loads(result.stdout)["facts"]["folders"]}
    assert by_role["cache"]["expected_bytes"] == 2 * 12 * 768**2, "two layers: moments and half a matrix for the factor, f64"
    assert by_role["output"]["expected_bytes"] > 14_000_000
    assert ("model", "ok") in findings(result) and ("requests", "ok") in findings(result)
    assert findings(result)["evaluate", "ok"]["what"].endswith(" tokens to score, 0 texts to generate")
    assert not lancet.out.exists() and not (lancet.folder / "cache").exists()


@pytest.mark.parametrize(
    ("change", "topic", "part"),
    [
        ({"model": "nowhere"}, "model", "nowhere"),
        ({"requests__path": "nowhere.json"}, "requests", "nowhere.json"),
        ({"statistics__corpus": "nowhere.txt"}, "statistics", "nowhere.txt"),
        ({"evaluate": {"metrics": [], "side_effects": {"choices": "nowhere.jsonl"}}}, "evaluate", "nowhere.jsonl"),
        ({"run__devices": "cuda:99"}, "run.devices", "cuda:99"),
        ({"editor__layers": [0, 9]}, "model", "editor.layers"),
        ({"editor__methd": "x"}, "job", "methd"),
        ({"requests": [{"prompt": "{} is", "subject": "word " * 600, "target": "b"}]}, "requests", "512 positions"),
        ({"requests": {"path": "slip.json"}}, "requests", "did you mean target_true?"),
    ],
)
def test_doctor_names_what_is_wrong_with_a_job(lancet, change, topic, part):
    """With the exit code that the edit ends with."""
    (lancet.folder / "slip.json").write_text(json.dumps([{"prompt": "{} is", "subject": "a", "target": "b", "target_tru": "c"}]))
    job = lancet.write(lancet.job(**change))
    result = lancet.run("doctor", job, "--json")
    assert result.returncode == lancet.run("edit", job).returncode != 0
    assert part in findings(result)[topic, "problem"]["what"]


def test_doctor_finds_an_output_that_may_not_be_written(lancet):
    (lancet.folder / "file").write_text("")
    (lancet.folder / "locked").mkdir(mode=0o500)
    outputs = [lancet.folder / "file" / "out"] + ([lancet.folder / "locked" / "out"] if os.geteuid() != 0 else [])
    for out in outputs:
        result = lancet.run("doctor", lancet.write(lancet.job(output={"dir": str(out)})), "--json")
        assert result.returncode in (2, 3)  # the job names it, or the disk has it
        assert findings(result)["output", "problem"]["what"]
        assert "permissions" in findings(result)["disk", "problem"]["remedy"]


def test_doctor_finds_an_output_that_is_there(lancet):
    lancet.out.mkdir()
    (lancet.out / "precious").write_text("")
    result = lancet.run("doctor", lancet.write(lancet.job()))
    assert result.returncode == 2 and "problem  output" in result.stdout and (lancet.out / "precious").exists()


def test_doctor_needs_a_job_for_overrides(lancet):
    result = lancet.run("doctor", "--set", "run.dtype=f32")
    assert result.returncode == 2 and "expected a job file" in result.stderr


def test_doctor_says_what_it_would_check_without_gpus(lancet):
    result = lancet.run("doctor", "--devices", "all", "--json")
    facts = json.loads(result.stdout)["facts"]
    if facts["usable_gpus"]:
        pytest.skip("this machine has GPUs")
    assert result.returncode == 0, result.stdout
    assert facts["device_checks"] == []
    assert "nothing was checked" in findings(result)["device checks", "note"]["what"]


def test_doctor_checks_named_devices(lancet):
    result = lancet.run("doctor", "--devices", "cpu")
    assert result.returncode == 0, result.stdout
    for topic in ("device bytes", "device products", "split model"):
        assert re.search(rf"^  ok +{topic} +cpu: ", result.stdout, re.M), result.stdout
    assert re.search(r"^  note +device checks +one device: ", result.stdout, re.M)


@pytest.mark.parametrize(
    ("names", "code", "part"), [("cuda:99", 4, "cuda:99"), ("cpu=1GiB", 2, "without budgets"), ("some", 4, "some"), ("", 4, "expected")]
)
def test_doctor_names_devices_that_it_cannot_check(lancet, names, code, part):
    result = lancet.run("doctor", "--devices", names)
    assert result.returncode == code and part in result.stderr and not result.stdout
