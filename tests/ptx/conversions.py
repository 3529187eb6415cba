"""PTX's conversions between numbers, as functions of numpy's arrays."""
import numpy as np

from arithmetic import DTYPES, Operation, bits_of, directed, flags_and_kinds, flush

WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
FLOATS = ("f16", "bf16", "f32", "f64")


def narrowed_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded.astype(np.uint16))


def widened_bf16(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def whole_number(kind, rounding):
    """The nearest number that the kind has; 0 for no number."""
    dtype, limits = DTYPES[kind], np.iinfo(DTYPES[kind])

    def convert(x):
        x = WHOLE[rounding](x.astype(np.float64))
        inside = np.where((x > limits.min) & (x < limits.max), x, 0).astype(dtype)
        inside = np.where(x >= limits.max, dtype.type(limits.max), inside)
        return np.where(x <= limits.min, dtype.type(limits.min), inside)

    return convert


def narrowing(to, rounding):
    """To a float of fewer bits."""
    if to == "bf16" and rounding == "rn":
        return narrowed_bf16
    if rounding == "rn":
        return lambda x: x.astype(DTYPES[to])
    if to == "f32" and rounding in ("rm", "rp"):
        return lambda x: directed(x.astype(np.float64), up=rounding == "rp")
    raise ValueError(rounding)


def between_floats(to, of, flags):
    widen = widened_bf16 if of == "bf16" else lambda x: x
    whole = next((WHOLE[flag] for flag in flags if flag in WHOLE), None)
    rounding = next((flag for flag in flags if flag in ("rn", "rz", "rm", "rp")), None)
    if whole is not None and to == of:
        convert = whole
    elif rounding:
        convert = narrowing(to, rounding)
    elif bits_of(to) >= bits_of(of) and to != "bf16":
        convert = lambda x: x.astype(DTYPES[to])  # noqa: E731
    else:
        raise ValueError(f"{to} of {of} without rounding")
    if "sat" in flags:
        plain = convert
        convert = lambda x: np.where(np.isnan(x), x.dtype.type(0), np.clip(plain(x), 0, 1))  # noqa: E731
    return lambda x: convert(widen(x))


def convert(words):
    flags, to, of = flags_and_kinds(words, "rn rz rm rp rni rzi rmi rpi ftz sat", 2)
    if to in ("bf16x2", "f16x2") and flags == {"rn"} and of == "f32":
        half = narrowing(to[:-2], "rn")

        def pair(high, low):
            high, low = (half(x).view(np.uint16).astype(np.uint32) for x in (high, low))
            return high << np.uint32(16) | low

        return Operation(("f32", "f32"), to, pair)
    if to in FLOATS and of in FLOATS:
        function = between_floats(to, of, flags - {"ftz"})
        if "ftz" in flags:
            plain = function
            function = lambda x: flush(plain(flush(x)))  # noqa: E731
    elif to in FLOATS and flags <= {"rn"} and to != "bf16":
        function = lambda x: x.astype(DTYPES[to])  # noqa: E731
    elif of in FLOATS:
        (rounding,) = flags - {"ftz", "sat"}
        function = whole_number(to, rounding)
    elif not flags:
        function = lambda x: x.astype(DTYPES[to])  # noqa: E731
    else:
        raise ValueError(" ".join(flags))
    return Operation((of,), to, function)
