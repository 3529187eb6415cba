"""Second moments in files named as memit names them by GPT-J's and GPT-2's modules: the edit is that of collected ones."""
import json
import struct

import numpy
import pytest
import torch
from cached_statistics import read_moments
from edits import deltas_of
from engine import ROOT, nmse, run_binary
from family_checkpoints import make_checkpoint

TOKENIZER = ROOT / "data" / "demo-model"
MODULES = {"gptj": "transformer.h.{}.mlp.fc_out", "gpt2": "transformer.h.{}.mlp.c_proj", "neox": "gpt_neox.layers.{}.mlp.dense_4h_to_h"}
LAYERS = [1, 2]
TOKENS = 4000
NONE = numpy.array(struct.unpack(">d", struct.pack(">Q", 0xFFF8000000000002))[0], dtype=numpy.float64)  # as memit stores None


def make_job(folder, model, out, statistics):
    job = {
        "model": str(model), "requests": {"path": str(ROOT / "data" / "requests" / "demo.json"), "limit": 2},
        "editor": {"method": "memit", "layers": LAYERS, "covariance_weight": 20, "values": {"steps": 4, "lr": 0.5}, "contexts": ["{}"]},
        "statistics": statistics | {"cache": str(folder / "cache")}, "evaluate": [], "run": {"devices": "cpu", "dtype": "f32"},
        "output": {"dir": str(folder / out)},
    }  # fmt: skip
    path = folder / f"{out}.json"
    path.write_text(json.dumps(job))
    return path


def write_npz(path, factor_file):
    """The sum of k k^T as layer_stats saves it."""
    moment, count = read_moments(factor_file.split(".factor-")[0] + ".safetensors")
    arrays = {"constructor": "util.runningstats.CombinedStat()", "mom2.constructor": "util.runningstats.SecondMoment()",
              "mom2.count": count, "mom2.mom2": (moment * count).astype(numpy.float32), "sample_size": NONE}  # fmt: skip
    numpy.savez(path, **arrays)


@pytest.mark.parametrize("name", MODULES)
def test_moments_by_the_modules_name_give_the_deltas_of_collected_ones(name, tmp_path):
    model = make_checkpoint(name, tmp_path / "model", TOKENIZER)
    corpus = {"corpus": str(ROOT / "data" / "requests" / "demo-corpus.txt"), "tokens": TOKENS}
    job = make_job(tmp_path, model, "collected", corpus)
    run_binary("lancet", "edit", job)
    pattern = str(tmp_path / (MODULES[name] + "_float32_mom2_100000.npz"))
    for layer in json.loads(run_binary("lancet", "stats", job, "--json"))["layers"]:
        write_npz(pattern.replace("{}", str(layer["layer"])), layer["factor_file"])
    run_binary("lancet", "edit", make_job(tmp_path, model, "imported", {"import": pattern}))
    ours, theirs = deltas_of(tmp_path / "imported"), deltas_of(tmp_path / "collected")
    assert {key.removesuffix(".weight") for key in theirs} == {MODULES[name].replace("{}", str(layer)) for layer in LAYERS}
    assert ours.keys() == theirs.keys() and all((delta != 0).any() for delta in theirs.values())
    for key, delta in theirs.items():
        assert nmse(torch.tensor(ours[key]), torch.tensor(delta)) < 1e-8, key  # f32 rounding of the sums, through their condition
    entries = json.loads((tmp_path / "imported" / "report.json").read_text())["statistics"]["imported_from"]
    assert [entry["file"] for entry in entries] == [pattern.replace("{}", str(layer)) for layer in LAYERS]
