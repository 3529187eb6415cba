"""`lancet compare`, as a user runs it; and tests/oracle/golden/compare.py on what it writes."""
import json
import re
import statistics
import subprocess
import sys

import yaml
from conftest import DATA, ROOT

MEMIT = {"method": "memit", "layers": [0, 1], "covariance_weight": 20, "values": {"steps": 10, "clamp": 4.0}, "contexts": ["{}"]}
METHODS = {"memit": MEMIT, "memit+history": MEMIT | {"history": True}, "ft-m": {"method": "ft-m", "modules": {"down": [1]}, "steps": 2}}
IMPOSSIBLE = {"impossible": {**MEMIT, "method": "alphaedit", "null_space_below": 1e-12}}
del IMPOSSIBLE["impossible"]["covariance_weight"]


def compare(lancet, job, *arguments):
    return lancet.run("compare", lancet.write(job), *arguments)


def test_a_table_and_the_reports(lancet):
    job = lancet.job(editor=None, compare=METHODS, requests__limit=4, schedule={"batch": 2}, evaluate=["efficacy", "specificity"])
    result = compare(lancet, job)
    assert result.returncode == 0, result.stderr
    for part in ("right after each batch, %", "after all batches, %", "efficacy_prob", "memit+history", "success", "of 4", "s/edit", "peak memory"):
        assert part in result.stdout, result.stdout
    assert {p.name for p in lancet.out.iterdir()} == {"compare.json", "comparison.html", "job.yaml", "lancet-manifest.json", *METHODS}
    report = json.loads((lancet.out / "compare.json").read_text())
    assert report["format"] == "lancet-compare-1" and report["requests"] == 4 and report["batch"] == 2
    for method in report["methods"]:
        own = json.loads((lancet.out / method["report"]).read_text())
        assert method["after"] == {name: metric["after"] for name, metric in own["metrics"].items()}
        assert method["right_after"] == {name: metric["right_after"] for name, metric in own["metrics"].items()}
        assert report["before"] == {name: metric["before"] for name, metric in own["metrics"].items()}
        assert method["peak_bytes"]["cpu"] > 10_000_000 and own["status"] == "done"
        assert method["success"] == {"edits": own["verdicts"]["success"], "of": 4}
        assert method["status"] == "done" and method["seconds_per_edit"] > 0
    # the resolved job runs again, by some of its methods
    again = lancet.run("compare", lancet.out / "job.yaml", "--methods", "ft-m", "--set", f"output.dir={lancet.folder / 'again'}", "--json")
    assert again.returncode == 0, again.stderr
    assert [m["label"] for m in json.loads(again.stdout)["methods"]] == ["ft-m"]
    assert json.loads(again.stdout)["methods"][0]["after"] == report["methods"][2]["after"]


MIRAGE = ("generation_exact", "chat_exact", "chat_old", "belief_choice", "belief_old", "specificity_argmax")


def test_mirage_is_what_teacher_forcing_hides(lancet):
    (lancet.folder / "text.txt").write_text("The mother tongue of Leon Blum is French.\nPiranha Games, created in Vancouver.\n")
    measured = {"metrics": ["mirage"], "chat_template": "It is so: {}", "side_effects": {"text": str(lancet.folder / "text.txt")}}
    job = lancet.job(editor=None, compare={name: METHODS[name] for name in ("memit", "ft-m")}, requests__limit=5, evaluate=measured)
    result = compare(lancet, job)
    assert result.returncode == 0, result.stderr
    methods = json.loads((lancet.out / "compare.json").read_text())["methods"]
    # the same protocols by name give the same
    job["evaluate"] |= {"metrics": ["generation", "chat", "belief", "specificity"]}
    again = compare(lancet, job | {"output": {"dir": str(lancet.folder / "again")}}, "--json")
    assert [method["after"] for method in json.loads(again.stdout)["methods"]] == [method["after"] for method in methods]
    for method in methods:
        assert all(method["after"][name] is not None for name in MIRAGE), method["after"]
        assert json.loads((lancet.out / method["report"]).read_text())["side_effects"]["text_kl"]["after"] > 0
    for bare in (["mirage"], {"metrics": ["mirage"]}):
        refused = compare(lancet, job | {"evaluate": bare})
        assert refused.returncode == 2 and "'mirage': expected a section side_effects with text" in refused.stderr


def test_compared_editors_may_take_presets(lancet):
    published = {"method": "memit", "preset": "auto"}
    job = lancet.job(editor=None, compare={"published": published, "short": published | {"values": {"steps": 2}}}, requests__limit=2)
    result = compare(lancet, job)
    assert result.returncode == 0 and result.stderr.count("preset  demo-model-memit: ") == 2, result.stderr
    editors = yaml.safe_load((lancet.out / "job.yaml").read_text())["compare"]
    assert [editors[label]["values"]["steps"] for label in ("published", "short")] == [40, 2]
    assert editors["short"]["covariance_weight"] == 300 and "preset" not in editors["short"]
    reports = [json.loads((lancet.out / label / "report.json").read_text()) for label in ("published", "short")]
    assert max(request["value"]["steps"] for request in reports[0]["requests"]) > 2
    assert {request["value"]["steps"] for request in reports[1]["requests"]} == {2}


