"""Decides what methods must compute on models that are not Llamas: the plain versions of `methods.py`, on small random checkpoints.

    make_families.py --requests demo.json --corpus corpus.txt --tokenizer DIR --out FOLDER [--only NAME]

Writes FOLDER/<model>/, a checkpoint, and FOLDER/<model>.<golden>.safetensors in the format of make.py; the metadata entry "model"
names the checkpoint's folder. A change is in the orientation of its weight's file, and an expert that no request reaches has none,
nor has one whose null space is empty, where rounding alone is left.
Of experts in one tensor each has the name that it would have alone, and is [d_out, d_in].
Experts: MEMIT and AlphaEdit alone. ROME, PMET, UltraEdit and FT name one down projection a layer, and which of a token's
experts would take their change is not defined.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import torch
from families import FamilyBench
from make import CHUNKED, CONTEXTS
from make_golden import read_lines, read_requests
from methods import METHODS
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[2] / "parity"))
from family_checkpoints import make_checkpoint  # noqa: E402
from quantised_twins import mxfp4_twins  # noqa: E402

MODELS = {  # by name here: the variant of family_checkpoints.py
    "mistral": "mistral_window",
    "qwen2": "qwen2_window",
    "qwen3": "qwen3_yarn",
    "phi3": "phi3_window",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_linear",
    "olmo2": "olmo2",
    "granite": "granite",  # a residual multiplier
    "cohere": "cohere",  # LayerNorm before a parallel block
    "gpt2": "gpt2_inner",
    "gptj": "gptj_inner",
    "bloom": "bloom",  # ALiBi
    "neox": "neox",
    "neox-sequential": "neox_sequential",
    "qwen3-moe": "qwen3_moe",
    "qwen2-moe": "qwen2_moe",  # an MLP beside the experts
    "gpt-oss": "gpt_oss",  # sinks, biases of experts, all of a layer in one tensor
    "deepseek-v3": "deepseek_v3",  # latent attention
    "qwen3-5": "qwen3_5",  # recurrent mixers between layers with attention
    "bamba": "bamba",  # state spaces between layers with attention
    "jamba": "jamba_dense",  # selective state spaces
    "falcon-h1": "falcon_h1",  # beside attention, and a multiplier of the MLP's output
    "nemotron-h": "nemotron_h",  # layers of one part: an MLP, and experts without gates beside an MLP
    "gpt-oss-mxfp4": "gpt_oss",  # packed; the plain version is of the same numbers unpacked
    "qwen3-moe-mixed": "qwen3_moe_some_dense",  # one of the edited layers has no experts
}
REPLAYED = ["qwen3", "olmo2", "gptj", "granite", "qwen3-moe"]  # with forward replay and chunks too: plain, norm behind the projection, parallel, scaled, experts
LINES = 180
LAYERS = [1, 2]
OWN_LAYERS = {"nemotron-h": [1, 3]}  # the first with an MLP
FEW_METHODS = {"nemotron-h", "gpt-oss-mxfp4"}  # what differs is the model: four methods show it, in a batch
ONE, TWO, MIXED = [[0, 298]], [[0, 298], [1]], [[0, 298, 1]]  # places in the demo's facts
VALUES = dict(steps=5, lr=0.5, weight_decay=0.001, clamp=4.0, kl=0.0625, stop_loss=0.05)
LOCATED = dict(values=VALUES, contexts=CONTEXTS)
FINE_TUNE = dict(modules={"up": [3], "down": [1, 2]}, steps=3, lr=5e-4, batch=2, weight_decay=0.0, stop_loss=0.01)


def covariance_weight(bench):
    """A quarter of the mean over tokens of k^T C^-1 k, which is the size of C: a lone request keeps 0.8 of its residual."""
    return round(0.25 * len(bench.covariances[bench.layers[-1]]), 1)


def null_space_threshold(bench):
    """In the widest gap of what the layers' spectra have in common, so that rounding moves no direction across it; or None."""
    spectra = [torch.linalg.eigvalsh(bench.covariances[layer]).log() for layer in bench.layers]
    low, high = (torch.stack([spectrum.quantile(q) for spectrum in spectra]) for q in (0.1, 0.9))
    together = torch.cat(spectra).sort().values
    middle = together[(together > low.max()) & (together < high.min())]
    if len(middle) < 2:
        return None
    at = int(middle.diff().argmax())
    return float(f"{middle[at : at + 2].mean().exp().item():.6g}")


