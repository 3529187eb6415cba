"""What an edit job takes on a GPU at least, computed, not measured: each launch's FLOP and bytes over what a GPU of that kind reaches.

A launch takes the longest of its arithmetic, its traffic, and the time that launching takes. Launches of a layer are those that
tests/device/value_step_work_test.cpp counts. Requests are as long as lancet_bench's made-up ones: six rows each, 2-8 subject tokens after the
context's, 1-6 tokens after the subject, 1-2 target tokens. Tokens are those that are run: without padding, contexts once a batch.

    .venv/bin/python bench/roofline.py
"""
import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from result_table import print_json

OPENINGS = [0, 6, 6, 8, 5, 5]  # tokens of the contexts in front of the prompt, bench/synthetic.cpp
ROWS = len(OPENINGS)
SUBJECT, AFTER, TARGET = 5, 3.5, 1.5  # mean lookup position in the prompt, tokens after it, target tokens
DOCUMENT = 512  # tokens of a document of the statistics
HALF = 2  # bytes of a number in bf16
SHAPES = {  # hidden, ffn, layers, heads, kv heads, head dim, vocabulary
    "llama-3-8b": (4096, 14336, 32, 32, 8, 128, 128256),
    "llama-2-7b": (4096, 11008, 32, 32, 32, 128, 32000),
}
# TFLOP/s of bf16 and of f64 on tensor cores, GB/s of memory, as NVIDIA states them.
MACHINES = {"H100": (989, 67, 3350), "H200": (989, 67, 4800)}
COUNTED = Path(__file__).resolve().parent.parent / "tests/device/value_step_work_test.cpp"


@dataclass
class Machine:
    bf16: float  # FLOP/s
    f64: float
    memory: float  # bytes/s
    launch: float  # s


@dataclass
class Model:
    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    @property
    def query(self):
        return self.heads * self.head_dim

    @property
    def joined(self):
        return self.query + 2 * self.kv_heads * self.head_dim


@dataclass
class Launch:
    name: str
    flop: float
    traffic: float  # bytes
    rate: str = "bf16"

    def seconds(self, machine):
        return max(self.flop / getattr(machine, self.rate), self.traffic / machine.memory, machine.launch)


def product(name, tokens, inputs, outputs):
    return Launch(name, 2 * tokens * inputs * outputs, HALF * (inputs * outputs + tokens * (inputs + outputs)))


def pass_over(name, tokens, numbers):
    """Elementwise work that reads and writes so many numbers a token."""
    return Launch(name, 0, HALF * tokens * numbers)


def attention(name, tokens, seen, model, products):
    """`seen`: keys that a query meets; each kernel takes so many products with them. Keys are read once a query's head by caches alone."""
    return Launch(name, 2 * products * tokens * seen * model.query, HALF * (2 * tokens * model.query + 2 * tokens * model.joined))


def layer_forward(model, tokens, seen):
    d, f, q, j = model.hidden, model.ffn, model.query, model.joined
    return [
        pass_over("norm of a sum", tokens, 4 * d), product("query, key, value", tokens, d, j), pass_over("split and turn heads", tokens, 2 * j),
        attention("attention", tokens, seen, model, 2), product("attention out", tokens, q, d), pass_over("norm of a sum", tokens, 4 * d),
        product("gate, up", tokens, d, 2 * f), pass_over("gate", tokens, 3 * f), product("down", tokens, f, d),
    ]


def layer_backward(model, tokens, seen):
    d, f, q, j = model.hidden, model.ffn, model.query, model.joined
    return [
        product("down", tokens, d, f), pass_over("gate", tokens, 5 * f), product("gate, up", tokens, 2 * f, d), pass_over("norm", tokens, 4 * d),
        product("attention out", tokens, d, q), attention("queries", tokens, seen, model, 3), attention("keys and values", tokens, seen, model, 4),
        pass_over("turn and join heads", tokens, 2 * j), product("query, key, value", tokens, j, d), pass_over("norm", tokens, 4 * d),
    ]


def counted_launches():
    """(Of a layer, of a step's rest) as the test holds them."""
    return [int(number) for number in re.findall(r"\{\.launches = (\d+)", COUNTED.read_text())]


def head(model, labels):
    v = model.vocab
    return [product("head", labels, model.hidden, v), pass_over("loss", labels, v), pass_over("loss, back", labels, 2 * v), product("head, back", labels, v, model.hidden)]


