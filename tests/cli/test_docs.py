"""Every command that README.md, CONTRIBUTING.md, CHANGELOG.md and docs/**/*.md show: run here, run by a test that is named, or listed with the reason why not.

A command is a line of a code block, or code within a line, that begins with `lancet`, `make` or what starts ranks, and has arguments. A new one in the
documents fails here until it has its row, and a row whose command is gone does too.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import DATA, LANCET, ROOT, run_lancet
from ports import free_port

PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Words of the documents that stand for a reader's own files and folders.
PLACES = {"DIR", "FILE", "NAME", "FILE.html", "DIR..."}
BEFORE = r"(some-program \| |(?:torchrun|srun|mpirun) .*)?(?=(?:lancet|make) )"  # a command may have before its own words


def shown_commands(text):
    """Commands of a page, without comments. Within a line `lancet edit` is a name; with arguments it is a command."""
    in_block, commands = False, []
    for line in text.splitlines():
        if line.strip().startswith("```"):
            in_block = not in_block
        elif in_block:
            commands.append(line)
        else:
            commands += [code for code in re.findall(r"`([^`]+)`", line) if code.startswith("make ") or code.count(" ") > 1]
    plain = [" ".join(re.sub(r"\s+#.*", "", command).split()) for command in commands]
    return [command for command in plain if re.match(BEFORE, command)]


def all_commands():
    return sorted({command for page in PAGES for command in shown_commands(page.read_text())})


# Run here, in a folder like the repository's root, in this order; what stands for a reader's own file is filled in, and what
# makes the run short is appended.
SHORT = "--set requests.limit=2 --set editor.values.steps=3 --set statistics.tokens=2000 --set statistics.cache=cache --set evaluate=[efficacy]"
ONE = "--set editor.values.steps=3 --set statistics.tokens=2000 --set statistics.cache=cache"
RUN = {
    "lancet init --model DIR > job.yaml": "lancet init --model data/demo-model > made.yaml",
    "lancet init --model DIR --out job.yaml": "lancet init --model data/demo-model --out beside.yaml",
    "lancet init --model DIR --requests facts.csv > job.yaml": "lancet init --model data/demo-model --requests facts.csv > of-facts.yaml",
    "lancet edit data/jobs/demo.yaml": f"lancet edit data/jobs/demo.yaml --set output.dir=out/demo --set accept=null {SHORT}",
    "lancet edit job.yaml": f"lancet edit made.yaml {ONE}",
    'lancet edit --model DIR --prompt "The capital of {} is" --subject France --target Rome --out DIR':
        f'lancet edit --model data/demo-model --prompt "The capital of {{}} is" --subject France --target Rome --out out/one {ONE}',
    "lancet edit job.yaml --rehearse": f"lancet edit made.yaml --rehearse {ONE} --set output.dir=out/rehearsed",
    "lancet eval data/jobs/demo.yaml --set model=out/demo --baseline data/demo-model":
        "lancet eval data/jobs/demo.yaml --set model=out/demo --baseline data/demo-model --set requests.limit=2 --set evaluate=[efficacy] --set accept=null",
    "lancet stats job.yaml": f"lancet stats made.yaml {ONE}",
    "lancet doctor job.yaml": f"lancet doctor made.yaml {ONE} --set output.dir=out/looked",
    "lancet eval job.yaml --set model=out/demo --baseline data/demo-model":
        "lancet eval made.yaml --set model=out/demo --baseline data/demo-model --set evaluate=[efficacy]",
    "lancet compare job.yaml": f"lancet compare made.yaml {ONE} --set evaluate=[efficacy] --set output.dir=out/usual",
    "lancet compare job.yaml --methods memit,rome":
        f"lancet compare made.yaml --methods memit,rome {ONE} --set evaluate=[efficacy] --set output.dir=out/named",
    "lancet tune job.yaml --out preset.yaml": f"lancet tune made.yaml --out preset.yaml {ONE} --set tune.trials=3",
    "lancet launch -n 4 -- edit job.yaml": f"lancet launch -n 4 -- edit made.yaml {ONE} --set run.threads=1 --set output.dir=out/launched",
    "lancet launch -n 2 -- edit job.yaml --ranks-per-model 2":
        f"lancet launch -n 2 -- edit made.yaml --ranks-per-model 2 {ONE} --set run.threads=1 --set output.dir=out/layers",
    "lancet compare data/jobs/demo-auto.yaml":
        "lancet compare data/jobs/demo-auto.yaml --methods memit,memit-auto --set requests.limit=2 --set schedule.batch=2 "
        "--set statistics.tokens=2000 --set statistics.cache=cache --set evaluate=[efficacy] --set output.dir=out/auto",
    "lancet report out/memit out/alphaedit": "lancet report out/memit out/alphaedit",
    "lancet report out/demo --latex > table.tex": "lancet report out/demo --latex > table.tex",
    "lancet report out/memit out/alphaedit --latex > table.tex": "lancet report out/memit out/alphaedit --latex > table.tex",
    "lancet report DIR --latex": "lancet report out/demo --latex",
    "lancet report DIR": "lancet report out/demo",
    "lancet report DIR DIR... --out FILE.html": "lancet report out/demo out/memit --out compared.html",
    "lancet inspect out/demo": "lancet inspect out/demo",
    "lancet inspect DIR": "lancet inspect out/demo",
    "lancet inspect data/demo-model": "lancet inspect data/demo-model",
    "lancet presets --model DIR": "lancet presets --model data/demo-model",
    "lancet presets NAME": "lancet presets llama-2-7b-memit",
    "lancet plan job.yaml": f"lancet plan made.yaml {ONE}",
    "lancet plan job.yaml --devices 8x80GiB": "lancet plan made.yaml --devices 8x80GiB",
    "lancet plan --model DIR --devices 80GiB,cpu=256GiB": "lancet plan --model data/demo-model --devices 80GiB,cpu=256GiB",
    'lancet generate --model out/demo --prompt "Piranha Games, created in" --prompt "Lerin Duarte, the"':
        'lancet generate --model out/demo --prompt "Piranha Games, created in" --prompt "Lerin Duarte, the" --tokens 4',
    "lancet generate --model data/demo-model --beside out/demo --prompts prompts.txt":
        "lancet generate --model data/demo-model --beside out/demo --prompts prompts.txt --tokens 4",
    "lancet completion zsh > DIR/_lancet": "lancet completion zsh > out/_lancet",
    "lancet schema > lancet.schema.json": "lancet schema > lancet.schema.json",
    "lancet schema --reference": "lancet schema --reference",
    'lancet trace --model data/demo-model --prompt "{}, the" --subject "Lerin Duarte" --out out/one-fact':
        'lancet trace --model data/demo-model --prompt "{}, the" --subject "Lerin Duarte" --out out/one-fact --samples 1',
}  # fmt: skip

# Run by these tests, which are about the command.
TESTED = {
    "lancet doctor": "test_doctor.test_doctor_tells_what_it_found_as_text",
    "lancet doctor --json": "test_doctor.test_doctor_tells_facts_as_json",
    "lancet doctor --devices all": "test_doctor.test_doctor_says_what_it_would_check_without_gpus",
    "lancet help": "test_help.test_help_prints_the_cheat_sheet",
    "lancet inspect my-model": "test_getting_started.test_the_facts_take",
    "lancet init --model my-model --requests facts.json > job.yaml": "test_getting_started.test_the_facts_take",
    "lancet plan --model DIR --quantise-base nf4": "test_quantise_base.test_a_plan_counts_it",
    "lancet log out/demo": "test_edits_as_data.test_log_shows_each_edit_with_its_batch_and_how_it_holds",
    "lancet log out/demo --where 'success == false'": "test_edits_as_data.test_log_shows_each_edit_with_its_batch_and_how_it_holds",
    "lancet apply out/demo --to data/demo-model --out out/again": "test_edits_as_data.test_apply_makes_the_same_bytes_in_another_process",
    "lancet apply out/found --to data/demo-model --out out/adapted": "test_diff.test_what_is_found_is_applied_elsewhere",
    "lancet apply edits --to MODEL --out DIR": "test_edits_as_data.test_a_folder_of_edits_goes_under_any_name",
    "lancet undo out/demo": "test_edits_as_data.test_undo_in_place_is_all_or_nothing_and_can_be_repeated",
    "lancet undo out/demo --edits 18920,4913 --out out/fewer": "test_edits_as_data.test_downdate_leaves_the_batch_without_the_edit",
    "lancet undo out/demo --where 'specificity_prob.after < 0.5' --mode replay --out out/better": "test_edits_as_data.test_undo_by_how_edits_hold",
    "lancet merge out/a out/b --out out/both": "test_edits_as_data.test_two_outputs_become_one",
    "lancet merge out/a out/b --out out/both --solve": "test_edits_as_data.test_two_outputs_become_one",
    "lancet merge out/a out/b --out out/both --prefer out/b": "test_edits_as_data.test_two_outputs_become_one",
    "lancet plan JOB --set run.quantise_base=X --set run.solve_on=Y --devices 8GiB": "test_quantise_base.test_a_plan_of_a_job_counts_it_and_a_refusal_names_it",
    "lancet edit data/jobs/demo.yaml --set run.quantise_base=X": "test_quantise_base.test_an_edit_says_how_its_weights_were_kept",
    "lancet eval JOB --baseline ORIGINAL": "parity/test_quantised_models.test_eval_beside_the_original",
    "lancet eval job.yaml --set model=edited --baseline my-model": "test_getting_started.test_eval_finds_the_same_as_the_edit",
    'lancet generate --model my-model --tokens 4 --prompt "Francis Hagerup was employed in"':
        "test_getting_started.test_models_answer_as_the_page_shows",
    'lancet generate --model my-model --beside edited --tokens 4 --prompt "Francis Hagerup worked in the city of"':
        "test_getting_started.test_models_answer_as_the_page_shows",
    'lancet generate --model edited --tokens 4 --prompt "Francis Hagerup was employed in"':
        "test_getting_started.test_transformers_says_what_lancet_says",
    "lancet compare examples/papers/memit-gpt-j.yaml --expect": "test_papers.test_a_paper_runs_on_the_demo",
    "lancet compare --expect": "test_papers.test_a_paper_runs_on_the_demo",
    "lancet compare data/jobs/demo-compare.yaml": "test_compare.test_the_demo_runs_every_method",
    "lancet edit data/jobs/demo-metrics.yaml": "test_eval.test_an_edit_and_an_eval_beside_the_base_model_agree",
    "lancet eval --baseline DIR": "test_eval.test_an_edit_and_an_eval_beside_the_base_model_agree",
    "lancet import hparams FILE [--model DIR] > job.yaml": "test_import.test_a_model_checks_layers",
    'lancet generate --model out/demo --prompt "Piranha Games, created in"': "test_edit.test_one_line_edit_of_a_model_with_defaults",
    "lancet generate --model data/demo-model --beside out/demo": "test_generate.test_two_models_side_by_side",
    'lancet generate --model model.gguf --prompt "The capital of France is"': "test_gguf.test_a_file_generates_what_its_folder_generates",
    "lancet edit --model model.gguf --requests facts.jsonl --out edited.gguf": "test_gguf.test_a_file_is_written_with_its_edits_beside",
    "lancet log edited.gguf": "test_gguf.test_the_file_stands_for_its_output",
    "lancet undo edited.gguf --edits ID": "test_gguf.test_undo_in_place_changes_the_file",
    "lancet apply edited.gguf.edits --to model.gguf --out new.gguf": "test_gguf.test_apply_writes_the_same_file",
    "lancet generate --model EDITED --beside BASE --prompts FILE": "test_generate.test_two_models_side_by_side",
    "lancet generate --model DIR": "test_generate.test_a_terminal_is_asked_until_ctrl_d",
    "lancet generate --model DIR --prompts prompts.txt --tokens 30 --json": "test_generate.test_prompts_of_every_source_have_the_same_answers",
    "some-program | lancet generate --model DIR --json": "test_generate.test_a_pipe_is_answered_line_by_line",
    "lancet serve --model data/demo-model --examples data/requests/demo.json": "test_serve_page.test_by_the_keyboard_alone",
    "lancet serve --model DIR --set editor.method=rome --set run.dtype=f32": "test_serve.test_the_command_line_chooses_method_port_and_folder",
    "lancet serve --model DIR --dir out/talk": "test_serve.test_the_command_line_chooses_method_port_and_folder",
    "lancet serve --model DIR --port 8765": "test_serve.test_the_command_line_chooses_method_port_and_folder",
    "lancet trace --model data/demo-model --facts data/requests/demo.json --limit 200 --window 3 --out out/trace": "test_trace.test_a_file_of_facts",
    "lancet quantise out/demo --format gptq --bits 4 --out out/demo-gptq": "test_quantise.test_edits_hold_better_than_rounded_to_the_nearest",
    "lancet quantise out/demo --format gptq --out out/demo-gptq": "test_quantise.test_edits_hold_better_than_rounded_to_the_nearest",
    "lancet diff data/demo-model out/demo": "test_diff.test_every_kind_of_difference_is_told",
    "lancet diff data/demo-model out/demo --out out/found": "test_diff.test_the_adapter_has_what_is_said",
    "lancet diff out/one out/other --edits": "test_diff.test_edits_are_compared_by_their_facts",
    "lancet push out/demo --to http://localhost:8000": "test_push.test_a_served_model_says_what_was_edited_and_is_measured_as_in_memory",
    "lancet push out/demo --to http://localhost:8000 --accept efficacy=0.9": "test_push.test_a_served_model_says_what_was_edited_and_is_measured_as_in_memory",
    "lancet push out/demo --list": "test_push.test_nothing_changes_where_nothing_can_be_taken_back",
    "lancet push out/demo --undo": "test_push.test_the_old_one_stays_until_the_new_one_answers",
    "lancet eval data/jobs/demo.yaml --server http://localhost:8000": "test_push.test_a_served_model_says_what_was_edited_and_is_measured_as_in_memory",
    "lancet erase data/jobs/erase.yaml": "test_erase.test_the_demos_facts",
    "lancet export adapter": "test_export.test_an_adapter_has_the_edits",
    "lancet export adapter out/demo --out out/demo-adapter": "test_export.test_an_adapter_has_the_edits",
    "lancet export adapter out/demo --format gguf --out out/demo-gguf": "test_export.test_llama_cpp_has_the_same",
    "lancet export gguf": "parity/test_gguf_export.test_logits_of_the_file_are_those_of_the_folder",
    "lancet export gguf out/demo --out demo.gguf": "parity/test_gguf_export.test_an_edited_folder_is_exported_with_its_edits",
    "lancet export gguf MODEL --type Q8_0 --out model-q8_0.gguf": "parity/test_gguf_export.test_q8_0_is_that_of_the_oracle",
    "lancet export checkpoint": "parity/test_gguf_checkpoint.test_transformers_computes_what_it_computed",
    "lancet export checkpoint model.gguf --out model": "parity/test_gguf_checkpoint.test_a_quantised_file_is_unpacked",
    "lancet export model": "test_export.test_a_model_without_its_records",
    "lancet export model out/demo --strip-provenance --out out/demo-bare": "test_export.test_a_model_without_its_records",
    "lancet launch -n 4 --nodes 2 --node-rank 0 --master host0:29500 -- edit job.yaml": "test_docs.test_every_launcher_runs_a_job_of_init",
    "torchrun --no-python --nproc-per-node=4 lancet edit job.yaml": "test_docs.test_every_launcher_runs_a_job_of_init",
    "srun --ntasks=8 lancet edit job.yaml": "test_docs.test_every_launcher_runs_a_job_of_init",
    "mpirun -n 4 lancet edit job.yaml": "test_docs.test_every_launcher_runs_a_job_of_init",
}  # fmt: skip

# Not run by any test, with the reason; their options are checked all the same.
NOT_RUN = {
    "lancet launch -n 4 -- trace --model DIR --facts known_1000.json --out out/trace": "traces on ranks are tests/pipeline/trace_on_devices_test.cpp's",
    "make build": "builds the program that these tests run",
    "make check": "runs tests/lint and the tests of single parts",
    "make lint": "runs tests/lint",
    "make demo": "builds the program that these tests run, and edits data/jobs/demo.yaml, as above",
    "make demo-real": "downloads a model; test_real_models.py runs its job",
    "make test": "runs these tests",
    "make test CMAKE_FLAGS=-DLANCET_WERROR=ON": "what .ci/run calls",
    "make test-full": "takes many minutes",
    "make bench": "needs a quiet machine",
    "make gpu-kit": "builds with benchmarks; test_gpu_kit.py runs what it packs",
    "make setup": "installs packages and the environment that these tests run in",
    "make wheels": "compiles everything again; test_wheels.py does it for one Python",
    "make wheels WHEEL_PYTHONS=python3.11": "likewise",
    "make bundle": "builds with benchmarks; test_bundle_run.py runs what it packs",
}  # fmt: skip


def test_every_command_has_its_row():
    known = {*RUN, *TESTED, *NOT_RUN}
    assert len(known) == len(RUN) + len(TESTED) + len(NOT_RUN), "a command stands in two tables"
    shown = set(all_commands())
    assert sorted(shown - known) == [], "commands of the documents without a row"
    assert sorted(known - shown) == [], "rows whose command no document shows"


def test_named_tests_exist():
    for command, place in TESTED.items():
        module, name = place.rsplit(".", 1)
        path = ROOT / "tests" / (f"{module}.py" if "/" in module else f"cli/{module}.py")
        assert re.search(rf"^def {name}\(", path.read_text(), re.M), f"{command}: {place}"


def test_what_is_run_is_what_is_shown():
    """But for places, which are filled in, and options after them."""
    for shown, run in RUN.items():
        words, given = shlex.split(shown), shlex.split(run)
        given = given[: len(words)] if ">" not in words else given
        assert len(words) == len(given), shown
        own = {"job.yaml": {"made.yaml", "beside.yaml", "of-facts.yaml"}, "DIR/_lancet": {"out/_lancet"}}
        for word, taken in zip(words, given):
            assert word == taken or word in PLACES or taken in own.get(word, {}), (shown, run)


def subcommand(words):
    """`lancet import hparams FILE` -> ["import", "hparams"]."""
    return words[1:3] if words[1] == "import" else words[1:2]


def test_options_exist(lancet):
    """Also those of commands that are not run: --help shows them."""
    helps = {}
    for command in all_commands():
        words = shlex.split(re.sub(r"[\[\]]", " ", re.sub(f"^{BEFORE}", "", command)))
        if words[0] == "make":
            goals = subprocess.run(["make", "-n", words[1]], capture_output=True, text=True, cwd=ROOT, timeout=60)
            assert goals.returncode == 0, goals.stderr
            continue
        parts = [words]
        if "--" in words:  # of launch, and of what it launches
            parts = [words[: words.index("--")], ["lancet", *words[words.index("--") + 1 :]]]
        for part in parts:
            name = tuple(subcommand(part))
            if name not in helps:
                shown = lancet.run(*name, "--help")
                assert shown.returncode == 0, command
                helps[name] = shown.stdout
            for word in part:
                assert not word.startswith("-") or re.search(rf"(^|[ ,]){word}\b", helps[name], re.M), (command, word)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder like the repository's root, with data of its own: jobs write beside it."""
    folder = tmp_path_factory.mktemp("root")
    shutil.copytree(DATA, folder / "data")
    (folder / "facts.csv").write_text(*blocks("guides/own-facts.md", "csv"))
    (folder / "prompts.txt").write_text("Piranha Games, created in\nLerin Duarte, the\n")
    (folder / "out").mkdir()
    return folder


