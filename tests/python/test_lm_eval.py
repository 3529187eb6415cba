"""lancet.lm_eval beside lm-evaluation-harness's own model of transformers, on local tasks."""
import json
import pathlib
import subprocess
import sys

import pytest

lm_eval = pytest.importorskip("lm_eval")
pytest.importorskip("datasets")

import lancet  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "data" / "demo-model"
RECORDS = json.loads((ROOT / "data" / "requests" / "demo.json").read_text())
STATISTICS = {"corpus": str(ROOT / "data" / "requests" / "demo-corpus.txt"), "tokens": 2000}  # fewer than the demo model asks for

DATA = """
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
"""
CHOICE = DATA + """task: lancet_choice
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - {{metric: acc}}
  - {{metric: acc_norm}}
"""
ROLLING = DATA + """task: lancet_rolling
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{{{text}}}}"
metric_list:
  - {{metric: word_perplexity}}
  - {{metric: bits_per_byte}}
"""
GENERATE = DATA + """task: lancet_generate
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{target}}}}"
generation_kwargs: {{until: [".", "\\n"], max_gen_toks: 12}}
metric_list:
  - {{metric: exact_match}}
"""
TASKS = ["lancet_choice", "lancet_rolling", "lancet_generate"]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A folder with three tasks of the demo's facts."""
    folder = tmp_path_factory.mktemp("tasks")
    docs = []
    for record in RECORDS[:24]:
        rewrite = record["requested_rewrite"]
        choices = [rewrite["target_new"]["str"], rewrite["target_true"]["str"]]
        docs.append({"question": rewrite["prompt"].format(rewrite["subject"]), "choices": choices, "answer": 1, "target": choices[1],
                     "text": (ROOT / "data" / "requests" / "demo-corpus.txt").read_text().splitlines()[len(docs)]})  # fmt: skip
    data = folder / "docs.jsonl"
    data.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    for name, text in zip(TASKS, (CHOICE, ROLLING, GENERATE)):
        (folder / f"{name}.yaml").write_text(text.format(data=data))
    return folder


def manager(tasks):
    return TaskManager(include_path=str(tasks), include_defaults=False)


@pytest.fixture(scope="module")
def both(tasks):
    """Results of lancet's model and of transformers', f32."""
    from lancet.lm_eval import LancetLM
    from lm_eval.models.huggingface import HFLM

    results = []
    for model in (LancetLM(path=str(MODEL), dtype="f32"), HFLM(pretrained=str(MODEL), dtype="float32", device="cpu", batch_size=8)):
        results.append(lm_eval.simple_evaluate(model=model, tasks=TASKS, task_manager=manager(tasks), bootstrap_iters=0))
    return results


@pytest.mark.parametrize("task", TASKS)
def test_figures_are_those_of_transformers(both, task):
    ours, theirs = (result["results"][task] for result in both)
    assert ours.keys() == theirs.keys()
    for name in ours:
        if isinstance(ours[name], float):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-5), name
    shown = [value for name, value in ours.items() if "," in name and "stderr" not in name]
    assert shown and all(value == value for value in shown)


def test_each_answer_is_that_of_transformers(both):
    for task in TASKS:
        ours, theirs = (result["samples"][task] for result in both)
        assert len(ours) == len(theirs) == 24
        for one, other in zip(ours, theirs):
            for mine, its in zip(one["resps"], other["resps"]):
                if task == "lancet_generate":
                    assert mine == its
                elif task == "lancet_choice":
                    assert float(mine[0][0]) == pytest.approx(float(its[0][0]), abs=2e-4) and mine[0][1] == its[0][1]
                else:
                    assert float(mine[0]) == pytest.approx(float(its[0]), rel=1e-5)


def test_long_and_empty_contexts():
    from lancet.lm_eval import LancetLM
    from lm_eval.models.huggingface import HFLM

    corpus = (ROOT / "data" / "requests" / "demo-corpus.txt").read_text()
    asked = [("", "London"), (corpus[:3000], " London"), ("In the ", "end"), ("<s>Twice", " begun")]
    instances = [Instance("loglikelihood", {}, arguments, i) for i, arguments in enumerate(asked)]
    rolling = [Instance("loglikelihood_rolling", {}, (corpus[:2500],), 0)]
    answers = []
    for model in (LancetLM(path=str(MODEL), dtype="f32", max_length=128),
                  HFLM(pretrained=str(MODEL), dtype="float32", device="cpu", batch_size=1, max_length=128)):  # fmt: skip
        answers.append(model.loglikelihood(instances, disable_tqdm=True) + [(model.loglikelihood_rolling(rolling, disable_tqdm=True)[0], True)])
    for ours, theirs in zip(*answers):
        assert ours[0] == pytest.approx(theirs[0], rel=1e-5, abs=1e-4) and ours[1] == theirs[1]