def test_methods_without_a_section_are_those_of_the_job_and_of_the_model(lancet):
    job = lancet.job(editor={"method": "memit", "preset": "auto"}, requests__limit=2, evaluate=["efficacy"])
    result = compare(lancet, job, "--methods", "memit,ft-m")
    assert result.returncode == 0, result.stderr
    editors = yaml.safe_load((lancet.out / "job.yaml").read_text())["compare"]
    assert list(editors) == ["memit", "ft-m"] and editors["memit"]["values"]["steps"] == 40 and editors["memit"]["covariance_weight"] == 300
    # a section with options of its own has the job's preset beneath them; one that names its method alone is the job's editor
    sections = {"short": {"method": "memit", "values": {"steps": 1}}, "same": {"method": "memit"}, "automatic": {"method": "memit", "preset": None, "values": {"steps": 1}}}
    job = lancet.job(editor={"method": "memit", "preset": "auto", "values": {"steps": 2}}, requests__limit=1, compare=sections, output={"dir": str(lancet.folder / "other")})
    result = compare(lancet, job)
    assert result.returncode == 0, result.stderr
    editors = yaml.safe_load((lancet.folder / "other" / "job.yaml").read_text())["compare"]
    assert [editors[label]["values"]["steps"] for label in sections] == [1, 2, 1]
    assert [editors[label]["covariance_weight"] for label in ("short", "same")] == [300, 300] and editors["automatic"]["covariance_weight"] != 300


def test_a_method_that_fails_is_a_row(lancet):
    job = lancet.job(editor=None, compare=IMPOSSIBLE | METHODS, requests__limit=2)
    result = compare(lancet, job, "--methods", "impossible,memit")
    assert result.returncode == 5
    assert "impossible   " in result.stdout and "failed" in result.stdout and "no eigenvalue of the covariance" in result.stdout
    methods = json.loads((lancet.out / "compare.json").read_text())["methods"]
    assert [m["status"] for m in methods] == ["failed", "done"]


def test_what_accept_asks_for_is_said_of_each_method(lancet):
    job = lancet.job(editor=None, compare=METHODS, requests__limit=2, accept={"efficacy_argmax": 1.0})
    result = compare(lancet, job, "--methods", "ft-m")
    assert result.returncode == 0 and "ft-m: accept: efficacy_argmax" in result.stdout, result.stderr
    assert json.loads((lancet.out / "compare.json").read_text())["methods"][0]["unmet"]
    assert json.loads((lancet.out / "ft-m" / "report.json").read_text())["status"] == "rejected"


def test_bad_comparisons_are_refused(lancet):
    job = lancet.job(editor=None, compare=METHODS)
    for arguments, part in [
        (("--methods", "memit,ftm"), "Did you mean ft-m?"),
        (("--set", "compare.memit.steps=3"), "compare.memit.steps"),
        (("--set", "compare=null"), "compare: expected a map from labels to editors"),
        (("--set", f"output.dir={DATA / 'demo-model'}"), "demo-model"),
    ]:
        result = compare(lancet, job, *arguments)
        assert result.returncode == 2 and part in result.stderr, result.stderr
    assert lancet.run("compare").returncode == 2
    # an edit job may have the section, and is told what is wrong in it
    result = lancet.edit(lancet.job(compare={"bad": {"method": "memti"}}))
    assert result.returncode == 2 and "compare.bad.method" in result.stderr


def test_the_demo_runs_every_method(lancet):
    changes = {"requests.limit": 2, "schedule.batch": 1, "statistics.tokens": 4000, "statistics.cache": lancet.cache}
    changes |= {"output.dir": lancet.out, "evaluate": "[efficacy]"}
    settings = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    result = lancet.run("compare", DATA / "jobs" / "demo-compare.yaml", *settings)
    assert result.returncode == 0, result.stderr
    methods = json.loads((lancet.out / "compare.json").read_text())["methods"]
    refusal = lancet.edit(lancet.job(editor={"method": "none"})).stderr
    names = set(re.search(r"one of ([a-z, -]+?),? got", refusal)[1].split(", "))
    assert len(methods) > 10 and all(method["status"] == "done" for method in methods)
    assert {method["method"] for method in methods} == names
    # each takes hold
    assert all(method["after"]["efficacy_prob"] > 0 for method in methods)


