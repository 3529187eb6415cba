#!/usr/bin/env python3
"""Counts the source files that a job enters on its way: those of which it runs a function.

    tools/files_entered.py [--build DIR] [--list] data/jobs/demo.yaml

Builds lancet with coverage into DIR (build/coverage, minutes at first), runs `lancet edit JOB` into a temporary folder, and asks
gcov. What runs before main, tables and the like, does not count.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "models", "editors")
STATIC = ("_GLOBAL__", "_Z41__static_initialization_and_destruction_0")


def build(folder):
    flags = "--coverage -O0 -g0"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython3_EXECUTABLE={sys.executable}", "-DLANCET_PYTHON=OFF",
                    "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_EXE_LINKER_FLAGS={flags}"], check=True)  # fmt: skip
    subprocess.run(["cmake", "--build", folder, "--target", "lancet"], check=True)


def run(folder, job):
    for left in folder.rglob("*.gcda"):
        left.unlink()
    with tempfile.TemporaryDirectory() as out:
        cache = f"statistics.cache={out}/cache"
        subprocess.run([folder / "lancet", "edit", job, "--set", f"output.dir={out}/out", "--set", cache], check=True)


def entered(folder):
    """By source file of ours: whether one of its functions ran."""
    files = defaultdict(bool)
    for counts in sorted(folder.rglob("*.gcda")):
        said = subprocess.run(["gcov", "--json-format", "--stdout", counts], cwd=folder, check=True, capture_output=True, text=True)
        for line in said.stdout.splitlines():
            for file in json.loads(line)["files"]:
                path = Path(os.path.normpath(folder / file["file"]))
                if path.suffix != ".cpp" or not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in SOURCES:
                    continue
                ran = any(f["execution_count"] > 0 and not f["name"].startswith(STATIC) for f in file["functions"])
                files[path.relative_to(ROOT)] |= ran
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("job")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "coverage")
    parser.add_argument("--list", action="store_true", help="name the files")
    options = parser.parse_args()
    build(options.build)
    run(options.build, options.job)
    files = entered(options.build)
    by_room = defaultdict(list)
    for path, ran in files.items():
        if ran:
            by_room["/".join(path.parts[:2]) if path.parts[0] == "src" else path.parts[0]].append(path)
    for room, paths in sorted(by_room.items()):
        print(f"{len(paths):4} {room}" + "".join(f"\n       {path}" for path in sorted(paths) if options.list))
    print(f"{sum(map(len, by_room.values())):4} of {len(files)} source files")


if __name__ == "__main__":
    main()
