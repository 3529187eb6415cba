"""Every method of a `lancet compare` beside its own plain Python version: the same requests, contexts, options and text.

    lancet compare job.yaml --set run.dtype=f64 --set output.dir=out/f64
    compare.py out/f64 [out/bf16 ...] [--methods memit,rome] [--plain plain.json]

Each folder is what one `lancet compare` of the job wrote; its job.yaml says what is to be done. The Python side's model runs in
--dtype (in f64 rounding decides nothing, at twice the time), its algebra in float64. Its statistics come from its own pass over the
text, its metrics from its own evaluator on weights rounded to the stored type. --plain keeps the Python side's rows in a file, and
takes from there what was made of the same requests and options. Exit code 1: a method of lancet's is more than a point worse than its
plain version in some metric.
"""
import argparse
import json
import pathlib
import sys
import time

import torch
import yaml
from crispedit import text_gradients
from families import bench_of
from filters import prune
from make_golden import read_lines
from methods import METHODS
from metrics import METRICS, measure
from safetensors import safe_open

DTYPES = dict(f32=torch.float32, f64=torch.float64)
POINTS = 1.0  # how far lancet may be below
# options that the plain versions do not have, and the value that leaves them out
ABSENT = {"compat": "none", "equal_keys": "warn"}
ABSENT_VALUES = {"contexts_per_step": 0}


def read_run(folder):
    """What lancet wrote: the job, compare.json, and each method's section with the contexts that were used."""
    folder = pathlib.Path(folder)
    job, table = yaml.safe_load((folder / "job.yaml").read_text()), json.loads((folder / "compare.json").read_text())
    for row in table["methods"]:
        assert row["status"] == "done", f"{row['label']}: {row['error']}"
        report = json.loads((folder / row["report"]).read_text())
        section = job["compare"][row["label"]]
        if report["contexts"]:
            section["contexts"] = report["contexts"]
        row["statistics"] = report["statistics"]
        unknown = {key for key, value in ABSENT.items() if section.get(key, value) != value}
        unknown |= {key for key, value in ABSENT_VALUES.items() if section.get("values", {}).get(key, value) != value}
        assert not unknown, f"{row['label']}: the plain version has no {unknown}"
    return job, table


def read_records(job):
    requests = job["requests"]
    records = json.loads(pathlib.Path(requests["path"]).read_text("utf-8"))
    return records[requests["skip"] :][: requests["limit"] or None]


def batches_of(job, records):
    """As {prompt, subject, target, target_true}, in the order of the file."""
    assert job["schedule"]["order"] == "file"
    size = job["schedule"]["batch"] or len(records)
    rewrites = [record["requested_rewrite"] for record in records]
    requests = [dict(prompt=r["prompt"], subject=r["subject"], target=r["target_new"]["str"], target_true=r["target_true"]["str"]) for r in rewrites]
    return [requests[start : start + size] for start in range(0, len(requests), size)]


def stored_types(folder):
    """Of each tensor of the checkpoint, by name."""
    types = {}
    for path in pathlib.Path(folder).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            types |= {name: file.get_tensor(name).dtype for name in file.keys()}
    return types


def edited_model(bench, job, section, changes):
    """The unedited model with all changes, PRUNE's restraint, and the rounding of what is stored."""
    model, types = bench.fresh({}), stored_types(job["model"])
    for name in {name for deltas in changes for name in deltas}:
        change = sum(deltas[name] for deltas in changes if name in deltas)
        if "prune" in section:
            change = prune(model.weights[name], change, section["prune"]["log_base"])
        model.weights[name] = (model.weights[name] + change).to(types[name]).to(model.dtype)
    return model


