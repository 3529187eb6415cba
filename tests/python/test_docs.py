"""The Python code that README.md and docs/python.md show, run in their order, in a folder like the repository's root."""
import re

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
def test_code_runs(page, tmp_path, home):
    (tmp_path / "data").symlink_to(DATA)
    environment = {"HOME": str(home), "PYTHONWARNINGS": "ignore"}
    out = run_python("\n".join(["import lancet", *blocks(page)]), tmp_path, environment=environment)
    assert "London" in out and (tmp_path / "out" / "mine" / "model.safetensors").exists()
