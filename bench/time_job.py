"""A real edit job at several numbers of requests: seconds of its stages, and what one more edit costs between them.

The cost of an edit is a slope: (edit seconds with more requests - with fewer) / (difference), so that start-up, loading and
statistics cancel. Evaluation is off. With four counts the last line compares the slope between the last two with that between the
first two: whether edits cost the same in a large job.

    .venv/bin/python bench/time_job.py --counts 100,300,1900,2100
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


def counts(text):
    numbers = [int(part) for part in text.split(",")]
    if len(numbers) < 2 or numbers[0] < 1 or sorted(set(numbers)) != numbers:
        raise argparse.ArgumentTypeError(f"{text}: expected ascending counts, as 100,900")
    return numbers


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", type=Path, default=REPOSITORY / "data" / "jobs" / "demo.yaml")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--counts", type=counts, default=[100, 300], help="of requests, ascending")
    parser.add_argument("--repeat", type=int, default=1, help="times that every count is run, in turn; medians are printed")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as lancet edit --set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def run_job(arguments, n, folder):
    command = [arguments.lancet, "edit", arguments.job, "--quiet"]
    settings = [f"requests.limit={n}", "evaluate=[]", "accept={}", f"output.dir={folder / 'out'}", "output.replace=true"]
    for setting in settings + [f"statistics.cache={folder / 'cache'}"] + arguments.set:
        command += ["--set", setting]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lancet edit with {n} requests: exit {done.returncode}\n{done.stderr[-2000:]}")
    report = json.loads((folder / "out" / "report.json").read_text())
    if len(report["requests"]) != n:
        sys.exit(f"the job has {len(report['requests'])} requests, {n} are asked for")
    return report["seconds"] | {"steps": sum(request["value"]["steps"] for request in report["requests"])}


def slope(results, pair, what):
    """Of a stage's seconds, or of the steps, per further request."""
    fewer, more = pair
    return (results[more][what] - results[fewer][what]) / (more - fewer)


def main():
    arguments = parse_arguments()
    rounds = {n: [] for n in arguments.counts}
    with tempfile.TemporaryDirectory(prefix="lancet-job-") as folder:
        run_job(arguments, 1, Path(folder))  # fills the statistics cache
        for _ in range(arguments.repeat):
            for n in arguments.counts:
                rounds[n].append(run_job(arguments, n, Path(folder)))
    seconds = {n: {stage: statistics.median(one[stage] for one in many) for stage in many[0]} for n, many in rounds.items()}
    pairs = list(zip(arguments.counts, arguments.counts[1:]))
    slopes = [slope(seconds, pair, "edit") for pair in pairs]
    steps = [slope(seconds, pair, "steps") for pair in pairs]
    result = {"job": str(arguments.job), "seconds": seconds, "slopes": slopes, "steps": steps}
    result["load_average"] = os.getloadavg()[0]
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    for n, stages in seconds.items():
        timed = {stage: value for stage, value in stages.items() if stage != "steps" and value >= 0.005}
        print(f"{n:6} requests: " + ", ".join(f"{stage} {value:.2f} s" for stage, value in timed.items()))
    for (fewer, more), cost, taken in zip(pairs, slopes, steps):
        print(f"{fewer:6} to {more}: {1e3 * cost:.1f} ms per edit, {3600 / cost:,.0f} edits/h; {taken:.1f} steps per edit")
    if len(slopes) > 2:
        each = slopes[-1] * steps[0] / steps[-1]  # other facts take other numbers of steps
        print(f"the last slope differs by {100 * (slopes[-1] / slopes[0] - 1):+.1f} % from the first,", end=" ")
        print(f"{100 * (each / slopes[0] - 1):+.1f} % at an equal number of steps")
    print(f"load average at the end {result['load_average']:.2f}")


if __name__ == "__main__":
    main()
