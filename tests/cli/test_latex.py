r"""`lancet report --latex`: a table that LaTeX sets, whatever names and numbers are in it.

A check of our own reads each table: braces and environments are balanced, a row has as many cells as the table has columns, and every
character that LaTeX would take for a command is spelt. Where pdflatex is installed it sets the tables too.
"""
import json
import re
import shutil
import subprocess

import pytest
from conftest import run_ok
from test_compare import METHODS

COMMANDS = {
    "begin", "end", "caption", "centering", "toprule", "midrule", "bottomrule", "small", "pm", "cdot", "textbackslash", "textasciicircum",
    "textasciitilde", "textless", "textgreater", "textbar", "textasciigrave",
}  # fmt: skip
SPELT = {
    r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~", r"\textless{}": "<", r"\textgreater{}": ">",
    r"\textbar{}": "|", r"\textasciigrave{}": "`", r"\{": "{", r"\}": "}", r"\#": "#", r"\$": "$", r"\%": "%", r"\&": "&", r"\_": "_",
    "-{}-": "--",
}  # fmt: skip
HOSTILE = r"a_b%c&d#e$f{g}h~i^j\input{x}<k>|`--"


def plain(cell):
    """The text that a cell shows."""
    out, at = "", 0
    while at < len(cell):
        found = next((spelt for spelt in SPELT if cell.startswith(spelt, at)), None)
        out += SPELT[found] if found else cell[at]
        at += len(found or " ")
    return out


def split_cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line)]


def rows_of(table):
    """The cells of each row, as they are shown. Fails for what LaTeX would not set as it is meant."""
    lines = table.splitlines()
    assert lines[0].startswith("% lancet ") and r"\usepackage{booktabs}" in lines[0]
    assert all(ord(c) >= 32 for line in lines for c in line)
    open_now = []
    for begins, name in re.findall(r"\\(begin|end)\{([a-z]+)\}", table):
        open_now.append(name) if begins == "begin" else None
        assert begins == "begin" or open_now.pop() == name
    assert open_now == []
    body = "\n".join(lines[1:])
    assert set(re.findall(r"\\([a-zA-Z]+)", body)) <= COMMANDS, "a command that the table did not mean"
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", body):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", body)[1]
    rows = []
    for line in lines:
        if not line.endswith(r" \\"):
            continue
        cells = split_cells(line.removesuffix(r"\\"))
        assert len(cells) == len(columns), line
        for cell in cells:
            bare = re.sub(r"\$(\\pm|-?[0-9.]+( \\cdot 10\^\{-?[0-9]+\})?)\$", "", cell)
            bare = re.sub(r"\\[{}#$%&_]|\\text[a-z]+\{\}", "", bare)
            assert not re.search(r"[#$%&_^~<>|`]", bare), (cell, bare)
        rows.append([plain(cell) for cell in cells])
    return rows


def set_by_latex(folder, table):
    """Where pdflatex is there: it has no complaint."""
    if shutil.which("pdflatex") is None:
        return
    (folder / "paper.tex").write_text("\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n" + table + "\\end{document}\n")
    run = subprocess.run(["pdflatex", "-halt-on-error", "-interaction=batchmode", "paper.tex"], cwd=folder, capture_output=True, timeout=120)
    assert run.returncode == 0, (folder / "paper.log").read_text()


def latex(lancet, *folders):
    table = run_ok(lancet.run("report", *folders, "--latex")).stdout
    set_by_latex(lancet.folder, table)
    return table


def percent(share):
    return f"{100 * share:.1f}"


def test_the_metrics_of_an_edit(lancet):
    run_ok(lancet.edit(lancet.job(requests__limit=3, evaluate=["efficacy", "specificity"])))
    before = sorted(path.name for path in lancet.out.iterdir())
    report = json.loads((lancet.out / "report.json").read_text())
    table = latex(lancet, lancet.out)
    rows = rows_of(table)
    assert rows[0] == ["metric", "before", "after"]
    for row, (name, metric) in zip(rows[1:], report["metrics"].items(), strict=True):
        assert row == [f"{name}, %", percent(metric["before"]), percent(metric["after"])]
    assert r"\caption{memit on demo-model, 3 requests}" in table
    assert sorted(path.name for path in lancet.out.iterdir()) == before, "nothing is written"
    told = json.loads(run_ok(lancet.run("report", lancet.out, "--latex", "--json")).stdout)
    assert told == {"latex": table}


