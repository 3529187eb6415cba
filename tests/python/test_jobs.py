"""Whole jobs and sessions give what the program gives."""
import json
import subprocess

import lancet
import pytest
from conftest import BUILD, DATA, EDITOR, LIMIT_S, MODEL, comparable


@pytest.fixture(scope="module")
def job(tmp_path_factory, cache):
    """The demo job on three requests, as a file, and the program's output of it."""
    folder = tmp_path_factory.mktemp("job")
    path = folder / "job.json"
    statistics = {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 2000, "cache": str(cache)}
    path.write_text(json.dumps({
        "model": str(MODEL), "requests": {"path": str(DATA / "requests" / "demo.json"), "limit": 3}, "editor": EDITOR,
        "statistics": statistics, "evaluate": ["efficacy", "generation"], "run": {"devices": "cpu", "dtype": "f32"}, "output": {"dir": "program"},
    }))  # fmt: skip
    lancet.open(MODEL, devices="cpu", dtype="f32", statistics=statistics, progress=False, **EDITOR).edit(lancet.load_requests(DATA / "requests" / "demo.json", limit=1))  # statistics are there
    done = subprocess.run([BUILD / "lancet", "edit", path, "-q"], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return path


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_a_job_gives_the_programs_report_and_bytes(job):
    report = lancet.run(job, set={"output.dir": str(job.parent / "python")}, progress=False)
    program = json.loads((job.parent / "program" / "report.json").read_text())
    assert comparable(report.report) == comparable(program)
    assert report.report == json.loads((job.parent / "python" / "report.json").read_text())
    assert weights(job.parent / "python") == weights(job.parent / "program")
    assert report.successes == program["verdicts"]["success"] and len(report.requests) == 3


def test_a_dict_is_a_job_too(job, tmp_path):
    given = json.loads(job.read_text())
    given["output"] = {"dir": tmp_path / "out"}
    report = lancet.run(given, set={"requests.limit": 1}, progress=False)
    assert len(report.ids) == 1 and (tmp_path / "out" / "report.html").exists()


def test_a_session_gives_the_programs_report_and_bytes(job, options, tmp_path):
    program = comparable(json.loads((job.parent / "program" / "report.json").read_text()))
    with lancet.open(MODEL, evaluate=["efficacy", "generation"], **options) as session:
        edit = session.edit(lancet.load_requests(DATA / "requests" / "demo.json", limit=3))
        session.save(tmp_path / "saved")
    mine = comparable(edit.report)
    for key in ("metrics", "requests", "weights", "contexts", "verdicts", "warnings", "statistics"):
        assert mine[key] == program[key], key
    assert weights(tmp_path / "saved") == weights(job.parent / "program")
    losses = [[float(f"{value:.5g}") for value in losses.tolist()] for losses in edit.losses]
    assert losses == [request["value"]["losses"] for request in program["requests"]]


def test_an_erasure_gives_the_programs_audit_and_bytes(job, tmp_path):
    given = json.loads(job.read_text()) | {"erase": {"own_targets": False, "samples": 2, "tokens": 4}, "evaluate": []}
    (tmp_path / "job.json").write_text(json.dumps(given | {"output": {"dir": "program"}}))
    done = subprocess.run([BUILD / "lancet", "erase", tmp_path / "job.json", "-q"], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    audit = lancet.erase(given, set={"output.dir": str(tmp_path / "python")}, progress=False)
    program = json.loads((tmp_path / "program-audit" / "audit.json").read_text())
    assert audit == json.loads((tmp_path / "python-audit" / "audit.json").read_text())
    assert audit["format"] == program["format"] and audit["facts"] == program["facts"] and audit["said"] == program["said"]
    assert weights(tmp_path / "python") == weights(tmp_path / "program")
    with pytest.raises(lancet.ConfigError, match="^erase: expected a job file or a dict"):
        lancet.erase("", progress=False)


def test_thresholds_that_are_not_met_raise_with_the_report(job, tmp_path):
    with pytest.raises(lancet.NumericError, match="accept.*efficacy_argmax") as error:
        lancet.run(job, set={"output.dir": str(tmp_path / "out"), "accept": {"efficacy_argmax": 1.0}, "editor.values.steps": 1}, progress=False)
    assert error.value.report.report["status"] == "rejected" and not (tmp_path / "out").exists()


def test_outputs_are_applied_undone_and_merged(job, tmp_path):
    program = job.parent / "program"
    lancet.apply(program, tmp_path / "applied", progress=False)
    assert weights(tmp_path / "applied") == weights(program)
    ids = [request["id"] for request in json.loads((program / "report.json").read_text())["requests"]]
    report = lancet.undo(program, ids[:1], out=tmp_path / "undone", progress=False)
    assert report.ids == ids[1:] and weights(tmp_path / "undone") != weights(program)
    done = subprocess.run([BUILD / "lancet", "undo", program, "--edits", ids[0], "--out", tmp_path / "other", "-q"], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "other") == weights(tmp_path / "undone")
    second = lancet.run(job, set={"output.dir": str(tmp_path / "second"), "requests.skip": 3}, progress=False)
    merged = lancet.merge([program, tmp_path / "second"], tmp_path / "merged", progress=False)
    assert sorted(merged.ids) == sorted(ids + second.ids)
    with pytest.raises(lancet.ConfigError, match="prefer"):
        lancet.merge([program], tmp_path / "no", prefer="elsewhere")
    with pytest.raises(lancet.ConfigError, match="other_base.*refuse"):
        lancet.apply(program, tmp_path / "no", other_base="perhaps", progress=False)
