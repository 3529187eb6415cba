"""`lancet compare` and `lancet tune` that are stopped: what was finished is kept, and the same command goes on from there."""
import json
import os
import re
import signal

import pytest
import yaml
from conftest import DATA
from conftest import lancet_alone as lancet  # noqa: F401 - what lies in the folder is looked at
from test_compare import METHODS
from test_stop import start, wait_for
from test_tune import tune_job

OF_BEFORE = "(of an interrupted run)"
# Two quick methods, and one that takes as long as a test waits: it is stopped in it.
SLOW = {"slow": {"method": "ft-m", "modules": {"down": [1]}, "steps": 100000}}
QUICK = {"memit": METHODS["memit"], "quick": METHODS["ft-m"]}


def compare_job(lancet, methods, **changes):
    job = lancet.job(editor=None, compare=methods, requests__limit=3, evaluate=["efficacy"], **changes)
    job["statistics"] = dict(job["statistics"], cache=str(lancet.folder / "cache"))
    return job


def kept(lancet, name="out"):
    return sorted((lancet.folder / f"{name}.unfinished").glob("*.safetensors"))


def stop_after(lancet, command, job, count, how, *more, name="out"):
    """Stops the job when it has said that so many runs are done: a kept file lies there a moment before. Returns its stderr."""
    said = lancet.folder.with_name(f"{lancet.folder.name}-stderr")
    with open(said, "w") as stderr:
        process = start(lancet, command, lancet.write(job), *more, stderr=stderr)
    wait_for(process, lambda: len(kept(lancet, name)) >= count and re.search(rf"\b{count} of \d+ runs done", said.read_text()))
    process.send_signal(how)
    process.communicate(timeout=20)
    err = said.read_text()
    assert process.returncode == -how, err
    return err


def lasting(report):
    """A comparison without what differs from run to run."""
    for method in report["methods"]:
        for key in ("seconds", "seconds_per_edit", "peak_bytes"):
            method.pop(key, None)
    return report


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_comparison_goes_on_after_the_methods_that_were_done(lancet, how):
    err = stop_after(lancet, "compare", compare_job(lancet, QUICK | SLOW), 2, how)
    assert re.search(r"compare  memit: \d of 3 edits took, .*efficacy_prob.* s an edit; 1 of 3 runs done, about .* left", err), err
    if how != signal.SIGKILL:
        place = lancet.folder / "out.unfinished"
        assert f"what was finished is kept ({place}), and the same command goes on from there; done: memit, quick" in err, err
    assert not lancet.out.exists()
    # the third method is quick now: the two that were done are the same
    job = compare_job(lancet, QUICK | {"slow": SLOW["slow"] | {"steps": 3}})
    before = [path.stat().st_mtime_ns for path in kept(lancet)]
    again = lancet.run("compare", lancet.write(job))
    assert again.returncode == 0, again.stderr
    assert before and again.stderr.count(OF_BEFORE) == 2 and not re.search("^values ", again.stderr, re.M), again.stderr
    assert "3 of 3 runs done" in again.stderr
    assert sorted(path.name for path in lancet.folder.iterdir()) == ["cache", "job.json", "out"]
    # and what is written is what a comparison without a stop writes
    own = json.loads((lancet.out / "compare.json").read_text())
    job["output"] = {"dir": str(lancet.folder / "whole")}
    assert lancet.run("compare", lancet.write(job)).returncode == 0
    assert lasting(own) == lasting(json.loads((lancet.folder / "whole" / "compare.json").read_text()))
    for label in job["compare"]:
        names = {path.name for path in (lancet.out / label).iterdir()}
        assert names == {path.name for path in (lancet.folder / "whole" / label).iterdir()}