def test_a_row_for_each_method_that_was_compared(lancet):
    failing = {"method": "alphaedit", "layers": [0, 1], "null_space_below": 1e-12, "values": {"steps": 2}, "contexts": ["{}"]}
    methods = {"memit": METHODS["memit"], "ft_m": METHODS["ft-m"], "impossible": failing}
    job = lancet.job(editor=None, compare=methods, requests__limit=3, evaluate=["efficacy"])
    assert lancet.run("compare", lancet.write(job)).returncode == 5
    comparison = json.loads((lancet.out / "compare.json").read_text())
    rows = rows_of(latex(lancet, lancet.out))
    assert rows[0] == ["method", *(f"{name}, %" for name in comparison["before"])]
    assert rows[1] == ["unedited", *map(percent, comparison["before"].values())]
    for row, method in zip(rows[2:4], comparison["methods"]):
        assert row == [method["label"], *map(percent, method["after"].values())]
    assert rows[4] == ["impossible", *["failed"] * len(comparison["before"])]
    # outputs of edits, side by side: the same
    assert rows_of(latex(lancet, lancet.out / "memit", lancet.out / "ft_m")) == rows[:4]


def strange_report(label, **changes):
    metrics = {
        HOSTILE: {"before": 0.25, "after": 1, "prompts": 4, "protocol": "p", "unit": "share"},
        "text_perplexity": {"before": 12.5, "after": 1.25e-07, "prompts": 4, "protocol": "p", "unit": "perplexity"},
        "shift": {"before": None, "after": -0.125, "prompts": 4, "protocol": "p", "unit": "difference"},
    }
    report = {"format": "lancet-report-1", "metrics": metrics, "method": label, "model": {"folder": f"/models/{HOSTILE}", "content_hash": "a"}}
    return report | {"requests": [{"id": "1", "prompt": "p", "target": "t"}]} | changes


def test_nothing_becomes_a_command(lancet):
    for name in ("one", HOSTILE.replace("/", "")):
        (lancet.folder / name).mkdir()
        (lancet.folder / name / "report.json").write_text(json.dumps(strange_report(HOSTILE + "\x1b\n")))
    table = latex(lancet, lancet.folder / "one")
    rows = rows_of(table)
    assert rows[1] == [f"{HOSTILE}, %", "25.0", "100.0"]
    assert rows[2][1:] == ["12.5", r"$1.25 \cdot 10^{-7}$"] and rows[3][1:] == ["--", "$-12.5$"]
    assert plain(re.search(r"\\caption\{(.*)\}$", table, re.M)[1]) == f"{HOSTILE}   on {HOSTILE}, 1 request"
    several = rows_of(latex(lancet, lancet.folder / "one", lancet.folder / HOSTILE))
    assert [row[0] for row in several] == ["method", "unedited", "one", HOSTILE]


def test_runs_that_cannot_be_compared_are_refused(lancet):
    for name, content in (("one", "a"), ("other", "b")):
        (lancet.folder / name).mkdir()
        model = {"folder": "/models/m", "content_hash": content}
        (lancet.folder / name / "report.json").write_text(json.dumps(strange_report("memit", model=model)))
    refused = lancet.run("report", lancet.folder / "one", lancet.folder / "other", "--latex")
    assert refused.returncode == 2 and "other: expected runs on the same model and requests" in refused.stderr
    both = lancet.run("report", lancet.folder / "one", lancet.folder / "other", "--latex", "--out", "page.html")
    assert both.returncode == 2 and "--out" in both.stderr, both.stderr


@pytest.mark.parametrize("figures", [[0.5, 0.75], [0.25, 0.5, 1.0]])
def test_several_seeds_are_a_row_with_deviations(lancet, figures):
    """Of reports that are written here: the figures are known."""
    runs = []
    for seed, figure in enumerate(figures):
        place = lancet.folder / "cmp" / "memit" / f"seed-{seed}"
        place.mkdir(parents=True)
        report = strange_report("memit", metrics={"efficacy_prob": {"before": 0.1, "after": figure, "unit": "share"}})
        (place / "report.json").write_text(json.dumps(report))
        runs.append({"seed": seed, "report": f"memit/seed-{seed}/report.json"})
    (lancet.folder / "cmp" / "compare.json").write_text(json.dumps({"methods": [{"label": "memit", "status": "done", "runs": runs}]}))
    mean = sum(figures) / len(figures)
    deviation = (sum((figure - mean) ** 2 for figure in figures) / (len(figures) - 1)) ** 0.5
    table = latex(lancet, lancet.folder / "cmp")
    assert rows_of(table)[2] == ["memit", rf"{percent(mean)} {{\small $\pm$ {percent(deviation)}}}"]
    assert rf"mean $\pm$ standard deviation over {len(figures)} seeds" in table
