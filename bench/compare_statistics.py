"""lancet's statistics beside plain MEMIT's in Python: tokens per second over the same corpus, layers and threads, in one run.

Both sides start from lines of text and end with E[k k^T] of every layer; loading the model is left out. The reference runs its
`covariance` once per layer, which tokenises the corpus each time: a second ratio leaves tokenising out on both sides. The two
sides take turns, so that both see the same machine; the best of each counts. The moments are compared too: they differ by
rounding, or the figures mean nothing.

    .venv/bin/python bench/compare_statistics.py
"""
import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from compare_reference import REPOSITORY, run
from safetensors.torch import load_file

ALL_TOKENS = 10_000_000  # more than the demo corpus has
MOST_APART = 1e-6  # NMSE of a moment; both sides run in f32


def parse_arguments():
    data = REPOSITORY / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, default=REPOSITORY / "bench" / "plain_memit.py")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--bench", type=Path, default=REPOSITORY / "build" / "lancet_bench")
    parser.add_argument("--model", type=Path, default=data / "demo-model")
    parser.add_argument("--corpus", type=Path, default=data / "requests" / "demo-corpus.txt", help="a document per line")
    parser.add_argument("--layers", default="0,1,2", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--repeat", type=int, default=3, help="runs of either side; the best counts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for name, how in [("reference", ""), ("lancet", ": build it with make build"), ("bench", ": build it with make bench")]:
        if not (path := getattr(arguments, name)).exists():
            sys.exit(f"--{name}: {path} does not exist{how}")
    return arguments


def load_reference(path):
    spec = importlib.util.spec_from_file_location("plain_memit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds_of(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def run_reference(reference, model, lines, layers):
    tokenise, _ = seconds_of(lambda: [model.ids(line) for line in lines])
    whole, moments = seconds_of(lambda: [reference.covariance(model, layer, lines) for layer in layers])
    return {"whole": whole, "pass": whole - len(layers) * tokenise}, moments


def run_lancet(arguments, folder):
    command = [arguments.bench, "--model", arguments.model, "--corpus", arguments.corpus, "--threads", arguments.threads]
    command += ["--statistics-layers", ",".join(map(str, arguments.layers)), "--statistics-tokens", ALL_TOKENS]
    command += ["--benchmark_filter=^(read_corpus|statistics)", f"--benchmark_out={folder / 'bench.json'}"]
    run(command, arguments.threads)
    rows = json.loads((folder / "bench.json").read_text())["benchmarks"]
    seconds = {row["name"].split("/")[0]: row["real_time"] / 1e3 for row in rows}
    return {"whole": seconds["read_corpus"] + seconds["statistics"], "pass": seconds["statistics"]}


def lancet_moments(arguments, folder):
    job = {
        "model": str(arguments.model.resolve()),
        "editor": {"method": "memit", "layers": arguments.layers},
        "statistics": {
            "corpus": str(arguments.corpus.resolve()),
            "tokens": ALL_TOKENS,
            "cache": str(folder / "cache"),
        },
        "run": {"dtype": "f32", "threads": arguments.threads, "devices": "cpu"},
    }
    (folder / "job.json").write_text(json.dumps(job))
    run([arguments.lancet, "stats", folder / "job.json", "--quiet"], arguments.threads)
    # content keys do not tell which layer a file is of: the caller matches each moment with the nearest
    cached = [load_file(path) for path in (folder / "cache").glob("*.safetensors")]
    return [tensors["moment"] for tensors in cached if "moment" in tensors]


def nmse(ours, theirs):
    return ((ours - theirs.double()).square().sum() / theirs.double().square().sum()).item()


def compare(arguments, folder):
    torch.set_num_threads(arguments.threads)
    reference = load_reference(arguments.reference)
    model = reference.Model(str(arguments.model), torch.float32)
    lines = [line.strip() for line in arguments.corpus.open() if line.strip()]
    runs = {"reference": [], "lancet": []}
    for _ in range(arguments.repeat):  # in turn
        seconds, moments = run_reference(reference, model, lines, arguments.layers)
        runs["reference"].append(seconds)
        runs["lancet"].append(run_lancet(arguments, folder))
    tokens = moments[0][1]
    ours = lancet_moments(arguments, folder)
    apart = max(min(nmse(one, moment) for one in ours) for moment, _ in moments)
    if not apart <= MOST_APART:
        sys.exit(f"the moments differ by an NMSE of {apart:.1e}, more than rounding in f32: the figures cannot be compared")
    rates = {side: {part: tokens / min(run[part] for run in runs[side]) for part in ("whole", "pass")} for side in runs}
    return {
        "tokens": tokens,
        "layers": arguments.layers,
        "threads": arguments.threads,
        "seconds": runs,
        "tokens_per_second": rates,
        "ratio": {part: rates["lancet"][part] / rates["reference"][part] for part in ("whole", "pass")},
        "nmse": apart,
        "load_average": os.getloadavg()[0],
    }


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="lancet-compare-") as folder:
        result = compare(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{'tokens/s':12}{'whole':>10}{'pass':>10}   seconds of each run, whole")
    for side, runs in result["seconds"].items():
        rate = result["tokens_per_second"][side]
        print(f"{side:12}{rate['whole']:10,.0f}{rate['pass']:10,.0f}   {', '.join(format(run['whole'], '.2f') for run in runs)}")
    ratio = result["ratio"]
    print(f"lancet is {ratio['whole']:.2f} x faster, {ratio['pass']:.2f} x without tokenising")
    print(f"{result['tokens']} tokens, layers {result['layers']}, {result['threads']} threads; moments apart by an NMSE of {result['nmse']:.1e}")
    print(f"load average at the end {result['load_average']:.2f}")


if __name__ == "__main__":
    main()
