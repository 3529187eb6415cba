"""What all Python suites share: a test that skips fails, unless tests/expected_skips.txt says where it may, and a home of their own."""
import atexit
import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))
from expected_skips import complaint  # noqa: E402
from own_home import at_home  # noqa: E402


def leave_home():
    """Before anything is imported that looks for its folders then."""
    home = tempfile.mkdtemp(prefix="lancet-tests-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    environment = at_home(os.environ, home)
    os.environ.clear()
    os.environ.update(environment)


leave_home()
# Else all that transformers' modules are made of is searched for garbage again and again, a third of a second each time.
gc.set_threshold(10_000, 10, 100)


def pytest_addoption(parser):
    parser.addoption("--part", metavar="K/N", help="only the K-th of N parts of the folder's files, as `make test` runs long suites")


def pytest_ignore_collect(collection_path, config):
    if (part := config.getoption("part")) is None or not collection_path.match("test_*.py"):
        return None
    number, parts = map(int, part.split("/"))
    files = sorted(collection_path.parent.glob("test_*.py"))
    return files.index(collection_path) % parts != number - 1 or None


def judged(test, report):
    if report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        if problem := complaint(test, reason.removeprefix("Skipped: ")):
            report.outcome, report.longrepr = "failed", problem
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    return judged(item.nodeid, (yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    """Of a module that skips as a whole."""
    return judged(collector.nodeid, (yield))