def step(model, edited, requests):
    """Launches of one step: the positions from the lookup token on, and one of the row that measures drift, through the layers above."""
    tokens = requests * (ROWS * (1 + AFTER + TARGET - 1) + 1)
    seen = sum(OPENINGS) / ROWS + SUBJECT + (1 + AFTER + TARGET) / 2
    layer, rest = counted_launches()
    forward, backward = layer_forward(model, tokens, seen), layer_backward(model, tokens, seen)
    if len(forward) + len(backward) != layer:
        raise SystemExit(f"{COUNTED.name} counts {layer} launches of a layer, and {len(forward) + len(backward)} are listed here")
    of_head = head(model, requests * (ROWS * TARGET + 1))
    small = [Launch("small", 0, 0)] * (rest - len(of_head))
    return (model.layers - 1 - edited) * (forward + backward) + of_head + small


def setup(model, edited, requests):
    """All tokens up to the edited layer, and those before the lookup token through the layers above."""
    before, after = sum(OPENINGS) + requests * ROWS * SUBJECT, requests * ROWS * (AFTER + TARGET)
    seen = sum(OPENINGS) / ROWS + SUBJECT / 2
    return (edited + 1) * layer_forward(model, before + after, seen) + (model.layers - 1 - edited) * layer_forward(model, before, seen)


def values(model, edited, requests, steps):
    return setup(model, edited, requests) + steps * step(model, edited, requests)


def keys_and_solve(model, layers, requests):
    """Of each edited layer its key, and what it gives once it has been changed; two triangles or an inverse of its factor, kept on the device, in
    f64; the change as a matrix."""
    tokens, n, d = requests * ROWS * SUBJECT, model.ffn, model.hidden
    for _ in layers:
        yield from 2 * layer_forward(model, tokens, SUBJECT)
        yield Launch("the factor", 4 * n * n * requests, 8 * n * n, "f64")
        yield Launch("the change", 2 * n * d * requests, 3 * 8 * n * d, "f64")


def statistics(model, edited, layers, tokens):
    """The pass, and of each edited layer half of the products of its keys, bf16 into f32."""
    yield from (edited + 1) * layer_forward(model, tokens, DOCUMENT / 2)[:-1]
    yield from edited * [product("down", tokens, model.ffn, model.hidden)]
    moments = tokens * model.ffn * (model.ffn + 1)
    yield from len(layers) * [Launch("moments", moments, HALF * tokens * model.ffn + 4 * (tokens / 16384) * model.ffn**2)]


def stages(model, arguments, machine):
    layers, edited, n = arguments.layers, arguments.layers[-1], arguments.requests

    def seconds(launches):
        return sum(launch.seconds(machine) for launch in launches)

    many = seconds(values(model, edited, n, arguments.steps))
    yield f"values of {n} requests, {arguments.steps} steps", many, f"{3600 * n / many:,.0f} an hour"
    one = seconds(values(model, edited, 1, arguments.steps))
    solve = seconds(keys_and_solve(model, layers, 1))
    yield "one edit, factors on the GPU", one + solve, f"{len(step(model, edited, 1)):,} launches a step"
    yield f"statistics, {arguments.tokens / 1e6:g} M tokens, {len(layers)} layers", seconds(statistics(model, edited, layers, arguments.tokens)), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="llama-3-8b")
    parser.add_argument("--layers", type=lambda text: [int(part) for part in text.split(",")], default=[4, 5, 6, 7, 8])
    parser.add_argument("--requests", type=int, default=512, help="requests optimised together")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.8, help="share of the stated rates that is reached: assumed")
    parser.add_argument("--launch", type=float, default=5, help="microseconds that a launch takes at least: assumed")
    parser.add_argument("--json", action="store_true", help="the table of bench/results/roofline.json")
    arguments = parser.parse_args()
    model, tables = Model(*SHAPES[arguments.shape]), []
    for bf16, f64, memory in MACHINES.values():
        share = arguments.share
        machine = Machine(bf16 * share * 1e12, f64 * share * 1e12, memory * share * 1e9, arguments.launch * 1e-6)
        tables.append(list(stages(model, arguments, machine)))
    columns = [f"{arguments.shape}, computed", *(f"{name}, s" for name in MACHINES), ""]
    rows = [[each[0][0], *(f"{seconds:.2g}" for _, seconds, _ in each), " / ".join(dict.fromkeys(words for *_, words in each))] for each in zip(*tables, strict=True)]
    if arguments.json:
        print_json(columns, rows, machine=f"computed: {arguments.share:.0%} of NVIDIA's rates")
    else:
        print("\n".join(f"| {' | '.join(row)} |" for row in [columns, ["---"] * len(columns), *rows]))


if __name__ == "__main__":
    main()
