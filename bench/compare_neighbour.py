"""An edit alone and beside processes that take whole cores: how many times as long it takes.

Runs of both kinds take turns, so that what else the machine does meets both; the ratio is that of the medians. The job and the
neighbours get the same cores, the first ones of this process (--cores). With --waits the same is done for several ways in which
OpenMP's threads wait: "default" is lancet's own choice, "libgomp" is what libgomp does where nobody chooses, a number is
GOMP_SPINCOUNT, "passive" and "active" are OMP_WAIT_POLICY.

    .venv/bin/python bench/compare_neighbour.py --repeat 5
"""
import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from result_table import print_json

REPOSITORY = Path(__file__).resolve().parent.parent
LIBGOMP_SPINS = "300000"  # libgomp's documentation: OMP_WAIT_POLICY undefined


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", type=Path, default=REPOSITORY / "data" / "jobs" / "demo.yaml")
    parser.add_argument("--lancet", type=Path, default=REPOSITORY / "build" / "lancet")
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--neighbours", type=int, default=1, help="processes that never rest")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--waits", type=lambda text: text.split(","), default=["default"])
    parser.add_argument("--most", type=float, help="exit 1 when a ratio is above")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as lancet edit --set")
    parser.add_argument("--json", action="store_true", help="a table of docs/benchmarks.md's form")
    return parser.parse_args()


def environment(wait):
    chosen = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if wait in ("passive", "active"):
        chosen["OMP_WAIT_POLICY"] = wait
    elif wait != "default":
        chosen["GOMP_SPINCOUNT"] = LIBGOMP_SPINS if wait == "libgomp" else wait
    return chosen


def spin(cores):
    os.setsid()  # as another user's work: a kernel that shares cores out by session gives it as much as the whole edit
    os.sched_setaffinity(0, cores)
    while True:
        pass


def edit_seconds(arguments, wait, folder):
    settings = [f"requests.limit={arguments.requests}", "accept={}", f"output.dir={folder / 'out'}", "output.replace=true"]
    command = [str(arguments.lancet), "edit", str(arguments.job), "--quiet"]
    for setting in [*settings, f"statistics.cache={folder / 'cache'}", *arguments.set]:
        command += ["--set", setting]
    for leftover in (folder / "cache").glob("*"):  # statistics are a part of every run
        leftover.unlink()
    begun = time.monotonic()
    done = subprocess.run(command, env=environment(wait), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lancet edit: exit {done.returncode}\n{done.stderr[-2000:]}")
    return time.monotonic() - begun


def edit_beside(arguments, wait, folder, cores):
    neighbours = [multiprocessing.Process(target=spin, args=(cores,), daemon=True) for _ in range(arguments.neighbours)]
    for neighbour in neighbours:
        neighbour.start()
    try:
        return edit_seconds(arguments, wait, folder)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.join()


def main():
    arguments = parse_arguments()
    cores = set(sorted(os.sched_getaffinity(0))[: arguments.cores])
    os.sched_setaffinity(0, cores)
    alone, beside = {wait: [] for wait in arguments.waits}, {wait: [] for wait in arguments.waits}
    if not arguments.json:
        print(f"cores {len(cores)}, neighbours {arguments.neighbours}, requests {arguments.requests}, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edit_seconds(arguments, arguments.waits[0], folder)  # files come into memory
        for _ in range(arguments.repeat):
            for wait in arguments.waits:
                alone[wait].append(edit_seconds(arguments, wait, folder))
                beside[wait].append(edit_beside(arguments, wait, folder, cores))
    medians = {wait: [statistics.median(alone[wait]), statistics.median(beside[wait])] for wait in arguments.waits}
    worst = max(b / a for a, b in medians.values())
    if arguments.json:
        print_json(["waiting", "alone", "beside", "ratio"], [[wait, f"{a:.2f}", f"{b:.1f}", f"{b / a:.1f}"] for wait, (a, b) in medians.items()])
    else:
        print_table(arguments, alone, beside, medians)
    return 1 if arguments.most and worst > arguments.most else 0


def print_table(arguments, alone, beside, medians):
    print("waiting      alone s (fastest)   beside s (fastest)   ratio")
    for wait in arguments.waits:
        a, b = medians[wait]
        print(f"{wait:10}  {a:8.2f} ({min(alone[wait]):.2f})    {b:10.2f} ({min(beside[wait]):.2f})    {b / a:6.2f}", flush=True)
    print(f"load average at the end {os.getloadavg()[0]:.1f}, neighbours included")


if __name__ == "__main__":
    sys.exit(main())
