"""`lancet trace` beside a plain tracer in Python: the same facts, the same noise, both in f32, in one run. Heat maps and times.

    .venv/bin/python bench/compare_trace.py --facts 200 --samples 1
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests" / "oracle" / "golden"))
from bench import Model, Tokenizer  # noqa: E402
from make_golden import read_requests  # noqa: E402
from trace import KINDS, Tracer, locate, noise, subject_deviation  # noqa: E402


def parse_arguments():
    data = REPOSITORY / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--model", type=Path, default=data / "demo-model")
    parser.add_argument("--requests", type=Path, default=data / "requests" / "demo.json", help="CounterFact records")
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--window", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    return parser.parse_args()


def run_lancet(arguments, folder):
    command = [arguments.lancet, "trace", "--model", arguments.model, "--facts", arguments.requests, "--out", folder / "out"]
    command += ["--limit", arguments.facts, "--samples", arguments.samples, "--window", arguments.window]
    command += ["--dtype", arguments.dtype, "--devices", "cpu", "--keep-unknown", "--quiet"]
    begun = time.time()
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lancet trace: exit {done.returncode}\n{done.stderr}")
    return json.loads((folder / "out" / "trace.json").read_text()), time.time() - begun


def token_classes(n_tokens, first, end):
    """Tokens from the subject on: its first, middle, last; the first after it, further ones, the prompt's last."""
    last = n_tokens - 1
    subject = [t for t in range(first, end - 1)]
    after = [t for t in range(end, last)]
    return [subject[:1], subject[1:], [end - 1], after[:1], after[1:], [last] if last >= end else []]


@torch.no_grad()
def compare(arguments, report):
    """Differences of all cells, the largest of the average heat maps, and the plain tracer's seconds."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[arguments.dtype]
    model, tokenizer = Model(arguments.model, dtype), Tokenizer(arguments.model)
    everything = read_requests(arguments.requests, range(len(json.loads(arguments.requests.read_text()))))
    # the tokenizers differ in which offsets a character that is spelt in bytes has, so the file's deviation is not quite the same
    sigma, own = report["options"]["noise"], 3 * subject_deviation(model, tokenizer, everything)
    assert abs(sigma - own) < 1e-3 * sigma, (sigma, own)
    cells, by_class = [], {(kind, c): [] for kind in KINDS for c in range(6)}
    begun = time.time()
    for fact in report["facts"]:
        request = everything[fact["index"]]
        ids, first, end = locate(tokenizer, request)
        tracer = Tracer(model, ids, (first, end), arguments.window)
        assert (tracer.object, [first, end]) == (fact["object_id"], fact["subject_tokens"]), request
        dims = model.embedding.shape[1]
        samples = torch.stack([noise(0, fact["index"], n, end - first, dims) for n in range(arguments.samples)])
        corrupted, maps = tracer.trace(sigma * samples)
        cells += [abs(corrupted - fact["corrupted"]), abs(tracer.clean_probability - fact["clean"])]
        for kind in KINDS:
            effect = torch.tensor(fact["indirect_effect"][kind], dtype=torch.float64)
            cells += (maps[kind] - corrupted - effect).abs().flatten().tolist()
            for c, tokens in enumerate(token_classes(len(ids), first, end)):
                if tokens:
                    by_class[kind, c].append((maps[kind] - corrupted)[tokens].mean(0))
    average = 0
    for (kind, c), rows in by_class.items():
        if rows:
            seen = torch.tensor(report["average"]["kinds"][kind]["indirect_effect"][c], dtype=torch.float64)
            average = max(average, (torch.stack(rows).mean(0) - seen).abs().max().item())
    return sorted(cells), average, time.time() - begun


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory(prefix="lancet-trace-") as folder:
        report, seconds = run_lancet(arguments, Path(folder))
    cells, average, plain = compare(arguments, report)
    count = sum(len(fact["tokens"]) for fact in report["facts"]) * report["layers"] * len(KINDS)
    print(f"{len(report['facts'])} facts, {count} cells of {arguments.samples} samples, {arguments.dtype}, {arguments.threads} threads")
    print(f"plain tracer   {plain:8.1f} s")
    print(f"lancet trace   {report['seconds']:8.1f} s  ({seconds:.1f} s with start, loading and writing)")
    print(f"{plain / report['seconds']:.0f} x faster")
    print(f"average heat maps: largest difference {average:.1e}, allowed {arguments.tolerance:.0e}")
    print(f"single cells: median {cells[len(cells) // 2]:.1e}, 99.9 % below {cells[len(cells) * 999 // 1000]:.1e}, largest {cells[-1]:.1e}")
    if average > arguments.tolerance:
        sys.exit("the maps differ")


if __name__ == "__main__":
    main()
