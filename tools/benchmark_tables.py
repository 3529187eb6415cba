"""Prints the tables of figures for docs/benchmarks.md: `tools/benchmark_tables.py --write` puts them there.

Each is a file of bench/results/: `columns` and `rows` as the page shows them, the `command` that wrote it, and the `machine` it ran on.
Scripts of bench/ that make such a table print one with --json. tests/lint/test_benchmark_tables.py compares files and page.
"""
import argparse
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
PAGE = ROOT / "docs/benchmarks.md"
BLOCK = re.compile(r"(<!-- begin: bench/results/([\w-]+)\.json -->\n).*?(<!-- end -->)", re.S)


def read_results(folder):
    """{name: the table's rows, its head first}"""
    tables = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        missing = [key for key in ("command", "machine", "columns", "rows") if not result.get(key)]
        if missing or any(len(row) != len(result["columns"]) for row in result["rows"]):
            raise SystemExit(f"{path.name}: expected command, machine, columns, and rows with as many cells")
        tables[path.stem] = [result["columns"], *result["rows"]]
    return tables


def block(rows):
    head, *lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines]) + "\n"


def with_tables(page, tables):
    named = [name for _, name, _ in BLOCK.findall(page)]
    if sorted(named) != sorted(tables):
        raise SystemExit(f"{PAGE.name} has places for {', '.join(sorted(named))}; bench/results has {', '.join(sorted(tables))}")
    return BLOCK.sub(lambda found: found[1] + block(tables[found[2]]) + found[3], page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    write = parser.parse_args().write
    tables = read_results(RESULTS)
    if write:
        PAGE.write_text(with_tables(PAGE.read_text(), tables))
    else:
        print("\n".join(f"{name}\n{block(rows)}" for name, rows in tables.items()))


if __name__ == "__main__":
    main()
