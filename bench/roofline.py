"""What an edit job cannot do without on a GPU, computed, not measured: FLOP and bytes of each stage over the machine's rates.

A stage takes the longer of its arithmetic and its traffic; attention's own products, elementwise work and latencies are left out, so
real times lie above. Requests are as long as lancet_bench's made-up ones: six rows each, 2-8 subject tokens after the context's,
1-6 tokens after the subject, 1-2 target tokens.

    .venv/bin/python bench/roofline.py
"""
import argparse
from dataclasses import dataclass

from result_table import print_json

OPENINGS = [0, 6, 6, 8, 5, 5]  # tokens of the contexts in front of the prompt, bench/synthetic.cpp
SUBJECT, AFTER, TARGET = 5, 3.5, 1.5  # mean lookup position in the prompt, tokens after it, target tokens
SHAPES = {  # hidden, ffn, layers, heads, kv heads, head dim, vocabulary, tied embeddings
    "llama-3-8b": (4096, 14336, 32, 32, 8, 128, 128256, False),
    "llama-2-7b": (4096, 11008, 32, 32, 32, 128, 32000, False),
    "llama-3.2-1b": (2048, 8192, 16, 32, 8, 64, 128256, True),
}


@dataclass
class Model:
    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool

    @property
    def layer(self):
        """Parameters of a layer's matrices: 2 FLOP each per token, 2 bytes each in bf16."""
        return 2 * (self.heads + self.kv_heads) * self.head_dim * self.hidden + 3 * self.hidden * self.ffn

    @property
    def head(self):
        return self.vocab * self.hidden

    @property
    def stored_bytes(self):
        norms = (2 * self.layers + 1) * self.hidden
        return 2 * (self.layers * self.layer + (1 if self.tied else 2) * self.head + norms)


@dataclass
class Stage:
    name: str
    flop: float
    rate: float  # FLOP/s
    traffic: float  # bytes
    bandwidth: float  # bytes/s
    wish: str

    @property
    def seconds(self):
        return max(self.flop / self.rate if self.flop else 0, self.traffic / self.bandwidth)


def values(model, edited, requests, steps):
    """Everything up to the last edited layer and the prefixes above it once; then the positions from the lookup token on, forward and
    backward, and logits where a loss reads them. Weights are read once per pass of the batch."""
    rows = len(OPENINGS)
    all_tokens = sum(OPENINGS) + rows * (SUBJECT + 1 + AFTER + TARGET - 1)
    step_tokens = rows * (1 + AFTER + TARGET - 1) + 1  # one of the row that measures drift
    labels = rows * TARGET + 1
    above = model.layers - 1 - edited
    once = 2 * model.layer * (all_tokens * (edited + 1) + (all_tokens - step_tokens) * above)
    step = 2 * 2 * (step_tokens * above * model.layer + labels * model.head)
    weights = 2 * (model.layers * model.layer) + steps * 2 * 2 * (above * model.layer + model.head)
    return requests * (once + steps * step), weights


def stages(model, arguments, machine):
    edited = arguments.layers[-1]
    n_edited = len(arguments.layers)
    flop, traffic = values(model, edited, arguments.batch, arguments.steps)
    one_flop, one_traffic = values(model, edited, 1, arguments.steps)
    seconds = max(flop / machine["bf16"], traffic / machine["hbm"])
    yield Stage(
        f"values, batch {arguments.batch}, {arguments.steps} steps: {3600 * arguments.batch / seconds:,.0f} edits/h",
        flop, machine["bf16"], traffic, machine["hbm"], ">= 60,000 edits/h",
    )
    yield Stage("values of one edit", one_flop, machine["bf16"], one_traffic, machine["hbm"], "< 0.5 s")
    tokens = arguments.tokens
    a_pass = 2 * tokens * ((edited + 1) * model.layer - model.hidden * model.ffn)
    gram = n_edited * tokens * model.ffn * (model.ffn + 1)
    keys = n_edited * 2 * 2 * tokens * model.ffn  # written and read
    pass_name = f"statistics, {tokens / 1e6:g} M tokens, {n_edited} layers: the pass"
    yield Stage(pass_name, a_pass, machine["bf16"], keys, machine["hbm"], "< 20 s, with moments")
    yield Stage("the moments, half of each, bf16 keys into f32", gram, machine["bf16"], keys, machine["hbm"], "")
    yield Stage("the moments, keys as f32 without tensor cores", gram, machine["f32"], 2 * keys, machine["hbm"], "")
    n, m, d = model.ffn, arguments.requests, model.hidden
    solve = n_edited * (2 * n * n * m + 2 * n * m * m + m**3 / 3 + 2 * d * m * m + 2 * d * m * n)
    factors = n_edited * 8 * n * n
    yield Stage(f"solves, {m:,} requests, {n_edited} layers, factors there", solve, machine["f64"], 2 * factors, machine["hbm"], "< 2 s")
    yield Stage("the factors from the host", 0, 1, factors, machine["pcie"], "")
    yield Stage("factors, once per model", n_edited * n**3 / 3, machine["f64"], 2 * factors, machine["hbm"], "")
    yield Stage("load", 0, 1, model.stored_bytes, machine["pcie"], ">= 60 % of the rate")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="llama-3-8b")
    parser.add_argument("--layers", type=lambda text: [int(part) for part in text.split(",")], default=[4, 5, 6, 7, 8])
    parser.add_argument("--batch", type=int, default=512, help="requests optimised together")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=1000, help="of the solves")
    parser.add_argument("--bf16", type=float, default=790, help="TFLOP/s of a large product; default: an H200's, reached")
    parser.add_argument("--f32", type=float, default=67, help="TFLOP/s without tensor cores, nominal")
    parser.add_argument("--f64", type=float, default=60, help="TFLOP/s, nominal")
    parser.add_argument("--hbm", type=float, default=4800, help="GB/s of the device's memory")
    parser.add_argument("--pcie", type=float, default=55, help="GB/s from the host to the device")
    parser.add_argument("--json", action="store_true", help="the table of bench/results/roofline.json")
    arguments = parser.parse_args()
    machine = {name: 1e12 * getattr(arguments, name) for name in ("bf16", "f32", "f64")}
    machine |= {name: 1e9 * getattr(arguments, name) for name in ("hbm", "pcie")}
    model = Model(*SHAPES[arguments.shape])
    columns, rows = [f"{arguments.shape}, computed", "TFLOP", "GB", "s", "limit", "wished"], []
    for stage in stages(model, arguments, machine):
        limit = "arithmetic" if stage.flop / stage.rate >= stage.traffic / stage.bandwidth else "traffic"
        flop = f"{stage.flop / 1e12:,.1f}" if stage.flop else ""
        rows.append([stage.name, flop, f"{stage.traffic / 1e9:,.1f}", f"{stage.seconds:.3g}", limit, stage.wish])
    if arguments.json:
        print_json([columns[0], *columns[3:]], [[row[0], *row[3:]] for row in rows if row[-1]], machine="computed by an H200's rates")
    else:
        print("\n".join(f"| {' | '.join(row)} |" for row in [columns, ["---"] * len(columns), *rows]))


if __name__ == "__main__":
    main()