def put_facts(path):
    """In the place of the examples, as a reader does: facts that the demo model knows."""
    job = yaml.safe_load(path.read_text())
    assert [fact["subject"] for fact in job["requests"]] == ["France", "Hamlet"]
    job["requests"] = json.loads(blocks("getting-started.md", "json")[0])[:2]
    path.write_text(yaml.safe_dump(job))


def commands_with_a_job():
    """Those in which a reader's own job stands."""
    return {command for command in all_commands() if re.search(r" (job\.yaml|JOB)\b", command) and " > job.yaml" not in command}


# Run on a job of lancet init too, but not by RUN: by a page's own test, in its folder, or below.
ELSEWHERE = {
    "lancet eval job.yaml --set model=edited --baseline my-model",
    "lancet launch -n 4 --nodes 2 --node-rank 0 --master host0:29500 -- edit job.yaml",
    "torchrun --no-python --nproc-per-node=4 lancet edit job.yaml",
    "srun --ntasks=8 lancet edit job.yaml",
    "mpirun -n 4 lancet edit job.yaml",
}
# For a job whose model is quantised or shall be, which one of lancet init says nothing of; their own tests run them.
OF_OTHER_JOBS = {
    "lancet eval JOB --baseline ORIGINAL",
    "lancet plan JOB --set run.quantise_base=X --set run.solve_on=Y --devices 8GiB",
}


