"""Tables of facts beside Python's own csv module: whatever a writer makes of the same rows is read as the same facts."""
import csv
import io
import random

import pytest

import lancet

ENDS = ("\n", "\r\n", "\r", "\r\r\n")
PIECES = ("Rome", "a, b", 'say "so"', "two\nlines", "two\r\nlines", "x;y", "a\tb", "é", " ", "{}", "中", "'", "=1+1")


def rows_of(chance):
    for number in range(chance.randint(1, 8)):
        text = lambda: "".join(chance.choices(PIECES, k=chance.randint(1, 4))).strip() or "x"  # noqa: E731
        yield {"id": f"n{number}", "prompt": text().replace("{}", "-"), "target": text(), "target_true": text() if chance.random() < 0.5 else ""}


def written(rows, chance, divider, end, quoting):
    names = list(rows[0])
    chance.shuffle(names)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, delimiter=divider, lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("end", ENDS, ids=repr)
@pytest.mark.parametrize("divider", ",;\t")
def test_what_csv_writes_is_read(tmp_path, divider, end):
    chance = random.Random(f"{divider}{end}")
    path = tmp_path / "facts.csv"
    for _ in range(60):
        rows = list(rows_of(chance))
        quoting = [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]
        if end != "\r":  # else csv leaves a line feed inside a field without quotes, and reads another table itself
            quoting.append(csv.QUOTE_MINIMAL)
        text = written(rows, chance, divider, end, chance.choice(quoting))
        start = chance.choice(("", "\ufeff")) + chance.choice(("", f"sep={divider}{end}"))
        path.write_bytes((start + text).encode())
        read = [{key: fact.get(key, "") for key in rows[0]} for fact in lancet.load_requests(path)]
        assert read == rows, text
        assert list(csv.DictReader(io.StringIO(text, newline=""), delimiter=divider)) == rows, "the oracle itself"


def test_what_pandas_writes_is_read(tmp_path):
    import pandas

    rows = [{"id": f"n{i}", "prompt": f"p {i}", "target": f"t,{i}"} for i in range(12)]
    path = tmp_path / "facts.csv"
    pandas.DataFrame(rows).to_csv(path)
    assert lancet.load_requests(path) == rows
    pandas.read_csv(path).to_csv(path)  # a second time: "Unnamed: 0"
    assert lancet.load_requests(path) == rows
    pandas.DataFrame(rows[::-1]).iloc[::2].to_csv(path)
    with pytest.raises(lancet.ConfigError, match=r"facts\.csv: line 1: column 1 has no name: pandas writes a table's index so \(to_csv\(FILE, index=False\)"):
        lancet.load_requests(path)
