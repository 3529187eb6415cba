"""docs/getting-started.md, as a reader follows it: its files are written, its commands run in order, its outcomes looked for.

The model is one that nobody published options for, as a reader's may be: the demo model without its lancet.yaml, ending at fewer
positions. The model writes less text than on the page, which is what takes the time.
"""
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from conftest import DATA, LANCET, ROOT, change_config
from edits import edit_files
from program_server import KEPT_MEMORY, ProgramServer
from test_docs import shown_commands

PAGE = (ROOT / "docs" / "getting-started.md").read_text()
FOLLOWED = PAGE[PAGE.index("## 1.") :]  # what comes before it builds the program
LESS_TEXT = {"lancet edit job.yaml": ["--set", "statistics.tokens=4000"]}


def blocks(language):
    return [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", FOLLOWED, re.M | re.S) if kind == language]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Reader:
    """Has followed the page: what each command said, and the folder as it is then."""

    def __init__(self, folder):
        self.folder, self.said = folder, {}
        self.environment = os.environ | KEPT_MEMORY | {"HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
        self.program = ProgramServer(LANCET, self.environment)
        self.model = folder / "my-model"
        self.model.mkdir()
        for path in (DATA / "demo-model").iterdir():
            if path.name != "lancet.yaml":
                (self.model / path.name).write_bytes(path.read_bytes())
        change_config(self.model, max_position_embeddings=511)
        self.model_before = content(self.model)
        (folder / "facts.json").write_text(*blocks("json"))

    def run(self, *arguments):
        """lancet's exit code, and what it says and complains of."""
        return self.program.run(self.folder, arguments, limit_s=300)

    def follow(self, command):
        line, _, target = command.partition(" > ")
        code, said, errors = self.run(*shlex.split(line)[1:], *LESS_TEXT.get(command, []))
        assert code == 0 or (command.startswith("lancet doctor") and code == 4), (command, errors)
        if target:
            (self.folder / target).write_text(said)
        self.said[command] = said

    def answer(self, words):
        return next(text for command, text in self.said.items() if words in command)

    def report(self):
        return json.loads((self.folder / "edited" / "report.json").read_text())


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    reader = Reader(tmp_path_factory.mktemp("reader"))
    commands = shown_commands("".join(f"```\n{block}```\n" for block in blocks("sh")))
    assert len(commands) == 9, commands
    for command in commands:
        reader.follow(command)
    yield reader
    reader.program.end()


def metrics_in(text):
    """Of the table of metrics in what was printed: name -> [before, after, prompts]."""
    return {row[0]: list(row[1:]) for row in re.findall(r"^  ([a-z]+_[a-z]+) +([\d.]+) +([\d.]+) +(\d+)$", text, re.M)}


def test_the_facts_take(reader):
    assert "5 in the format flat" in (reader.folder / "job.yaml").read_text()
    report, said = reader.report(), reader.answer("edit job")
    assert report["verdicts"]["success"] >= 4 and report["verdicts"]["measured"] == 5
    assert f"{report['verdicts']['success']} of 5 edits took (the model says the target, efficacy_argmax)" in said
    shown, printed = metrics_in(next(block for block in blocks("") if "metric, %" in block)), metrics_in(said)
    assert len(shown) == 10
    assert {name: (row[0], row[2]) for name, row in shown.items()} == {name: (row[0], row[2]) for name, row in printed.items()}


def test_the_output_holds_what_the_page_lists(reader):
    section = FOLLOWED[FOLLOWED.index("## 5.") : FOLLOWED.index("## 6.")]
    listed = [name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`([^`]+)`", row)]
    assert len(listed) == 10
    for name in listed:
        assert (reader.folder / "edited" / name).exists(), name


def test_eval_finds_the_same_as_the_edit(reader):
    assert metrics_in(reader.answer("eval job")) == metrics_in(reader.answer("edit job"))


def test_models_answer_as_the_page_shows(reader):
    answers = [block for block in blocks("") if block.startswith("Francis Hagerup")]
    assert reader.answer("--model my-model --tokens") == answers[0]
    assert reader.answer("--beside") == answers[1]


def test_transformers_says_what_lancet_says(reader):
    (reader.folder / "ask.py").write_text(*blocks("python"))
    ask = [sys.executable, "ask.py"]
    result = subprocess.run(ask, capture_output=True, text=True, cwd=reader.folder, env=reader.environment, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == reader.answer("--model edited") == "Francis Hagerup was employed in Berlin.\n"


def test_the_base_model_is_untouched_and_the_output_not_replaced(reader):
    assert content(reader.model) == reader.model_before
    edited = edit_files(reader.folder / "edited")
    code, _, errors = reader.run("edit", "job.yaml")
    assert code == 2 and "output.replace: true" in errors
    assert edit_files(reader.folder / "edited") == edited
