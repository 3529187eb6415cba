"""Jobs for published tables (examples/papers): each is planned for its model's published config.json, and runs on the demo model, where what was
published stands beside what is found."""
import contextlib
import json
import pathlib
import shutil

import pytest
import yaml
from chat_judge import Judge
from conftest import DATA, ROOT

PAPERS = sorted((ROOT / "examples" / "papers").glob("*.yaml"))
PUBLISHED = ROOT / "tests" / "fixtures" / "published"
# A published config.json, and what differs from it where it is that of a later model of the same architecture and sizes.
CONFIGS = {"gpt-j-6b": ("gpt-j-6b.json", {}), "Meta-Llama-3-8B-Instruct": ("Llama-3.1-8B.json", {"max_position_embeddings": 8192, "rope_scaling": None})}
ZSRE = [{"subject": fact["requested_rewrite"]["subject"], "src": fact["requested_rewrite"]["prompt"].replace("{}", fact["requested_rewrite"]["subject"]),
         "rephrase": fact["paraphrase_prompts"][0], "alt": fact["requested_rewrite"]["target_new"]["str"], "pred": "",
         "answers": [fact["requested_rewrite"]["target_new"]["str"]], "loc": "nq question: who plays there", "loc_ans": "London", "case_id": i}
        for i, fact in enumerate(json.loads((DATA / "requests" / "demo.json").read_text())[:2])]  # fmt: skip


@pytest.fixture
def on_the_demo(lancet):
    """Options that put the demo's data in the place of a paper's."""
    (lancet.folder / "zsre.json").write_text(json.dumps(ZSRE))

    judges = contextlib.ExitStack()

    def options(job):
        requests = lancet.folder / "zsre.json" if job["requests"]["format"].startswith("zsre") else DATA / "requests" / "demo.json"
        changes = {"requests.path": requests, "requests.limit": 2, "statistics.corpus": DATA / "requests" / "demo-corpus.txt", "statistics.tokens": 4000,
                   "statistics.cache": lancet.cache}  # fmt: skip
        if "judge" in job["evaluate"]:
            changes["evaluate.judge.url"] = judges.enter_context(Judge(lambda question: (200, ("yes", "no")[len(question) % 2]))).url
        return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]

    with judges:
        yield options


def test_there_are_papers():
    assert len(PAPERS) >= 8 and all("arXiv" in path.read_text() or "github.com" in path.read_text() for path in PAPERS)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_paper_is_planned_for_its_model(path, lancet, on_the_demo):
    job = yaml.safe_load(path.read_text())
    model = lancet.folder / job["model"]
    model.mkdir()
    published, changes = CONFIGS[job["model"]]
    (model / "config.json").write_text(json.dumps(json.loads((PUBLISHED / published).read_text()) | changes))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DATA / "demo-model" / name, model / name)
    planned = lancet.run("plan", path, "--devices", "80GiB", "--set", f"model={model}", *on_the_demo(job))
    assert planned.returncode == 0 and "cuda:0" in planned.stdout, planned.stderr


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_a_paper_runs_on_the_demo(path, lancet, on_the_demo):
    job = yaml.safe_load(path.read_text())
    preset = [] if job["editor"]["method"] == "memit" else ["--set", "editor.preset=null"]  # the demo has published options of MEMIT alone
    shown = lancet.run("compare", path, "--expect", *preset, "--set", f"model={DATA / 'demo-model'}", "--set", f"output.dir={lancet.out}", "--set", "run.devices=cpu",
                       *on_the_demo(job))  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    found = json.loads((lancet.out / "compare.json").read_text())
    after = {method["label"]: method["after"] for method in found["methods"]}
    rows = {(row["label"], row["metric"]): row for row in found["expected"]}
    assert {label: {metric: rows[label, metric]["published"] for metric in means} for label, means in job["expect"].items()} == job["expect"]
    assert len(rows) == sum(map(len, job["expect"].values()))
    for (label, metric), row in rows.items():
        assert row["here"] == after[label][metric]
        cells = [label, metric, f"{100 * row['published']:.1f}", f"{100 * row['here']:.1f}", f"{100 * (row['here'] - row['published']):+.1f}"]
        assert any(line.split() == cells for line in shown.stdout.splitlines()), (cells, shown.stdout)


def test_what_is_expected_is_checked_as_what_is_accepted_is(lancet):
    job = lancet.job(compare={"memit": {"method": "memit"}}, expect={"rome": {"efficacy_prob": 0.5}, "memit": {"counterfact_ge": 0.5, "zsre_efficacy": 2}})
    refused = lancet.run("compare", lancet.write(job))
    assert refused.returncode == 2
    for words in ("expect.rome: expected a label of compare: memit", "expect.memit: 'counterfact_ge': is no share", "'zsre_efficacy': is not measured: add zsre"):
        assert words in refused.stderr, refused.stderr
    none = lancet.run("compare", lancet.write(lancet.job(compare={"memit": {"method": "memit"}})), "--expect")
    assert none.returncode == 2 and "--expect: expected a section expect:" in none.stderr
