"""The pages that people read: written by edits and comparisons, and written again. test_report_page.py opens them."""
import csv
import io
import json
import shutil

import pytest
from conftest import run_ok
from pages import documents_of

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
# a snap sees neither the tests' folders nor a profile there
BROWSER = next((path for path in map(shutil.which, BROWSERS) if path and not path.startswith("/snap/")), None)
PAGES = ("report.html", "metrics.csv", "requests.csv")
VALUES = {"steps": 8, "lr": 0.5, "clamp": 4.0}
STREAM = {"requests__limit": 6, "schedule": {"batch": 2}, "editor__values": VALUES, "evaluate": ["efficacy", "specificity", "generation"]}

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(BROWSERS)} is on PATH")


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def page_of(path):
    """Of a folder its report.html."""
    return documents_of((path / "report.html" if path.is_dir() else path).read_text())


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode())))


def test_an_edit_writes_its_page_and_tables(lancet):
    run_ok(lancet.edit(lancet.job(**STREAM)))
    report = report_of(lancet.out)
    assert page_of(lancet.out) == {"page": "edit", "report": report, "job": (lancet.out / "job.yaml").read_text()}
    for metric, row in zip(report["metrics"], table(lancet.out / "metrics.csv"), strict=True):
        assert row["metric"] == metric and float(row["after"]) == report["metrics"][metric]["after"]
        assert row["protocol"] == report["metrics"][metric]["protocol"]
    for request, row in zip(report["requests"], table(lancet.out / "requests.csv"), strict=True):
        assert (row["id"], row["prompt"], row["target"]) == (request["id"], request["prompt"], request["target"])
        assert float(row["efficacy_prob.after"]) == request["metrics"]["efficacy_prob"]["after"]
        assert row["continuation.after"] == request["continuation"]["after"]
        assert row["success"] == str(request["verdict"]["success"]).lower() and row["why"] == (request["verdict"]["why"] or "")
        value = request["value"]
        assert float(row["realised"]) == value["realised"]["total"] and float(row["realised.1"]) == value["realised"]["layers"]["1"]
        assert len(value["losses"]) == value["steps"]
        assert value["losses"][0] == pytest.approx(value["initial_loss"], rel=1e-4)
        assert value["losses"][-1] == pytest.approx(value["final_loss"], rel=1e-4)
    assert report["values"]["contexts_per_step"] == 0


def test_a_page_is_written_again_from_the_json(lancet):
    run_ok(lancet.edit(lancet.job(evaluate=[], editor__values=VALUES)))
    before = {name: (lancet.out / name).read_bytes() for name in PAGES}
    for name in PAGES:
        (lancet.out / name).unlink()
    result = run_ok(lancet.run("report", lancet.out, "--json"))
    assert json.loads(result.stdout)["written"] == [str(lancet.out / name) for name in PAGES]
    assert {name: (lancet.out / name).read_bytes() for name in PAGES} == before
    (lancet.out / "job.yaml").unlink()
    run_ok(lancet.run("report", lancet.out))
    assert page_of(lancet.out)["job"] == ""


def test_a_rejected_job_has_a_page_too(lancet):
    result = lancet.edit(lancet.job(accept={"efficacy_argmax": 0.9}, editor__values__steps=1))
    assert result.returncode == 5 and "efficacy_argmax: 0.0 %, expected at least 90 %" in result.stderr, result.stderr
    assert "editor.values.steps: 1 makes no update: raise it" in result.stderr
    rejected = lancet.folder / "out.rejected"
    assert page_of(rejected)["report"]["status"] == "rejected" and 'method: "memit"' in page_of(rejected)["job"]
    result = lancet.run("report", lancet.out)
    assert result.returncode == 2 and f"The job was rejected: {rejected}" in result.stderr
    run_ok(lancet.run("report", rejected))


def test_runs_are_compared_and_what_differs_is_named(lancet):
    job = lancet.job(evaluate=["efficacy", "specificity"], editor__values=VALUES)
    for name, changes in {"one": {}, "two": {"editor.covariance_weight": 400}, "other": {"requests.skip": 3}}.items():
        sets = [f"--set={key}={value}" for key, value in changes.items()]
        run_ok(lancet.edit(job, *sets, f"--set=output.dir={lancet.folder / name}"))
    run_ok(lancet.run("report", "one", "two"))
    both = page_of(lancet.folder / "comparison.html")
    assert both["differences"] == [{"key": "editor.covariance_weight", "values": ["20", "400"]}]
    assert [(run["label"], run["group"], run["requests"]) for run in both["runs"]] == [("one", 0, 3), ("two", 0, 3)]
    for run in both["runs"]:
        report = report_of(lancet.folder / run["label"])
        assert run["report"]["metrics"] == report["metrics"]
        said = [(one["prompt"], one["target"]) for one in run["report"]["requests"]]
        assert said == [(one["prompt"], one["target"]) for one in report["requests"]]
    run_ok(lancet.run("report", "one", "two", "other", "--out", "three.html"))
    assert [run["group"] for run in page_of(lancet.folder / "three.html")["runs"]] == [0, 0, 1]
    (lancet.folder / "mine.html").write_text("<p>mine</p>")
    for arguments, part in [(("one", "two", "--out", "mine.html"), "no page that lancet wrote"),
                            (("one", "--out", "page.html"), "is one run"),
                            (("one", "nowhere"), "expected report.json or compare.json")]:  # fmt: skip
        result = lancet.run("report", *arguments)
        assert result.returncode == 2 and part in result.stderr, result.stderr
    assert (lancet.folder / "mine.html").read_text() == "<p>mine</p>"


def test_a_comparison_of_methods_has_its_page(lancet):
    memit = {"method": "memit", "layers": [0, 1], "covariance_weight": 20, "values": VALUES, "contexts": ["{}"]}
    bad = {"method": "alphaedit", "layers": [0, 1], "null_space_below": 1e-12, "values": VALUES, "contexts": ["{}"]}
    job = lancet.job(editor=None, compare={"memit": memit, "history": memit | {"history": True}, "bad": bad}, evaluate=["efficacy"])
    assert lancet.run("compare", lancet.write(job)).returncode == 5
    comparison = page_of(lancet.out / "comparison.html")
    assert "editor.history" in [each["key"] for each in comparison["differences"]]
    assert [run["label"] for run in comparison["runs"] if run["failure"] and "report" not in run] == ["bad"]
    for label in ("memit", "history"):
        assert {p.name for p in (lancet.out / label).iterdir()} == {"report.json", "job.yaml", *PAGES}
    (lancet.out / "comparison.html").unlink()
    run_ok(lancet.run("report", lancet.out))
    again = page_of(lancet.out / "comparison.html")
    assert [run.get("report", run["failure"]) for run in again["runs"]] == [run.get("report", run["failure"]) for run in comparison["runs"]]
    run_ok(lancet.run("report", lancet.out, lancet.out / "memit", "--out", "all.html"))
    labels = [run["label"] for run in page_of(lancet.folder / "all.html")["runs"]]
    assert any(label.endswith("out/memit") for label in labels), "equal labels are told apart"
