"""The Python code that README.md, docs/python.md and docs/getting-started.md show, run in their order."""
import re
import shutil

import pytest
from conftest import DATA, ROOT, run_python

PAGES = ["README.md", "docs/python.md"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)


def test_blocks_are_found():
    assert [len(blocks(page)) for page in PAGES] == [1, 7]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the statistics' cache is."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize("page", PAGES)
def test_code_runs_in_a_folder_like_the_repositorys_root(page, tmp_path, home, data):
    (tmp_path / "data").symlink_to(data)
    environment = {"HOME": str(home), "PYTHONWARNINGS": "ignore"}
    cells = [block for block in blocks(page) for _ in range(2)]  # as in a notebook, each twice
    out = run_python("\n".join(["import lancet", *cells]), tmp_path, environment=environment)
    assert "London" in out and (tmp_path / "out" / "mine" / "model.safetensors").exists()


def test_the_first_steps_run_beside_a_model_and_the_facts_of_their_page(tmp_path, home):
    """docs/getting-started.md: those before its first numbered heading; tests/cli/test_getting_started.py follows the rest."""
    page = (ROOT / "docs/getting-started.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page[: page.index("## 1.")], re.S | re.M)
    shutil.copytree(DATA / "demo-model", tmp_path / "my-model", ignore=lambda *_: ["lancet.yaml"])
    (tmp_path / "facts.json").write_text(*re.findall(r"^```json\n(.*?)^```", page, re.S | re.M))
    out = run_python(code, tmp_path, environment={"HOME": str(home), "PYTHONWARNINGS": "ignore"})
    assert "1.0" in out and "Berlin" in out and (tmp_path / "edited-by-python" / "model.safetensors").exists()
