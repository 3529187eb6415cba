"""`lancet edit --rehearse`: every stage, nothing left behind, and the real job's failures."""
import json
import shutil
import struct

import pytest
from conftest import lancet_alone as lancet  # noqa: F401 - the cache is looked at

STAGES = ["load", "statistics", "evaluate before", "values", "values", "weights", "keys of a layer", "evaluate after", "export"]


def snapshot(folder):
    """Names, bytes and times of all that lies below a folder, but for the job file, which the tests write anew."""
    paths = [path for path in folder.rglob("*") if path.name != "job.json"]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None for path in paths}


def rehearse(lancet, job, *arguments):
    return lancet.edit(job, "--rehearse", *arguments)


def test_a_rehearsal_runs_every_stage_and_writes_nothing(lancet):
    job = lancet.job(requests__limit=5, run__threads=1, editor__values__batch=2)
    lancet.write(job)
    before = snapshot(lancet.folder)
    result = rehearse(lancet, job, "--json")
    assert result.returncode == 0, result.stderr
    assert snapshot(lancet.folder) == before
    report = json.loads(result.stdout)
    names = [stage["stage"].split(",")[0].replace(" 2 requests at a time", "") for stage in report["stages"]]
    assert names == STAGES
    assert (report["requests"], report["edited"], report["evaluated"], report["values_at_a_time"]) == (5, 2, 5, 2)
    assert all(stage["peak_bytes"]["cpu"] > 10_000_000 and stage["seconds"] > 0 for stage in report["stages"])
    assert report["estimate_seconds"] == pytest.approx(sum(stage["estimate_seconds"] for stage in report["stages"]))
    # as measured, or of more: only what is part of another stage's estimate has none
    for stage in report["stages"]:
        assert stage["estimate_seconds"] == stage["seconds"] or stage["estimate_of"], stage
    assert any("2 of 5 requests" in limit for limit in report["limits"])


def test_values_run_as_many_requests_at_a_time_as_the_job_has(lancet):
    job = lancet.job(requests__limit=6, run__threads=2, editor__values__batch=2, evaluate=[])
    assert json.loads(rehearse(lancet, job, "--json").stdout)["values_at_a_time"] == 4, "two threads, a batch each"
    job["editor"]["values"]["batch"] = 5
    job["run"]["threads"] = 1
    assert json.loads(rehearse(lancet, job, "--json").stdout)["values_at_a_time"] == 3, "two batches of three"


def test_a_rehearsal_takes_statistics_from_the_cache_and_leaves_it_alone(lancet):
    job = lancet.job(evaluate=[])
    assert lancet.run("stats", lancet.write(job)).returncode == 0
    before = snapshot(lancet.folder)
    report = json.loads(rehearse(lancet, job, "--json").stdout)
    assert snapshot(lancet.folder) == before
    assert [stage["stage"] for stage in report["stages"]][1] == "statistics"
    assert not any("statistics are not those" in limit for limit in report["limits"])
    shutil.rmtree(lancet.folder / "cache")
    report = json.loads(rehearse(lancet, job, "--json").stdout)
    statistics = report["stages"][1]
    assert statistics["stage"] == "statistics, 4000 tokens", "the corpus is no larger than a rehearsal's"
    assert any("statistics are not those" in limit for limit in report["limits"])


def test_a_rehearsal_takes_a_part_of_a_large_corpus(lancet):
    report = json.loads(rehearse(lancet, lancet.job(evaluate=[], statistics__tokens=40_000), "--json").stdout)
    statistics = report["stages"][1]
    assert statistics["stage"] == f"statistics, {768 + 8192} tokens"
    assert statistics["estimate_of"].startswith("40000 tokens") and statistics["estimate_seconds"] > statistics["seconds"]


@pytest.mark.parametrize("corpus", ["self", "import"])
def test_a_rehearsal_makes_its_own_statistics(lancet, corpus):
    job = lancet.job(evaluate=[], statistics__tokens=1000)
    if corpus == "self":
        job["statistics"]["corpus"] = "self"
    else:
        import numpy

        rng = numpy.random.default_rng(0)
        for layer in (0, 1):
            keys = rng.standard_normal((3000, 768), dtype=numpy.float32)
            moment = {"mom2.mom2": keys.T @ keys, "mom2.count": 3000, "mom2.constructor": "util.runningstats.SecondMoment()"}
            numpy.savez(lancet.folder / f"{layer}.npz", **moment)
        job["statistics"] = {"import": str(lancet.folder / "{}.npz"), "cache": job["statistics"]["cache"]}
    lancet.write(job)
    before = snapshot(lancet.folder)
    result = rehearse(lancet, job)
    assert result.returncode == 0, result.stderr
    assert snapshot(lancet.folder) == before
    assert "nothing was written" in result.stdout


def test_a_rehearsal_is_told_as_text(lancet):
    result = rehearse(lancet, lancet.job(requests__limit=5, accept={"efficacy_prob": 1.0}))
    assert result.returncode == 0, result.stderr
    for part in ("peak cpu", "for the whole job, an estimate", "requests at a time, as in the job", "accept: is not judged"):
        assert part in result.stdout, result.stdout
    quiet = rehearse(lancet, lancet.job(), "--quiet")  # it is written nowhere else
    assert "peak cpu" in quiet.stdout and "values" not in quiet.stderr, quiet.stderr


def test_two_requests_are_the_whole_job(lancet):
    report = json.loads(rehearse(lancet, lancet.job(requests__limit=2), "--json").stdout)
    values = next(stage for stage in report["stages"] if stage["stage"] == "values, 2 requests")
    assert values["estimate_seconds"] == values["seconds"]
    assert not any("solves ran" in limit for limit in report["limits"])


LATE = [{"prompt": "{} is", "subject": f"S{i}", "target": "London"} for i in range(5)] + [{"prompt": "Paris is", "target": "London"}]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "nowhere"},
        {"editor__layers": [0, 8]},
        {"editor__values__steps": 0},
        {"requests__path": "nowhere.json"},
        {"requests": LATE},
        {"statistics__corpus": "nowhere.txt"},
        {"statistics__tokens": 100},
        {"run__devices": "cuda:99"},
        {"output": {"dir": "job.json/out"}},
        {"output": {"dir": "."}},
    ],
)
def test_a_job_that_fails_fails_in_rehearsal(lancet, changes):
    fails_alike(lancet, lancet.job(**changes))


def test_a_model_of_no_numbers_fails_in_rehearsal(lancet):
    model = lancet.copy_model()
    path = model / "model.safetensors"
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8 : 8 + length])["model.layers.4.mlp.down_proj.weight"]["data_offsets"]
    data[8 + length + begin : 8 + length + end] = b"\xc0\x7f" * ((end - begin) // 2)  # bf16's NaN
    path.write_bytes(data)
    assert fails_alike(lancet, lancet.job(model=str(model))) == 5


def fails_alike(lancet, job):
    before = snapshot(lancet.folder)
    rehearsed = rehearse(lancet, job)
    assert snapshot(lancet.folder) == before
    real = lancet.edit(job)
    assert rehearsed.returncode == real.returncode != 0, (rehearsed.stderr, real.stderr)
    last = [[line for line in result.stderr.splitlines() if "error:" in line][-1] for result in (rehearsed, real)]
    assert last[0] == last[1]
    return real.returncode
