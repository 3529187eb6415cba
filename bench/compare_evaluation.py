"""lancet eval beside a plain evaluator in Python: records per second on the same model, records, dtype and threads, in one run.

The plain side does what memit's evaluation does: one record at a time, one right-padded batch of its rows, each of its prefixes
with each of its two targets, logits of every position. It goes through transformers, or with --engine plain through the forward
written out in make_golden.py. Both sides begin with texts and end with metrics; start-up and loading are left out: in Python by
the clock's place, of lancet by taking the difference between all records and one, over the records between. The two sides take
turns, so that both see the same machine; the best of each counts. Their metrics must agree, or the figures mean nothing.

    .venv/bin/python bench/compare_evaluation.py --dtype bf16
"""
import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import torch
from compare_reference import REPOSITORY, run

sys.path.insert(0, str(REPOSITORY / "tests" / "oracle"))
from make_golden import Llama, padded  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
# Share of a metric's prompts whose outcome may differ: rounding decides where two targets are equally likely.
MOST_APART = {"f32": 0.001, "bf16": 0.02}
METRICS = ["efficacy_prob", "efficacy_argmax", "paraphrase_prob", "paraphrase_argmax", "specificity_prob", "specificity_argmax"]


def parse_arguments():
    data = REPOSITORY / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--model", type=Path, default=data / "demo-model")
    parser.add_argument("--records", type=Path, default=data / "requests" / "demo.json", help="CounterFact records")
    parser.add_argument("--n", type=int, default=500, help="records, at least 2")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of both sides")
    parser.add_argument("--engine", choices=["transformers", "plain"], default="transformers")
    parser.add_argument("--repeat", type=int, default=3, help="runs of either side; the best counts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not arguments.lancet.exists():
        sys.exit(f"--lancet: {arguments.lancet} does not exist: build it with make build")
    if arguments.n < 2:
        sys.exit(f"--n {arguments.n}: expected at least 2")
    return arguments


# ---- the plain side ----


def load_engine(arguments):
    """A function from padded ids to the logits of every position."""
    dtype = DTYPES[arguments.dtype]
    if arguments.engine == "plain":
        return Llama(arguments.model, dtype).forward
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype)
    # Padding is on the right: no real token sees it, and without a mask attention is faster.
    return lambda ids: model(ids, use_cache=False).logits