def test_a_session_is_measured_as_it_is(tasks):
    from lancet.lm_eval import evaluate

    requests = [{"prompt": record["requested_rewrite"]["prompt"], "subject": record["requested_rewrite"]["subject"],
                 "target": record["requested_rewrite"]["target_new"]["str"]} for record in RECORDS[:4]]  # fmt: skip
    how = {"task_manager": manager(tasks), "bootstrap_iters": 0, "limit": 4}

    def accuracy():
        return evaluate(session, ["lancet_choice"], **how)["results"]["lancet_choice"]["acc,none"]

    with lancet.open(MODEL, dtype="f32", progress=False, statistics=STATISTICS) as session:
        before = accuracy()
        session.edit(requests)
        after = accuracy()
        session.undo()
        assert accuracy() == before == 1.0 and after < before


def job(include, out, **more):
    return {"model": str(MODEL), "statistics": STATISTICS, "requests": {"path": str(ROOT / "data" / "requests" / "demo.json"), "limit": 4},
            "evaluate": {"metrics": ["efficacy"], "lm_eval": {"tasks": ["lancet_choice"], "include": str(include), "limit": 4, **more}},
            "run": {"dtype": "f32"}, "output": {"dir": str(out)}}  # fmt: skip


def test_a_job_measures_before_and_after(tasks, tmp_path):
    report = lancet.run(job(tasks, tmp_path / "out"), progress=False)
    acc = json.loads((tmp_path / "out" / "report.json").read_text())["side_effects"]["lm_eval.lancet_choice.acc,none"]
    assert acc["before"] == 1.0 and acc["after"] < acc["before"]
    # the output on its own gives what the job says of it
    from lancet.lm_eval import LancetLM

    again = lm_eval.simple_evaluate(model=LancetLM(path=str(tmp_path / "out"), dtype="f32"), tasks=["lancet_choice"],
                                    task_manager=manager(tasks), bootstrap_iters=0, limit=4)  # fmt: skip
    assert again["results"]["lancet_choice"]["acc,none"] == acc["after"]
    assert report.report["side_effects"]["lm_eval.lancet_choice.acc,none"] == acc


def test_what_cannot_be_measured_is_refused_before_the_model_is_loaded(tasks, tmp_path):
    with pytest.raises(lancet.ConfigError, match="no_such_task"):
        lancet.run(job(tasks, tmp_path / "out", tasks=["no_such_task"]), progress=False)
    assert not (tmp_path / "out").exists()


def test_cancelling_a_job_within_its_tasks_leaves_nothing(tasks, tmp_path):
    def stop(progress):
        if progress.stage == "score":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        lancet.run(job(tasks, tmp_path / "out"), progress=stop)
    assert not (tmp_path / "out").exists()


def test_the_program_without_python_says_where_tasks_run(tasks, tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(job(tasks, tmp_path / "out")))
    program = pathlib.Path(lancet.__file__).parent / "bin" / "lancet"
    result = subprocess.run([program, "edit", tmp_path / "job.json"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 2 and "lm-evaluation-harness runs in Python" in result.stderr


def test_lm_eval_finds_the_model_by_its_name(tasks, tmp_path):
    """As in an environment that lancet is installed in: its .pth is read at the start."""
    hook = ROOT / "python" / "hook"
    command = [sys.executable, "-c",
               f"import site; site.addsitedir({str(hook)!r}); import lm_eval.__main__ as main; main.cli_evaluate()",
               "--model", "lancet", "--model_args", f"path={MODEL},dtype=f32", "--tasks", "lancet_choice", "--include_path", str(tasks),
               "--limit", "4", "--output_path", str(tmp_path / "out")]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)  # reads the harness's own tasks too
    assert result.returncode == 0, result.stderr[-2000:]
    assert "lancet_choice" in result.stdout and "lancet" in result.stdout
