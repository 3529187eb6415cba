"""What holds for every command: words of the parser, paths, --quiet, stdout, and `--set` of another method."""
import json
import subprocess

import pytest
import yaml
from conftest import DATA, LANCET
from test_bad_input import refuses
from test_presets import write_model

CONFIG, CHECKPOINT = 2, 3
FACTS = DATA / "requests" / "demo.json"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["edt", "job.yaml"], "lancet: 'edt': unknown command; did you mean edit?"),
        (["zzzzzzzz"], "lancet: 'zzzzzzzz': unknown command\n"),
        (["edt", "--help"], "lancet: 'edt': unknown command; did you mean edit?"),
        (["export", "modl", "--help"], "lancet export: 'modl': unknown command; did you mean model?"),
        ([], "lancet: expected a command: edit, erase, undo, "),
        (["import", "hparam"], "lancet import: 'hparam': unknown command; did you mean hparams?"),
        (["edit", "--modell", "x"], "lancet edit: --modell: unknown option; did you mean --model?"),
        (["trace", "--modle=x", "--out", "y"], "lancet trace: --modle: unknown option; did you mean --model?"),
        (["trace", "--out", "y"], "lancet trace: --model is required"),
        (["inspect", "a", "b"], "lancet inspect: 'b': one argument too many"),
        (["edit", "--set"], "lancet edit: --set: "),
    ],
)
def test_words_that_nothing_takes(lancet, arguments, words):
    result = lancet.run(*arguments)
    assert result.returncode == CONFIG and result.stdout == ""
    assert result.stderr.startswith(f"lancet: error: {words}"), result.stderr
    assert result.stderr.endswith(" --help\n")


def test_a_misspelt_method_is_one_problem(lancet):
    for change in ({"editor__method": "memmit"}, {"editor__method": None, "editor__methd": "memit"}):
        result = lancet.edit(lancet.job(**change))
        refuses(lancet, result, CONFIG, "editor.method: ", "expected one of memit, rome")
        assert "covariance_weight" not in result.stderr and "layers" not in result.stderr, result.stderr


def test_requests_in_a_job_are_named_once(lancet):
    bad = [{"prompt": "{} is", "target": "a"}, {"prompt": "p", "subject": "p", "target": "q", "id": 1, "targt": "x"}]
    result = lancet.edit(lancet.job(requests=bad))
    lines = result.stderr.replace("lancet: error: ", "").splitlines()
    assert len(lines) == 2 and all(": requests: record " in line and "requests: requests" not in line for line in lines), lines


def test_presets_are_named_once(lancet):
    result = lancet.edit(lancet.job(editor={"preset": "none"}))
    assert result.returncode == CONFIG and "preset 'none': unknown. There are:\n" in result.stderr
    result = lancet.edit(lancet.job(editor__preset=["x"]))
    assert "job.json:1: editor.preset: expected text, got a list" in result.stderr, result.stderr
    # an explicit null is no preset
    job = lancet.job(evaluate=[])
    job["editor"]["preset"] = None
    assert lancet.run("plan", lancet.write(job), "--devices", "80GiB").returncode == 0


