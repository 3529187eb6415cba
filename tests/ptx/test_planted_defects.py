"""Defects that are put into the text of our kernels, or into what they compute: each one has to be found."""
import re

import pytest
from kernel_sources import kernel_files, planted
from ptx_text import PtxError
from running import run_changed

ARITHMETIC = ("elementwise.h", "numbers.h")  # they have no threads


def places(pattern):
    """(File, begin, end) of each match in what threads run."""
    found = [(name, match) for name, text in kernel_files().items() if name not in ARITHMETIC for match in re.finditer(pattern, text)]
    return [pytest.param(name, *match.span(), id=f"{name}:{match.string.count(chr(10), 0, match.start()) + 1}") for name, match in found]


def changed(name, begin, end, new=""):
    text = kernel_files()[name]
    return kernel_files() | {name: text[:begin] + new + text[end:]}


BARRIERS = places(r"__syncthreads\(\);")
GUARDS = places(r"(?<= )< (?=(?:rows|width|n|pairs|queries \* rule\.heads|tokens \* kv_heads);)")


def test_places_are_found():
    assert len(BARRIERS) >= 2 and len(GUARDS) >= 8


@pytest.mark.parametrize(("name", "begin", "end"), BARRIERS)
def test_a_missing_barrier_is_a_race(name, begin, end):
    with pytest.raises(PtxError, match="a race: no barrier between"):
        run_changed(changed(name, begin, end), 90, "f32")


@pytest.mark.parametrize(("name", "begin", "end"), GUARDS)
def test_a_guard_that_lets_one_more_pass_is_found(name, begin, end):
    with pytest.raises(PtxError, match="an access out of bounds: .* of global memory"):
        run_changed(changed(name, begin, end, "<= "), 90, "bf16")


@pytest.mark.parametrize(("name", "begin", "end"), GUARDS[:1] + GUARDS[-1:])
def test_a_guard_that_stops_before_the_last_is_found(name, begin, end):
    with pytest.raises(PtxError, match="are never written|is .*, expected"):
        run_changed(changed(name, begin, end, "+ 1 < "), 100, "f32")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("elementwise.h", "(1 + g * (1 - s))", "(1 + g * s)"),
        ("elementwise.h", "narrow<T>(a * cos - b * sin)", "narrow<T>(a * cos + b * sin)"),
        ("numbers.h", "bits + 0x7FFFU + ((bits >> 16) & 1U)", "bits + 0x8000U"),  # ties away from 0
        ("numbers.h", "bits + 0x7FFFU + ((bits >> 16) & 1U)", "bits"),  # cut off
    ],
)
def test_wrong_arithmetic_is_found(name, old, new):
    with pytest.raises(PtxError, match=r"\] is .*, expected .* are wrong"):
        run_changed(planted(name, (old, new)), 100, "bf16")
