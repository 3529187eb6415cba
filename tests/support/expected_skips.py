"""Which tests may skip: those that tests/expected_skips.txt names, because a skip that nobody expects looks like a test that passed.

tests/conftest.py asks for the Python suites. For GoogleTest's programs ctest calls this file: expected_skips.py PROGRAM [OPTION...]
"""
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from functools import cache
from pathlib import Path

from own_home import at_home

LIST = Path(__file__).parents[1] / "expected_skips.txt"


def read_list(text):
    """The words of each line; circumstances are for readers."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = [[part.strip() for part in line.split(" | ", 1)] for line in lines]
    for line, row in zip(lines, rows, strict=True):
        if len(row) != 2 or not all(row):
            raise ValueError(f"{LIST}: expected CIRCUMSTANCES | WORDS, got: {line}")
    return [words for _, words in rows]


@cache
def expected():
    return read_list(LIST.read_text())


def complaint(test, reason):
    """What to say of a skip; None where it is expected."""
    reason = " ".join(reason.split())
    if any(words in f"{test}: {reason}" for words in expected()):
        return None
    return (
        f"{test} skips, which tests/expected_skips.txt does not expect: {reason or 'no reason given'}\n"
        "Install or build what it misses: `make test` does both, `make setup-test` installs alone.\n"
        f"Only where a machine may be without it, add to the list: CIRCUMSTANCES | {reason or test}"
    )


def skips(results):
    """(test, reason) of each skip in the XML file that a GoogleTest program writes."""
    for case in xml.parse(results).iter("testcase"):
        if case.get("result") == "skipped":
            said = [skip.get("message", "").partition("\n")[2] for skip in case.iter("skipped")]  # after the place in the source
            yield f"{case.get('classname')}.{case.get('name')}", " ".join(said)


def problems_of(command, results):
    """Runs the program, which says itself what fails; what else is wrong, one text each."""
    code = subprocess.run([*command, f"--gtest_output=xml:{results}"], env=at_home(os.environ, results.parent)).returncode
    if code > 0:
        return [f"{command[0]} ended with {code}"]
    if code < 0:
        return [f"{command[0]} was ended by {signal.Signals(-code).name}"]
    if not results.exists():
        return [f"{command[0]} ended before its tests did"]
    return [problem for skip in skips(results) if (problem := complaint(*skip))]


def main(command):
    with tempfile.TemporaryDirectory() as folder:
        problems = problems_of(command, Path(folder) / "results.xml")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main(sys.argv[1:])
