"""The pages that people read: written by edits and comparisons, written again, and opened in a browser."""
import csv
import io
import json
import shutil
import subprocess
from html import escape

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
# a snap sees neither the tests' folders nor a profile there
BROWSER = next((path for path in map(shutil.which, BROWSERS) if path and not path.startswith("/snap/")), None)
PAGES = ("report.html", "metrics.csv", "requests.csv")
VALUES = {"steps": 8, "lr": 0.5, "clamp": 4.0}
STREAM = {"requests__limit": 6, "schedule": {"batch": 2}, "editor__values": VALUES, "evaluate": ["efficacy", "specificity", "generation"]}

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(BROWSERS)} is on PATH")


def run_ok(result):
    assert result.returncode == 0, result.stderr
    return result


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode())))


class Browser:
    """What a page looks like after its scripts, whether these complained, and what it asked the network for."""

    def __init__(self, folder):
        self.folder = folder

    def open(self, page, fragment=""):
        log = self.folder / "net.json"
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={self.folder / 'profile'}",
                   f"--log-net-log={log}", "--dump-dom", f"{page.as_uri()}{fragment}"]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        assert "CONSOLE" not in result.stderr, result.stderr
        assert '"url":"http' not in log.read_text(errors="replace"), "the page asks the network for something"
        return result.stdout


@pytest.fixture
def browser(tmp_path):
    folder = tmp_path / "browser"
    folder.mkdir()
    return Browser(folder)


def shown_rows(dom):
    return dom.count('<article class="row"')


def test_an_edit_writes_its_page_and_tables(lancet):
    run_ok(lancet.edit(lancet.job(**STREAM)))
    report, html = report_of(lancet.out), (lancet.out / "report.html").read_text()
    for part in ("6 facts edited in", "of 6 took</span>", "no thresholds set", "The stream", "Retention", "Growth of the weights", "Loss by step", "Time by stage"):
        assert part in html, part
    assert escape((lancet.out / "job.yaml").read_text()).replace("&#x27;", "&#39;") in html
    for metric, row in zip(report["metrics"], table(lancet.out / "metrics.csv"), strict=True):
        assert row["metric"] == metric and float(row["after"]) == report["metrics"][metric]["after"]
        assert row["protocol"] == report["metrics"][metric]["protocol"] and row["protocol"].split(" (")[0] in html
    for request, row in zip(report["requests"], table(lancet.out / "requests.csv"), strict=True):
        assert (row["id"], row["prompt"], row["target"]) == (request["id"], request["prompt"], request["target"])
        assert float(row["efficacy_prob.after"]) == request["metrics"]["efficacy_prob"]["after"]
        assert row["continuation.after"] == request["continuation"]["after"]
        assert row["success"] == row["took"] == str(request["verdict"]["success"]).lower() and row["why"] == (request["verdict"]["why"] or "")
        value = request["value"]
        assert float(row["realised"]) == float(row["attained"]) == value["realised"]["total"] and float(row["realised.1"]) == float(row["attained.1"]) == value["realised"]["layers"]["1"]
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
    assert "runs again as it is" not in (lancet.out / "report.html").read_text()


def test_a_rejected_job_has_a_page_too(lancet):
    result = lancet.edit(lancet.job(accept={"efficacy_argmax": 0.9}, editor__values__steps=1))
    assert result.returncode == 5 and "efficacy_argmax: 0.0 %, expected at least 90 %" in result.stderr, result.stderr
    assert "editor.values.steps: 1 makes no update: raise it" in result.stderr
    rejected = lancet.folder / "out.rejected"
    html = (rejected / "report.html").read_text()
    assert "✕ Rejected" in html and "Nothing was exported" in html and "method: &quot;memit&quot;" in html
    result = lancet.run("report", lancet.out)
    assert result.returncode == 2 and f"The job was rejected: {rejected}" in result.stderr
    run_ok(lancet.run("report", rejected))