def test_another_job_method_model_or_file_does_not_take_what_was_done(lancet):
    corpus = lancet.folder / "corpus.txt"
    corpus.write_bytes((DATA / "requests" / "demo-corpus.txt").read_bytes())
    job = compare_job(lancet, QUICK | SLOW, statistics__corpus=str(corpus))
    stop_after(lancet, "compare", job, 2, signal.SIGKILL)
    quick_end = {"slow": SLOW["slow"] | {"steps": 3}}

    def taken(changed, **more):
        """The methods whose runs are taken, of a job that is tried in a copy of what is kept."""
        out = lancet.folder / f"out{len(list(lancet.folder.iterdir()))}"
        place = out.with_name(out.name + ".unfinished")
        place.mkdir()
        for path in (lancet.folder / "out.unfinished").iterdir():
            os.link(path, place / path.name)
        changed = changed | {"output": {"dir": str(out)}} | more
        result = lancet.run("compare", lancet.write(changed))
        assert result.returncode == 0, result.stderr
        return re.findall(rf"compare  (\S+): .*{re.escape(OF_BEFORE)}", result.stderr)

    same = compare_job(lancet, QUICK | quick_end, statistics__corpus=str(corpus))
    assert taken(same) == ["memit", "quick"]
    other_method = QUICK["memit"] | {"covariance_weight": 21}
    assert taken(compare_job(lancet, QUICK | {"memit": other_method} | quick_end, statistics__corpus=str(corpus))) == ["quick"]
    assert taken(same | {"requests": same["requests"] | {"skip": 1}}) == []
    assert taken(same | {"evaluate": ["efficacy", "paraphrase"]}) == []
    assert taken(same | {"run": same.get("run", {}) | {"seed": 9}}) == []
    model = lancet.copy_model()
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    assert taken(same | {"model": str(model)}) == []
    os.utime(corpus, (1, 1))
    assert taken(same) == []


def test_a_damaged_run_is_named_and_run_again(lancet):
    stop_after(lancet, "compare", compare_job(lancet, QUICK | SLOW), 2, signal.SIGKILL)
    damaged = kept(lancet)[0]
    content = bytearray(damaged.read_bytes())
    content[-10] ^= 1
    damaged.write_bytes(content)
    again = lancet.run("compare", lancet.write(compare_job(lancet, QUICK | {"slow": SLOW["slow"] | {"steps": 3}})))
    assert again.returncode == 0 and again.stderr.count(OF_BEFORE) == 1, again.stderr
    assert re.search(rf"warning: the finished run of \w+ is not used: {re.escape(str(damaged))}: ", again.stderr), again.stderr


def test_what_is_not_lancets_is_not_written_over(lancet):
    (lancet.folder / "out.unfinished").mkdir()
    (lancet.folder / "out.unfinished" / "mine.txt").write_text("mine")
    result = lancet.run("compare", lancet.write(compare_job(lancet, QUICK)))
    assert result.returncode == 2 and "mine.txt" in result.stderr
    assert (lancet.folder / "out.unfinished" / "mine.txt").read_text() == "mine"


def test_a_stopped_tune_goes_on_after_the_trials_that_were_done(lancet):
    job = tune_job(lancet)
    job["statistics"] = dict(job["statistics"], cache=str(lancet.folder / "cache"))
    out = ("--out", "tuned.yaml")
    err = stop_after(lancet, "tune", job, 2, signal.SIGTERM, *out, name="tuned.yaml")
    place = lancet.folder / "tuned.yaml.unfinished"
    assert f"what was finished is kept ({place}), and the same command goes on from there; done: round 1, " in err, err
    assert not (lancet.folder / "tuned.yaml").exists()
    done = len(kept(lancet, "tuned.yaml"))
    again = lancet.run("tune", lancet.write(job), *out)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(OF_BEFORE) == done >= 2
    assert sorted(path.name for path in lancet.folder.iterdir()) == ["cache", "job.json", "tuned.svg", "tuned.yaml"]
    whole = lancet.run("tune", lancet.write(job), "--out", "whole.yaml")
    assert whole.returncode == 0 and OF_BEFORE not in whole.stderr
    assert yaml.safe_load((lancet.folder / "tuned.yaml").read_text()) == yaml.safe_load((lancet.folder / "whole.yaml").read_text())
    # another job takes nothing
    stop_after(lancet, "tune", job, 1, signal.SIGKILL, "--out", "third.yaml", name="third.yaml")
    job["editor"]["values"]["steps"] = 7
    other = lancet.run("tune", lancet.write(job), "--out", "third.yaml")
    assert other.returncode == 0 and OF_BEFORE not in other.stderr, other.stderr


def test_two_tunes_of_one_preset_do_not_meet(lancet):
    job = tune_job(lancet)
    process = start(lancet, "tune", lancet.write(job), "--out", "tuned.yaml")
    wait_for(process, lambda: kept(lancet, "tuned.yaml"))
    second = lancet.run("tune", lancet.write(job), "--out", "tuned.yaml")
    assert second.returncode == 2 and "expected no other run that is going to write it" in second.stderr, second.stderr
    process.kill()
    process.communicate()
