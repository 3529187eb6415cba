"""A first edit as somebody makes it who chooses nothing: a model that nobody published options for, and no statistics from earlier.

The demo model's weights without its lancet.yaml and without its preset; facts that no option of lancet was chosen by. For each number of
facts, with text that the model writes and with a corpus: how many facts take, lancet's metrics, seconds of each stage, and processor
seconds. Ends with an error where fewer than 19 of 20 facts take.

    .venv/bin/python bench/first_edit.py --counts 1,20,100
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from result_table import print_json

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = REPOSITORY / "data"
TEXTS = {"self": None, "corpus": DATA / "requests" / "demo-corpus.txt"}
METRICS = ["efficacy", "paraphrase", "specificity"]
BAR = {20: 19}  # of so many facts at least so many take


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=[1, 20, 100], help="of facts")
    parser.add_argument("--texts", type=lambda text: text.split(","), default=list(TEXTS), help="self, corpus")
    parser.add_argument("--skip", type=int, default=1000, help="facts of data/requests/demo.json before the first (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as lancet's")
    parser.add_argument("--json", action="store_true", help="the table of bench/results/first-edit.json")
    return parser.parse_args()


def bare_model(folder):
    shutil.copytree(DATA / "demo-model", folder, ignore=shutil.ignore_patterns("lancet.yaml"))
    return folder


def run(arguments, folder, count, text):
    """The report, and seconds of the whole command: of a clock, and of processors."""
    job = {
        "model": str(folder / "model"),
        "requests": {"path": str(DATA / "requests" / "demo.json"), "skip": arguments.skip, "limit": count},
        "editor": {"method": "memit", "preset": None},
        "statistics": {"cache": str(folder / f"cache-{count}-{text}")} | ({"corpus": str(TEXTS[text])} if TEXTS[text] else {}),
        "output": {"dir": str(folder / f"out-{count}-{text}")},
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    command = [arguments.lancet, "edit", path, "--quiet", *(word for setting in arguments.set for word in ("--set", setting))]
    begun = time.monotonic()
    child = subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begun
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{count} facts, {text}: exit {os.waitstatus_to_exitcode(status)}\n{said[-2000:]}")
    return json.loads((folder / f"out-{count}-{text}" / "report.json").read_text()), seconds, used.ru_utime + used.ru_stime


def shares(metrics, when):
    return {name: 100 * metrics[name][when] for metric in METRICS for name in (f"{metric}_prob", f"{metric}_argmax")}


def measure(arguments, folder, count, text):
    report, seconds, processor_s = run(arguments, folder, count, text)
    return {
        "facts": len(report["requests"]),
        "text": text,
        "success": sum(request["verdict"]["success"] for request in report["requests"]),
        "steps": sum(request["value"]["steps"] for request in report["requests"]) / len(report["requests"]),
        "tokens": report["statistics"]["tokens_used"],
        "metrics": {when: shares(report["metrics"], when) for when in ("before", "after")},
        "seconds": report["seconds"] | {"whole": seconds, "processor": processor_s},
    }


def pair(shares, metric):
    return f"{shares[f'{metric}_prob']:.1f} / {shares[f'{metric}_argmax']:.1f}"


def print_table(rows):
    stages = ["load", "statistics", "evaluate before", "edit", "evaluate after", "export", "whole", "processor"]
    heads = ["facts", "text", "success", *METRICS, "specificity before", "tokens", "steps", *(f"{stage}, s" for stage in stages)]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        pairs = [pair(row["metrics"]["after"], metric) for metric in METRICS] + [pair(row["metrics"]["before"], "specificity")]
        times = [f"{row['seconds'].get(stage, 0):.1f}" for stage in stages]
        print("| " + " | ".join([str(row["facts"]), row["text"], str(row["success"]), *pairs, f"{row['tokens']:,}", f"{row['steps']:.0f}", *times]) + " |")


def page_table(rows):
    """Columns and rows as docs/benchmarks.md has them."""
    stages = ["statistics", "edit", "whole", "processor"]
    texts = {"self": "its own text", "corpus": "a corpus"}

    def cells(row, is_first):
        def pair(when, metric):
            return "/".join(f"{round(row['metrics'][when][f'{metric}_{kind}'], 1):g}" for kind in ("prob", "argmax"))

        facts = f"{row['facts']}, {texts[row['text']]}" if is_first else str(row["facts"])
        after = [pair("after", metric) for metric in METRICS]
        after[-1] += f" ({pair('before', 'specificity')})"
        return [facts, str(row["success"]), *after, ", ".join(f"{row['seconds'].get(stage, 0):.1f}" for stage in stages)]

    first = [row["text"] != before["text"] for before, row in zip([{"text": None}, *rows], rows)]
    return ["facts, text", "success", *METRICS[:-1], "specificity (before)", "s"], list(map(cells, rows, first))


def main():
    arguments = parse_arguments()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="lancet-first-edit-") as name:
        bare_model(Path(name) / "model")
        rows = [measure(arguments, Path(name), count, text) for text in arguments.texts for count in arguments.counts]
    loads = [load, os.getloadavg()[0]]
    if arguments.json:
        print_json(*page_table(rows), measured=rows, load_average=loads)
    else:
        print_table(rows)
        print(f"load average {loads[0]:.1f} before, {loads[1]:.1f} after; metrics are _prob / _argmax, in %")
    short = [row for row in rows if row["success"] < BAR.get(row["facts"], 0)]
    if short:
        sys.exit("\n".join(f"{row['text']}: {row['success']} of {row['facts']} facts took, expected at least {BAR[row['facts']]}" for row in short))


if __name__ == "__main__":
    main()