def score_record(engine, tokenizer, record):
    """Tallies of one record: metric -> [hits, prompts]."""
    rewrite = record["requested_rewrite"]
    prefixes = [("efficacy", rewrite["prompt"].format(rewrite["subject"]))]
    prefixes += [("paraphrase", text) for text in record["paraphrase_prompts"]]
    prefixes += [("specificity", text) for text in record["neighborhood_prompts"]]
    targets = [rewrite["target_new"]["str"], rewrite["target_true"]["str"]]
    rows = tokenizer([f"{prefix} {target}" for _, prefix in prefixes for target in targets])["input_ids"]
    lengths = [len(ids) for ids in tokenizer([prefix for _, prefix in prefixes])["input_ids"]]
    logits = engine(padded(rows))
    nll, hit = [], []
    for i, row in enumerate(rows):
        start = lengths[i // 2]
        places, target = logits[i, start - 1 : len(row) - 1].float(), torch.tensor(row[start:])
        nll.append(-places.log_softmax(-1).gather(1, target[:, None]).mean().item())
        hit.append(bool((places.argmax(-1) == target).all()))
    tallies = {name: [0, 0] for name in METRICS}
    for i, (group, _) in enumerate(prefixes):
        wanted, other = (2 * i + 1, 2 * i) if group == "specificity" else (2 * i, 2 * i + 1)
        for form, won in [("prob", nll[wanted] < nll[other]), ("argmax", hit[wanted])]:
            tallies[f"{group}_{form}"][0] += won
            tallies[f"{group}_{form}"][1] += 1
    return tallies


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run_plain(engine, tokenizer, records):
    begin, processor = time.perf_counter(), processor_seconds(resource.RUSAGE_SELF)
    tallies = [score_record(engine, tokenizer, record) for record in records]
    seconds = {"wall": time.perf_counter() - begin, "processor": processor_seconds(resource.RUSAGE_SELF) - processor}
    totals = {name: [sum(one[name][part] for one in tallies) for part in (0, 1)] for name in METRICS}
    return {what: value / len(records) for what, value in seconds.items()}, totals


# ---- lancet ----


def run_lancet_on(arguments, n, folder):
    job = {
        "model": str(arguments.model.resolve()),
        "requests": {"path": str(arguments.records.resolve()), "limit": n},
        "evaluate": ["efficacy", "paraphrase", "specificity"],
        "run": {"dtype": arguments.dtype, "threads": arguments.threads, "devices": "cpu"},
    }
    (folder / "job.json").write_text(json.dumps(job))
    begin, processor = time.perf_counter(), processor_seconds(resource.RUSAGE_CHILDREN)
    report = json.loads(run([arguments.lancet, "eval", folder / "job.json", "--quiet", "--json"], arguments.threads))
    seconds = {"wall": time.perf_counter() - begin, "processor": processor_seconds(resource.RUSAGE_CHILDREN) - processor}
    metrics = report["metrics"]
    return seconds, {name: [round(metrics[name]["value"] * metrics[name]["prompts"]), metrics[name]["prompts"]] for name in METRICS}


def run_lancet(arguments, folder):
    one, _ = run_lancet_on(arguments, 1, folder)
    all_of_them, totals = run_lancet_on(arguments, arguments.n, folder)
    return {what: (all_of_them[what] - one[what]) / (arguments.n - 1) for what in one}, totals


# ---- both ----


def check_metrics(ours, theirs, most_apart):
    for name in METRICS:
        if ours[name][1] != theirs[name][1]:
            sys.exit(f"{name}: {ours[name][1]} prompts, the plain side has {theirs[name][1]}")
        if abs(ours[name][0] - theirs[name][0]) > most_apart * ours[name][1]:
            sys.exit(f"{name}: {ours[name][0]} of {ours[name][1]}, the plain side has {theirs[name][0]}: the figures cannot be compared")


def compare(arguments, folder):
    from transformers import AutoTokenizer

    torch.set_num_threads(arguments.threads)
    engine, tokenizer = load_engine(arguments), AutoTokenizer.from_pretrained(arguments.model)
    records = json.loads(arguments.records.read_text("utf-8"))[: arguments.n]
    if len(records) < arguments.n:
        sys.exit(f"--n {arguments.n}: {arguments.records} has {len(records)} records")
    runs = {"plain": [], "lancet": []}
    with torch.inference_mode():
        run_plain(engine, tokenizer, records[:10])  # warm
        for _ in range(arguments.repeat):  # in turn
            seconds, theirs = run_plain(engine, tokenizer, records)
            runs["plain"].append(seconds)
            seconds, ours = run_lancet(arguments, folder)
            runs["lancet"].append(seconds)
    check_metrics(ours, theirs, MOST_APART[arguments.dtype])
    rates = {side: {what: 1 / min(one[what] for one in many) for what in many[0]} for side, many in runs.items()}
    return {
        "records": arguments.n,
        "dtype": arguments.dtype,
        "engine": arguments.engine,
        "threads": arguments.threads,
        "seconds_per_record": runs,
        "records_per_second": rates,
        "ratio": {what: rates["lancet"][what] / rates["plain"][what] for what in ("wall", "processor")},
        "metrics": {"lancet": ours, "plain": theirs},
        "load_average": os.getloadavg()[0],
    }


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="lancet-compare-") as folder:
        result = compare(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{'records/s':12}{'wall':>10}{'processor':>12}   ms per record of each run, wall")
    for side, runs in result["seconds_per_record"].items():
        rate = result["records_per_second"][side]
        each = ", ".join(format(1e3 * one["wall"], ".1f") for one in runs)
        print(f"{side:12}{rate['wall']:10,.1f}{rate['processor']:12,.1f}   {each}")
    ratio = result["ratio"]
    print(f"lancet is {ratio['wall']:.2f} x faster, {ratio['processor']:.2f} x in processor time")
    for name in METRICS:
        ours, theirs = (result["metrics"][side][name] for side in ("lancet", "plain"))
        print(f"  {name:20} {ours[0]:5} of {ours[1]:5}, plain {theirs[0]:5}")
    print(f"{arguments.n} records, {arguments.dtype}, {arguments.engine}, {arguments.threads} threads; load average {result['load_average']:.2f}")


if __name__ == "__main__":
    main()
