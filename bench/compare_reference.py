"""lancet beside plain MEMIT in Python: seconds per edit, and with --quality the metrics, of both in one run.

Both sides edit the same facts of the same model with the same contexts, hyper-parameters, corpus and threads. The time of an
edit is a slope: (seconds with the larger count - seconds with the smaller) / (difference of the counts), so that start-up,
loading, statistics and factors cancel. The two sides take turns, so that both see the same machine.

    .venv/bin/python bench/compare_reference.py --quality 100
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CONTEXTS = [
    "{}",
    "The answer is known. {}",
    "Therefore the following holds. {}",
    "Because of this, it is so. {}",
    "I know that well. {}",
    "You know that well. {}",
]  # the yardstick's own
LAYERS = [0, 1]
LAMBDA, LR, STEPS, WEIGHT_DECAY, CLAMP, KL, STOP_LOSS = 300, 0.5, 40, 0.001, 4.0, 0.0625, 0.05
DOCUMENT_TOKENS, ALL_TOKENS = 512, 10_000_000  # neither cuts the demo corpus
# the yardstick's name -> lancet's
METRICS = {
    "efficacy": "efficacy_prob",
    "efficacy_argmax": "efficacy_argmax",
    "paraphrase": "paraphrase_prob",
    "paraphrase_argmax": "paraphrase_argmax",
    "neighborhood": "specificity_prob",
    "neighborhood_argmax": "specificity_argmax",
}


def counts(text):
    few, many = (int(part) for part in text.split(","))
    if not 0 < few < many:
        raise argparse.ArgumentTypeError(f"{text}: expected two ascending counts, as 100,300")
    return few, many


def parse_arguments():
    data = REPOSITORY / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, default=REPOSITORY / "bench" / "plain_memit.py")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--model", type=Path, default=data / "demo-model")
    parser.add_argument("--facts", type=Path, default=data / "requests" / "demo.json", help="CounterFact records")
    parser.add_argument("--corpus", type=Path, default=data / "requests" / "demo-corpus.txt", help="a document per line")
    parser.add_argument("--counts", type=counts, default=(10, 30), help="requests of the reference's two runs")
    parser.add_argument("--lancet-counts", type=counts, default=(100, 300), help="requests of lancet's two runs")
    parser.add_argument("--repeat", type=int, default=1, help="pairs of runs; the median slope counts")
    parser.add_argument("--dtype", default="f32", help="lancet's run.dtype; the reference runs in f32")
    parser.add_argument("--value-batch", type=int, default=0, help="lancet's editor.values.batch")
    parser.add_argument("--contexts-per-step", type=int, default=0, help="lancet's editor.values.contexts_per_step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quality", type=int, metavar="N", help="also both sides' metrics on the first N facts")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for name, path in [("--reference", arguments.reference), ("--lancet", arguments.lancet), ("--model", arguments.model)]:
        if not path.exists():
            sys.exit(f"{name}: {path} does not exist" + (": build it with make build" if name == "--lancet" else ""))
    facts = len(json.loads(arguments.facts.read_text()))
    wanted = max(arguments.counts[1], arguments.lancet_counts[1], arguments.quality or 0)
    if wanted > facts:
        sys.exit(f"--facts: {arguments.facts} has {facts} records, {wanted} are asked for")
    return arguments


def run(command, threads):
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} {command[1]}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def run_reference(arguments, n, evaluate):
    command = [sys.executable, arguments.reference, "--model", arguments.model, "--facts", arguments.facts]
    command += ["--corpus", arguments.corpus, "--n", n, "--layers", ",".join(map(str, LAYERS)), "--lam", LAMBDA, "--lr", LR]
    command += ["--steps", STEPS, "--kl", KL, "--wd", WEIGHT_DECAY, "--clamp", CLAMP, "--threads", arguments.threads]
    if not evaluate:
        command += ["--no-eval"]
    result = json.loads(run(command, arguments.threads).splitlines()[-1])
    quality = {name: result["post"][name] for name in METRICS} if evaluate else None
    return {"requests": n, "seconds": result["edit_s"], "steps": result["steps"], "quality": quality}


def run_lancet(arguments, n, evaluate, folder):
    values = {"steps": STEPS, "lr": LR, "weight_decay": WEIGHT_DECAY, "clamp": CLAMP, "kl": KL, "stop_loss": STOP_LOSS}
    values |= {"batch": arguments.value_batch, "contexts_per_step": arguments.contexts_per_step}
    job = {
        "model": str(arguments.model.resolve()),
        "requests": {"path": str(arguments.facts.resolve()), "limit": n},
        "editor": {"method": "memit", "layers": LAYERS, "covariance_weight": LAMBDA, "values": values, "contexts": CONTEXTS},
        "statistics": {
            "corpus": str(arguments.corpus.resolve()),
            "tokens": ALL_TOKENS,
            "document_tokens": DOCUMENT_TOKENS,
            "cache": str(folder / "cache"),
        },
        "evaluate": ["efficacy", "paraphrase", "specificity"] if evaluate else [],
        "output": {"dir": str(folder / "out"), "replace": True},
        "run": {"dtype": arguments.dtype, "threads": arguments.threads, "devices": "cpu"},
    }
    (folder / "job.json").write_text(json.dumps(job))
    run([arguments.lancet, "edit", folder / "job.json", "--quiet"], arguments.threads)
    report = json.loads((folder / "out" / "report.json").read_text())
    steps = sum(request["value"]["steps"] for request in report["requests"])
    quality = {name: round(100 * report["metrics"][ours]["after"], 2) for name, ours in METRICS.items()} if evaluate else None
    return {"requests": n, "seconds": report["seconds"]["edit"], "steps": steps, "quality": quality}


def slope(few, many):
    """Seconds, and optimisation steps, per further edit."""
    n = many["requests"] - few["requests"]
    return {"seconds": (many["seconds"] - few["seconds"]) / n, "steps": (many["steps"] - few["steps"]) / n}


def compare(arguments, folder):
    runs = {"reference": [], "lancet": []}
    slopes = {"reference": [], "lancet": []}
    run_lancet(arguments, 1, False, folder)  # fills the statistics cache
    for _ in range(arguments.repeat):
        pairs = {"reference": [], "lancet": []}
        for few_or_many in (0, 1):  # in turn
            pairs["reference"].append(run_reference(arguments, arguments.counts[few_or_many], False))
            pairs["lancet"].append(run_lancet(arguments, arguments.lancet_counts[few_or_many], False, folder))
        for side, pair in pairs.items():
            runs[side] += pair
            slopes[side].append(slope(*pair))
    result = {"dtype": arguments.dtype, "contexts_per_step": arguments.contexts_per_step, "threads": arguments.threads}
    result["load_average"] = os.getloadavg()[0]
    for side in runs:
        middle = {key: statistics.median(one[key] for one in slopes[side]) for key in ("seconds", "steps")}
        result[side] = {
            "seconds_per_edit": middle["seconds"],
            "steps_per_edit": middle["steps"],
            "slopes": [one["seconds"] for one in slopes[side]],
            "runs": [{key: one[key] for key in ("requests", "seconds", "steps")} for one in runs[side]],
        }
    seconds = {side: result[side]["seconds_per_edit"] for side in runs}
    steps = {side: result[side]["steps_per_edit"] for side in runs}
    result["ratio"] = seconds["reference"] / seconds["lancet"]
    # the two sides' slopes stand for different facts, which take different numbers of steps
    result["ratio_per_step"] = result["ratio"] * steps["lancet"] / steps["reference"]
    if arguments.quality:
        sides = {"reference": run_reference(arguments, arguments.quality, True)}
        sides["lancet"] = run_lancet(arguments, arguments.quality, True, folder)
        result["quality"] = {"requests": arguments.quality, **{side: one["quality"] for side, one in sides.items()}}
    return result


def print_table(result):
    print(f"{'':12}{'s per edit':>12}{'steps per edit':>16}{'ms per step':>13}")
    for side in ("reference", "lancet"):
        one = result[side]
        per_step = 1e3 * one["seconds_per_edit"] / one["steps_per_edit"]
        print(f"{side:12}{one['seconds_per_edit']:12.4f}{one['steps_per_edit']:16.2f}{per_step:13.3f}")
    how = result["dtype"] + (f", {n} contexts a step," if (n := result["contexts_per_step"]) else "")
    print(f"lancet in {how} is {result['ratio']:.1f} x faster per edit, {result['ratio_per_step']:.1f} x per step")
    print(f"{result['threads']} threads; load average at the end of the timings {result['load_average']:.2f}")
    if quality := result.get("quality"):
        print(f"\n{quality['requests']:4} facts, %{'':8}{'reference':>10}{'lancet':>10}{'apart':>8}")
        for name in METRICS:
            theirs, ours = quality["reference"][name], quality["lancet"][name]
            print(f"{name:20}{theirs:10.2f}{ours:10.2f}{ours - theirs:+8.2f}")


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="lancet-compare-") as folder:
        result = compare(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
