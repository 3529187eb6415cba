"""A build of the Python package says how far it is, also below a pip that keeps what it says to itself, and compiles as many files at once
as memory holds."""
import os
import pty
import re
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "packaging" / "python"))
import build_jobs  # noqa: E402
import build_progress  # noqa: E402

GB = 1_000_000_000
CORES = len(os.sched_getaffinity(0))
# A backend in the place of scikit-build-core's, whose child writes what ninja writes where its stdout is no terminal.
BACKEND = """
import os, subprocess, sys

def build_wheel(*arguments):
    print("jobs", os.environ["CMAKE_BUILD_PARALLEL_LEVEL"])
    subprocess.run([sys.executable, "-c", NINJA], check=True)
    return "lancet.whl"

build_editable = build_wheel
get_requires_for_build_wheel = get_requires_for_build_editable = lambda settings=None: []
NINJA = '''
import time
for step in range(1, 5):
    print(f"[{step}/4] Building CXX object {step}.o", flush=True)
    time.sleep(0.4)
'''
"""
HOOK = "import sys; sys.path.insert(0, {backend!r}); import build_progress; build_progress.EVERY_S = 0.1; import lancet_build; print(lancet_build.{hook}({folder!r}))"


@pytest.fixture
def hook(tmp_path):
    """The command that pip runs, with the other backend."""
    (tmp_path / "other" / "scikit_build_core" / "build").mkdir(parents=True)
    (tmp_path / "other" / "scikit_build_core" / "build" / "__init__.py").write_text(BACKEND)
    (tmp_path / "other" / "scikit_build_core" / "__init__.py").write_text("")

    def command(name="build_wheel"):
        return [sys.executable, "-c", HOOK.format(backend=str(ROOT / "packaging" / "python"), hook=name, folder=str(tmp_path))]

    environment = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_PARALLEL_LEVEL"}
    command.environment = environment | {"PYTHONPATH": str(tmp_path / "other")}
    return command


def steps(lines):
    return [int(found[1]) for line in lines if (found := re.match(r"lancet: built (\d) of 4, \d+ s", line))]


@pytest.mark.parametrize("name", ["build_wheel", "build_editable"])
def test_each_step_is_told_and_what_was_said_goes_on(hook, tmp_path, name):
    told = tmp_path / "told"
    done = subprocess.run(hook(name), capture_output=True, text=True, env=hook.environment | {"LANCET_BUILD_PROGRESS": str(told)}, check=True)
    lines = told.read_text().splitlines()
    assert steps(lines) == sorted(steps(lines)) and steps(lines)[-1] == 4 and len(set(steps(lines))) >= 3, lines
    said = done.stdout.splitlines()
    assert [line for line in said if line.startswith("lancet: ")] == lines
    jobs, *others = (line for line in said if not line.startswith("lancet: "))
    assert others == [*(f"[{step}/4] Building CXX object {step}.o" for step in range(1, 5)), "lancet.whl"]
    assert 1 <= int(jobs.removeprefix("jobs ")) <= CORES


def test_another_number_of_jobs_stays(hook):
    done = subprocess.run(hook(), capture_output=True, text=True, env=hook.environment | {"CMAKE_BUILD_PARALLEL_LEVEL": "77"}, check=True)
    assert "jobs 77\n" in done.stdout


def on_terminal(command, environment):
    """What a terminal shows of a process whose stdout and stderr are pipes, as pip makes them."""
    child, terminal = pty.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere:
            os._exit(subprocess.run(command, stdout=nowhere, stderr=nowhere, env=environment).returncode)
    shown = b""
    try:
        while got := os.read(terminal, 4096):
            shown += got
    except OSError:  # its end
        pass
    assert os.waitpid(child, 0)[1] == 0, shown
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_it_though_pip_keeps_what_is_said(hook):
    try:
        shown = on_terminal(hook(), hook.environment)
    except OSError:
        pytest.skip("no pseudo-terminal")
    assert steps(shown.splitlines())[-1] == 4 and "[1/4]" not in shown


def test_a_pip_that_shows_what_is_said_gets_it_once(hook, tmp_path):
    """Called with -v, it does."""
    (tmp_path / "pip.py").write_text("import subprocess, sys; sys.exit(subprocess.run(sys.argv[2:]).returncode)")
    try:
        shown = on_terminal([sys.executable, tmp_path / "pip.py", "-v", *hook()], hook.environment)
    except OSError:
        pytest.skip("no pseudo-terminal")
    assert shown == ""


def test_a_build_that_fails_says_so_itself(hook, tmp_path):
    backend = tmp_path / "other" / "scikit_build_core" / "build" / "__init__.py"
    backend.write_text(BACKEND.replace("print(f", "raise SystemExit('no compiler') or print(f"))
    done = subprocess.run(hook(), capture_output=True, text=True, env=hook.environment)
    assert done.returncode != 0 and "no compiler" in done.stderr and "CalledProcessError" in done.stderr
    assert "lancet: the build begins" in done.stdout


def test_words():
    assert build_progress.line(0, 0, 3.2) == "lancet: the build begins, 3 s"
    assert build_progress.line(1, 400, 65) == "lancet: built 1 of 400, 1 min 05 s"
    assert build_progress.line(100, 400, 600) == "lancet: built 100 of 400, 10 min 00 s, some 30 min 00 s left"
    assert build_progress.line(100, 800, 600) == "lancet: built 100 of 800, 10 min 00 s, some 1 h 10 min left"
    assert build_progress.line(400, 400, 600) == "lancet: built 400 of 400, 10 min 00 s"


@pytest.mark.parametrize(("cores", "available", "expected"), [(2, 23 * GB, 2), (64, 23 * GB, 10), (8, 3 * GB, 1), (8, 100_000, 1), (16, 20 * GB, 8)])
def test_memory_limits_jobs(cores, available, expected):
    assert build_jobs.jobs(cores, available) == expected


def test_memory_is_the_machines_and_the_containers(tmp_path):
    assert build_jobs.available_bytes(tmp_path) is None and build_jobs.jobs(4, None) >= 1
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n")
    assert build_jobs.available_bytes(tmp_path) == 20_480_000_000
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1000\n")
    assert build_jobs.available_bytes(tmp_path) == 20_480_000_000
    (group / "memory.max").write_text("6000000000\n")
    assert build_jobs.available_bytes(tmp_path) == 5_999_999_000


def test_make_takes_that_number():
    environment = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_PARALLEL_LEVEL"}
    shown = subprocess.run(["make", "-pn", "help"], capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    assert re.search(r"^CMAKE_BUILD_PARALLEL_LEVEL := (\d+)$", shown, re.M)[1] in map(str, range(1, CORES + 1))
