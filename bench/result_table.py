"""The table of a measurement, as JSON in the form of bench/results/: tools/benchmark_tables.py puts such files into docs/benchmarks.md."""
import json
import os
import re
import sys
from pathlib import Path

KEYS = ["command", "machine", "columns", "rows"]


def machine():
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{names[0] if names else 'unknown processor'}, {len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}"


def print_json(columns, rows, **more):
    """`rows`: cells as the page shows them. `more`: the figures in full."""
    head = dict(zip(KEYS, [" ".join(["bench/" + Path(sys.argv[0]).name, *sys.argv[1:]]), machine(), columns]))
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in (head | more).items()]
    print("\n".join(["{", *lines, ' "rows": [', ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows), " ]", "}"]))
