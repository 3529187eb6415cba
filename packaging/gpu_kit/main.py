"""run.sh quick|bench|full: runs the steps of a mode, and leaves results.json and a table. Python's own library is enough."""
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
    parser.add_argument("--out", type=Path, help="folder for results.json and logs; default: $OUT, else gpu-kit-results")
    parser.add_argument("--shape", default="", help="of the random weights of bench and full, as lancet_bench --shape")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, help="seconds for all steps together")
    parser.add_argument("--step-limit", type=float, default=float("inf"), help="seconds that no step may exceed")
    return parser.parse_args(words)


def stop(*_):
    raise KeyboardInterrupt


class Run:
    def __init__(self, arguments):
        self.begun, self.begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
        out = arguments.out or Path(os.environ.get("OUT") or "gpu-kit-results")
        self.mode = MODES[arguments.mode]
        devices = [device for device in arguments.devices.split(",") if device]
        self.settings = Settings(arguments.mode, devices, out.absolute(), Path(tempfile.mkdtemp(prefix="lancet-gpu-kit-")), arguments.shape)
        (self.settings.out / "logs").mkdir(parents=True, exist_ok=True)
        self.runner = Runner(self.settings.out / "logs", arguments.deadline, arguments.step_limit, self.tell)

    def tell(self, outcome):
        print(summary.row(outcome.to_json()), flush=True)
        if outcome.state in BAD:
            for line in outcome.stderr_tail.strip().splitlines()[-3:]:
                print(f"    {line}", flush=True)
        summary.write(self.document(), self.settings.out)

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
                print("  no GPU was found: --devices cpu tries the kit without one", flush=True)
        self.runner.run(self.mode.steps(self.settings))
        document = self.document()
        summary.write(document, self.settings.out)
        text = summary.table(document)
        (self.settings.out / "table.txt").write_text(text + "\n")
        print(f"\n{text}\n  {self.settings.out / 'results.json'}", flush=True)
        return 0 if all(outcome.state not in BAD for outcome in self.runner.outcomes.values()) else 1


def main():
    arguments = parse(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    run = Run(arguments)
    try:
        return run.run()
    finally:
        shutil.rmtree(run.settings.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