def test_runs_are_compared_and_what_differs_is_named(lancet):
    job = lancet.job(evaluate=["efficacy", "specificity"], editor__values=VALUES)
    for name, changes in {"one": {}, "two": {"editor.covariance_weight": 400}, "other": {"requests.skip": 3}}.items():
        sets = [f"--set={key}={value}" for key, value in changes.items()]
        run_ok(lancet.edit(job, *sets, f"--set=output.dir={lancet.folder / name}"))
    run_ok(lancet.run("report", "one", "two"))
    html = (lancet.folder / "comparison.html").read_text()
    assert "editor.covariance_weight" in html and "Success against specificity" in html and "not comparable" not in html
    assert "<code>output" not in html and "<code>run.seed" not in html
    run_ok(lancet.run("report", "one", "two", "other", "--out", "three.html"))
    assert "not comparable across the 2 tables" in (lancet.folder / "three.html").read_text()
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
    html = (lancet.out / "comparison.html").read_text()
    assert "editor.history" in html and "bad</bdi> failed" in html
    for label in ("memit", "history"):
        assert {p.name for p in (lancet.out / label).iterdir()} == {"report.json", "job.yaml", *PAGES}
    (lancet.out / "comparison.html").unlink()
    run_ok(lancet.run("report", lancet.out))
    assert "bad</bdi> failed" in (lancet.out / "comparison.html").read_text()
    run_ok(lancet.run("report", lancet.out, lancet.out / "memit", "--out", "all.html"))
    assert "out/memit" in (lancet.folder / "all.html").read_text(), "equal labels are told apart"


def many_requests(folder, n):
    """A report of n requests, of which a few have texts that pages stumble over."""
    texts = {1: "</script><script>document.title = 'broken'</script>", 2: "مدينة القاهرة", 3: "long " * 500 + "x" * 2000}
    rows = [
        {"id": f"case-{i}", "prompt": texts.get(i, f"Number {i} lies in"), "subject": f"Number {i}", "target": "Paris" if i % 10 == 0 else "Rome",
         "target_true": None, "skipped": None, "value": {"steps": 1 + i % 7, "initial_loss": 9.0, "final_loss": i / n, "losses": [9.0, i / n]},
         "metrics": {"efficacy_prob": {"before": 0, "after": 0 if i < 5 else 1}}, "continuation": {"before": " x", "after": " Rome, and"}}
        for i in range(n)
    ]  # fmt: skip
    folder.mkdir()
    metrics = {"efficacy_prob": {"before": 0, "right_after": None, "after": 1 - 5 / n, "prompts": n, "protocol": "by p"}}
    (folder / "report.json").write_text(json.dumps({"format": "lancet-report-1", "status": "done", "metrics": metrics, "requests": rows}))


@needs_browser
def test_the_page_works_in_a_browser(lancet, browser):
    many_requests(lancet.folder / "many", 1000)
    run_ok(lancet.run("report", "many"))
    page = lancet.folder / "many" / "report.html"
    dom = browser.open(page)
    assert "<title>broken" not in dom and dom.count("<script") == 2
    assert '<div class="tools" id="tools">' in dom and "1,000 requests, 50 shown" in dom and shown_rows(dom) == 50
    found = browser.open(page, "#q=Paris")
    assert "100 of 1,000 requests, 50 shown" in found
    rows = found.split('id="request-rows"')[1].split("</section>")[0]
    assert rows.count('class="to-text">Paris') == 50 and "to-text\">Rome" not in rows
    single = browser.open(page, "#q=number+987+rome&order=loss")  # its row is not part of the page
    assert "1 of 1,000 requests" in single and shown_rows(single) == 1
    row = single.split('<article class="row"')[1].split("</article>")[0]
    for part in ("#988", "Number 987 lies in", "<mark>Rome</mark>, and", "loss 9 → 0.987", "<b>100</b>"):
        assert part in row, row
    assert shown_rows(browser.open(page, "#show=missed")) == 5
    assert "0 of 1,000 requests" in browser.open(page, "#q=nowhere")
    by_loss = browser.open(page, "#order=loss").split('id="request-rows"')[1]
    assert by_loss.index("Number 999 ") < by_loss.index("Number 998 ") < by_loss.index("Number 997 ")


@needs_browser
def test_a_stream_and_a_comparison_open_in_a_browser(lancet, browser):
    run_ok(lancet.edit(lancet.job(**STREAM)))
    dom = browser.open(lancet.out / "report.html")
    assert shown_rows(dom) == 6 and dom.count('<svg class="plot"') == 7
    run_ok(lancet.run("report", lancet.out, lancet.out, "--out", "both.html"))
    assert "Nothing that is known" in browser.open(lancet.folder / "both.html")
