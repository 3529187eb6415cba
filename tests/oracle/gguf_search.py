"""Blocks of Q2_K to Q6_K, IQ4_NL and MXFP4 as plain searches find them, in numpy: what an encoder of lancet has to be at least as near as.

Sources: llama.cpp, ggml-quants.c (make_qkx2_quants for Q2_K, Q4_K and Q5_K, make_qx_quants for Q6_K, here for Q3_K too), without importances;
gguf 0.19, quants.py (MXFP4). IQ4_NL has the scale by which its largest number becomes -127.
"""
import numpy as np
from gguf_files import E2M1, IQ4

# parts of a block, codes, and the largest factor of the block's scale
WITH_LEAST = {"Q2_K": (16, 3, 15), "Q4_K": (8, 15, 63), "Q5_K": (8, 31, 63)}
SIGNED = {"Q3_K": (16, 4, 32), "Q6_K": (16, 32, 128)}


def f16(x):
    return x.astype(np.float32).astype(np.float16).astype(np.float64)


def over(a, b):
    """a / b, and 0 where b is 0."""
    return np.where(b == 0, 0, a / np.where(b == 0, 1, b))


def parts_with_least(x, most, steps):
    """Scale and least number of each part [n, size]: weighted least squares for the codes of several scales."""
    weight = np.sqrt((x**2).mean(axis=1, keepdims=True)) + np.abs(x)
    least = np.minimum(x.min(axis=1, keepdims=True), 0)
    span = x.max(axis=1, keepdims=True) - least
    total = lambda a: a.sum(axis=1, keepdims=True)  # noqa: E731
    best_scale, best_least = span / most, least
    codes = np.clip(np.rint(over(most * (x - least), span)), 0, most)
    best = total(weight * (best_scale * codes + least - x) ** 2)
    for step in steps:
        codes = np.clip(np.rint(over((most + step) * (x - least), span)), 0, most)
        w, l, ll, xl, xs = (total(weight * a) for a in (np.ones_like(x), codes, codes**2, x * codes, x))
        determinant = w * ll - l * l
        scale, low = over(w * xl - xs * l, determinant), over(ll * xs - l * xl, determinant)
        scale, low = np.where(low > 0, over(xl, ll), scale), np.minimum(low, 0)
        error = total(weight * (scale * codes + low - x) ** 2)
        better = (determinant > 0) & (error < best)
        best, best_scale, best_least = (np.where(better, a, b) for a, b in ((error, best), (scale, best_scale), (low, best_least)))
    return best_scale[:, 0], -best_least[:, 0]


def with_least(kind, x):
    parts, most, factors = WITH_LEAST[kind]
    by_part = x.reshape(-1, 256 // parts)
    scale, least = (a.reshape(-1, parts) for a in parts_with_least(by_part, most, np.arange(-1, 1.01, 0.1)))
    rounded = []
    for own in (scale, least):
        largest = own.max(axis=1, keepdims=True)
        rounded.append(f16(largest / factors) * np.clip(np.rint(over(factors * own, largest)), 0, factors))
    scale, least = (a.reshape(-1, 1) for a in rounded)
    codes = np.clip(np.rint(over(by_part + least, scale)), 0, most)
    return (scale * codes - least).reshape(x.shape)


def signed(kind, x):
    parts, most, factors = SIGNED[kind]
    by_part = x.reshape(-1, 256 // parts)
    largest = np.take_along_axis(by_part, np.abs(by_part).argmax(axis=1)[:, None], axis=1)
    weight, best, scale = by_part**2, np.zeros_like(largest), np.zeros_like(largest)
    for step in range(-9, 10):
        codes = np.clip(np.rint(-over((most + 0.1 * step) * by_part, largest)), -most, most - 1)
        xl, ll = ((weight * a).sum(axis=1, keepdims=True) for a in (by_part * codes, codes**2))
        better = over(xl * xl, ll) > best
        scale, best = np.where(better, over(xl, ll), scale), np.where(better, over(xl * xl, ll), best)
    scale = scale.reshape(-1, parts)
    top = np.take_along_axis(scale, np.abs(scale).argmax(axis=1)[:, None], axis=1)
    scale = f16(top / -factors) * np.minimum(np.rint(-over(factors * scale, top)), factors - 1)
    scale = scale.reshape(-1, 1)
    return (scale * np.clip(np.rint(over(by_part, scale)), -most, most - 1)).reshape(x.shape)


def nearest(scale, numbers, x):
    """[n, 32] with scales [n, 1] of a table's numbers."""
    return np.take_along_axis(scale * numbers, np.abs(scale[:, :, None] * numbers - x[:, :, None]).argmin(axis=2), axis=1)


def decoded(kind, tensor):
    """The numbers that a plain encoder makes of a matrix, f64."""
    x = tensor.double().numpy()
    if kind in WITH_LEAST or kind in SIGNED:
        found = (with_least if kind in WITH_LEAST else signed)(kind, x.reshape(-1, 256))
    else:
        by_block = x.reshape(-1, 32)
        largest = np.take_along_axis(by_block, np.abs(by_block).argmax(axis=1)[:, None], axis=1)
        exponent = np.floor(np.log2(np.where(largest == 0, 1, np.abs(largest))))
        scale = f16(largest / -127) if kind == "IQ4_NL" else 2.0 ** np.clip(exponent - 3, -128, None)
        found = nearest(scale, (IQ4 if kind == "IQ4_NL" else E2M1).astype(np.float64), by_block)
    return found.reshape(x.shape)
