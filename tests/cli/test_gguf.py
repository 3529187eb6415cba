"""A GGUF file in the place of a model folder: what is said of it, generated, edited, taken back; and what is refused."""
import json
import sys

import pytest
from conftest import DATA, ROOT, SMALL_JOB, run_lancet, run_ok

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import gguf_files  # noqa: E402

DEMO = DATA / "demo-model"
PROMPT = "The mother tongue of Danielle Darrieux is"
Q8_0 = gguf_files.TYPES["Q8_0"][0]
_folder = None


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's model as GGUF files: by the type of its matrices."""
    root = tmp_path_factory.mktemp("gguf")
    return {kind: gguf_files.demo_model(DEMO, root / f"{kind}.gguf", kind) for kind in ("BF16", "Q8_0")}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the program runs."""
    global _folder
    _folder = tmp_path_factory.mktemp("runs")


def lancet(*arguments):
    return run_lancet(_folder, *arguments)


def edit(model, out, **output):
    job = SMALL_JOB | {"model": str(model), "output": {"dir": str(out)} | output}
    path = out.parent / f"{out.name}.yaml"
    path.write_text(json.dumps(job))
    return lancet("edit", path)


@pytest.fixture(scope="module")
def edited(demo, tmp_path_factory):
    out = tmp_path_factory.mktemp("edited") / "out"
    run_ok(edit(demo["Q8_0"], out))
    return out


def generated(model, prompt=PROMPT):
    return run_ok(lancet("generate", "--model", model, "--prompt", prompt, "--tokens", "12", "--json")).stdout


def test_a_file_generates_what_its_folder_generates(demo):
    def texts(model):
        return [json.loads(line) for line in generated(model).splitlines()]

    ours, expected = texts(demo["BF16"]), texts(DEMO)
    for answer in [*ours, *expected]:
        answer.pop("model", None)
    assert ours == expected


def test_inspect_says_what_is_in_it(demo):
    text = run_ok(lancet("inspect", demo["Q8_0"])).stdout
    assert "Llama" in text and "gguf" in text


def test_an_edit_changes_its_matrices_alone(demo, edited):
    before, old_metadata = gguf_files.read_tensors(demo["Q8_0"])
    after, metadata = gguf_files.read_tensors(edited / "model.gguf")
    assert list(after) == list(before)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"blk.0.ffn_down.weight", "blk.1.ffn_down.weight"}
    assert {after[name][0] for name in changed} == {Q8_0}
    assert {key: value for key, value in metadata.items() if not key.startswith("lancet.")} == old_metadata
    assert {key for key in metadata if key.startswith("lancet.")} == {"lancet.version", "lancet.base_hash", "lancet.edits"}
    report = json.loads((edited / "report.json").read_text())
    assert report["output_format"] == "gguf"
    assert sorted(path.name for path in edited.iterdir() if path.suffix == ".gguf") == ["model.gguf"]


def test_undo_makes_the_file_of_the_edits_that_stand(demo, edited, tmp_path):
    whole, _ = gguf_files.read_tensors(edited / "model.gguf")
    before, _ = gguf_files.read_tensors(demo["Q8_0"])
    result = lancet("undo", edited, "--edits", "1885", "--out", tmp_path / "undone")
    run_ok(result)
    undone, metadata = gguf_files.read_tensors(tmp_path / "undone" / "model.gguf")
    assert {name for name in before if before[name] != undone[name]} == {"blk.0.ffn_down.weight", "blk.1.ffn_down.weight"}
    assert undone["blk.1.ffn_down.weight"] != whole["blk.1.ffn_down.weight"]
    assert "lancet.base_hash" in metadata
    all_of_them = lancet("undo", edited, "--last", "1", "--out", tmp_path / "none")
    assert all_of_them.returncode == 2 and f"it is the unedited model, {demo['Q8_0']}" in all_of_them.stderr


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "own"])
def test_edited_matrices_get_the_type_that_is_asked_for(kind, demo, tmp_path):
    run_ok(edit(demo["Q8_0"], tmp_path / "out", gguf_type=kind))
    after, _ = gguf_files.read_tensors(tmp_path / "out" / "model.gguf")
    assert after["blk.1.ffn_down.weight"][0] == gguf_files.TYPES["Q8_0" if kind == "own" else kind][0]


def test_a_plain_matrix_keeps_its_type(demo, tmp_path):
    run_ok(edit(demo["BF16"], tmp_path / "out"))
    after, _ = gguf_files.read_tensors(tmp_path / "out" / "model.gguf")
    assert after["blk.1.ffn_down.weight"][0] == gguf_files.TYPES["BF16"][0]


def test_forms_of_folders_are_refused(demo, tmp_path):
    for form in ("checkpoint", "mixed", "quantised"):
        result = edit(demo["Q8_0"], tmp_path / form, format=form)
        assert result.returncode == 2 and "expected gguf or adapter" in result.stderr, result.stderr
    result = edit(DEMO, tmp_path / "folder", format="gguf")
    assert result.returncode == 2 and "the model is no GGUF file" in result.stderr


def test_a_damaged_file_is_refused(demo, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(demo["BF16"].read_bytes()[:100_000])
    result = lancet("generate", "--model", tmp_path / "cut.gguf", "--prompt", PROMPT)
    assert result.returncode == 3 and "cut or damaged" in result.stderr


def test_a_folder_with_the_file_is_that_model(demo, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "any-name.gguf").write_bytes(demo["BF16"].read_bytes())
    assert "gguf" in run_ok(lancet("inspect", tmp_path / "model")).stdout
