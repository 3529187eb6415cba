"""What instructions compute, against Python's fractions and integers, and torch's conversions."""
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from arithmetic import DTYPES
from operations import find_operation
from ptx_text import PtxError

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def no_warnings():
    with np.errstate(all="ignore"):
        yield


def result(opcode, *values):
    found = find_operation(opcode)
    arrays = [np.atleast_1d(np.asarray(value)).astype(DTYPES[kind]) for value, kind in zip(values, found.inputs, strict=True)]
    got = found.function(*arrays)
    assert got.dtype == DTYPES[found.output]
    return got


def floats(dtype, n):
    """Of all sizes that do not overflow in a product, and near 1."""
    far = RNG.standard_normal(n) * 2.0 ** RNG.integers(-40, 40, n)
    return np.where(RNG.random(n) < 0.5, far, 1 + RNG.standard_normal(n) * 2.0**-10).astype(dtype)


def nearest(exact, dtype):
    """A Fraction as the float nearest to it, ties to even: Python's own division for f64; for f32 by integers."""
    if dtype == np.float64:
        return exact.numerator / exact.denominator
    if exact == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(exact))) - 23, -149)
    for step in (exponent - 1, exponent, exponent + 1):  # log2 may be off by one
        whole = round(exact / Fraction(2) ** step)  # ties to even
        if abs(whole) < 2**24 or step == exponent + 1:
            return float(whole * Fraction(2) ** step)


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_fma_rounds_once(kind, dtype):
    a, b = floats(dtype, 3000), floats(dtype, 3000)
    c = np.where(RNG.random(3000) < 0.5, -(a * b), floats(dtype, 3000)).astype(dtype)  # half of them cancel
    got = result(f"fma.rn.{kind}", a, b, c)
    expected = [nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), dtype) for x, y, z in zip(a, b, c, strict=True)]
    assert (got == np.array(expected)).all()
    assert (a * b + c != got).any()  # rounding twice is not the same
    for *numbers, expected in ((np.inf, 1, 1, np.inf), (np.inf, 0, 1, np.nan), (1e30, 1e30, -np.inf, -np.inf), (1, 1, np.nan, np.nan)):
        assert np.array_equal(result(f"fma.rn.{kind}", *numbers), [expected], equal_nan=True)


def test_fma_rounds_down():
    a, b, c = (floats(np.float32, 2000) for _ in range(3))
    for got, *numbers in zip(result("fma.rm.f32", a, b, c), a, b, c, strict=True):
        x, y, z = (Fraction(float(number)) for number in numbers)
        assert Fraction(float(got)) <= x * y + z < Fraction(float(np.nextafter(got, np.float32(np.inf))))


INTEGERS = {
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: a * b >> 32,
    "mul.hi.u64": lambda a, b: a * b >> 64,
    "mul.lo.s64": lambda a, b: a * b,
    "mul.wide.s32": lambda a, b: a * b,
    "mul.wide.u32": lambda a, b: a * b,
    "div.s32": lambda a, b: int(Fraction(a, b)),
    "div.u64": lambda a, b: a // b,
    "div.s64": lambda a, b: int(Fraction(a, b)),
    "rem.s32": lambda a, b: a - b * int(Fraction(a, b)),
    "rem.u32": lambda a, b: a % b,
    "min.s32": min,
    "max.u64": max,
    "add.s32": lambda a, b: a + b,
    "sub.u64": lambda a, b: a - b,
    "and.b32": lambda a, b: a & b,
    "xor.b64": lambda a, b: a ^ b,
}


def as_kind(value, kind):
    n = int(kind[1:])
    value &= (1 << n) - 1
    return value - (1 << n) if kind[0] == "s" and value >> n - 1 else value


@pytest.mark.parametrize("opcode", INTEGERS)
def test_integers_are_c_s(opcode):
    found = find_operation(opcode)
    limits = np.iinfo(DTYPES[found.inputs[0]])
    a, b = (RNG.integers(limits.min, limits.max, 500, limits.dtype, endpoint=True) for _ in range(2))
    b = np.where(b == 0, 1, b) // np.where(np.arange(500) % 2, 1, 1 << 20).astype(limits.dtype)
    b = np.where(b == 0, 3, b).astype(limits.dtype)
    assert [int(x) for x in result(opcode, a, b)] == [as_kind(INTEGERS[opcode](int(x), int(y)), found.output) for x, y in zip(a, b, strict=True)]


def test_shifts_are_clamped():
    by = np.array([0, 1, 31, 32, 33, 200], np.uint32)
    assert list(result("shl.b32", np.full(6, 0x80000003), by)) == [0x80000003, 6, 1 << 31, 0, 0, 0]
    assert list(result("shr.u32", np.full(6, 0x80000003), by)) == [0x80000003, 0x40000001, 1, 0, 0, 0]
    assert list(result("shr.s32", np.full(6, -16), by)) == [-16, -8, -1, -1, -1, -1]


