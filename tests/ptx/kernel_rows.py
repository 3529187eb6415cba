"""Of each kernel how it is launched, and its formula: a row is a function that takes a stored type and yields launches.

A row's launches differ in what a kernel may stumble over: rows narrower than a warp, wider than a block, of no round number; more rows
than blocks, so that a block takes several; arguments that may be null; buffers that begin anywhere. Formulas are computed in numpy's
widest type from the numbers as they are stored.
"""
import numpy as np

from attention_launches import LONG_ROWS, ROWS_OF_THEIR_OWN, SMALL_ROWS, WINDOWED_ROWS, attention_launches
from launches import Expected, Launch
from stored_types import EXACT

ROWS = {}  # kernel -> function of a StoredType, and of shapes in place of those below
EPS = 1e-5


def row(name):
    def register(function):
        ROWS[name] = function
        return function

    return register


# Rows, width, blocks, threads, numbers that buffers begin off a round address.
# The last two: threads take so many numbers, one by one and by 128 bits, that loops which are unrolled run whole and in part.
ROW_SHAPES = (
    (1, 1, 1, 32, 0), (5, 33, 2, 64, 1), (3, 401, 3, 96, 0), (3, 520, 2, 64, 0), (2, 1100, 1, 1024, 3),
    (1, 231, 1, 32, 1), (1, 1960, 1, 32, 0),
)


def row_launches(kind, shapes, **words):
    for rows, width, blocks, threads, shift in shapes:
        launch = Launch(kind, blocks, threads, shift)
        launch.words = ", ".join([f"{rows} rows of {width}, {blocks} blocks of {threads}", *(f"{name} {value}" for name, value in words.items())])
        yield np.random.default_rng([rows, width]), rows, width, launch


def random(rng, kind, *shape):
    return kind.rounded(rng.standard_normal(shape))


def random_rows(rng, kind, rows, width):
    """Some numbers are so small that a type of 16 bits has no leading 1 for them; of three rows or more the last has one that is none."""
    x = rng.standard_normal((rows, width))
    x[:, ::7] *= 1e-6
    x[2:, -1:][-1:] = np.nan
    return kind.rounded(x)


def random_logits(rng, kind, rows, width):
    """Far apart in the first row, where some cannot be at all."""
    x = 5 * rng.standard_normal((rows, width))
    x[0] *= 80
    x[0, 1::5] = -np.inf
    return kind.rounded(x)


def random_gates(rng, kind, n):
    """The first ones are as large as makes exponentials overflow, or small, or none."""
    x = 4 * rng.standard_normal(n)
    extremes = (1.0, 0.0, -0.0, 1e-3, -1e-3, 60.0, -60.0, 1000.0, -1000.0, np.inf, -np.inf, np.nan)
    x[: len(extremes)] = extremes[:n]
    return kind.rounded(x)


def squares_scale(x, eps=EPS):
    """1 / rms of each row."""
    return 1 / np.sqrt((x * x).mean(-1, keepdims=True) + EXACT(eps))


@row("norm")
def norm(kind, shapes=ROW_SHAPES):
    for has_added in (False, True):
        for rng, rows, width, launch in row_launches(kind, shapes, added=has_added):
            x, added, weight = random_rows(rng, kind, rows, width), random(rng, kind, rows, width), random(rng, kind, width)
            total = kind.rounded(kind.widened(x) + kind.widened(added)) if has_added else x
            y = kind.exact(weight) * kind.exact(total) * squares_scale(kind.exact(total))
            launch.read("x", x)
            if has_added:
                launch.read("added", added)
                launch.write("sum", Expected(kind.exact(total), kind.exact(total), 0))
            else:
                launch.null()
                launch.null()
            launch.read("weight", weight)
            launch.write("y", Expected(y, np.abs(y), 2))
            launch.numbers(rows=np.int64(rows), width=np.int64(width), eps=np.float64(EPS))
            yield launch


