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
ROW_SHAPES = ((1, 1, 1, 32, 0), (5, 33, 2, 64, 1), (3, 401, 3, 96, 0), (3, 520, 2, 64, 0), (2, 1100, 1, 1024, 3))


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


# Numbers, blocks, threads, numbers that buffers begin off a round address.
NUMBER_SHAPES = ((1, 1, 32, 0), (131, 1, 32, 1), (1000, 2, 96, 0), (2048, 2, 64, 0))


def number_launches(kind, shapes):
    for n, blocks, threads, shift in shapes:
        yield np.random.default_rng(n), n, Launch(kind, blocks, threads, shift, words=f"{n} numbers, {blocks} blocks of {threads}")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@row("gate")
def gate(kind, shapes=NUMBER_SHAPES):
    for rng, n, launch in number_launches(kind, shapes):
        g, up = random_gates(rng, kind, n), random(rng, kind, n)
        y = kind.exact(g) * sigmoid(kind.exact(g)) * kind.exact(up)
        launch.read("gate", g)
        launch.read("up", up)
        launch.write("y", Expected(y, np.abs(y), 2))
        launch.numbers(n=np.int64(n))
        yield launch


@row("gate_gradient")
def gate_gradient(kind, shapes=NUMBER_SHAPES):
    for rng, n, launch in number_launches(kind, shapes):
        gate_, up, grad_y = random_gates(rng, kind, n), random(rng, kind, n), random(rng, kind, n)
        g, u, flow = kind.exact(gate_), kind.exact(up), kind.exact(grad_y)
        s = sigmoid(g)
        of_up = flow * g * s
        launch.read("gate", gate_)
        launch.read("up", up)
        launch.read("grad_y", grad_y)
        launch.write("grad_gate", Expected(flow * u * s * (1 + g * (1 - s)), np.abs(flow * u * s) * (1 + np.abs(g)), 1))
        launch.write("grad_up", Expected(of_up, np.abs(of_up), 1))
        launch.numbers(n=np.int64(n))
        yield launch


# Rows, heads, numbers of a head, blocks, threads, numbers that buffers begin off a round address.
ROTARY_SHAPES = ((1, 1, 2, 1, 32, 0), (3, 3, 6, 2, 32, 1), (2, 5, 62, 2, 64, 0), (3, 2, 128, 2, 32, 0))


@row("rotate")
def rotate(kind, shapes=ROTARY_SHAPES):
    for back in (0, 1):
        for rows, heads, dim, blocks, threads, shift in shapes:
            launch = Launch(kind, blocks, threads, shift, words=f"{rows} rows of {heads} heads of {dim}, {blocks} blocks of {threads}, back {back}")
            rng = np.random.default_rng([rows, heads, dim])
            x, cos, sin = random(rng, kind, rows, heads, dim), random(rng, kind, rows, dim), random(rng, kind, rows, dim)
            a, b = np.split(kind.exact(x), 2, axis=-1)
            (cos_a, cos_b), (sin_a, sin_b) = (np.split(kind.exact(table)[:, None], 2, axis=-1) for table in (cos, sin))
            # going back: the transpose, whose sines are those of the other half
            down, up = (a * cos_a, -b * sin_a), (b * cos_b, a * sin_b)
            if back:
                down, up = (a * cos_a, b * sin_b), (b * cos_b, -a * sin_a)
            y = np.concatenate([sum(down), sum(up)], -1)
            magnitude = np.concatenate([np.abs(down[0]) + np.abs(down[1]), np.abs(up[0]) + np.abs(up[1])], -1)
            launch.read("x", x)
            launch.read("cos", cos)
            launch.read("sin", sin)
            launch.write("y", Expected(y, magnitude, 1))
            launch.numbers(rows=np.int64(rows), heads=np.int32(heads), dim=np.int32(dim), back=np.int32(back))
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
    (WINDOWED_ROWS, 2, 1, 24, 2.0, 1, 256, 0),
    (ROWS_OF_THEIR_OWN, 2, 2, 256, 0.0, 1, 64, 0),
    (ROWS_OF_THEIR_OWN, 1, 1, 255, 0.0, 1, 64, 1),
    (LONG_ROWS, 2, 1, 8, 0.0, 2, 128, 0),
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
    "gate": ((2048, 2, 64, 0), ("gate", "up", "y")),
    "gate_gradient": ((2048, 2, 64, 0), ("gate", "up", "grad_y", "grad_gate", "grad_up")),
    "rotate": ((3, 2, 128, 2, 32, 0), ("x", "cos", "sin", "y")),
    "loss_gradient": ((3, 520, 2, 64, 0), ("logits", "grad_logits")),
    "ragged_attention": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "pool_key", "pool_value", "out")),
    "ragged_query_gradient": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "pool_key", "pool_value", "grad_out", "grad_query")),
    "ragged_key_gradient": ((WINDOWED_ROWS, 2, 1, 16, 0.0, 1, 256, 0), ("query", "key", "value", "grad_out", "grad_key", "grad_value")),
}