def test_bits_are_picked():
    a, b = 0x11223384, 0xAABBCCDD
    assert result("prmt.b32", a, b, 0x7410)[0] == 0xAADD3384 and result("prmt.b32", a, b, 0x3298)[0] == 0x112200FF
    assert result("shf.l.wrap.b32", a, b, 8)[0] == 0xBBCCDD11 and result("shf.r.wrap.b32", a, b, 8)[0] == 0xDD112233
    assert list(result("popc.b32", [a, 0, 0xFFFFFFFF])) == [bin(a).count("1"), 0, 32]
    assert result("bfe.u32", a, 4, 12)[0] == 0x338 and result("bfe.u32", a, 28, 32)[0] == 1


@pytest.mark.parametrize(
    ("name", "ordered", "with_nan"),
    [
        ("eq", [0, 1, 0], 0),
        ("ne", [1, 0, 1], 0),
        ("lt", [1, 0, 0], 0),
        ("ge", [0, 1, 1], 0),
        ("leu", [1, 1, 0], 1),
        ("neu", [1, 0, 1], 1),
        ("num", [1, 1, 1], 0),
        ("nan", [0, 0, 0], 1),
    ],
)
def test_comparisons_know_what_is_no_number(name, ordered, with_nan):
    assert list(result(f"setp.{name}.f32", [1, 2, 3, np.nan, 1], [2, 2, 2, 1, np.nan])) == [*ordered, with_nan, with_nan]
    assert list(result("min.f32", [1, np.nan], [np.nan, 2])) == [1, 2]


def test_unsigned_and_signed_comparisons_differ():
    assert result("setp.lt.s32", -1, 1)[0] and not result("setp.lt.u32", 0xFFFFFFFF, 1)[0] and result("setp.hi.u32", 0xFFFFFFFF, 1)[0]
    assert not result("setp.eq.and.s32", 1, 1, False)[0] and result("setp.eq.xor.s32", 1, 1, False)[0]


def test_sixteen_bits_are_torchs():
    bits = np.arange(1 << 16, dtype=np.uint16)
    for kind, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        wide = torch.from_numpy(bits.view(np.int16)).view(dtype).float().numpy()
        stored = bits.view(DTYPES[kind])
        assert np.array_equal(find_operation(f"cvt.f32.{kind}").function(stored), wide, equal_nan=True)
        x = RNG.integers(0, 1 << 32, 200_000, np.uint32).view(np.float32)
        near = np.concatenate([x, wide, np.nextafter(wide, np.float32(np.inf)), wide * np.float32(1 + 2.0**-9), wide * np.float32(1 + 2.0**-12)])
        near = near[~np.isnan(near)]
        expected = torch.from_numpy(near).to(dtype).view(torch.int16).numpy().view(np.uint16)
        assert (result(f"cvt.rn.{kind}.f32", near).view(np.uint16) == expected).all()
        both = result(f"cvt.rn.{kind}x2.f32", near[1:], near[:-1])
        assert (both == expected[1:].astype(np.uint32) << 16 | expected[:-1]).all()


def test_conversions_saturate_and_round():
    x = [-3e9, -1.5, -0.5, 0.5, 1.5, 2.5, 3e9, 1e30, np.nan]
    assert list(result("cvt.rni.s32.f32", x)) == [-(2**31), -2, 0, 0, 2, 2, 2**31 - 1, 2**31 - 1, 0]
    assert list(result("cvt.rzi.u32.f64", x)) == [0, 0, 0, 0, 1, 2, 3000000000, 2**32 - 1, 0]
    assert list(result("cvt.rzi.s64.f32", [1e30, -1e30, -7.9])) == [2**63 - 1, -(2**63), -7]
    assert list(result("cvt.sat.f32.f32", x)) == [0, 0, 0, 0.5, 1, 1, 1, 1, 0]
    assert list(result("cvt.rn.f32.s64", [2**24 + 1, 2**63 - 1, -(2**24) - 3])) == [2**24, 2.0**63, -(2**24) - 4]
    assert list(result("cvt.s64.s32", [-5])) == [-5] and list(result("cvt.u64.u32", [0xFFFFFFFB])) == [0xFFFFFFFB]
    assert list(result("cvt.rni.f32.f32", x[1:6])) == [-2, 0, 0, 2, 2]


def test_approximations_are_near_and_flush():
    x = floats(np.float32, 1000)
    assert np.allclose(result("ex2.approx.ftz.f32", x[np.abs(x) < 100]), np.exp2(x[np.abs(x) < 100].astype(float)), rtol=1e-7, atol=0)
    assert result("ex2.approx.ftz.f32", -130)[0] == 0 and result("ex2.approx.f32", -130)[0] == 2.0**-130
    assert np.allclose(result("rsqrt.approx.f32", np.abs(x)), 1 / np.sqrt(np.abs(x).astype(float)), rtol=1e-7)
    rough = result("rcp.approx.ftz.f64", [3.0])[0]
    assert 1e-10 < abs(rough * 3 - 1) < 1e-6  # to be refined by who asks


OTHERS = ("add.f16", "mul.s32", "fma.rz.f32", "cvt.f32.f64", "cvt.rna.tf32.f32", "setp.is.s32", "mad.hi.u32", "shl.s8x4", "ld.f32")


@pytest.mark.parametrize("opcode", OTHERS)
def test_other_forms_are_refused(opcode):
    with pytest.raises(PtxError, match=r"not known: .*tests/ptx/operations.py|not known: add `ld`"):
        find_operation(opcode)
