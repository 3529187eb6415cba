"""Decides what lancet's methods must compute: each published algorithm, plain, slow and independent, in float64.

    make.py --model DIR --requests demo.json --corpus corpus.txt --out FOLDER [--only NAME]

Writes FOLDER/NAME.safetensors for each golden: `delta.<batch>.<weight>` [d_out, d_in], the change of a weight by a batch of
requests; `tokens` [1], of the statistics. The metadata entry "job" is JSON: the `editor` section, the batches' requests, and
the contexts. A golden's first batch alone may be there.
"""
import argparse
import json
import pathlib
import time

import memit_family
import rome
import torch
import training
from bench import CONTEXTS, Bench
from safetensors.torch import save_file

GOLDENS = memit_family.GOLDENS | rome.GOLDENS | training.GOLDENS


def requests_of(bench, section, deltas):
    if section["method"].startswith("ft"):
        return [bench.batches[0] + bench.batches[1][:1]]
    return bench.batches[: 1 + max(int(name.split(".")[1]) for name in deltas)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("model", "requests", "corpus", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--lines", type=int, default=500, help="lines of the corpus (default: %(default)s)")
    parser.add_argument("--only", choices=GOLDENS, help="make this one alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.model, options.requests, options.corpus, options.lines)
    for name in [options.only] if options.only else GOLDENS:
        start = time.time()
        section, deltas = GOLDENS[name](bench)
        job = dict(editor=section, batches=requests_of(bench, section, deltas), contexts=CONTEXTS)
        tensors = {key: delta.contiguous() for key, delta in deltas.items()} | {"tokens": torch.tensor([bench.tokens])}
        save_file(tensors, folder / f"{name}.safetensors", metadata={"format": "pt", "job": json.dumps(job)})
        print(f"{name}: {len(deltas)} deltas, {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
