"""Single edits by every method of a `lancet compare` job: each fact alone, from the unedited model; means over all prompts.

    compare_singles.py data/jobs/demo-compare.yaml --facts 20 [--set run.dtype=f32]
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", type=Path)
    parser.add_argument("--facts", type=int, default=20, help="the job's first N (default: %(default)s)")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as lancet's")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    skip = yaml.safe_load(arguments.job.read_text())["requests"].get("skip", 0)
    hits, prompts = (collections.defaultdict(collections.Counter) for _ in range(2))
    with tempfile.TemporaryDirectory(prefix="lancet-singles-") as folder:
        for fact in range(skip, skip + arguments.facts):
            changes = [f"requests.skip={fact}", "requests.limit=1", "schedule.batch=0", f"output.dir={folder}/{fact}", *arguments.set]
            command = [arguments.lancet, "compare", arguments.job, "--quiet", *(part for c in changes for part in ("--set", c))]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"fact {fact}: exit {done.returncode}\n{done.stderr[-2000:]}")
            for report in Path(folder, str(fact)).glob("*/report.json"):
                for name, metric in json.loads(report.read_text())["metrics"].items():
                    if metric["after"] is None:  # the fact has no such prompt
                        continue
                    prompts[report.parent.name][name] += metric["prompts"]
                    hits[report.parent.name][name] += round(metric["after"] * metric["prompts"])
    names = list(next(iter(prompts.values())))
    print("| | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for label in yaml.safe_load(arguments.job.read_text())["compare"]:
        cells = [f"{100 * hits[label][name] / prompts[label][name]:.1f}" for name in names]
        print(f"| `{label}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
