"""Defects that are put into the text of our kernels, or into what they compute: each one has to be found in every kernel that it changes."""
import re

import pytest
from kernel_sources import ARCHITECTURES, kernel_files, planted
from running import defects

ARITHMETIC = ("elementwise.h", "numbers.h")  # they have no threads
BARRIER = re.compile(r"__syncthreads\(\);")
GUARD = re.compile(r"(?<= )(?<!kSize )< (?=(?:packs|rows|width|n|dim|queries \* rule\.heads|tokens \* kv_heads)(?:;|\)| \? (?!token)))")
FUNCTION = re.compile(r"__device__ inline ")
SHARED = ("threads.h", "vector_lanes.h")  # a kernel may have several of their guards, of the other files one
# Those whose defect leaves memory or changes a result: file, guard, what lets one more pass.
OTHER_GUARDS = {
    "warps of a block": ("threads.h", "lane < static_cast<int>(blockDim.x)", "lane <= static_cast<int>(blockDim.x)"),
    "heads of queries": ("head_rows.h", "if (head < query.heads)", "if (head <= query.heads)"),
    "heads of keys": ("head_rows.h", "return head < key.heads ?", "return head <= key.heads ?"),
    "a label": ("decoder_kernels.cu", "id < width ?", "id <= width ?"),
    "earlier tokens": ("attention_rows.h", "s < n_earlier;", "s <= n_earlier;"),
    "a place in the window": ("attention_rows.h", "last + 1 > window ? last + 1 - window", "last > window ? last - window"),
    "seen keys": ("attention_rows.h", "seen.has(begin + i * lanes.groups()) ? exp", "seen.has(begin - 1 + i * lanes.groups()) ? exp"),
    "seen keys of the gradient": ("attention_gradients.h", "seen.has(begin + i", "seen.has(begin - 1 + i"),
    "where a key is": ("attention_rows.h", "s = has(begin + i", "s = has(begin - 1 + i"),
    "queries before a token": ("attention_gradients.h", "begin < end &&", "begin <= end &&"),
    "queries at a token": ("attention_gradients.h", "query_place[begin] < place)", "query_place[begin] <= place)"),
    "queries of a row": ("attention_gradients.h", "i < seeing", "i <= seeing"),
    "a window of queries": ("attention_gradients.h", "- place < rule.window", "- place <= rule.window"),
}


def places(pattern):
    """(File, match) in what threads run."""
    files = kernel_files().items()
    return [(name, match) for name, text in files if name not in ARITHMETIC for match in pattern.finditer(text)]


def changed(found, new):
    files = dict(kernel_files())
    for name, match in reversed(list(found)):
        files[name] = files[name][: match.start()] + new + files[name][match.end() :]
    return files


BARRIERS, GUARDS = places(BARRIER), places(GUARD)
ROW_GUARDS = [guard for guard in GUARDS if guard[0] not in SHARED]
GUARDS_AT_ONCE = [ROW_GUARDS, *([guard] for guard in GUARDS if guard[0] in SHARED)]


def test_places_are_found():
    assert len(BARRIERS) >= 2 and len(ROW_GUARDS) >= 8 and len(GUARDS_AT_ONCE) >= 7
    for file in SHARED:
        assert file in kernel_files()
    for name, text in kernel_files().items():  # else one guard's defect may hide another's
        for function in FUNCTION.split(text) if name not in SHARED else ():
            assert len(GUARD.findall(function)) <= 1, function


@pytest.mark.parametrize("place", range(len(BARRIERS)))
def test_a_missing_barrier_is_a_race(place):
    for name, found in defects(changed(BARRIERS[place : place + 1], ""), ARCHITECTURES[-1], "f32"):
        assert "a race: no barrier between" in found, f"{name}: {found}"


@pytest.mark.parametrize("place", range(len(GUARDS_AT_ONCE)))
def test_a_guard_that_lets_one_more_pass_is_found(place):
    for name, found in defects(changed(GUARDS_AT_ONCE[place], "<= "), ARCHITECTURES[-1], "bf16"):
        assert re.search("an access out of bounds: .* of global memory|a race: .* stores? .*of global memory", found), f"{name}: {found}"


@pytest.mark.parametrize("what", OTHER_GUARDS)
def test_another_guard_that_lets_one_more_pass_is_found(what):
    file, guard, wrong = OTHER_GUARDS[what]
    for name, found in defects(planted(file, (guard, wrong)), ARCHITECTURES[-1], "bf16"):
        assert re.search("an access out of bounds|nobody has written|is .*, expected", found), f"{name}: {found}"


def test_guards_that_stop_before_the_last_are_found():
    for name, found in defects(changed(ROW_GUARDS, "+ 1 < "), ARCHITECTURES[-1], "f32"):
        assert re.search("are never written|is .*, expected", found), f"{name}: {found}"


def test_wrong_formulas_are_found():
    files = planted("elementwise.h", ("(1 + g * (1 - s))", "(1 + g * s)"), ("narrow<T>(a * cos - b * sin)", "narrow<T>(a * cos + b * sin)"))
    for name, found in defects(files, ARCHITECTURES[-1], "bf16"):
        assert re.search(r"\] is .*, expected .* are wrong", found), f"{name}: {found}"


@pytest.mark.parametrize("rounded", ["bits + 0x8000U", "bits"])  # ties away from 0; cut off
def test_wrong_rounding_is_found(rounded):
    files = planted("numbers.h", ("bits + 0x7FFFU + ((bits >> 16) & 1U)", rounded))
    assert any(re.search(r"\] is .*, expected .* are wrong", found) for _, found in defects(files, ARCHITECTURES[-1], "bf16"))
