"""The page of a comparison with several seeds, in a browser: one column a method, means ± standard deviations, error bars."""
import json

from conftest import run_ok
from test_report import needs_browser
from test_report_page import attributes, browser, pages, says, small, texts  # noqa: F401 - fixtures

pytestmark = needs_browser
FIGURES = {"memit": [(0.9, 0.5), (0.7, 0.6), (0.8, 0.7)], "ft-m": [(1.0, 0.1), (1.0, 0.1), (1.0, 0.1)]}


def write_runs(folder):
    methods = []
    for label, figures in FIGURES.items():
        runs = []
        for seed, (success, specificity) in enumerate(figures):
            report = small(verdicts={"success": 1 + (seed == 0), "measured": 2, "text": "t"}, batches=[{"requests": ["a", "b"], "seconds": 2 + seed}])
            report["metrics"] = {
                "efficacy_prob": {"before": 0.25, "after": success, "prompts": 4, "protocol": "p"},
                "specificity_prob": {"before": 1, "after": specificity, "prompts": 4, "protocol": "p"},
            }
            place = folder / label / f"seed-{seed}"
            place.mkdir(parents=True)
            (place / "report.json").write_text(json.dumps(report))
            runs.append({"seed": seed, "report": f"{label}/seed-{seed}/report.json"})
        methods.append({"label": label, "status": "done", "runs": runs})
    methods.append({"label": "broken", "status": "failed", "error": "it <failed>"})
    (folder / "compare.json").write_text(json.dumps({"methods": methods}))


def test_runs_of_several_seeds_are_one_column_with_deviations_and_error_bars(pages, lancet):  # noqa: F811
    write_runs(lancet.folder / "cmp")
    run_ok(lancet.run("report", lancet.folder / "cmp"))
    page = pages.open(lancet.folder / "cmp" / "comparison.html")
    heads = texts(page, "#metrics table.runs thead th")
    assert heads == ["metric", "memit", "ft-m"]
    # 80 of 0.9, 0.7, 0.8; 10 is the deviation of the sample
    says(page.text("#metrics").replace("\xa0", " "), "80.0 %", "± 10.0", "60.0 %", "100.0 %", "± 0.0", "4 of 6", "means over seeds")
    assert texts(page, "#balance desc") == ["memit: 60 ± 10 / 80 ± 10; ft-m: 10 / 100"]
    bars = [[float(value) for value in attributes(page, ".p-error", name)] for name in ("x1", "x2", "y1", "y2")]
    assert len(bars[0]) == 2, "one lies, one stands; what has no spread has none"
    lying, standing = zip(*bars)
    dot = [float(attributes(page, ".p-dot", name)[0]) for name in ("cx", "cy")]
    assert abs((lying[0] + lying[1]) / 2 - dot[0]) < 0.2 and lying[2] == lying[3] and lying[1] > lying[0]
    assert abs((standing[2] + standing[3]) / 2 - dot[1]) < 0.2 and standing[0] == standing[1] and standing[2] != standing[3]
    says(page.text("#cost").replace("\xa0", " "), "Time per edit", "1.5 s")  # 2, 3 and 4 s for two facts
    says(page.text("#problems"), "broken", "it <failed>")
    # next to another output each comparison has series of its own
    write_runs(lancet.folder / "again")
    run_ok(lancet.run("report", lancet.folder / "cmp", lancet.folder / "again", "--out", lancet.folder / "both.html"))
    both = pages.open(lancet.folder / "both.html")
    assert len(texts(both, "#metrics table.runs thead th")) == 5
