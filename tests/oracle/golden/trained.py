"""The yardstick of the small trained models of other families: plain MEMIT and AlphaEdit of their own facts.

    trained.py --model DIR --out oracle.json [--layers 0,1] [--steps 20] [--lr 0.5]

DIR is what tools/make_demo_model.py wrote: facts.json and corpus.txt lie beside the weights. The model runs in float32, the
algebra in float64. What the methods need of this model is chosen on other facts than those that are edited: MEMIT's weight of
the covariance is a quarter of the median of k^T C^-1 k (a lone request keeps 0.8 of its residual), AlphaEdit's threshold and
ridge are the best of those tried by the harmonic mean of efficacy, paraphrase and specificity. oracle.json has the `editor`
sections as a job takes them, and the metrics before and after, of weights rounded to the stored type.
"""
import argparse
import json
import statistics
import time
from pathlib import Path

import bench as plain
import torch
from compare import edited_model
from families import FamilyBench
from make_golden import read_lines
from methods import METHODS
from metrics import measure

EDITED, HELD_OUT = slice(0, 100), slice(100, 130)
CONTEXTS = ["{}", "The answer is known. {}", "I know that well. {}"]
SHARES, RIDGES = (0.35, 0.5, 0.75), (0.05, 0.25)  # tried: of the spectrum that counts as null; ridge in units of |P k|^2
TRADED = ("efficacy_prob", "paraphrase_prob", "specificity_prob")


def requests_of(records):
    rewrites = [record["requested_rewrite"] for record in records]
    return [dict(prompt=r["prompt"], subject=r["subject"], target=r["target_new"]["str"]) for r in rewrites]


def key_sizes(bench, records, section, layer):
    """k^T C^-1 k of each request."""
    keys = bench.keys(bench.fresh(section), requests_of(records), section["contexts"], layer)
    return ((keys @ torch.linalg.inv(bench.covariances[layer])) * keys).sum(1)


def run(bench, section, records):
    """The metrics after one batch."""
    changes = METHODS[section["method"]](bench, section, [requests_of(records)])
    return measure(edited_model(bench, dict(model=bench.folder), section, changes), bench.tokenizer, records)


def projected_size(bench, records, section, layer, below):
    """Median of |P k|^2 over requests, P onto the directions of the spectrum below a threshold."""
    keys = bench.keys(bench.fresh(section), requests_of(records), section["contexts"], layer)
    spectrum, vectors = torch.linalg.eigh(bench.covariances[layer])
    return (keys @ vectors[:, spectrum < below]).square().sum(1).median().item()


def choose_alphaedit(bench, located, records):
    """The best section, and what was tried. The ridge is measured by what it is added to."""
    layers, tried = located["layers"], []
    spectrum = torch.cat([torch.linalg.eigvalsh(bench.covariances[layer]) for layer in layers])
    for share in SHARES:
        below = float(f"{spectrum.quantile(share).item():.3g}")
        size = statistics.mean(projected_size(bench, records, located, layer, below) for layer in layers)
        for ridge in (float(f"{part * size:.3g}") for part in RIDGES):
            section = dict(method="alphaedit", null_space_below=below, ridge=ridge, **located)
            after = run(bench, section, records)
            score = statistics.harmonic_mean([after[metric] for metric in TRADED])
            tried.append(dict(null_space_below=below, ridge=ridge, score=score, after=after))
            print(f"alphaedit below {below} ridge {ridge}: {score:.4f}", flush=True)
    best = max(tried, key=lambda each: each["score"])
    return dict(method="alphaedit", null_space_below=best["null_space_below"], ridge=best["ridge"], **located), tried


def choose(bench, located, records):
    """The two `editor` sections, and how they were found."""
    sizes = {layer: key_sizes(bench, records, located, layer) for layer in located["layers"]}
    weight = float(f"{0.25 * torch.cat(list(sizes.values())).median().item():.3g}")
    memit = dict(method="memit", covariance_weight=weight, **located)
    alphaedit, tried = choose_alphaedit(bench, located, records)
    medians = {str(layer): size.median().item() for layer, size in sizes.items()}
    return [memit, alphaedit], dict(median_key_size=medians, alphaedit_tried=tried)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", type=lambda text: [int(word) for word in text.split(",")], default=[0, 1])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--clamp", type=float, default=4.0)
    parser.add_argument("--lines", type=int, default=2500, help="of corpus.txt, for the statistics")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    plain.TOGETHER = 25  # requests share passes; each is optimised for itself
    bench, records = FamilyBench(options.model, torch.float32), json.loads((options.model / "facts.json").read_text("utf-8"))
    bench.read_statistics(read_lines(options.model / "corpus.txt", options.lines), options.layers)
    values = dict(steps=options.steps, lr=options.lr, weight_decay=0.001, clamp=options.clamp, kl=0.0625, stop_loss=0.05)
    located = dict(layers=options.layers, values=values, contexts=CONTEXTS)
    sections, found = choose(bench, located, records[HELD_OUT])
    edited, result = records[EDITED], dict(model=options.model.name, facts=[EDITED.start, EDITED.stop], methods=[])
    result |= dict(held_out=[HELD_OUT.start, HELD_OUT.stop], lines=options.lines, tokens=bench.tokens, chosen=found)
    result["before"] = measure(bench.fresh({}), bench.tokenizer, edited)
    for section in sections:
        start, after = time.process_time(), run(bench, section, edited)
        result["methods"].append(dict(editor=section, after=after, cpu_seconds=time.process_time() - start))
        print(section["method"], after, flush=True)
        options.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