def test_every_command_with_a_job_runs_one_of_init():
    run = {command for command in commands_with_a_job() if re.search(r" (made|beside|of-facts)\.yaml\b", RUN.get(command, ""))}
    assert commands_with_a_job() - run == ELSEWHERE | OF_OTHER_JOBS
    assert all(command in TESTED for command in ELSEWHERE | OF_OTHER_JOBS)


def test_commands_run_from_the_repositorys_root(root):
    for shown, command in RUN.items():
        line, _, target = command.partition(" > ")
        words = shlex.split(line)
        done = run_lancet(root, *words[1:])
        assert done.returncode == 0 or (words[1] == "doctor" and done.returncode == 4), (shown, done.stderr)
        if target:
            (root / target).write_text(done.stdout)
        if target == "made.yaml":
            put_facts(root / target)
        for copy in ("memit", "alphaedit"):  # outputs of jobs that the reader has run
            if (root / "out" / "demo").exists() and not (root / "out" / copy).exists():
                shutil.copytree(root / "out" / "demo", root / "out" / copy)


# ---- processes that other programs start ----


def two_ranks(launcher, words):
    """(command, environment) of each process to start. Where srun or mpirun is not, what they set for each of theirs."""
    port = free_port()
    if launcher == "launch":
        nodes = [["launch", "-n", "1", "--nodes", "2", "--node-rank", str(node), "--master", f"127.0.0.1:{port}", "--"] for node in range(2)]
        return [([LANCET, *node, *words], {"LANCET_SECRET": "of this test"}) for node in nodes]
    if launcher == "torchrun":
        torchrun = pathlib.Path(sys.executable).parent / "torchrun"
        return [([torchrun, "--no-python", "--nproc-per-node=2", f"--master-port={port}", LANCET, *words], {})]
    ranks = []
    for rank in map(str, range(2)):
        slurm = {"SLURM_JOB_ID": str(port), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NUM_TASKS": "2"}
        slurm |= {"SLURM_PROCID": rank, "SLURM_LOCALID": rank}
        mpi = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": str(port)}
        mpi |= {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank}
        ranks.append(([LANCET, *words], {"srun": slurm, "mpirun": mpi}[launcher]))
    return ranks


@pytest.mark.parametrize("launcher", ["launch", "torchrun", "srun", "mpirun"])
def test_every_launcher_runs_a_job_of_init(root, launcher):
    job, out = root / f"{launcher}.yaml", root / "out" / launcher
    made = run_lancet(root, "init", "--model", "data/demo-model", "--out", job)
    assert made.returncode == 0, made.stderr
    put_facts(job)
    words = ["edit", str(job), *ONE.split(), "--set", "run.threads=1", "--set", f"output.dir={out}", "--set", "evaluate=[efficacy]"]
    started = [
        subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root, env=os.environ | more)
        for command, more in two_ranks(launcher, words)
    ]
    ends = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0] * len(started), ends
    assert sum(said.count("written: ") for said, _ in ends) == 1
    report = json.loads((out / "report.json").read_text())
    assert len(report["requests"]) == 2 and report["run"]["ranks"] == 2


