"""What `lancet edit` writes is a Hugging Face folder like its base: bytes, files, logits and the delta agree."""
import json
import struct

import pytest
import torch
from safetensors.torch import load_file

from edits import edits_of, standing
from engine import ROOT, assert_rows_close, lancet_logits, load_transformers, nmse, run_binary, transformers_logits
from test_logits import rows_for

NMSE_RELOADED = 1e-9
NMSE_DELTA_F32 = 1e-12
SAME_BF16 = 0.999  # share of entries; the others lie on a rounding boundary
LAYERS = [0, 1]
RECORDS = {"lancet-manifest.json", "report.json", "report.html", "metrics.csv", "requests.csv", "requests.jsonl", "job.yaml",
           "edits/journal.jsonl"}  # lancet's own
EDITED = {f"model.layers.{layer}.mlp.down_proj.weight" for layer in LAYERS}
CONTEXTS = ["{}", "The answer is known. {}", "I know that well. {}"]


def write_job(folder, scratch):
    """Ten facts, few steps: what is written matters here, not how well it takes."""
    values = dict(steps=12, lr=0.5, weight_decay=0.001, clamp=4.0, kl=0.0625, stop_loss=0.05)
    editor = dict(method="memit", layers=LAYERS, covariance_weight=300, values=values, contexts=CONTEXTS)
    corpus = str(ROOT / "data/requests/demo-corpus.txt")
    job = dict(model=str(folder), requests=dict(path=str(ROOT / "data/requests/demo.json"), limit=10), editor=editor)
    job |= dict(statistics=dict(corpus=corpus, tokens=20000, cache=str(scratch / "cache")), evaluate=[])
    job |= dict(output=dict(dir=str(scratch / "edited")), run=dict(dtype="f32", seed=0))
    (scratch / "job.json").write_text(json.dumps(job))
    return scratch / "job.json"


@pytest.fixture(scope="module", params=["demo", "three_shards"])
def folders(request, model_folder, tmp_path_factory):
    """(base, edited)"""
    base, scratch = model_folder(request.param), tmp_path_factory.mktemp("export")
    run_binary("lancet", "edit", write_job(base, scratch))
    return base, scratch / "edited"


def read_raw(path):
    """(metadata, {name: (dtype, shape, bytes)}) straight from the file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    metadata = header.pop("__metadata__", {})
    return metadata, {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}


def file_names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def load_all(folder):
    return {name: tensor for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}


def test_files_are_those_of_the_base_and_the_records(folders):
    base, edited = folders
    (batch,), finish = standing(edited)
    files = {f"edits/changes/{batch['changes']}.safetensors", f"edits/solved/{batch['solved']}.safetensors"}
    assert finish is None and file_names(edited) == file_names(base) - {"lancet.yaml"} | RECORDS | files
    for name in file_names(base) - {"lancet.yaml"}:
        if not name.endswith(".safetensors"):
            assert (edited / name).read_bytes() == (base / name).read_bytes(), name


def test_untouched_tensors_are_byte_identical(folders):
    base, edited = folders
    changed = set()
    for path in base.glob("*.safetensors"):
        base_metadata, before = read_raw(path)
        metadata, after = read_raw(edited / path.name)
        assert metadata == base_metadata | {"format": "pt"}
        assert {name: t[:2] for name, t in after.items()} == {name: t[:2] for name, t in before.items()}
        changed |= {name for name in before if before[name] != after[name]}
    assert changed == EDITED


def test_reload_equals_base_plus_delta(folders):
    base, edited = folders
    before, after, changes = load_all(base), load_all(edited), edits_of(edited)
    assert set(changes) == EDITED
    for name in EDITED:
        ((left, right),) = changes[name]
        expected = (before[name].double() + torch.tensor(left @ right)).to(after[name].dtype)
        if expected.dtype == torch.bfloat16:
            assert (expected == after[name]).double().mean().item() >= SAME_BF16, name
        else:
            change = (after[name] - before[name]).double()
            assert nmse(after[name], expected) <= NMSE_DELTA_F32, name
            assert change.norm() > 0


def test_transformers_loads_the_output_with_the_same_logits(folders, tmp_path):
    base, edited = folders
    rows = rows_for(edited)
    theirs = transformers_logits(load_transformers(edited, "f32"), rows)
    assert_rows_close(lancet_logits(edited, rows, "f32", tmp_path), theirs, NMSE_RELOADED)
    assert nmse(theirs[0], transformers_logits(load_transformers(base, "f32"), rows)[0]) > 1e-6