def test_a_full_stdout_is_an_error(lancet):
    generate = ["generate", "--model", DATA / "demo-model", "--prompt", "a", "--tokens", "1"]  # takes no filter
    for arguments in (["presets"], ["--help"], ["inspect", DATA / "demo-model", "--json"], ["completion", "bash"], ["schema"], ["schema", "--reference"], generate):
        with open("/dev/full", "w") as full:
            done = subprocess.run([LANCET, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == CHECKPOINT, arguments
        assert "lancet: error: stdout: what was printed is not complete: No space left on device" in done.stderr, (arguments, done.stderr)


COMMANDS = [
    ["push", "out", "--to", "http://127.0.0.1:1", "--name"], ["push", "out", "--to", "http://127.0.0.1:1", "--adapter-dir"],
    ["push", "out", "--to", "http://127.0.0.1:1", "--server-path"], ["push", "out", "--to"], ["inspect", "--json"], ["edit"], ["edit", "--set"],
    ["eval", "--server"], ["generate", "--model", "m", "--prompt"], ["serve", "--model"], ["plan"], ["report"], ["diff", "a"], ["log"], ["export", "model", "m", "--out"],
    ["trace", "--model", "m", "--out"], ["init", "--model"], ["nothing"], [],
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_arguments_are_utf8(lancet, arguments):
    others = [b"\xff", b"a\xed\xa0\x80"] if arguments[-1:] == ["--name"] else []  # no character at all, half a surrogate pair
    for wrong in [b"caf\xe9", *others]:
        done = subprocess.run([LANCET, *arguments, wrong], capture_output=True, timeout=60, cwd=lancet.folder)
        told = done.stderr.decode()  # which is UTF-8 itself
        assert done.returncode == CONFIG and done.stdout == b"", told
        assert told.startswith(f"lancet: error: argument {len(arguments) + 1}, '") and "expected UTF-8" in told, told


# ---- quiet ----


def test_quiet_means_the_same_for_every_command(lancet):
    """Warnings, errors and results that are written nowhere else are shown; progress and summaries of files are not."""
    facts = json.loads(FACTS.read_text())[:2]
    requests = [{"prompt": fact["requested_rewrite"]["prompt"] + " ", "subject": fact["requested_rewrite"]["subject"],
                 "target": fact["requested_rewrite"]["target_new"]["str"], "id": i} for i, fact in enumerate(facts)]  # fmt: skip
    requests[1]["prompt"] = requests[1]["prompt"].strip()
    requests.append(requests[1] | {"id": 2, "target": requests[1]["target"] + "er"})  # an equal key
    job = lancet.job(requests=requests, editor__contexts=["{}"], editor__values={"steps": 2})
    job["compare"] = {"ft": {"method": "ft", "modules": {"down": [1]}, "steps": 1}}
    path = lancet.write(job)
    spaces = "warning: requests: 1 of 3 have white space at the end of a prompt"

    rehearsed = lancet.run("edit", path, "--rehearse", "-q")
    assert rehearsed.returncode == 0 and "rehearsed; nothing was written" in rehearsed.stdout
    stats = lancet.run("stats", path, "-q")
    assert (stats.returncode, stats.stdout, stats.stderr) == (0, "", "")
    edited = lancet.run("edit", path, "-q")
    assert edited.returncode == 0 and edited.stdout == ""
    assert edited.stderr.count(spaces) == 1 and "requests 1 and 2" in edited.stderr, edited.stderr
    assert "loading" not in edited.stderr and edited.stderr.startswith("warning: ")
    compared = lancet.run("compare", path, "-q", "--set", "output.dir=compared")
    assert compared.returncode == 0 and compared.stdout == "" and compared.stderr.count(spaces) == 1
    report = lancet.run("report", "out", "-q")
    assert (report.returncode, report.stdout, report.stderr) == (0, "", "")
    measured = lancet.run("eval", "--model", "out", "--requests", "out/requests.jsonl", "-q", "--set", "evaluate=[efficacy]")
    assert measured.returncode == 0 and "efficacy_argmax" in measured.stdout
    assert measured.stderr.count(spaces) == 1 and "loading" not in measured.stderr
    for command in (["plan", path, "--devices", "80GiB"], ["inspect", "out"], ["presets"], ["init", "--model", "out"]):
        shown = lancet.run(*command, "-q")
        assert shown.returncode == 0 and shown.stdout, (command, shown.stderr)
        assert not shown.stderr, (command, shown.stderr)


# ---- paths, and one line ----


def test_paths_of_the_command_line_are_taken_from_the_current_folder(lancet):
    """README's `eval` from a folder that is not the job's."""
    base, jobs = lancet.copy_model("models/base"), lancet.folder / "jobs"
    jobs.mkdir()
    (jobs / "facts.json").write_text(json.dumps(json.loads(FACTS.read_text())[:2]))
    job = lancet.job(requests={"path": "facts.json"}, model="../models/base", statistics__cache="cache", evaluate=["efficacy"])
    job["output"] = {"dir": "edited"}
    path = lancet.write(job, "jobs/job.json")
    here = lancet.run("edit", path, "--set", "output.dir=out/one", "--set", "editor.values={steps: 2}")
    assert here.returncode == 0, here.stderr
    assert (lancet.folder / "out" / "one" / "config.json").exists() and (jobs / "cache").exists()
    resolved = yaml.safe_load((lancet.folder / "out" / "one" / "job.yaml").read_text())
    assert resolved["requests"]["path"] == str(jobs / "facts.json") and resolved["output"]["dir"] == str(lancet.folder / "out" / "one")
    measured = lancet.run("eval", path, "--set", "model=out/one", "--baseline", "models/base", "--json")
    assert measured.returncode == 0, measured.stderr
    folders = json.loads(measured.stdout)
    assert folders["model"]["folder"] == str(lancet.folder / "out" / "one") and folders["baseline"]["folder"] == "models/base"
    # a model's own lancet.yaml keeps its folder, and so does a preset that it names
    (base / "own.txt").write_text((DATA / "requests" / "demo-corpus.txt").read_text())
    (base / "lancet.yaml").write_text("editor: {preset: ./p.yaml, layers: [1]}\nstatistics: {corpus: own.txt, tokens: 2000, cache: c}\n")
    (base / "p.yaml").write_text((DATA / "presets" / "demo-model-memit.yaml").read_text())
    stats = lancet.run("stats", "--model", "models/base", "--json")
    assert stats.returncode == 0, stats.stderr
    assert [layer["factor_file"].startswith(str(base / "c")) for layer in json.loads(stats.stdout)["layers"]] == [True]


def test_a_fact_is_spelt_or_in_a_file(lancet):
    fact = ["--prompt", "{}, created in", "--subject", "Piranha Games", "--target", "London"]
    model = ["--model", DATA / "demo-model", "--out", lancet.out]
    refuses(lancet, lancet.run("edit", *model, "--requests", FACTS, *fact), CONFIG, "--prompt: ", "--requests")
    refuses(lancet, lancet.run("edit", *model, "--requests", FACTS, "--target", "x"), CONFIG, "--target: ")
    refuses(lancet, lancet.run("edit", lancet.write(lancet.job()), "--subject", "x"), CONFIG, "--subject: ", "job file")


LLAMA_3 = yaml.safe_load((DATA / "presets" / "llama-3-8b-memit.yaml").read_text())["config"]


def planned(lancet, editor, *settings):
    """What plan says of a Llama-3-8B job with that editor."""
    model = lancet.folder / "llama-3"
    if not model.exists():
        write_model(model, LLAMA_3)
    job = lancet.write(lancet.job(model=str(model), editor=editor, run={"dtype": "bf16"}))
    return lancet.run("plan", job, "--devices", "80GiB", *[word for setting in settings for word in ("--set", setting)])


MEMIT = {"method": "memit", "layers": [4], "covariance_weight": 5, "values": {"steps": 3}}


@pytest.mark.parametrize(
    ("editor", "settings", "code", "words"),
    [
        (MEMIT, ["editor.method=rome", "editor.layers=[5]"], 0, "editor  rome instead of memit: memit's options are left out: layers, covariance_weight, values"),
        (MEMIT, ["editor.layers=[5]", "editor.method=rome"], 0, "memit's options are left out"),
        (MEMIT, ["editor.method=memit"], 0, ""),
        (MEMIT, ["editor.method=memmit"], CONFIG, "did you mean memit?"),
        (MEMIT | {"preset": "auto"}, ["editor.method=alphaedit"], 0, "preset  llama-3-8b-alphaedit: "),
        ({"preset": "llama-3-8b-memit"}, ["editor.method=rome", "editor.preset=auto"], 0, "preset  llama-3-8b-rome: "),
        ({"preset": "llama-3-8b-memit", "values": {"lr": 0.1}}, ["editor.method=rome", "editor.layers=[5]"], 0, "left out: preset, values"),
        ({"method": "memit", "preset": "auto"}, ["editor.method=emmet"], CONFIG, "Leave preset out"),
        ({"layers": [4]}, ["editor.method=memit"], 0, ""),
        (MEMIT, ["editor={method: ft, modules: {down: [3]}}"], 0, "editor  ft instead of memit: memit's options are left out: "),
    ],
)
def test_another_method_begins_another_editor(lancet, editor, settings, code, words):
    result = planned(lancet, editor, *settings)
    assert result.returncode == code, result.stderr
    if words:
        assert words in result.stderr, result.stderr
    else:
        assert "left out" not in result.stderr


def test_another_method_of_a_compared_editor(lancet):
    job = lancet.job(compare={"one": {"method": "memit", "layers": [0], "covariance_weight": 3}})
    settings = ["--set", "compare.one.method=ft", "--set", "compare.one.modules={down: [1]}"]
    assert lancet.run("plan", lancet.write(job), "--devices", "80GiB", *settings).returncode == 0


def test_one_line_takes_another_method_than_the_models_own(lancet):
    """The demo model's lancet.yaml has memit's options."""
    line = ["--prompt", "{}, created in", "--subject", "Piranha Games", "--target", "London", "--out", lancet.out]
    ft = ["editor.method=ft", "editor.modules={down: [1]}", "editor.steps=2", "evaluate=[efficacy]"]
    result = lancet.run("edit", "--model", DATA / "demo-model", *line, *[word for setting in ft for word in ("--set", setting)])
    assert result.returncode == 0, result.stderr
    assert "editor  ft instead of memit: memit's options are left out: layers, covariance_weight, values, contexts" in result.stderr
    editor = yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]
    assert editor["method"] == "ft" and editor["steps"] == 2 and "layers" not in editor


def test_a_flag_counts_for_a_job_too(lancet):
    """`--dtype`: as `--set run.dtype`, which it comes after."""
    job = lancet.write(lancet.job())
    refuses(lancet, lancet.run("edit", job, "--set", "run.dtype=f32", "--dtype", "f8"), CONFIG, "--dtype: expected one of auto, f32")
    edited = lancet.run("edit", job, "--set", "run.dtype=f32", "--dtype", "bf16", "--set", "requests.limit=1", "--solve-on", "host")
    assert edited.returncode == 0, edited.stderr
    run = yaml.safe_load((lancet.out / "job.yaml").read_text())["run"]
    assert (run["dtype"], run["solve_on"]) == ("bf16", "host")
    plans = [lancet.run("plan", job, "--devices", "80GiB", "--json", *words) for words in (["--dtype", "f64"], ["--set", "run.dtype=f64"], [])]
    assert [plan.returncode for plan in plans] == [0, 0, 0], plans
    assert plans[0].stdout == plans[1].stdout != plans[2].stdout
