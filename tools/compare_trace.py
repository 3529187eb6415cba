"""`lancet trace` beside a plain tracer in Python: the same facts, the same noise, both in f32, in one run. Heat maps and times.

    .venv/bin/python tools/compare_trace.py --facts 200 --samples 1
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
sys.path.insert(0, str(REPOSITORY / "tools" / "golden"))
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
    parser.add_argument("--tolerance", type=float, default=1e-4)
    return parser.parse_args()


def run_lancet(arguments, folder):
    command = [arguments.lancet, "trace", "--model", arguments.model, "--facts", arguments.requests, "--out", folder / "out"]
    command += ["--limit", arguments.facts, "--samples", arguments.samples, "--window", arguments.window]
    command += ["--dtype", "f32", "--devices", "cpu", "--keep-unknown", "--quiet"]
    begun = time.time()
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lancet trace: exit {done.returncode}\n{done.stderr}")
    return json.loads((folder / "out" / "trace.json").read_text()), time.time() - begun


@torch.no_grad()
def compare(arguments, report):
    """Largest difference of any probability, and the plain tracer's seconds."""
    model, tokenizer = Model(arguments.model, torch.float32), Tokenizer(arguments.model)
    everything = read_requests(arguments.requests, range(len(json.loads(arguments.requests.read_text()))))
    sigma = 3 * subject_deviation(model, tokenizer, everything)
    worst = abs(sigma - report["options"]["noise"])
    begun = time.time()
    for fact in report["facts"]:
        request = everything[fact["index"]]
        ids, first, end = locate(tokenizer, request)
        tracer = Tracer(model, ids, (first, end), arguments.window)
        assert (tracer.object, [first, end]) == (fact["object_id"], fact["subject_tokens"]), request
        dims = model.embedding.shape[1]
        samples = [sigma * noise(0, fact["index"], n, end - first, dims) for n in range(arguments.samples)]
        corrupted, maps = tracer.trace(samples)
        worst = max(worst, abs(corrupted - fact["corrupted"]), abs(tracer.clean_probability - fact["clean"]))
        for kind in KINDS:
            effect = torch.tensor(fact["indirect_effect"][kind], dtype=torch.float64)
            worst = max(worst, (maps[kind] - corrupted - effect).abs().max().item())
    return worst, time.time() - begun


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory(prefix="lancet-trace-") as folder:
        report, seconds = run_lancet(arguments, Path(folder))
    worst, plain = compare(arguments, report)
    cells = sum(len(fact["tokens"]) for fact in report["facts"]) * report["layers"] * len(KINDS)
    print(f"{len(report['facts'])} facts, {cells} cells of {arguments.samples} samples, f32, {arguments.threads} threads")
    print(f"plain tracer   {plain:8.1f} s")
    print(f"lancet trace   {report['seconds']:8.1f} s  ({seconds:.1f} s with start, loading and writing)")
    print(f"{plain / report['seconds']:.0f} x faster; largest difference {worst:.1e}, allowed {arguments.tolerance:.0e}")
    if worst > arguments.tolerance:
        sys.exit("the maps differ")


if __name__ == "__main__":
    main()
