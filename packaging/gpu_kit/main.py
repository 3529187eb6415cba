"""run.sh quick|bench|full: runs the steps of a mode, and leaves results.json, table.txt and logs.tar.gz. Python's own library is enough."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import bench
import full
import quick
import summary
from settings import Settings
from steps import BAD, Runner

MODES = {"quick": quick, "bench": bench, "full": full}
DEADLINE_S = 525  # 9 minutes, with the ends of what has to be killed


def parse(words):
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("mode", choices=sorted(MODES))
    parser.add_argument("--devices", default="", help="comma-separated: cuda:0,cuda:1; cpu; default: every GPU")
    parser.add_argument("--out", type=Path, help="folder for results.json, table.txt, logs.tar.gz; default: $OUT, else gpu-kit-results")
    parser.add_argument("--shape", default="", help="of the random weights of bench and full, as lancet_bench --shape")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, help="seconds for all steps together")
    parser.add_argument("--step-limit", type=float, default=float("inf"), help="seconds that no step may exceed")
    return parser.parse_args(words)


def say(text):
    """Where nobody reads any more, the run goes on: its results are files."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")


class Run:
    def __init__(self, arguments, work):
        self.begun, self.begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
        out = arguments.out or Path(os.environ.get("OUT") or "gpu-kit-results")
        self.mode = MODES[arguments.mode]
        devices = [device for device in arguments.devices.split(",") if device]
        self.settings = Settings(arguments.mode, devices, out.absolute(), work, arguments.shape)
        self.settings.out.mkdir(parents=True, exist_ok=True)
        self.settings.logs.mkdir()
        self.runner = Runner(self.settings.logs, arguments.deadline, arguments.step_limit, self.tell)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.runner.stop)
        self.write()  # an earlier run's are not taken for this one's

    def tell(self, outcome):
        self.write()
        say(summary.row(outcome.to_json()))
        if outcome.state in BAD:
            for line in outcome.stderr_tail.strip().splitlines()[-3:]:
                say(f"    {line}")

    def write(self):
        """After every step: a run that is killed has the results of those that ended."""
        summary.write(self.document(), self.settings)

    def document(self):
        wishes = self.mode.wishes(self.settings, self.runner.outcomes) if hasattr(self.mode, "wishes") else []
        return summary.results(self.settings, self.runner, self.begun, time.monotonic() - self.begin, wishes)

    def run(self):
        self.runner.run([quick.doctor(self.settings)])
        self.settings.doctor = self.runner.outcomes["doctor"].figures.get("facts")
        if not self.settings.devices:
            gpus = (self.settings.doctor or {}).get("usable_gpus", 0)
            self.settings.devices = [f"cuda:{i}" for i in range(gpus)] or ["cuda:0"]
            if gpus == 0:
                say("  no GPU was found: --devices cpu tries the kit without one")
        self.runner.run(self.mode.steps(self.settings))
        self.write()
        say(f"\n{summary.table(self.document())}\n  {self.settings.out / 'results.json'}")
        return 0 if all(outcome.state not in BAD for outcome in self.runner.outcomes.values()) else 1


def main():
    arguments = parse(sys.argv[1:])
    work = Path(tempfile.mkdtemp(prefix="lancet-gpu-kit-"))
    try:
        return Run(arguments, work).run()
    except OSError as error:
        print(f"run.sh: {error}: expected room and leave to write results (--out DIR) and work files (TMPDIR)", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