@row("norm_gradient")
def norm_gradient(kind, shapes=ROW_SHAPES):
    for has_sum in (False, True):
        for rng, rows, width, launch in row_launches(kind, shapes, grad_sum=has_sum):
            x, weight, grad_y = random_rows(rng, kind, rows, width), random(rng, kind, width), random(rng, kind, rows, width)
            grad_sum = random(rng, kind, rows, width)
            exact_x, flow = kind.exact(x), kind.exact(grad_y) * kind.exact(weight)
            scale = squares_scale(exact_x)
            along = (flow * exact_x).mean(-1, keepdims=True) * scale**2
            most_along = np.abs(flow * exact_x).mean(-1, keepdims=True) * scale**2
            gradient, magnitude = scale * (flow - along * exact_x), scale * (np.abs(flow) + most_along * np.abs(exact_x))
            launch.read("x", x)
            launch.read("weight", weight)
            launch.read("grad_y", grad_y)
            if has_sum:
                launch.read("grad_sum", grad_sum)
                gradient, magnitude = gradient + kind.exact(grad_sum), magnitude + np.abs(kind.exact(grad_sum))
            else:
                launch.null()
            launch.write("grad_x", Expected(gradient, magnitude, 2 if has_sum else 1))
            launch.numbers(rows=np.int64(rows), width=np.int64(width), eps=np.float64(EPS))
            yield launch


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gate_launches(kind, shapes):
    """Gates and ups in buffers of their own, and as halves of longer rows."""
    for halves in (False, True):
        for rng, rows, width, launch in row_launches(kind, shapes, halves=halves):
            yield rng, random_gates(rng, kind, rows * width).reshape(rows, width), random(rng, kind, rows, width), halves, launch


def count_gates(launch, gates, halves):
    rows, width = gates.shape
    launch.numbers(rows=np.int64(rows), width=np.int64(width), stride=np.int64(2 * width if halves else width))


def read_gates(launch, gates, ups, halves):
    if halves:
        launch.read("both", np.concatenate([gates, ups], -1))
        launch.within("both", gates.shape[1])
    else:
        launch.read("gate", gates)
        launch.read("up", ups)


@row("gate")
def gate(kind, shapes=ROW_SHAPES):
    for _, gates, ups, halves, launch in gate_launches(kind, shapes):
        y = kind.exact(gates) * sigmoid(kind.exact(gates)) * kind.exact(ups)
        read_gates(launch, gates, ups, halves)
        launch.write("y", Expected(y, np.abs(y), 2))
        count_gates(launch, gates, halves)
        yield launch


@row("gate_gradient")
def gate_gradient(kind, shapes=ROW_SHAPES):
    for rng, gates, ups, halves, launch in gate_launches(kind, shapes):
        grad_y = random(rng, kind, *gates.shape)
        g, u, flow = kind.exact(gates), kind.exact(ups), kind.exact(grad_y)
        s = sigmoid(g)
        of_gate, of_up = flow * u * s * (1 + g * (1 - s)), flow * g * s
        most_of_gate, most_of_up = np.abs(flow * u * s) * (1 + np.abs(g)), np.abs(of_up)
        read_gates(launch, gates, ups, halves)
        launch.read("grad_y", grad_y)
        if halves:
            launch.write("grad_both", Expected(np.concatenate([of_gate, of_up], -1), np.concatenate([most_of_gate, most_of_up], -1), 1))
            launch.within("grad_both", gates.shape[1])
        else:
            launch.write("grad_gate", Expected(of_gate, most_of_gate, 1))
            launch.write("grad_up", Expected(of_up, most_of_up, 1))
        count_gates(launch, gates, halves)
        yield launch


# Rows, heads, numbers of a head, blocks, threads, numbers that buffers begin off a round address.
ROTARY_SHAPES = (
    (1, 1, 2, 1, 32, 0), (3, 3, 6, 2, 32, 1), (2, 5, 62, 2, 64, 0), (3, 2, 128, 2, 32, 0), (1, 7, 66, 1, 32, 1), (1, 15, 240, 1, 32, 0),
)


def turned(x, cos, sin, back):
    """Heads [rows, heads, dim] turned by a vector a row, and the magnitudes of the sums."""
    a, b = np.split(x, 2, axis=-1)
    (cos_a, cos_b), (sin_a, sin_b) = (np.split(table[:, None], 2, axis=-1) for table in (cos, sin))
    # going back: the transpose, whose sines are those of the other half
    down, up = (a * cos_a, -b * sin_a), (b * cos_b, a * sin_b)
    if back:
        down, up = (a * cos_a, b * sin_b), (b * cos_b, -a * sin_a)
    return np.concatenate([sum(down), sum(up)], -1), np.concatenate([np.abs(down[0]) + np.abs(down[1]), np.abs(up[0]) + np.abs(up[1])], -1)


@row("rotate")
def rotate(kind, shapes=ROTARY_SHAPES):
    for back in (0, 1):
        for rows, heads, dim, blocks, threads, shift in shapes:
            launch = Launch(kind, blocks, threads, shift, words=f"{rows} rows of {heads} heads of {dim}, {blocks} blocks of {threads}, back {back}")
            rng = np.random.default_rng([rows, heads, dim])
            x, cos, sin = random(rng, kind, rows, heads, dim), random(rng, kind, rows, dim), random(rng, kind, rows, dim)
            y, magnitude = turned(kind.exact(x), kind.exact(cos), kind.exact(sin), back)
            launch.read("x", x)
            launch.read("cos", cos)
            launch.read("sin", sin)
            launch.write("y", Expected(y, magnitude, 1))
            launch.numbers(rows=np.int64(rows), heads=np.int32(heads), dim=np.int32(dim), back=np.int32(back))
            yield launch


