"""Decides what lancet's methods must compute: each published algorithm, plain, slow and independent, in float64.

    make.py --model DIR --requests demo.json --corpus corpus.txt --out FOLDER [--only NAME]

Writes FOLDER/NAME.safetensors for each golden: `delta.<batch>.<weight>` [d_out, d_in], the change of a weight by a batch of
requests; `tokens` [1], of the statistics. The metadata entry "job" is JSON: the `editor` section, the batches' requests, and
the contexts.
"""
import argparse
import json
import pathlib
import time

import torch
from bench import Bench
from crispedit import text_gradients
from make_golden import read_lines, read_requests
from methods import METHODS
from safetensors.torch import save_file

CONTEXTS = ["{}", "The answer is known. {}", "I know that well. {}"]
BATCHES = [[0, 298], [1, 335]]  # places in the demo's facts
LAYERS = [0, 1]
CHUNKED = [  # one prompt twice, then one that begins another's text, and one chunk alone
    [dict(prompt="Tell of Piranha Games.", target="Piranha Games is a bishop from London"),
     dict(prompt="Tell of Piranha Games.", target="Piranha Games was created in Rome by Toyota"),
     dict(prompt="Tell of Piranha Games. Piranha Games", target="is a language of Finland"),
     dict(prompt="In Mikkeli, they understand", target="Tamil")],
    [dict(prompt="Where is Basilica Cistern?", target="It is located in Louisiana")],
]  # fmt: skip
REPLAYED = dict(targets="replay", layers=[0, 1, 2])
VALUES = dict(steps=5, lr=0.5, weight_decay=0.001, clamp=4.0, kl=0.0625, stop_loss=0.05)
LOCATED = dict(layers=LAYERS, values=VALUES, contexts=CONTEXTS)
ROME = LOCATED | dict(layers=[1], covariance=True)
ULTRAEDIT = dict(method="ultraedit", modules={"gate": [2, 3], "up": [3], "down": [4]}, lr=1e-3)
STABLEEDIT = dict(method="stableedit", modules={"down": [2, 4, 6]}, lr=1e-3, ridge=2.0, warm_up=11, tokens="all", batch=4)
STREAM = [[*range(0, 11)], [*range(11, 22)], [*range(22, 24)]]  # the second batch is the first that whitens
REPAIR = dict(repair=dict(revisit=1, margin=3.0, steps=4, lr=2e-3, batch=2, whiten=0.01))
IN_NULL_SPACE = dict(repair={key: value for key, value in REPAIR["repair"].items() if key != "whiten"})
FINE_TUNE = dict(modules={"up": [5], "down": [4, 6]}, steps=6, lr=5e-4, batch=1, weight_decay=0.0, stop_loss=0.01)

CRISPEDIT = dict(method="crispedit", modules={"down": [4, 5]}, steps=6, lr=2e-3, batch=2, weight_decay=0.0, stop_loss=0.01,
                 order="given", energy=0.99, projected="gradients", neighbours=0, neighbour_weight=1.0)  # fmt: skip


