"""Facts that come as a table, and results that go as one. pandas is looked for where it is wanted alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from .errors import ConfigError

if TYPE_CHECKING:
    import pandas

Table = list[dict[str, Any]]
"""Flat rows: `pandas.DataFrame(edit.table())`."""

Requests = Union[Mapping[str, Any], Sequence[Mapping[str, Any]], "pandas.DataFrame"]
"""A fact, several, or a DataFrame with a fact in each row."""


def records_of(requests: Requests) -> list[Mapping[str, Any]]:
    """Each fact as a dict; cells of a DataFrame that are empty are not given."""
    if isinstance(requests, Mapping):
        return [requests]
    if hasattr(requests, "columns") and hasattr(requests, "to_dict"):
        rows = requests.to_dict("records")
        return [{str(key): value for key, value in row.items() if not _is_empty(value)} for row in rows]
    records = list(requests)
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ConfigError(f"requests: record {i}: expected a dict of prompt, subject and target, got {type(record).__name__}")
    return records


def _is_empty(cell: Any) -> bool:
    """None, and what is not equal to itself: NaN, NaT; pandas.NA says neither yes nor no."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def frame_of(rows: Table) -> "pandas.DataFrame":
    try:
        import pandas
    except ImportError as error:
        raise ConfigError("to_frame: pandas is not installed: pip install pandas, or take the rows of table()") from error
    return pandas.DataFrame(rows)
