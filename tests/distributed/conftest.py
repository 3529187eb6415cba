"""What the tests of jobs of several processes share. Tests marked `full` run only with LANCET_TEST_FULL=1 (make test-full)."""
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import uuid

import pytest

_spec = importlib.util.spec_from_file_location("cli_conftest", pathlib.Path(__file__).parents[1] / "cli" / "conftest.py")
_cli = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_cli)
LANCET, DATA, SMALL_JOB = _cli.LANCET, _cli.DATA, _cli.SMALL_JOB

TIMEOUT_S = 6  # run.timeout_s of jobs that stall
CLEAR = {name: None for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LANCET_FAULT", "LANCET_SECRET")}


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes minutes; make test-full")


def pytest_collection_modifyitems(config, items):
    if not os.environ.get("LANCET_TEST_FULL"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def environment(**changes):
    """This process's, without what a launcher would set; None takes a variable away."""
    merged = {**os.environ, **CLEAR, "OMP_NUM_THREADS": "1", **changes}
    return {name: str(value) for name, value in merged.items() if value is not None}


class Processes:
    """Processes of one test and all their children, found by a mark in their environment; nothing is left running."""

    def __init__(self):
        self.mark = uuid.uuid4().hex
        self.started = []

    def start(self, command, cwd, prefix=(), **changes):
        process = subprocess.Popen(
            [*prefix, *map(str, command)], cwd=cwd, env=environment(LANCET_TEST_MARK=self.mark, **changes), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.started.append(process)
        return process

    def alive(self):
        """(pid, RANK) of every process that carries the mark."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if f"LANCET_TEST_MARK={self.mark}" in variables and state != "Z":
                rank = next((v.split("=", 1)[1] for v in variables if v.startswith("RANK=")), None)
                found.append((int(folder.name), rank))
        return found

    def pid_of(self, rank):
        return next(pid for pid, its_rank in self.alive() if its_rank == str(rank))

    def send(self, rank, number):
        os.kill(self.pid_of(rank), number)

    def wait_until_gone(self, limit_s):
        end = time.monotonic() + limit_s
        while (alive := self.alive()) and time.monotonic() < end:
            time.sleep(0.05)
        return alive

    def end(self):
        for pid, _ in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.started:
            process.wait()
            process.stdout.close()
            process.stderr.close()


@pytest.fixture
def processes():
    group = Processes()
    yield group
    group.end()


class RankedLancet(_cli.Lancet):
    """The program on several ranks."""

    def __init__(self, folder, group):
        super().__init__(folder)
        self.processes = group

    def small_job(self, **changes):
        defaults = {"evaluate": ["efficacy"], "requests__limit": 2, "editor__values__steps": 3, "run__timeout_s": TIMEOUT_S}
        return self.job(**{"statistics__tokens": 1000, **defaults, **changes})

    def launch(self, job, *options, ranks=3, arguments=(), **changes):
        """A started `lancet launch`; its logs lie in logs/."""
        path = self.write(job)
        return self.processes.start([LANCET, "launch", "-n", ranks, *options, "--", "edit", path, *arguments], self.folder, **changes)

    def log(self, rank):
        path = self.folder / "logs" / f"rank-{rank}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for_log(self, rank, text, limit_s=120):
        end = time.monotonic() + limit_s
        while text not in self.log(rank):
            assert time.monotonic() < end, f"rank {rank} never said {text!r}: {self.log(rank)}"
            time.sleep(0.02)

    def finish(self, process, limit_s=240):
        """(exit code, stdout, stderr)."""
        out, err = process.communicate(timeout=limit_s)
        return process.returncode, out, err

    def remove_output(self):
        shutil.rmtree(self.out)

    def start_over(self):
        """As before the first run: what the cache holds has no stage of its own again."""
        for folder in (self.out, self.folder / "logs", self.folder / "cache"):
            shutil.rmtree(folder)

    def leftovers(self):
        """What a killed job may leave beside its output, hidden."""
        return sorted(path.name for path in self.folder.iterdir() if path.name.startswith("."))


@pytest.fixture
def lancet(tmp_path, processes):
    return RankedLancet(tmp_path, processes)


@pytest.fixture(scope="session")
def stages(tmp_path_factory):
    """The stages of an edit, in order, as a run on two ranks names them."""
    group = Processes()
    lancet = RankedLancet(tmp_path_factory.mktemp("stages"), group)
    code, _, err = lancet.finish(lancet.launch(lancet.small_job(), ranks=2, LANCET_FAULT="list"))
    group.end()
    assert code == 0, err
    return list(dict.fromkeys(re.findall(r"LANCET_FAULT: stage '([^']+)'", lancet.log(1))))
