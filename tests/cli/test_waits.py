"""What long work says while one waits: every stage of statistics, edits, traces and comparisons counts, and says the time left.

A terminal gets a line ten times a second, also of a stage that would be over before a line of a log is due.
"""
import os
import pty
import re
import select
import subprocess

import pytest
from conftest import DATA, LANCET
from conftest import lancet_alone as lancet  # noqa: F401 - statistics are made anew

COUNTED = re.compile(r"^(?P<stage>[a-z][a-z ]*?)  (?P<done>\d+)/(?P<total>\d+) (?P<unit>[a-zA-Z]+)")
# Slow enough that each stage lasts for some seconds on one core: what takes less says no time.
THREADS = {"OMP_NUM_THREADS": "1", "TERM": "xterm"}


def lines_on_a_terminal(lancet, *arguments, limit_s=280):
    """What is shown on stderr, line by redrawn line."""
    ours, theirs = pty.openpty()
    command = [str(LANCET), *map(str, arguments)]
    process = subprocess.Popen(command, cwd=lancet.folder, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | THREADS)
    os.close(theirs)
    shown = b""
    while True:
        ready, _, _ = select.select([ours], [], [], limit_s)
        assert ready, "nothing more is shown"
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(30) == 0, shown.decode()
    return [line for line in re.split(r"[\r\n]+", shown.decode().replace("\x1b[K", "")) if line.strip()]


def stages_of(lines):
    """The lines of each stage that counts, in their order."""
    stages = {}
    for line in lines:
        if counted := COUNTED.match(line):
            stages.setdefault(counted["stage"], []).append(line)
    return stages


def says_the_time_left(lines):
    """Of a stage that lasted: from the second on that it is known, every line but the last."""
    known = [i for i, line in enumerate(lines) if " left" in line]
    assert known, lines
    running = [line for line in lines if "  in " not in line]
    assert all(" left" in line for line in running[known[0] : -1]), lines
    return True


def test_statistics_count_and_say_the_time_left(lancet):
    job = lancet.job(statistics__corpus="self", statistics__tokens=20000, statistics__document_tokens=128, run__threads=1)
    stages = stages_of(lines_on_a_terminal(lancet, "stats", lancet.write(job)))
    for stage in ("sampling", "statistics"):
        assert len(stages[stage]) > 2, stages
    assert says_the_time_left(stages["sampling"])
    # what is left falls, and no line stands twenty times
    assert max(stages["sampling"].count(line) for line in stages["sampling"]) < 20


def test_a_trace_counts_states_and_says_the_time_left(lancet):
    facts = ("--facts", DATA / "requests" / "demo.json", "--limit", 40, "--samples", 10, "--keep-unknown")
    lines = stages_of(lines_on_a_terminal(lancet, "trace", "--model", DATA / "demo-model", "--out", "out", *facts))["trace"]
    assert re.search(r"^trace  \d+/40 facts  state \d+/\d+", lines[1]), lines[1]
    assert says_the_time_left(lines)
    counts = [tuple(map(int, match.groups())) for line in lines if (match := re.search(r"state (\d+)/(\d+)", line))]
    assert counts == sorted(counts) and len({total for _, total in counts}) == 1 and len(counts) > 5


@pytest.mark.parametrize("command", ["edit", "compare"])
def test_edits_and_comparisons_count_every_stage(lancet, command):
    """Values, the statistics, and what is generated for the measure."""
    values = {"steps": 300, "lr": 0.01, "clamp": 4.0, "stop_loss": 0.0}
    job = lancet.job(requests__limit=12, editor__values=values, evaluate={"metrics": ["efficacy", "generation"], "tokens": 100}, run__threads=1)
    if command == "compare":
        job["compare"] = {"memit": job.pop("editor")}
    stages = stages_of(lines_on_a_terminal(lancet, command, lancet.write(job)))
    assert {"loading", "statistics", "evaluate before", "values", "weights", "evaluate after"} <= set(stages), stages.keys()
    assert says_the_time_left(stages["values"])
    texts = [line for line in stages["evaluate after"] if "texts" in line]
    assert re.search(r"^evaluate after  12/12 texts  in ", texts[-1]), texts
