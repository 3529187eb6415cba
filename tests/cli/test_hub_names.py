"""A name of the Hugging Face hub in the place of a model folder: every command that takes a model says how to fetch it."""
import re

import pytest
from conftest import DATA, run_ok

CHECKPOINT = 3
DEMO, FACTS = DATA / "demo-model", DATA / "requests" / "demo.json"
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
FETCH = f"hf download {NAME} --local-dir SmolLM2-135M-Instruct"
JOB = "job.json"
ERASE = "erase.json"
HPARAMS = "alg_name: MEMIT\nmodel_name: llama\nlayers: [1, 2]\nclamp_norm_factor: 4\nv_num_grad_steps: 25\nv_lr: 0.5\nmom2_update_weight: 15000\n"

# A command line for each place of a command that a model is named in; OUTPUT is an output of edits.
TAKES_A_MODEL = {
    "edit": [["edit", JOB], ["edit", "--model", NAME, "--prompt", "{} is in", "--subject", "Lyon", "--target", "Italy", "--out", "o"]],
    "erase": [["erase", ERASE]],
    "undo": [],  # takes no model: the output says its base
    "merge": [["merge", "OUTPUT", "OUTPUT", "--to", NAME, "--out", "o"]],
    "apply": [["apply", "OUTPUT", "--to", NAME, "--out", "o"]],
    "generate": [["generate", "--model", NAME, "--prompt", "a"], ["generate", "--model", DEMO, "--beside", NAME, "--prompt", "a"]],
    "eval": [["eval", JOB], ["eval", "--model", NAME, "--requests", FACTS], ["eval", JOB, "--set", f"model={DEMO}", "--baseline", NAME]],
    "compare": [["compare", JOB, "--methods", "memit"]],
    "diff": [["diff", NAME, DEMO], ["diff", DEMO, NAME]],
    "trace": [["trace", "--model", NAME, "--facts", FACTS, "--out", "o"]],
    "inspect": [["inspect", NAME]],
    "init": [["init", "--model", NAME]],
    "doctor": [["doctor", JOB]],
    "plan": [["plan", JOB], ["plan", "--model", NAME, "--devices", "80GiB"]],
    "stats": [["stats", JOB]],
    "tune": [["tune", JOB, "--out", "p.yaml"]],
    "presets": [["presets", "--model", NAME]],
    "import": [["import", "hparams", "hparams.yaml", "--model", NAME]],
    "serve": [["serve", "--model", NAME, "--port", "0"]],
    "quantise": [["quantise", NAME, "--format", "gptq", "--bits", "4", "--out", "o"]],
    "launch": [["launch", "-n", "1", "--", "edit", JOB]],
}
TAKES_NONE = ["log", "report", "schema", "push", "export", "completion", "help"]
LINES = [pytest.param(line, id=" ".join(str(word).replace(str(DATA), "data") for word in line)) for lines in TAKES_A_MODEL.values() for line in lines]


def test_every_command_has_its_place_here(lancet):
    commands = re.findall(r"^  ([a-z]+) {2,}\S", run_ok(lancet.run("--help")).stdout, re.M)
    assert sorted(commands) == sorted([*TAKES_A_MODEL, *TAKES_NONE])


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    from conftest import Lancet

    made = Lancet(tmp_path_factory.mktemp("edited"))
    run_ok(made.edit(made.job(requests__limit=1, evaluate=[], editor__values={"steps": 2})))
    return made.out


@pytest.mark.parametrize("line", LINES)
def test_a_name_of_the_hub_is_fetched_by_the_command_that_is_said(lancet, output, line):
    job = lancet.job(model=NAME, requests__limit=1)
    lancet.write(job, JOB)
    lancet.write({"model": NAME, "requests": job["requests"], "erase": {"target": "unknown"}, "output": job["output"]}, ERASE)
    (lancet.folder / "hparams.yaml").write_text(HPARAMS)
    result = lancet.run(*[output if word == "OUTPUT" else word for word in line])
    said = result.stdout + result.stderr
    assert result.returncode == CHECKPOINT and FETCH in said and NAME in said, said
    files = {str(path.relative_to(lancet.folder)) for path in lancet.folder.rglob("*") if path.is_file()}
    assert files - {"logs/rank-0.log"} == {ERASE, "hparams.yaml", JOB}, "a command that fails writes nothing but the ranks' logs"


def test_a_folder_of_this_name_that_is_there_is_no_name_of_the_hub(lancet):
    (lancet.folder / NAME).mkdir(parents=True)
    result = lancet.run("inspect", NAME)
    assert result.returncode == CHECKPOINT and "hf download" not in result.stderr and "config.json" in result.stderr, result.stderr
