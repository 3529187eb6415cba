"""docs/benchmarks.md has the tables of bench/results/, and no others."""
import importlib.util
import json
import re

import pytest
from cpp_source import REPOSITORY

SPEC = importlib.util.spec_from_file_location("benchmark_tables", REPOSITORY / "tools/benchmark_tables.py")
TABLES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLES)

RESULT = {"command": "bench/a.py", "machine": "two cores", "columns": ["", "s"], "rows": [["lancet", "1.0"], ["other", ""]]}
PLACE = "<!-- begin: bench/results/a.json -->\n{}<!-- end -->\n"


def test_the_page_has_what_was_measured():
    tables, page = TABLES.read_results(TABLES.RESULTS), TABLES.PAGE.read_text()
    assert len(tables) > 5
    assert TABLES.with_tables(page, tables) == page, "run: python3 tools/benchmark_tables.py --write"
    assert "\n|" not in TABLES.BLOCK.sub("", page), "a table that no file of bench/results has"


def test_commands_are_of_scripts_that_are_there():
    for path in TABLES.RESULTS.glob("*.json"):
        for script in re.findall(r"[\w/]+\.py", json.loads(path.read_text())["command"]):
            assert (REPOSITORY / script).exists() or (REPOSITORY / "bench" / script).exists(), f"{path.name}: {script}"


def test_a_result_becomes_a_table(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(RESULT))
    tables = TABLES.read_results(tmp_path)
    text = TABLES.with_tables(PLACE.format("old\n"), tables)
    assert text == PLACE.format("| | s |\n|---|---|\n| lancet | 1.0 |\n| other | |\n")
    assert TABLES.with_tables(text, tables) == text


@pytest.mark.parametrize("change", [{"rows": [["lancet"]]}, {"rows": []}, {"command": ""}, {"machine": None}])
def test_a_result_that_is_not_whole_is_refused(tmp_path, change):
    (tmp_path / "a.json").write_text(json.dumps(RESULT | change))
    with pytest.raises(SystemExit):
        TABLES.read_results(tmp_path)


@pytest.mark.parametrize("page", ["", PLACE.format("") + PLACE.format("").replace("a.json", "b.json")])
def test_a_page_without_their_places_is_refused(page):
    with pytest.raises(SystemExit):
        TABLES.with_tables(page, {"a": [["x"], ["1"]]})