def sections(bench):
    """By name: the `editor` section, and how the requests are cut into batches."""
    gate, located = {"gate": [2]} if "gate" in bench.net.paths else {}, LOCATED | dict(layers=bench.layers)
    weight = dict(covariance_weight=covariance_weight(bench))
    goldens = {"memit": (dict(method="memit", history=True, **weight, **located), TWO)}
    if bench.name in REPLAYED:
        goldens["memit-replay"] = (dict(method="memit", targets="replay", **weight, **located), ONE)
        chunked = dict(values=VALUES | dict(steps=3, kl=0.0, chunk_tokens=4))
        goldens["memit-chunks"] = (dict(method="memit", history=True, **weight, **located) | chunked, CHUNKED)
    if below := null_space_threshold(bench):
        goldens["alphaedit"] = (dict(method="alphaedit", null_space_below=below, ridge=0.5, **located), TWO)
    pmet = dict(method="pmet", **weight, **located) | dict(values=VALUES | dict(kl=0.02, nll_factor=1.5))
    up = {"up": [2, 3]} if "up" in bench.net.paths else {}
    modules = gate | up | {"down": [1]}
    trained = {kind: FINE_TUNE["modules"][kind] for kind in FINE_TUNE["modules"] if kind in bench.net.paths}
    if "experts" in bench.net.paths:  # of which the down projections alone are edited
        modules = trained = {"down": bench.layers}
    if "attn" in bench.net.paths:  # else what attention adds is the sum of several modules' outputs
        goldens["pmet"] = (pmet, ONE)
    goldens |= {
        "rome": (dict(method="rome", covariance=True, **located) | dict(layers=bench.layers[-1:]), ONE),
        "ultraedit": (dict(method="ultraedit", modules=modules, lr=1e-3, tokens="answer", batch=2), TWO),
        "ft": (dict(method="ft", **FINE_TUNE) | dict(modules=trained), MIXED),
    }
    if bench.name == "qwen2-moe":
        whitened = FINE_TUNE | dict(method="ft-m", modules=trained, steps=6, lr=2e-3, order="breadth-first", margin=0.5, whiten=0.01)
        goldens["ft-m-whiten"] = (whitened, MIXED)
        repair = dict(revisit=1, margin=3.0, steps=3, lr=2e-3, batch=2)
        goldens["memit-repair"] = (goldens["memit"][0] | dict(repair=repair | dict(whiten=0.01)), TWO)
        goldens["alphaedit-repair"] = (goldens["alphaedit"][0] | dict(repair=repair), TWO)
    if bench.name not in FEW_METHODS:
        return goldens
    return {name: (goldens[name][0], goldens[name][1][:1]) for name in ("memit", "alphaedit", "rome", "ft")}


def write(path, model, bench, section, batches):
    """Runs a method; returns the number of changes."""
    changes, fresh = METHODS[section["method"]](bench, section, batches), bench.fresh(section)
    tensors = {"tokens": torch.tensor([bench.tokens])}
    for number, deltas in enumerate(changes):
        largest = max(float(delta.norm()) for delta in deltas.values())
        deltas = {weight: delta for weight, delta in deltas.items() if ".experts." not in weight or delta.norm() > 1e-12 * largest}
        for weight, delta in deltas.items():
            assert delta.isfinite().all() and delta.any(), weight
            tensors[f"delta.{number}.{weight}"] = fresh.stored(weight, delta).contiguous()
    job = json.dumps(dict(editor=section, batches=batches, contexts=CONTEXTS))
    save_file(tensors, path, metadata={"format": "pt", "model": model, "job": job})
    return len(tensors) - 1


def make_model(name, options):
    start, folder = time.time(), options.out / name
    if name.endswith("-mxfp4"):
        base = make_checkpoint(MODELS[name], options.out / f"{name}-base", options.tokenizer)
        _, folder = mxfp4_twins(base, folder, options.out / f"{name}-plain")
    else:
        make_checkpoint(MODELS[name], folder, options.tokenizer)
    bench = FamilyBench(folder)
    bench.name = name  # the folder's may be a twin's
    bench.read_statistics(read_lines(options.corpus, LINES), OWN_LAYERS.get(name, LAYERS))
    print(f"{name}: {bench.tokens} tokens, {time.time() - start:.1f} s", flush=True)
    for golden, (section, places) in sections(bench).items():
        start = time.time()
        batches = places if places is CHUNKED else [read_requests(options.requests, batch) for batch in places]
        count = write(options.out / f"{name}.{golden}.safetensors", name, bench, section, batches)
        print(f"{name}.{golden}: {count} deltas, {time.time() - start:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("requests", "corpus", "tokenizer", "out"):
        parser.add_argument("--" + name, required=True, type=Path)
    parser.add_argument("--only", choices=MODELS, help="make this model's alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in [options.only] if options.only else MODELS:
        make_model(name, options)


if __name__ == "__main__":
    main()
