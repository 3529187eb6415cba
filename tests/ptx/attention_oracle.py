"""Attention of ragged rows with its gradients, in numpy's widest type, and the magnitudes that errors are measured by."""
from dataclasses import dataclass

import numpy as np

from stored_types import EXACT


RESULTS = ("out", "softmax", "means", "grad_query", "grad_key", "grad_value")


@dataclass(frozen=True)
class Layout:
    """Rows of own tokens that lie one after the other; each row's earlier tokens as places in a pool; tokens that attend."""

    tokens: tuple
    earlier: tuple
    queries: tuple
    window: int = 0

    @property
    def token_bounds(self):
        return np.cumsum([0, *self.tokens])

    @property
    def earlier_bounds(self):
        return np.cumsum([0, *map(len, self.earlier)])

    @property
    def earlier_places(self):
        return np.concatenate([np.asarray(row, np.int64) for row in self.earlier])

    @property
    def query_rows(self):
        return np.searchsorted(self.token_bounds, self.queries, "right") - 1

    @property
    def query_places(self):
        return np.asarray(self.queries) - self.token_bounds[self.query_rows]

    @property
    def token_rows(self):
        return np.repeat(np.arange(len(self.tokens)), self.tokens)

    @property
    def query_bounds(self):
        return np.cumsum([0, *np.bincount(self.query_rows, minlength=len(self.tokens))])

    def seen(self, row, place):
        """Which of the row's earlier and own tokens a query at this place sees."""
        n_earlier = len(self.earlier[row])
        at = np.arange(n_earlier + self.tokens[row])
        own = n_earlier + place
        return (at <= own) & ((own - at < self.window) if self.window else True)


@dataclass(frozen=True)
class Numbers:
    query: np.ndarray  # [M, H, C]
    key: np.ndarray  # [N, K, C]
    value: np.ndarray
    pool_key: np.ndarray  # [K, S, C]
    pool_value: np.ndarray
    grad: np.ndarray  # [M, H, C], of what comes out


class Attention:
    """Results, and beside each its magnitude: what it is the sum of, the scores' own rounding taken in."""

    def __init__(self, layout, numbers, scale, cap=0.0):
        self.layout, self.numbers, self.scale, self.cap = layout, numbers, EXACT(scale), EXACT(cap)
        self.out, self.grad_query = (np.zeros_like(numbers.query) for _ in range(2))
        self.grad_key, self.grad_value = np.zeros_like(numbers.key), np.zeros_like(numbers.key)
        self.softmax = np.zeros((*numbers.query.shape[:2], 2), EXACT)  # the greatest score, the sum of exp(score - greatest)
        self.means = np.zeros(numbers.query.shape[:2], EXACT)  # of the weights' gradients, by weight
        self.magnitudes = {name: np.zeros_like(getattr(self, name)) for name in RESULTS}
        for m, (row, place) in enumerate(zip(layout.query_rows, layout.query_places, strict=True)):
            for head in range(numbers.query.shape[1]):
                self.attend(m, head, row, layout.seen(row, place))

    def attend(self, m, head, row, seen):
        n, layout = self.numbers, self.layout
        kv = head // (n.query.shape[1] // n.key.shape[1])
        own = slice(*layout.token_bounds[row : row + 2])
        earlier = list(layout.earlier[row])
        keys = np.concatenate([n.pool_key[kv, earlier], n.key[own, kv]])[seen]
        values = np.concatenate([n.pool_value[kv, earlier], n.value[own, kv]])[seen]
        query, grad = n.query[m, head], n.grad[m, head]
        raw = self.scale * (keys @ query)
        scores = self.cap * np.tanh(raw / self.cap) if self.cap else raw
        slope = 1 - (scores / self.cap) ** 2 if self.cap else np.ones_like(raw)
        weights = np.exp(scores - scores.max())
        self.softmax[m, head] = scores.max(), weights.sum()
        weights /= weights.sum()
        of_weights = values @ grad
        mean = weights @ of_weights
        self.means[m, head] = mean
        of_raw = self.scale * weights * (of_weights - mean) * slope

        sure = 1 + self.scale * np.abs(keys) @ np.abs(query) + (self.cap or 0)  # scores are off by so many units at most
        self.magnitudes["softmax"][m, head] = sure.max(), self.softmax[m, head, 1] * sure.max()
        sure = sure + weights @ sure
        most_weights = np.abs(values) @ np.abs(grad)
        self.magnitudes["means"][m, head] = (weights * sure) @ most_weights
        most_raw = self.scale * weights * (most_weights + weights @ most_weights) * sure
        self.out[m, head] = weights @ values
        self.magnitudes["out"][m, head] = (weights * sure) @ np.abs(values)
        self.grad_query[m, head] = of_raw @ keys
        self.magnitudes["grad_query"][m, head] = most_raw @ np.abs(keys)
        at = np.flatnonzero(seen) - len(earlier)
        is_own = at >= 0
        at = layout.token_bounds[row] + at[is_own]
        self.grad_key[at, kv] += of_raw[is_own, None] * query
        self.magnitudes["grad_key"][at, kv] += most_raw[is_own, None] * np.abs(query)
        self.grad_value[at, kv] += weights[is_own, None] * grad
        self.magnitudes["grad_value"][at, kv] += (weights * sure)[is_own, None] * np.abs(grad)