def test_the_plain_versions_give_the_same(lancet):
    corpus = lancet.folder / "corpus.txt"
    corpus.write_text("".join(DATA.joinpath("requests", "demo-corpus.txt").read_text("utf-8").splitlines(keepends=True)[:150]), "utf-8")
    memit = METHODS["memit"] | {"rect": {"keep": 0.4}, "prune": {}}
    rome = {"method": "r-rome", "layers": [1], "values": {"steps": 4, "clamp": 20.0}, "contexts": ["{}", "The answer is known. {}"]}
    methods = {"memit": memit, "r-rome": rome, "ultraedit": {"method": "ultraedit", "modules": {"gate": [4], "down": [5]}, "lr": 3e-3}}
    methods["ft-l"] = {"method": "ft-l", "modules": {"down": [4]}, "steps": 3, "lr": 1e-3, "norm_constraint": 0.002}
    job = lancet.job(editor=None, compare=methods, requests__limit=3, schedule={"batch": 2}, run__dtype="f64")
    job |= {"statistics": job["statistics"] | {"corpus": str(corpus)}, "evaluate": ["efficacy", "paraphrase", "specificity"]}
    assert compare(lancet, job).returncode == 0
    report = lancet.out / "compare.json"
    tool = [sys.executable, ROOT / "tests" / "oracle" / "golden" / "compare.py", lancet.out, "--dtype", "f64", "--plain", lancet.folder / "plain.json"]
    plain = subprocess.run(tool, capture_output=True, text=True)
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.count(", +0.0") == 6 * len(methods), plain.stdout
    # a worse figure of lancet's is noticed, from the rows that are kept
    table = json.loads(report.read_text())
    table["methods"][0]["after"]["specificity_prob"] -= 0.02
    report.write_text(json.dumps(table))
    worse = subprocess.run(tool, capture_output=True, text=True)
    assert worse.returncode == 1 and "memit: specificity_prob" in worse.stderr, worse.stderr


def test_seeds_give_means_and_deviations(lancet):
    values = {"steps": 12, "lr": 0.8, "clamp": 4.0}  # of which about half of the edits take, now these, now those
    written = {"method": "memit", "layers": [0, 1], "covariance_weight": 20, "values": values, "contexts": {"generate": 3, "length": 6}}
    evaluate = ["efficacy", "paraphrase", "specificity"]
    methods = {"written": written, "fixed": METHODS["ft-m"]}
    job = lancet.job(editor=None, compare=methods, requests__limit=6, seeds=3, run__seed=5, evaluate=evaluate)
    result = compare(lancet, job)
    assert result.returncode == 0, result.stderr
    assert "mean ± standard deviation of 3 runs, seeds 5 to 7" in result.stdout and "gave the same figures" not in result.stderr, result.stdout
    assert "6 of 6 runs done" in result.stderr and re.search(r"compare  written, seed 6: ", result.stderr), result.stderr
    report = json.loads((lancet.out / "compare.json").read_text())
    assert report["seeds"] == [5, 6, 7]
    for method in report["methods"]:
        runs = [json.loads((lancet.out / run["report"]).read_text()) for run in method["runs"]]
        assert [run["run"]["seed"] for run in runs] == [run["seed"] for run in method["runs"]] == report["seeds"]
        assert [run["report"] for run in method["runs"]] == [f"{method['label']}/seed-{seed}/report.json" for seed in report["seeds"]]
        for name, mean in method["after"].items():
            values = [run["metrics"][name]["after"] for run in runs]
            assert [run["after"][name] for run in method["runs"]] == values
            assert abs(mean - statistics.mean(values)) < 1e-12 and abs(method["deviation"][name] - statistics.stdev(values)) < 1e-12
        assert method["success"] == {"edits": sum(run["success"]["edits"] for run in method["runs"]), "of": 18}
        assert "report" not in method
    moved = [name for name, deviation in report["methods"][0]["deviation"].items() if deviation > 0]
    assert len(moved) >= 2, "contexts that the model writes differ by seed"
    assert not any(report["methods"][1]["deviation"].values()), "nothing of this method goes by the seed"
    row = next(line for line in result.stdout.splitlines() if line.startswith("  written"))
    names = list(report["before"])
    shown = [f"{100 * report['methods'][0]['after'][name]:.1f} ± {100 * report['methods'][0]['deviation'][name]:.1f}" for name in names]
    assert all(part in row for part in shown), (row, shown)
    # a run is that of the method alone with this seed
    alone = lancet.edit(lancet.job(editor=written, requests__limit=6, run__seed=6, evaluate=evaluate, output={"dir": str(lancet.folder / "alone")}))
    assert alone.returncode == 0, alone.stderr
    own = json.loads((lancet.folder / "alone" / "report.json").read_text())
    assert {name: metric["after"] for name, metric in own["metrics"].items()} == report["methods"][0]["runs"][1]["after"]
    # and the pages are written again from what is there
    written_again = lancet.run("report", lancet.out)
    assert written_again.returncode == 0 and written_again.stdout.count("report.html") == 6, written_again.stderr


def test_seeds_that_change_nothing_are_named(lancet):
    job = lancet.job(editor=None, compare={"ft-m": METHODS["ft-m"]}, requests__limit=2, seeds=2, evaluate=["efficacy"])
    result = compare(lancet, job)
    assert result.returncode == 0 and "seeds: the 2 runs of each method gave the same figures" in result.stderr, result.stderr
    for wrong in (0, 1001, "many"):
        refused = compare(lancet, job | {"seeds": wrong})
        assert refused.returncode == 2 and "seeds: " in refused.stderr, refused.stderr
    assert lancet.edit(lancet.job(seeds=0)).returncode == 2, "an edit job may have the key, and is told what is wrong in it"