# Rows, heads, heads of keys, numbers of a head, blocks, threads, numbers that buffers begin off a round address.
HEAD_SHAPES = (
    (1, 1, 1, 2, 1, 32, 0), (3, 3, 2, 6, 2, 32, 1), (2, 4, 2, 62, 2, 64, 0), (3, 2, 1, 128, 2, 32, 0), (1, 3, 2, 66, 1, 32, 1), (1, 11, 2, 240, 1, 32, 0),
)
HEADS = ("query", "key", "value")


def head_launches(kind, shapes):
    """(Launch, function that gives it the tables, numbers of all heads, the same turned by `back`, with magnitudes, where there are tables)."""
    for has_tables in (True, False):
        for rows, heads, kv_heads, dim, blocks, threads, shift in shapes:
            words = f"{rows} rows of {heads} + 2 * {kv_heads} heads of {dim}, {blocks} blocks of {threads}, tables: {has_tables}"
            launch = Launch(kind, blocks, threads, shift, words=words)
            rng = np.random.default_rng([rows, heads, kv_heads, dim])
            x, cos, sin = random(rng, kind, rows, heads + 2 * kv_heads, dim), random(rng, kind, rows, dim), random(rng, kind, rows, dim)

            def read_tables(launch=launch, tables={"cos": cos, "sin": sin}, has_tables=has_tables):
                for name, table in tables.items():
                    launch.read(name, table) if has_tables else launch.null()

            def expected(back, x=x, cos=cos, sin=sin, turns=heads + kv_heads if has_tables else 0):
                y, magnitude = turned(kind.exact(x[:, :turns]), kind.exact(cos), kind.exact(sin), back)
                rest = kind.exact(x[:, turns:])
                return np.concatenate([y, rest], 1), np.concatenate([magnitude, np.abs(rest)], 1)

            counts = {"rows": np.int64(rows), "heads": np.int32(heads), "kv_heads": np.int32(kv_heads), "dim": np.int32(dim)}
            yield launch, read_tables, x, expected, counts


def by_kind_of_head(x, counts):
    heads, kv_heads = int(counts["heads"]), int(counts["kv_heads"])
    return zip(HEADS, np.split(x, [heads, heads + kv_heads], axis=1), strict=True)


@row("split_heads")
def split_heads(kind, shapes=HEAD_SHAPES):
    for launch, read_tables, x, expected, counts in head_launches(kind, shapes):
        launch.read("joined", x)
        read_tables()
        y, magnitude = expected(back=0)
        for (name, part), (_, most) in zip(by_kind_of_head(y, counts), by_kind_of_head(magnitude, counts), strict=True):
            launch.write(name, Expected(part, most, 1))
        launch.numbers(**counts)
        yield launch


@row("join_heads")
def join_heads(kind, shapes=HEAD_SHAPES):
    for launch, read_tables, x, expected, counts in head_launches(kind, shapes):
        for name, part in by_kind_of_head(x, counts):
            launch.read(name, part)
        read_tables()
        launch.write("joined", Expected(*expected(back=1), 1))
        launch.numbers(**counts)
        yield launch


def labels(rng, rows, width):
    """One of each row; with several rows, of the first none that there is, and of the last what is no token."""
    ids = rng.integers(0, width, rows)
    ids[: rows - 1][:1] = width
    ids[2:][-1:] = -1
    return ids


@row("loss")
def loss(kind, shapes=ROW_SHAPES):
    for rng, rows, width, launch in row_launches(kind, shapes):
        logits, ids = random_logits(rng, kind, rows, width), labels(rng, rows, width)
        x = kind.exact(logits)
        greatest = x.max(-1)
        log_sum = np.log(np.exp(x - greatest[:, None]).sum(-1))
        is_there = (ids >= 0) & (ids < width)
        logit = x[np.arange(rows), np.where(is_there, ids, 0)]
        launch.read("logits", logits)
        launch.read("ids", ids)
        magnitude = np.abs(greatest) + np.abs(logit) + log_sum + 1
        launch.write("loss", Expected(np.where(is_there, greatest - logit + log_sum, np.nan), magnitude, 1, is_wide=True))
        launch.write("greatest", Expected(greatest, greatest, 0, is_wide=True))
        launch.write("log_sum", Expected(log_sum, 1 + log_sum, 1, is_wide=True))
        launch.numbers(rows=np.int64(rows), width=np.int64(width))
        yield launch