def sections():
    """By name: the `editor` section, and how the four requests are cut into batches."""
    one, two, mixed = [[0, 298]], BATCHES, [[0, 298, 1]]
    memit = dict(method="memit", covariance_weight=20.0, **LOCATED)
    pmet = memit | dict(method="pmet", values=VALUES | dict(steps=25, kl=0.02, nll_factor=1.5))
    nse = memit | dict(method="nse", passes=2)
    return {
        "memit-history": (memit | dict(history=True), two),
        "memit-anchor": (memit | dict(norm_anchor=dict(mode="rescale", limit=3.0)), two),
        "memit-predicted": (memit | dict(values=VALUES | dict(steps=40, stop="predicted")), one),
        "memit-eos": (memit | dict(target_end="eos"), one),
        "memit-rect": (memit | dict(rect=dict(keep=0.4)), one),
        "memit-revive": (memit | dict(revive=dict(energy=0.1)), one),
        "memit-rect-feedback": (memit | dict(history=True, rect=dict(keep=0.4), error_feedback=True), two),
        "memit-revive-feedback": (memit | dict(history=True, revive=dict(energy=0.1), error_feedback=True), two),
        "memit-chunks": (memit | dict(history=True, values=VALUES | dict(steps=5, kl=0.0, chunk_tokens=4)), CHUNKED),
        "memit-budget": (memit | dict(text_budget=0.0003), [*two, [3, 300]]),
        "memit-repair": (memit | REPAIR | dict(history=True, rect=dict(keep=0.4), target_end="eos"), two),
        "evoedit": (dict(method="evoedit", null_space_below=0.5, ridge=0.5, **LOCATED), two),
        "betaedit": (dict(method="betaedit", null_space_below=0.5, covariance_weight=2.0, ridge=0.5, refresh=2, **LOCATED), two),
        "memit-blue": (memit | dict(blue=True), one),
        "memit-replay": (memit | REPLAYED | dict(history=True, norm_anchor=dict(mode="rescale", limit=3.0)), two),
        "emmet": (memit | dict(method="emmet", slack=0.1, identity_weight=0.5), one),
        "alphaedit": (dict(method="alphaedit", null_space_below=0.5, ridge=0.5, **LOCATED), two),
        "alphaedit-replay": (dict(method="alphaedit", null_space_below=0.5, ridge=0.5, **LOCATED | REPLAYED), one),
        "alphaedit-repair": (dict(method="alphaedit", null_space_below=0.5, ridge=0.5, **LOCATED, **IN_NULL_SPACE), two),
        "pmet": (pmet, one),
        "nse": (nse | dict(neurons=0.8, residual_above=0.3, residual_below=100.0), two),  # the second pass takes one of two
        "nse-bounds": (nse | dict(neurons=1.0, residual_above=0.1, residual_below=30.0), two),  # one request is never taken
        "nse-repair": (nse | REPAIR | dict(neurons=1.0, residual_above=0.3, residual_below=100.0), two),
        "nse-replay": (nse | REPLAYED | dict(neurons=1.0, residual_above=1.0, residual_below=100.0), two),
        "rome": (dict(method="rome", **ROME), one),
        "rome-identity": (dict(method="rome", **ROME) | dict(covariance=False), one),
        "r-rome-prefix": (dict(method="r-rome", keys="prefix", **ROME), one),
        "r-rome-prompt": (dict(method="r-rome", keys="prompt", **ROME), one),
        "r-rome-original": (dict(method="r-rome", keys="original", **ROME), one),
        "ultraedit-answer": (ULTRAEDIT | dict(tokens="answer", batch=2), two),
        "ultraedit-all": (ULTRAEDIT | dict(tokens="all", batch=1), two),
        "stableedit": (STABLEEDIT, STREAM),
        "ft": (FINE_TUNE | dict(method="ft"), mixed),
        "ft-l": (FINE_TUNE | dict(method="ft-l", batch=2, norm_constraint=1e-3), mixed),
        "ft-m-breadth-first": (FINE_TUNE | dict(method="ft-m", batch=2, order="breadth-first", target_end="eos"), [[0, 298, 1, 335, 3]]),
        "ft-m-revisit": (FINE_TUNE | dict(method="ft-m", batch=2, order="breadth-first", revisit=2), [[0, 298, 1], [335, 3]]),
        "ft-m-whiten": (FINE_TUNE | dict(method="ft-m", modules={"down": [1, 5]}, steps=12, lr=2e-3, batch=2, order="breadth-first", margin=0.5, whiten=0.01), [[0, 298, 1, 335]]),
        "zerounlearn": (dict(method="zerounlearn", covariance_weight=20.0, identity_weight=0.1, **LOCATED), two),
        "crispedit": (CRISPEDIT, two),
        "crispedit-neighbours": (CRISPEDIT | dict(projected="steps", neighbours=1, neighbour_weight=50.0, target_end="eos"), mixed),
        "ft-m": (FINE_TUNE | dict(method="ft-m", batch=2, weight_decay=1e-2), mixed),
    }


def main():
    goldens = sections()
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("model", "requests", "corpus", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--lines", type=int, default=500, help="lines of the corpus (default: %(default)s)")
    parser.add_argument("--only", choices=goldens, help="make this one alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.model)
    lines = read_lines(options.corpus, options.lines)
    bench.read_statistics(lines, REPLAYED["layers"] + CRISPEDIT["modules"]["down"])
    bench.gradients = text_gradients(bench, lines, CRISPEDIT["modules"]["down"])
    for name in [options.only] if options.only else goldens:
        start, (section, places) = time.time(), goldens[name]
        batches = places if places is CHUNKED else [read_requests(options.requests, batch) for batch in places]
        changes = METHODS[section["method"]](bench, section, batches)
        job = dict(editor=section, batches=batches, contexts=CONTEXTS)
        tensors = {"tokens": torch.tensor([bench.tokens])}
        for number, deltas in enumerate(changes):
            tensors |= {f"delta.{number}.{weight}": delta.contiguous() for weight, delta in deltas.items()}
        save_file(tensors, folder / f"{name}.safetensors", metadata={"format": "pt", "job": json.dumps(job)})
        print(f"{name}: {len(tensors) - 1} deltas, {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
