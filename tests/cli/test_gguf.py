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
    assert "Llama" in text and "gguf" in text and "Q8_0 (" in text and "F32 (" in text
    described = json.loads(run_ok(lancet("inspect", demo["Q8_0"], "--json")).stdout)
    assert described["shards"] == 1 and set(described["gguf_types"]) == {"BF16", "F32", "Q8_0"}


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


@pytest.fixture(scope="module")
def edited_file(demo, tmp_path_factory):
    out = tmp_path_factory.mktemp("edited-file") / "edited.gguf"
    text = run_ok(edit(demo["Q8_0"], out)).stdout
    assert f"written: {out}; its edits, report and job: {out}.edits" in text
    return out


def logged_ids(output):
    log = json.loads(run_ok(lancet("log", output, "--json")).stdout)
    return [edit["id"] for batch in log["batches"] for edit in batch["edits"]]


def test_a_file_is_written_with_its_edits_beside(edited_file, edited):
    assert edited_file.read_bytes() == (edited / "model.gguf").read_bytes()
    beside = edited_file.parent / "edited.gguf.edits"
    assert sorted(path.name for path in edited_file.parent.iterdir() if path.suffix != ".yaml") == ["edited.gguf", "edited.gguf.edits"]
    assert {"report.json", "job.yaml", "edits"} <= {path.name for path in beside.iterdir()} and not (beside / "model.gguf").exists()


def test_the_file_stands_for_its_output(edited_file, edited):
    assert logged_ids(edited_file) == logged_ids(edited) and len(logged_ids(edited)) == 3
    assert "efficacy" in run_ok(lancet("report", edited_file, "--latex")).stdout.lower()


@pytest.mark.parametrize("named", ["edited.gguf", "edited.gguf.edits"])
def test_undo_in_place_changes_the_file(named, demo, tmp_path):
    run_ok(edit(demo["Q8_0"], tmp_path / "edited.gguf"))
    before = (tmp_path / "edited.gguf").read_bytes()
    run_ok(lancet("undo", tmp_path / named, "--edits", "1885"))
    assert (tmp_path / "edited.gguf").read_bytes() != before
    assert not (tmp_path / "edited.gguf.edits" / "model.gguf").exists()
    assert len(logged_ids(tmp_path / "edited.gguf")) == 2 and "1885" not in logged_ids(tmp_path / "edited.gguf")


def test_apply_writes_the_same_file(edited_file, demo, tmp_path):
    run_ok(lancet("apply", f"{edited_file}.edits", "--to", demo["Q8_0"], "--out", tmp_path / "again.gguf"))
    assert gguf_files.read_tensors(tmp_path / "again.gguf") == gguf_files.read_tensors(edited_file)


def test_a_file_is_replaced_only_if_lancet_wrote_it(demo, tmp_path):
    foreign = tmp_path / "edited.gguf"
    foreign.write_bytes(demo["BF16"].read_bytes())
    refused = edit(demo["Q8_0"], foreign)
    assert refused.returncode == 2 and "exists already" in refused.stderr
    refused = edit(demo["Q8_0"], foreign, replace=True)
    assert refused.returncode == 2 and "is not the file that" in refused.stderr
    assert foreign.read_bytes() == demo["BF16"].read_bytes()
    foreign.unlink()
    run_ok(edit(demo["Q8_0"], foreign))
    run_ok(edit(demo["Q8_0"], foreign, replace=True, gguf_type="F16"))
    assert gguf_files.read_tensors(foreign)[0]["blk.1.ffn_down.weight"][0] == gguf_files.TYPES["F16"][0]
    refused = edit(foreign, foreign, replace=True)
    assert refused.returncode == 2 and "overlaps the model" in refused.stderr


def test_a_file_name_needs_a_model_that_is_a_file(demo, tmp_path):
    result = edit(DEMO, tmp_path / "edited.gguf")
    assert result.returncode == 2 and "names a GGUF file" in result.stderr
    result = edit(demo["Q8_0"], tmp_path / "edited.gguf", format="adapter")
    assert result.returncode == 2 and "name a folder" in result.stderr
    assert [path for path in tmp_path.iterdir() if path.suffix != ".yaml"] == []


def test_the_folder_beside_a_file_is_no_model(edited_file):
    result = lancet("generate", "--model", f"{edited_file}.edits", "--prompt", PROMPT)
    assert result.returncode == 3 and f"the edits of {edited_file}: name that file" in result.stderr


def test_an_edited_file_is_compared_with_its_base(edited_file, demo, tmp_path):
    facts = json.loads((DATA / "requests" / "demo.json").read_text())[:3]
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    result = run_ok(lancet("eval", "--model", edited_file, "--requests", tmp_path / "facts.json", "--baseline", demo["Q8_0"], "--json"))
    assert '"baseline"' in result.stdout


def test_undo_of_everything_says_what_to_take(edited_file, demo):
    result = lancet("undo", edited_file, "--last", "1")
    assert result.returncode == 2 and f"{demo['Q8_0']}: take that model, or choose some of the edits" in result.stderr


def test_undo_leaves_a_file_alone_that_is_not_the_outputs(demo, tmp_path):
    run_ok(edit(demo["Q8_0"], tmp_path / "edited.gguf"))
    other = bytearray((tmp_path / "edited.gguf").read_bytes())
    other[-300:-250] = bytes(50)
    (tmp_path / "edited.gguf").write_bytes(other)
    result = lancet("undo", tmp_path / "edited.gguf", "--edits", "1885")
    assert result.returncode == 2 and "is not the file that" in result.stderr
    assert (tmp_path / "edited.gguf").read_bytes() == other
