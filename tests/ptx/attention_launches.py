"""Arguments of the kernels of ragged attention: rows of tokens, their numbers as stored, and what the oracle makes of them."""
import numpy as np

from attention_oracle import Attention, Layout, Numbers
from launches import Expected, Launch

SMALL_ROWS = Layout((3, 1, 2), ((4, 0, 2), (), (1, 1)), (0, 2, 3, 5))
WINDOWED_ROWS = Layout((3, 1, 4, 2), ((4, 0, 2), (), (1, 1), (2,) * 9), (0, 2, 3, 7, 9), window=3)
ROWS_OF_THEIR_OWN = Layout((2, 1), ((), ()), (1, 2))  # without a pool
LONG_ROWS = Layout((1, 20), ((0, 1, 2, 3, 4) * 4, (3,)), (0, 13, 19))  # no query sees the last token
POOL_TOKENS = 5


class StoredAttention:
    """Numbers as a kernel has them."""

    def __init__(self, kind, layout, heads, kv_heads, dim, cap):
        self.kind, self.layout, self.heads, self.kv_heads, self.dim, self.cap = kind, layout, heads, kv_heads, dim, cap
        self.scale = 0.8 / np.sqrt(dim)
        rng = np.random.default_rng([heads, kv_heads, dim])
        queries, tokens = (len(layout.queries), heads, dim), (sum(layout.tokens), kv_heads, dim)
        pool = (kv_heads, POOL_TOKENS, dim)
        shapes = {"query": queries, "key": tokens, "value": tokens, "pool_key": pool, "pool_value": pool, "grad": queries}
        self.stored = {name: kind.rounded(rng.standard_normal(shape)) for name, shape in shapes.items()}
        self.exact = Attention(layout, Numbers(**{name: kind.exact(array) for name, array in self.stored.items()}), self.scale, cap)

    def expected(self, name, roundings, is_wide=False):
        return Expected(getattr(self.exact, name), self.exact.magnitudes[name], roundings, is_wide)

    def wide(self, name):
        return getattr(self.exact, name).astype(self.kind.wide)

    def read_queries(self, launch):
        """What both kernels of queries begin with."""
        has_pool = any(self.layout.earlier)
        for name in ("query", "key", "value"):
            launch.read(name, self.stored[name])
        for name in ("pool_key", "pool_value"):
            launch.read(name, self.stored[name]) if has_pool else launch.null()
        for name in ("token_bounds", "earlier_bounds", "earlier_places", "query_rows", "query_places"):
            launch.read(name, getattr(self.layout, name))

    def read_tokens(self, launch):
        """What the kernel of keys and values begins with."""
        for name in ("query", "key", "value"):
            launch.read(name, self.stored[name])
        for name in ("token_bounds", "token_rows", "query_bounds", "query_places"):
            launch.read(name, getattr(self.layout, name))

    def count_queries(self, launch):
        head_stride = POOL_TOKENS * self.dim if any(self.layout.earlier) else 0
        launch.numbers(queries=np.int64(len(self.layout.queries)), head_stride=np.int64(head_stride))
        self.rule(launch)

    def count_tokens(self, launch):
        launch.numbers(tokens=np.int64(sum(self.layout.tokens)))
        self.rule(launch)

    def rule(self, launch):
        launch.numbers(window=np.int64(self.layout.window), heads=np.int32(self.heads), kv_heads=np.int32(self.kv_heads), dim=np.int32(self.dim))
        launch.numbers(scale=np.float64(self.scale), cap=np.float64(self.cap))


def attention_launches(kind, shapes):
    for layout, heads, kv_heads, dim, cap, blocks, threads, shift in shapes:
        words = f"rows of {layout.tokens} tokens, {heads} heads of {dim} over {kv_heads}, window {layout.window}, cap {cap}"
        yield Launch(kind, blocks, threads, shift, words=words), StoredAttention(kind, layout, heads, kv_heads, dim, cap)
