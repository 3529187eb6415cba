"""examples/*.ipynb run on the demo model, as a reader runs them."""
import os
import pathlib
import shutil

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
pytest.importorskip("ipykernel")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def texts(outputs):
    return " ".join(str(part) for output in outputs for part in (output.get("text", ""), *output.get("data", {}).values()))


@pytest.fixture(scope="module")
def place(tmp_path_factory, data):
    """A copy of what they read: they write beside it."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").mkdir()
    os.symlink(data, folder / "data")
    return folder


def test_there_are_four():
    assert [book.stem for book in BOOKS] == ["compare-methods", "first-edit", "model-in-memory", "stream-with-undo"]


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_runs(book, place, monkeypatch):
    shutil.copy(book, place / "examples")
    import lancet

    packages = str(pathlib.Path(lancet.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([packages, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
    monkeypatch.setenv("MPLCONFIGDIR", str(place / "matplotlib"))
    notebook = nbformat.read(place / "examples" / book.name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept: they would grow stale"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(place / "examples")}}).execute()
    shown = texts([output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs])
    if book.stem == "first-edit":
        assert "London" in shown and "before" in shown and (place / "examples" / "out" / "first-edit" / "model.safetensors").exists()
    if book.stem == "model-in-memory":
        assert "created in London" in shown and "logits as before, to the bit: True" in shown
    if book.stem == "compare-methods":
        assert shown.count("image/png") or "<Figure" in shown
        assert all(method in shown for method in ("memit", "alphaedit", "emmet", "ft"))
    if book.stem == "stream-with-undo":
        assert "29 edits stand" in shown and "the one that left holds: 0.0" in shown