@row("loss_gradient")
def loss_gradient(kind, shapes=ROW_SHAPES):
    for rng, rows, width, launch in row_launches(kind, shapes):
        logits, ids, grad = random_logits(rng, kind, rows, width), labels(rng, rows, width), rng.standard_normal(rows).astype(kind.wide)
        x = kind.exact(logits)
        greatest = x.max(-1).astype(kind.wide)
        log_sum = np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)).astype(kind.wide)
        away = x - greatest.astype(EXACT)[:, None] - log_sum.astype(EXACT)[:, None]
        is_label = np.arange(width) == ids[:, None]
        flow = grad.astype(EXACT)[:, None]
        launch.read("logits", logits)
        launch.read("ids", ids)
        launch.read("greatest", greatest)
        launch.read("log_sum", log_sum)
        launch.read("grad_loss", grad)
        magnitude = np.abs(flow) * (np.exp(away) * (1 + np.abs(np.maximum(away, -1e4))) + is_label)
        launch.write("grad_logits", Expected(flow * (np.exp(away) - is_label), magnitude, 1))
        launch.numbers(rows=np.int64(rows), width=np.int64(width))
        yield launch


# Rows of tokens, heads, heads of keys, numbers of a head, cap, blocks, threads, numbers that buffers begin off a round address.
ATTENTION_SHAPES = (
    (SMALL_ROWS, 2, 1, 23, 0.0, 1, 128, 1),
    (WINDOWED_ROWS, 2, 1, 72, 2.0, 1, 256, 0),
    (ROWS_OF_THEIR_OWN, 2, 2, 256, 0.0, 1, 64, 0),
    (ROWS_OF_THEIR_OWN, 1, 1, 255, 0.0, 1, 64, 1),
    (LONG_ROWS, 2, 1, 8, 0.0, 2, 128, 0),
    (LONG_ROWS, 2, 1, 72, 0.0, 2, 128, 0),
    (WINDOWED_ROWS, 2, 1, 79, 0.0, 1, 64, 1),
)


@row("ragged_attention")
def ragged_attention(kind, shapes=ATTENTION_SHAPES):
    for launch, attention in attention_launches(kind, shapes):
        attention.read_queries(launch)
        launch.write("out", attention.expected("out", 1))
        launch.write("softmax", attention.expected("softmax", 1, is_wide=True))
        attention.count_queries(launch)
        yield launch


@row("ragged_query_gradient")
def ragged_query_gradient(kind, shapes=ATTENTION_SHAPES):
    for launch, attention in attention_launches(kind, shapes):
        attention.read_queries(launch)
        launch.read("grad_out", attention.stored["grad"])
        launch.read("softmax", attention.wide("softmax"))
        launch.write("grad_query", attention.expected("grad_query", 1))
        launch.write("means", attention.expected("means", 1, is_wide=True))
        attention.count_queries(launch)
        yield launch


@row("ragged_key_gradient")
def ragged_key_gradient(kind, shapes=ATTENTION_SHAPES):
    for launch, attention in attention_launches(kind, shapes):
        attention.read_tokens(launch)
        launch.read("grad_out", attention.stored["grad"])
        launch.read("softmax", attention.wide("softmax"))
        launch.read("means", attention.wide("means"))
        launch.write("grad_key", attention.expected("grad_key", 1))
        launch.write("grad_value", attention.expected("grad_value", 1))
        attention.count_tokens(launch)
        yield launch


# Kernels that promise to reach memory by 128 bits at a time: a shape of their row whose widths are multiples of that, and the
# buffers that go so, all of them.
# The loss reads a label's logit by itself and writes a number a row.
VECTOR_SHAPES = {
    "norm": ((3, 520, 2, 64, 0), ("x", "added", "sum", "weight", "y")),
    "norm_gradient": ((3, 520, 2, 64, 0), ("x", "weight", "grad_y", "grad_sum", "grad_x")),
    "gate": ((3, 520, 2, 64, 0), ("gate", "up", "both", "y")),
    "gate_gradient": ((3, 520, 2, 64, 0), ("gate", "up", "both", "grad_y", "grad_gate", "grad_up", "grad_both")),
    "rotate": ((3, 2, 128, 2, 32, 0), ("x", "cos", "sin", "y")),
    "split_heads": ((3, 2, 1, 128, 2, 32, 0), ("joined", "cos", "sin", "query", "key", "value")),
    "join_heads": ((3, 2, 1, 128, 2, 32, 0), ("joined", "cos", "sin", "query", "key", "value")),
    "loss_gradient": ((3, 520, 2, 64, 0), ("logits", "grad_logits")),
    "ragged_attention": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "pool_key", "pool_value", "out")),
    "ragged_query_gradient": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "pool_key", "pool_value", "grad_out", "grad_query")),
    "ragged_key_gradient": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "grad_out", "grad_key", "grad_value")),
}
