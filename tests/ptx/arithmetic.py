"""What PTX's instructions compute, as functions of numpy's arrays: an operation by its opcode's words, or an error that names it.

Results are those that the ISA demands where it demands them. An approximation (ex2, lg2, rsqrt, sin) is exact before it is rounded: what
it may be off by is left to the tolerance of who compares.
"""
from dataclasses import dataclass
from typing import Callable

import numpy as np

from ptx_text import PtxError

DTYPES = {"pred": np.bool_, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "f16x2": np.uint32, "bf16x2": np.uint32}
DTYPES |= {f"{kind}{bits}": np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}") for kind in "bus" for bits in (8, 16, 32, 64)}
DTYPES = {kind: np.dtype(dtype) for kind, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Operation:
    inputs: tuple  # kinds, such as "u32"
    output: str
    function: Callable


BUILDERS = {}


def operation(name):
    def register(build):
        BUILDERS[name] = build
        return build

    return register


def flags_and_kinds(words, allowed="", kinds=1):
    """The words before the last `kinds`, each of which is allowed, and those."""
    flags = words[: len(words) - kinds]
    for flag in flags:
        if flag not in allowed.split():
            raise ValueError(flag)
    for kind in words[len(flags) :]:
        if kind not in DTYPES:
            raise ValueError(kind)
    return set(flags), *words[len(flags) :]


def is_float(kind):
    return kind in ("f32", "f64")


def bits_of(kind):
    return DTYPES[kind].itemsize * 8


def flush(x):
    """Numbers below the least normal one become 0 of their sign."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def flushing(flags, function):
    return (lambda *x: flush(function(*map(flush, x)))) if "ftz" in flags else function


def of_kind(n, floats=None, integers=None, allowed="rn ftz"):
    """Operations of n numbers of one kind, which is their result's too."""

    def build(words):
        flags, kind = flags_and_kinds(words, allowed if is_float(words[-1]) else "")
        function = floats if is_float(kind) else integers
        if function is None or kind in ("f16", "bf16", "pred"):
            raise ValueError(kind)
        return Operation((kind,) * n, kind, flushing(flags, function))

    return build


# ---- Sums and products


def rounded_to_odd(a, b):
    """a + b where it is exact, else the one of its two neighbours whose last bit is 1. Rounding that to fewer bits is rounding a + b."""
    s = a + b
    t = s - a
    rest = (a - (s - t)) + (b - t)
    is_even = s.view(np.uint64) & np.uint64(1) == 0
    move = (rest != 0) & is_even & np.isfinite(rest)
    return np.where(move, np.nextafter(s, np.where(rest > 0, np.inf, -np.inf)), s)


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a, b):
    def halves(x):
        c = x * 134217729.0
        high = c - (c - x)
        return high, x - high

    p = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fma_f64(a, b, c):
    """Of Boldo and Melquiond, "Emulation of FMA and correctly rounded sums": the sum of four parts, all but the last rounded to odd."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    total, rest = two_sum(c, low)
    top, middle = two_sum(high, total)
    exact = top + rounded_to_odd(rest, middle)
    return np.where(np.isfinite(exact), exact, a * b + c)


def fma_f32(a, b, c):
    a, b, c = np.broadcast_arrays(a, b, c)
    return rounded_to_odd(a.astype(np.float64) * b, c.astype(np.float64)).astype(np.float32)


def directed(exact, up):
    """To f32 in one direction."""
    near = exact.astype(np.float32)
    wrong = near < exact if up else near > exact
    return np.where(wrong, np.nextafter(near, np.float32(np.inf if up else -np.inf)), near)


def fma_down(a, b, c):
    a, b, c = np.broadcast_arrays(a, b, c)
    return directed(rounded_to_odd(a.astype(np.float64) * b, c.astype(np.float64)), up=False)


BUILDERS["add"] = of_kind(2, np.add, np.add)
BUILDERS["sub"] = of_kind(2, np.subtract, np.subtract)
BUILDERS["neg"] = of_kind(1, np.negative, np.negative)
BUILDERS["abs"] = of_kind(1, np.abs, np.abs)
BUILDERS["min"] = of_kind(2, np.fmin, np.minimum)
BUILDERS["max"] = of_kind(2, np.fmax, np.maximum)


def doubled(kind):
    return f"{kind[0]}{2 * bits_of(kind)}"


def product_high(a, b):
    wide = a.astype(object) * b.astype(object)
    return (wide >> (8 * a.dtype.itemsize)).astype(a.dtype)


@operation("mul")
def multiply(words):
    if is_float(words[-1]):
        return of_kind(2, np.multiply)(words)
    (part,), kind = flags_and_kinds(words, "lo hi wide")
    if part == "wide":
        return Operation((kind, kind), doubled(kind), lambda a, b: a.astype(DTYPES[doubled(kind)]) * b)
    return Operation((kind, kind), kind, np.multiply if part == "lo" else product_high)


@operation("mad")
def multiply_and_add(words):
    product = multiply(words)
    if is_float(words[-1]) or "hi" in words:
        raise ValueError(words[0])
    return Operation((*product.inputs, product.output), product.output, lambda a, b, c: product.function(a, b) + c)


@operation("fma")
def fused(words):
    if words == ["rm", "f32"]:
        return Operation(("f32",) * 3, "f32", fma_down)
    flags, kind = flags_and_kinds(words, "rn ftz")
    return Operation((kind,) * 3, kind, flushing(flags, {"f32": fma_f32, "f64": fma_f64}[kind]))


def quotient(a, b):
    """Towards 0, as C has it."""
    if (b == 0).any():
        raise PtxError("an integer is divided by 0")
    rest = remainder(a, b)
    return ((a - rest) // b).astype(a.dtype)


def remainder(a, b):
    if (b == 0).any():
        raise PtxError("an integer is divided by 0")
    return np.fmod(a, b)


BUILDERS["div"] = of_kind(2, np.divide, quotient, "rn full approx ftz")
BUILDERS["rem"] = of_kind(2, None, remainder)


# ---- Functions of one number


def precisely(function):
    """In f64, rounded once."""
    return lambda x: function(x.astype(np.float64)).astype(x.dtype)


def estimated_reciprocal(x):
    """1 / x with the upper half of its bits alone, as rcp.approx.ftz.f64 gives: what refines it has to."""
    return ((1 / flush(x)).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)


@operation("rcp")
def reciprocal(words):
    if words == ["approx", "ftz", "f64"]:
        return Operation(("f64",), "f64", estimated_reciprocal)
    return of_kind(1, lambda x: 1 / x, None, "rn approx ftz")(words)


BUILDERS["sqrt"] = of_kind(1, np.sqrt, None, "rn approx ftz")
BUILDERS["rsqrt"] = of_kind(1, precisely(lambda x: 1 / np.sqrt(x)), None, "approx ftz")
BUILDERS["ex2"] = of_kind(1, precisely(np.exp2), None, "approx ftz")
BUILDERS["lg2"] = of_kind(1, precisely(np.log2), None, "approx ftz")
BUILDERS["sin"] = of_kind(1, precisely(np.sin), None, "approx ftz")
BUILDERS["cos"] = of_kind(1, precisely(np.cos), None, "approx ftz")
BUILDERS["tanh"] = of_kind(1, precisely(np.tanh), None, "approx")


# ---- Bits


def of_bits(n, function, is_predicate_allowed=True):
    def build(words):
        (_, kind) = flags_and_kinds(words)
        if not (kind.startswith("b") and kind != "bf16" or is_predicate_allowed and kind == "pred"):
            raise ValueError(kind)
        return Operation((kind,) * n, kind, function)

    return build


BUILDERS["and"] = of_bits(2, np.bitwise_and)
BUILDERS["or"] = of_bits(2, np.bitwise_or)
BUILDERS["xor"] = of_bits(2, np.bitwise_xor)
BUILDERS["not"] = of_bits(1, np.invert)


@operation("shl")
def shift_left(words):
    _, kind = flags_and_kinds(words)
    n, dtype = bits_of(kind), DTYPES[kind]
    return Operation((kind, "u32"), kind, lambda a, b: np.where(b < n, a << np.minimum(b, n - 1).astype(dtype), dtype.type(0)))


@operation("shr")
def shift_right(words):
    _, kind = flags_and_kinds(words)
    n, dtype = bits_of(kind), DTYPES[kind]

    def shift(a, b):
        shifted = a >> np.minimum(b, n - 1).astype(dtype)
        return shifted if kind[0] == "s" else np.where(b < n, shifted, dtype.type(0))

    return Operation((kind, "u32"), kind, shift)


@operation("shf")
def funnel_shift(words):
    if words[0] not in ("l", "r") or words[1:] != ["wrap", "b32"]:
        raise ValueError(words[0])

    def shift(low, high, by):
        both, by = (high.astype(np.uint64) << np.uint64(32)) | low, (by & np.uint32(31)).astype(np.uint64)
        return (both >> (by if words[0] == "r" else np.uint64(32) - by)).astype(np.uint32)

    return Operation(("b32", "b32", "u32"), "b32", shift)


@operation("prmt")
def permute_bytes(words):
    if words != ["b32"]:
        raise ValueError(words[0])

    def permute(a, b, control):
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        result = np.uint64(0)
        for i in range(4):
            pick = (control >> np.uint32(4 * i)).astype(np.uint64)
            byte = (both >> ((pick & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            byte = np.where(pick & np.uint64(8), np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0)), byte)
            result = result | (byte << np.uint64(8 * i))
        return result.astype(np.uint32)

    return Operation(("b32",) * 3, "b32", permute)


@operation("popc")
def count_bits(words):
    _, kind = flags_and_kinds(words)
    if kind not in ("b32", "b64"):
        raise ValueError(kind)
    return Operation((kind,), "u32", lambda a: np.unpackbits(np.ascontiguousarray(a).view(np.uint8)).reshape(-1, bits_of(kind)).sum(1, dtype=np.uint32))


@operation("bfe")
def extract_bits(words):
    _, kind = flags_and_kinds(words)
    if kind not in ("u32", "u64"):
        raise ValueError(kind)
    dtype, n = DTYPES[kind], bits_of(kind)

    def extract(a, begin, count):
        begin, count = begin & np.uint32(255), count & np.uint32(255)
        shifted = np.where(begin < n, a >> np.minimum(begin, n - 1).astype(dtype), dtype.type(0))
        mask = np.where(count < n, (dtype.type(1) << np.minimum(count, n - 1).astype(dtype)) - dtype.type(1), ~dtype.type(0))
        return shifted & mask

    return Operation((kind, "u32", "u32"), kind, extract)


# ---- Comparisons

ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
JOINED = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name, kind):
    def is_nan(a, b):
        return np.isnan(a) | np.isnan(b)

    if not is_float(kind):
        return ORDERED[name] if name in ORDERED else UNSIGNED[name]
    if name in ORDERED:
        return lambda a, b: ORDERED[name](a, b) & ~is_nan(a, b)
    if name in ("num", "nan"):
        return is_nan if name == "nan" else lambda a, b: ~is_nan(a, b)
    return lambda a, b: ORDERED[name.removesuffix("u")](a, b) | is_nan(a, b)


@operation("setp")
def set_predicate(words):
    name, *joins, kind = [word for word in words if word != "ftz"]
    compare = comparison(name, kind)
    if "ftz" in words:
        plain = compare
        compare = lambda a, b: plain(flush(a), flush(b))  # noqa: E731
    if not joins:
        return Operation((kind, kind), "pred", compare)
    (join,) = joins
    return Operation((kind, kind, "pred"), "pred", lambda a, b, c: JOINED[join](compare(a, b), c))


@operation("selp")
def select(words):
    _, kind = flags_and_kinds(words)
    return Operation((kind, kind, "pred"), kind, lambda a, b, p: np.where(p, a, b))
