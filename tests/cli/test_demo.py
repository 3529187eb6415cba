"""`make demo` is what README.md says: its figures and answers. A minute of two cores, so with LANCET_TEST_FULL=1 (make test-full) alone."""
import json
import os
import re

import pytest
from conftest import DATA, ROOT

AWAY = 1.001  # in %: what README.md grants other types and processors
README = (ROOT / "README.md").read_text()
SHEET = (ROOT / "docs" / "cheatsheet.md").read_text()


@pytest.mark.skipif(not os.environ.get("LANCET_TEST_FULL"), reason="takes a minute: make test-full")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_demo_ends_as_the_readme_shows(lancet, threads):
    settings = [f"run.threads={threads}", f"output.dir={lancet.out}", f"statistics.cache={lancet.folder / 'cache'}"]
    done = lancet.run("edit", DATA / "jobs" / "demo.yaml", *[word for setting in settings for word in ("--set", setting)])
    assert done.returncode == 0, done.stderr
    shown = {name: tuple(map(float, figures)) for name, *figures in re.findall(r"^  (\w+_\w+) +([\d.]+) +([\d.]+) +(\d+)$", README, re.M)}
    report = json.loads((lancet.out / "report.json").read_text())
    assert set(shown) == set(report["metrics"])
    for name, (before, after, prompts) in shown.items():
        found = report["metrics"][name]
        assert found["prompts"] == prompts and abs(100 * found["before"] - before) <= AWAY and abs(100 * found["after"] - after) <= AWAY, (name, found)
    at_once, later = ([], [])
    for request in report["requests"]:
        (at_once if request["continuation"]["before"].strip().startswith(request["target_true"]) else later).append(request["verdict"]["success"])
    took, of, took_later, of_later = map(int, re.search(r"it took (\d+) of (\d+) so, and (\d+) of the (\d+) whose", " ".join(SHEET.split())).groups())
    assert abs(sum(at_once) - took) <= 1 and abs(len(at_once) - of) <= 1 and abs(sum(later) - took_later) <= 1 and abs(len(later) - of_later) <= 1
    (answer,) = re.findall(r"^  .+  → .+\n    before: .+\n    after:  .+$", README, re.M)
    assert answer in done.stdout
