"""mypy --strict: the package (its settings stand in pyproject.toml), and the Python code that the documents show, as one who types it would."""
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import lancet

PACKAGES = os.path.dirname(os.path.dirname(lancet.__file__))
OLDEST = "3.10"
# What a page takes for granted where it shows a part of a program.
BEGIN = "from typing import Any\nimport lancet\nimport openai\nmodel: Any\ntokenizer: Any\ntoken: str\n"


def code_of(page):
    """Its Python, a file a page; of a page that shows parts of several programs a name may have another type in each."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return BEGIN + "\n".join(re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(), re.S | re.M))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A module of each document that shows Python."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "help.py").write_text(BEGIN + "facts: Any\n" + "\n".join(line[4:] for line in lancet.__doc__.splitlines() if line.startswith("    ")))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.ipynb"))]:
        if (code := code_of(page)) != BEGIN:
            (folder / f"{re.sub(r'[^a-z]', '_', page.stem.lower())}.py").write_text(code)
    return folder


def mypy(*arguments, cache):
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--python-version", OLDEST, "--cache-dir", cache, *arguments]
    done = subprocess.run([str(part) for part in command], cwd=PACKAGES, capture_output=True, text=True, env={**os.environ, "MYPYPATH": PACKAGES})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_the_package(cache):
    code, said = mypy("-p", "lancet", cache=cache)
    assert code == 0, said


def test_the_documents(pages, cache):
    assert {"readme", "python", "getting_started", "first_edit"} <= {page.stem for page in pages.iterdir()}
    code, said = mypy("--warn-return-any", *sorted(pages.iterdir()), cache=cache)
    assert code == 0, said


def test_a_wrong_call_is_found(tmp_path, cache):
    """Keywords have types: else the tests above would say nothing."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import lancet\nsession = lancet.open("m", devics="cpu")\nsession.edit([], layers="five")\nsession.generate(3)\nlancet.nothing\n')
    code, said = mypy(wrong, cache=cache)
    assert code == 1 and [int(line) for line in re.findall(r"wrong\.py:(\d+): error", said)] == [2, 3, 4, 5], said