class PlainSide:
    """The Python versions' rows, by label; those that the file has of the same requests and options are taken."""

    def __init__(self, job, dtype, file):
        self.job, self.file, self.records = job, file, read_records(job)
        self.batches, self.bench = batches_of(job, self.records), bench_of(job["model"], dtype)
        self.rows = json.loads(file.read_text()) if file and file.exists() else {}

    def asked(self, label):
        asked = [self.batches, self.job["compare"][label], self.job["statistics"]["corpus"], str(self.bench.dtype)]
        return json.dumps(asked, sort_keys=True)

    def lacks(self, label):
        return self.rows.get(label, {}).get("asked") != self.asked(label)

    def prepare(self, rows):
        """Statistics for the methods that need them, of the whole text, which lancet must have seen too."""
        rows = [row for row in rows if row["statistics"] and self.lacks(row["label"])]
        if not rows:
            return
        sections = [self.job["compare"][row["label"]] for row in rows]
        bent = {layer for section in sections if section["method"] == "crispedit" for layer in section["modules"]["down"]}
        layers = bent.union(*(section.get("layers", ()) for section in sections))
        assert self.job["statistics"]["ridge"] == 0
        lines = read_lines(self.job["statistics"]["corpus"], None)
        self.bench.read_statistics(lines, layers)
        self.bench.gradients = text_gradients(self.bench, lines, bent) if bent else None
        for row in rows:
            used = row["statistics"]["tokens_used"]
            assert used == self.bench.tokens, f"{row['label']}: {used} tokens of a text that has {self.bench.tokens}"

    def row(self, label):
        if self.lacks(label):
            section, start = self.job["compare"][label], time.process_time()
            changes = METHODS[section["method"]](self.bench, section, self.batches)
            seconds = (time.process_time() - start) / len(self.records)
            after = measure(edited_model(self.bench, self.job, section, changes), self.bench.tokenizer, self.records)
            self.rows[label] = dict(asked=self.asked(label), after=after, cpu_seconds_per_edit=seconds)
            if self.file:
                self.file.write_text(json.dumps(self.rows, indent=1))
        return self.rows[label]


def print_table(folder, dtype, labels, after, plain):
    """In Markdown; returns the cells where lancet is too far below."""
    print(f"\n{folder}: lancet in {dtype}, its plain version, the difference, %\n")
    print("| | " + " | ".join(METRICS) + " |\n|" + "---|" * (len(METRICS) + 1))
    below = []
    for label in labels:
        cells = []
        for metric in METRICS:
            ours, theirs = 100 * after[label][metric], 100 * plain[label]["after"][metric]
            cells.append(f"{ours:.1f}, {theirs:.1f}, {ours - theirs:+.1f}")
            if ours < theirs - POINTS - 1e-9:
                below.append(f"{folder}: {label}: {metric}: {cells[-1]}")
        print(f"| `{label}` | " + " | ".join(cells) + " |")
    return below


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="DIR", help="what lancet compare wrote")
    parser.add_argument("--methods", help="some of the labels, e.g. memit,rome")
    parser.add_argument("--plain", type=pathlib.Path, metavar="FILE", help="keeps the Python side's rows")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of the Python side's model (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    runs = {folder: read_run(folder) for folder in arguments.runs}
    job, table = next(iter(runs.values()))
    rows = [r for r in table["methods"] if not arguments.methods or r["label"] in arguments.methods.split(",")]
    labels, side = [row["label"] for row in rows], PlainSide(job, DTYPES[arguments.dtype], arguments.plain)
    for other, _ in runs.values():
        for key in ("compare", "requests", "schedule", "statistics", "model"):
            assert other[key] == job[key], f"the runs differ in {key}"
    side.prepare(rows)
    plain = {}
    for label in labels:
        plain[label] = side.row(label)
        print(f"{label}: {plain[label]['cpu_seconds_per_edit']:.2f} s per edit in Python", file=sys.stderr, flush=True)
    below = []
    for folder, (job, table) in runs.items():
        after = {row["label"]: row["after"] for row in table["methods"]}
        below += print_table(folder, job["run"]["dtype"], labels, after, plain)
    if below:
        sys.exit("more than a point below:\n" + "\n".join(below))


if __name__ == "__main__":
    main()
