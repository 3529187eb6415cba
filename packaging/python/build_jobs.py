"""How many files a build compiles at once: as many as there are cores, and fewer where they would not fit into memory. A build that
swaps takes an hour instead of minutes. Printed for the Makefile; CMAKE_BUILD_PARALLEL_LEVEL says another number."""
import os
import pathlib

JOB_BYTES = 2_300_000_000
"""A compiler took 1.4 GB at most on the files of the package, 2.2 GB on those of the tests; the linker took less."""


def _number(path):
    """The first word of a file; None where there is none, or it is no number ("max")."""
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def available_bytes(root=pathlib.Path("/")):
    """What this machine, and the container that this is in, have left; None: not known."""
    found = []
    try:
        lines = dict(line.split(":", 1) for line in (root / "proc/meminfo").read_text().splitlines() if ":" in line)
        found.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        pass
    for limit, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        most, now = _number(root / "sys/fs/cgroup" / limit), _number(root / "sys/fs/cgroup" / used)
        if most is not None and now is not None:
            found.append(max(most - now, 0))
    return min(found, default=None)


def jobs(cores=None, available=None):
    cores = cores or len(os.sched_getaffinity(0))
    available = available_bytes() if available is None else available
    return cores if available is None else max(1, min(cores, available // JOB_BYTES))


if __name__ == "__main__":
    print(jobs())