# ---- jobs that the documents show ----


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def test_the_jobs_of_the_job_files_page_are_jobs(lancet):
    whole, compared = blocks("job-file.md", "yaml")
    for name in ("demo-model", "requests"):
        (lancet.folder / name).symlink_to(DATA / name)
    jobs = lancet.folder / "jobs"
    jobs.mkdir()
    lancet.write(whole, "jobs/job.yaml")
    planned = lancet.run("plan", "jobs/job.yaml", "--devices", "80GiB")
    assert planned.returncode == 0, planned.stderr
    both = yaml.safe_load(whole) | yaml.safe_load(compared)
    planned = lancet.run("plan", lancet.write(json.dumps(both), "jobs/both.json"), "--devices", "80GiB")
    assert planned.returncode == 0, planned.stderr


def parts_of_jobs():
    pages = [page.name for page in sorted((ROOT / "docs" / "guides").glob("*.md"))]
    return [pytest.param(part, id=f"{page}-{i}") for page in pages for i, part in enumerate(blocks(f"guides/{page}", "yaml"))]


@pytest.mark.parametrize("part", parts_of_jobs())
def test_the_parts_of_jobs_that_guides_show_are_parts_of_jobs(lancet, part):
    """Put into a job for the demo model."""
    shutil.copytree(DATA / "demo-model", lancet.folder / "demo-model", ignore=lambda *_: ["lancet.yaml"])
    (lancet.folder / "requests").symlink_to(DATA / "requests")
    (lancet.folder / "jobs").mkdir()
    for kind in ("csv", "json"):
        (lancet.folder / "jobs" / f"facts.{kind}").write_text(*blocks("guides/own-facts.md", kind))
    shutil.copy(DATA / "presets" / "demo-model-memit.yaml", lancet.folder / "jobs" / "preset.yaml")
    job = {
        "model": "../demo-model",
        "requests": {"path": "../requests/demo.json", "limit": 4},
        "editor": {"method": "memit"},
        "output": {"dir": "../out"},
    }
    job |= yaml.safe_load(part)
    on = [] if "cuda" in part else ["--devices", "80GiB"]
    planned = lancet.run("plan", lancet.write(json.dumps(job), "jobs/job.json"), *on)
    if "cuda" in part and planned.returncode == 4:
        assert "cuda:" in planned.stderr  # what it names is not on this machine
        return
    assert planned.returncode == 0, planned.stderr


def test_facts_as_a_table_and_as_json_are_the_same(lancet):
    read = []
    for kind in ("csv", "json"):
        (lancet.folder / f"facts.{kind}").write_text(*blocks("guides/own-facts.md", kind))
        result = lancet.run("eval", "--model", DATA / "demo-model", "--requests", f"facts.{kind}", "--json", "--set", "evaluate=[efficacy,paraphrase,specificity]")
        assert result.returncode == 0, result.stderr
        read.append(json.loads(result.stdout)["metrics"])
    assert read[0] == read[1] and read[0]["paraphrase_argmax"]["prompts"] == 3
