"""Defects that are put into the text of our kernels, or into what they compute: each one has to be found in every kernel that it changes."""
import re

import pytest
from kernel_sources import kernel_files, planted
from running import defects

ARITHMETIC = ("elementwise.h", "numbers.h")  # they have no threads
BARRIER = re.compile(r"__syncthreads\(\);")
GUARD = re.compile(r"(?<= )< (?=(?:rows|width|n|pairs|queries \* rule\.heads|tokens \* kv_heads);)")
FUNCTION = re.compile(r"^__device__ ", re.M)
MOST_GUARDS = 3  # of one function


def places(pattern):
    """(File, match, how many there are before it in its function) in what threads run."""
    for name, text in kernel_files().items():
        for match in pattern.finditer(text) if name not in ARITHMETIC else ():
            begin = max(head.start() for head in FUNCTION.finditer(text, 0, match.start()))
            yield name, match, len(pattern.findall(text, begin, match.start()))


def changed(found, new):
    files = dict(kernel_files())
    for name, match, _ in reversed(list(found)):
        files[name] = files[name][: match.start()] + new + files[name][match.end() :]
    return files


BARRIERS, GUARDS = list(places(BARRIER)), list(places(GUARD))


def test_places_are_found():
    assert len(BARRIERS) >= 2 and len(GUARDS) >= 8 and max(place for *_, place in GUARDS) < MOST_GUARDS


@pytest.mark.parametrize("place", range(len(BARRIERS)))
def test_a_missing_barrier_is_a_race(place):
    for name, found in defects(changed(BARRIERS[place : place + 1], ""), 90, "f32"):
        assert "a race: no barrier between" in found, f"{name}: {found}"


@pytest.mark.parametrize("place", range(MOST_GUARDS))
def test_a_guard_that_lets_one_more_pass_is_found(place):
    """One guard of each function at a time."""
    for name, found in defects(changed([guard for guard in GUARDS if guard[2] == place], "<= "), 90, "bf16"):
        assert re.search("an access out of bounds: .* of global memory", found), f"{name}: {found}"


def test_guards_that_stop_before_the_last_are_found():
    for name, found in defects(changed([guard for guard in GUARDS if guard[2] == 0], "+ 1 < "), 100, "f32"):
        assert re.search("are never written|is .*, expected", found), f"{name}: {found}"


def test_wrong_formulas_are_found():
    files = planted("elementwise.h", ("(1 + g * (1 - s))", "(1 + g * s)"), ("narrow<T>(a * cos - b * sin)", "narrow<T>(a * cos + b * sin)"))
    for name, found in defects(files, 100, "bf16"):
        assert re.search(r"\] is .*, expected .* are wrong", found), f"{name}: {found}"


@pytest.mark.parametrize("rounded", ["bits + 0x8000U", "bits"])  # ties away from 0; cut off
def test_wrong_rounding_is_found(rounded):
    files = planted("numbers.h", ("bits + 0x7FFFU + ((bits >> 16) & 1U)", rounded))
    assert any(re.search(r"\] is .*, expected .* are wrong", found) for _, found in defects(files, 100, "bf16"))
