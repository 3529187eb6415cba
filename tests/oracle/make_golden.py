"""Decides what lancet's MEMIT must compute: the published algorithm, plain, slow and independent, in float64.

The Llama forward is written out below (transformers computes its RMSNorm in float32 even in a double model), nothing is
shared with the engine. Source: MEMIT, arXiv 2210.07229, as published in kmeng01/memit. What the engine does smartly
(prefix caches, batches of requests, small solves) is done the long way: one request at a time, LU of a d_ff x d_ff
matrix.

    make_golden.py --model DIR --requests demo.json --corpus corpus.txt --n 6 --layers 0,1 --out golden.safetensors
    make_golden.py --model DIR --check          (NMSE of this forward's logits against transformers in float32)

Written tensors (F64 unless said; d = hidden size, f = MLP size, n = requests, T = target tokens):
    losses.<i> nll.<i> kl.<i> wd.<i>  [steps run]   the loss of request i at every step, and its three terms
    target_ids.<i> [T] and lookup.<i> [contexts + 1]  I64: spliced target; subject's last token per row, KL row last
    z [n, d];  initial [n, d]         the optimised values; the hidden states that they started from
    covariance.<l> [f, f]  keys.<l> [n, f]  residuals.<l> [n, d] (divided by the remaining layers)  delta.<l> [d, f]
    tokens [1]  I64                   tokens in the statistics
The metadata entry "job" is JSON: hyper-parameters, contexts and the requests themselves.
"""
import argparse
import functools
import itertools
import json
import math
import pathlib
import time

import torch
from safetensors import safe_open
from safetensors.torch import save_file

CONTEXTS = [
    "{}",
    "The answer is known. {}",
    "Therefore the following holds. {}",
    "Because of this, it is so. {}",
    "I know that well. {}",
    "You know that well. {}",
]
CHECK_PROMPTS = ["The mother tongue of Danielle Darrieux is", "Once upon a time, there was", "Lerin Duarte, the", "A"]


# ---- the model ----


def load_weights(folder, dtype):
    """Every tensor of the folder's safetensors files, by name, cast."""
    weights = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            weights.update({name: file.get_tensor(name).to(dtype) for name in file.keys()})
    return weights


def rope_settings(config):
    """Base and scaling of the rotary embedding, in either spelling of config.json."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    return rope.get("rope_theta", config.get("rope_theta", 10000.0)), rope


def llama3_scaled(frequency, rope):
    """Slow frequencies are divided by the factor, fast ones kept, those between are blended."""
    original, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    blend = ((original * frequency / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
    return (1 - blend) * frequency / factor + blend * frequency


def rope_frequencies(config, head_dim):
    base, rope = rope_settings(config)
    frequency = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "llama3":
        return llama3_scaled(frequency, rope)
    assert kind == "default", f"rope type {kind}"
    return frequency


class Llama:
    """A Llama in plain tensor arithmetic. Rows are padded on the right; causality keeps padding out."""

    def __init__(self, folder, dtype=torch.float64):
        config = json.loads((pathlib.Path(folder) / "config.json").read_text("utf-8"))
        self.weights, self.dtype = load_weights(folder, dtype), dtype
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head_dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps, self.frequencies = config["rms_norm_eps"], rope_frequencies(config, self.head_dim)
        table = "model.embed_tokens.weight"  # a tied checkpoint stores one of the two
        self.embedding = self.weights.get(table, self.weights.get("lm_head.weight"))
        self.head = self.weights.get("lm_head.weight", self.weights.get(table))

    def down_proj(self, layer):
        return self.weights[f"model.layers.{layer}.mlp.down_proj.weight"]

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, name, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weights[name + ".weight"]

    def split_heads(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def rotate(self, x):
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * self.frequencies
        cos, sin = angle.cos().to(self.dtype), angle.sin().to(self.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def attention(self, name, x):
        q, k, v = (self.split_heads(self.linear(f"{name}.{p}_proj", x)) for p in "qkv")
        q, k = self.rotate(q), self.rotate(k)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        score = (q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)).masked_fill(future, -math.inf)
        return self.linear(f"{name}.o_proj", (score.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def run_layers(self, h, layers, keys=None):
        """Residual stream behind the given layers; `keys`, a dict, receives the input of each layer's down_proj."""
        for layer in layers:
            name = f"model.layers.{layer}"
            h = h + self.attention(f"{name}.self_attn", self.norm(f"{name}.input_layernorm", h))
            x = self.norm(f"{name}.post_attention_layernorm", h)
            gate, up = self.linear(f"{name}.mlp.gate_proj", x), self.linear(f"{name}.mlp.up_proj", x)
            key = torch.nn.functional.silu(gate) * up
            if keys is not None:
                keys[layer] = key
            h = h + self.linear(f"{name}.mlp.down_proj", key)
        return h

    def logits(self, h):
        return self.norm("model.norm", h) @ self.head.T

    def forward(self, ids):
        return self.logits(self.run_layers(self.embedding[ids], range(self.layers)))


# ---- text ----


class Tokenizer:
    """The pipeline that tokenizer.json describes: AutoTokenizer builds another one for some families, whatever the file says."""

    def __init__(self, folder):
        from transformers import PreTrainedTokenizerFast

        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(folder) / "tokenizer.json"))

    def ids(self, text):
        return self.tokenizer(text)["input_ids"]

    def continuation_ids(self, text, more):
        """Ids that `more` adds to `text`; a merge over the boundary is an error."""
        start, full = self.ids(text), self.ids(text + more)
        assert full[: len(start)] == start, f"{text!r} and {more!r} merge into one token"
        return full[len(start) :]

    def lookup(self, template, subject):
        """Index of the subject's last token in the filled template."""
        before, after = template.split("{}")
        self.continuation_ids(before + subject, after)
        return len(self.ids(before + subject)) - 1


def padded(rows):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


# ---- the algorithm ----


def covariance(model, tokenizer, lines, layers, rows_per_batch=128):
    """E[k k^T] per layer over every token, BOS included, each line its own document; and the number of tokens."""
    size = model.down_proj(layers[0]).shape[1]
    total, tokens = {layer: torch.zeros(size, size, dtype=torch.float64) for layer in layers}, 0
    rows = sorted((tokenizer.ids(line) for line in lines), key=len)
    for start in range(0, len(rows), rows_per_batch):
        batch, keys = rows[start : start + rows_per_batch], {}
        real = padded([[1] * len(row) for row in batch]).bool()
        model.run_layers(model.embedding[padded(batch)], range(layers[-1] + 1), keys)
        tokens += int(real.sum())
        for layer in layers:
            flat = keys[layer][real]
            total[layer] += flat.T @ flat
    return {layer: total[layer] / tokens for layer in layers}, tokens


class ValueProblem:
    """The loss of one request as a function of delta, added behind layer z at the subject's last token of every row."""

    def __init__(self, model, tokenizer, request, z_layer, options):
        self.model, self.options, self.z_layer = model, options, z_layer
        prompts = [context.replace("{}", request["prompt"]) for context in CONTEXTS]
        filled = [prompt.replace("{}", request["subject"]) for prompt in prompts]
        self.target = torch.tensor(tokenizer.continuation_ids(filled[0], " " + request["target"]))
        rows = [tokenizer.ids(text) + self.target[:-1].tolist() for text in filled]
        rows.append(tokenizer.ids(request["subject"] + " is a"))
        self.lookup = torch.tensor([tokenizer.lookup(prompt, request["subject"]) for prompt in prompts + ["{} is a"]])
        self.row, self.length = torch.arange(len(rows)), torch.tensor([len(row) for row in rows])
        self.hidden = model.run_layers(model.embedding[padded(rows)], range(z_layer + 1)).detach()
        self.initial = self.hidden[0, self.lookup[0]]
        self.initial_log_p = None

    def terms(self, delta):
        """(NLL, KL, weight decay). The norm's gradient at delta = 0 is 0, as torch defines it."""
        h = self.hidden.index_put((self.row, self.lookup), self.hidden[self.row, self.lookup] + delta)
        h = self.model.run_layers(h, range(self.z_layer + 1, self.model.layers))
        rows, count = self.row[:-1, None], len(self.target)
        log_p = self.model.logits(h[rows, self.length[:-1, None] - count + torch.arange(count)]).log_softmax(-1)
        nll = -log_p[rows, torch.arange(count), self.target].mean(1).mean()
        log_p = self.model.logits(h[-1, self.lookup[-1]]).log_softmax(-1)
        if self.initial_log_p is None:
            self.initial_log_p = log_p.detach()
        kl = (log_p.exp() * (log_p - self.initial_log_p)).sum()
        return nll, self.options.kl * kl, self.options.wd * delta.norm() / self.initial.norm() ** 2


def optimise_value(problem, options):
    """z = h0 + delta and the terms of the loss at every step; stops before an update, so the last loss is that of z."""
    delta = torch.zeros_like(problem.initial, requires_grad=True)
    optimiser = torch.optim.Adam([delta], lr=options.lr, betas=(0.9, 0.999), eps=1e-8)
    limit, history = options.clamp * problem.initial.norm(), []
    for step in range(options.steps):
        optimiser.zero_grad()
        terms = problem.terms(delta)
        loss = sum(terms)
        history.append([loss.item()] + [term.item() for term in terms])
        if loss.item() < options.stop_loss or step == options.steps - 1:
            break
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            if delta.norm() > limit:
                delta *= limit / delta.norm()
    return (problem.initial + delta).detach(), torch.tensor(history, dtype=torch.float64)


@torch.no_grad()
def keys_and_hidden(model, tokenizer, requests, layer, z_layer):
    """Keys of one layer [n, f] (half plain prompt, half mean of the others) and hidden states behind layer z [n, d]."""
    all_keys, all_hidden = [], []
    for request in requests:
        prompts = [context.replace("{}", request["prompt"]) for context in CONTEXTS]
        rows = padded([tokenizer.ids(prompt.replace("{}", request["subject"])) for prompt in prompts])
        row, at = torch.arange(len(rows)), torch.tensor([tokenizer.lookup(p, request["subject"]) for p in prompts])
        keys = {}
        h = model.run_layers(model.embedding[rows], range(z_layer + 1), keys)
        key = keys[layer][row, at]
        all_keys.append(key[0] / 2 + key[1:].mean(0) / 2)
        all_hidden.append(h[0, at[0]])
    return torch.stack(all_keys), torch.stack(all_hidden)


def edit_layers(model, tokenizer, requests, z, covariances, options):
    """Layers ascending, each with the weights as edited so far; changes the model. Returns the tensors to write."""
    out, layers = {}, options.layers
    for index, layer in enumerate(layers):
        keys, hidden = keys_and_hidden(model, tokenizer, requests, layer, layers[-1])
        residuals = (z - hidden) / (len(layers) - index)
        system = options.covariance_weight * covariances[layer] + keys.T @ keys
        delta = residuals.T @ torch.linalg.solve(system, keys.T).T
        model.weights[f"model.layers.{layer}.mlp.down_proj.weight"] = model.down_proj(layer) + delta
        out |= {f"keys.{layer}": keys, f"residuals.{layer}": residuals, f"delta.{layer}": delta}
        out[f"covariance.{layer}"] = covariances[layer]
    return out


# ---- the program ----


@functools.cache
def read_records(path):
    return json.loads(pathlib.Path(path).read_text("utf-8"))


def read_requests(path, indices):
    """CounterFact records as {prompt, subject, target}."""
    records = read_records(path)
    rewrites = [records[index]["requested_rewrite"] for index in indices]
    return [dict(prompt=r["prompt"], subject=r["subject"], target=r["target_new"]["str"], target_true=r["target_true"]["str"]) for r in rewrites]


def read_lines(path, count):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in itertools.islice(file, count)]


def describe_job(options, requests):
    values = dict(steps=options.steps, lr=options.lr, weight_decay=options.wd)
    values |= dict(clamp=options.clamp, kl=options.kl, stop_loss=options.stop_loss)
    editor = dict(method="memit", layers=options.layers, covariance_weight=options.covariance_weight)
    editor |= dict(values=values, contexts=CONTEXTS)
    return dict(editor=editor, requests=requests, statistics=dict(lines=options.lines))


def make_golden(options):
    model, tokenizer = Llama(options.model), Tokenizer(options.model)
    requests = read_requests(options.requests, options.pick or range(options.n))
    lines = read_lines(options.corpus, options.lines)
    start = time.time()
    with torch.no_grad():
        covariances, tokens = covariance(model, tokenizer, lines, options.layers)
    print(f"statistics: {tokens} tokens, {time.time() - start:.1f} s", flush=True)
    out, values = {"tokens": torch.tensor([tokens])}, []
    for index, request in enumerate(requests):
        problem = ValueProblem(model, tokenizer, request, options.layers[-1], options)
        z, history = optimise_value(problem, options)
        values.append((z, problem.initial))
        out |= {f"{name}.{index}": history[:, column] for column, name in enumerate(("losses", "nll", "kl", "wd"))}
        out |= {f"target_ids.{index}": problem.target, f"lookup.{index}": problem.lookup}
        print(f"value {index}: {len(history)} steps, loss {history[-1, 0]:.4f}, {time.time() - start:.0f} s")
    out["z"], out["initial"] = (torch.stack(column) for column in zip(*values))
    out |= edit_layers(model, tokenizer, requests, out["z"], covariances, options)
    out = {name: tensor.contiguous() for name, tensor in out.items()}
    save_file(out, options.out, metadata={"format": "pt", "job": json.dumps(describe_job(options, requests))})
    print(f"{options.out}: {len(out)} tensors, {time.time() - start:.1f} s")


@torch.no_grad()
def check_forward(folder, prompts=CHECK_PROMPTS):
    """NMSE of this forward's logits, in float64 and float32, against transformers in float32."""
    from transformers import AutoModelForCausalLM

    net, tokenizer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval(), Tokenizer(folder)
    for dtype in (torch.float64, torch.float32):
        model, worst = Llama(folder, dtype), 0.0
        for prompt in prompts:
            ids = torch.tensor([tokenizer.ids(prompt)])
            theirs = net(ids).logits.double()
            worst = max(worst, ((model.forward(ids).double() - theirs).square().sum() / theirs.square().sum()).item())
        print(f"{str(dtype)}: largest NMSE of the logits over {len(prompts)} prompts {worst:.2e}")


def integers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True, help="Hugging Face folder of a Llama")
    parser.add_argument("--check", action="store_true", help="only compare the forward with transformers")
    parser.add_argument("--requests", help="facts in CounterFact shape")
    parser.add_argument("--corpus", help="text for the statistics, a document a line")
    parser.add_argument("--out", help="file to write")
    parser.add_argument("--n", type=int, default=6, help="edit the first N facts (default: %(default)s)")
    parser.add_argument("--pick", type=integers, help="edit the facts at these places instead, e.g. 0,1,298,335")
    parser.add_argument("--lines", type=int, default=1500, help="lines of the corpus (default: %(default)s)")
    parser.add_argument("--layers", type=integers, default=[0, 1], help="edited layers, ascending (default: 0,1)")
    parser.add_argument("--lambda", dest="covariance_weight", type=float, default=300.0, help="default: %(default)s")
    parser.add_argument("--lr", type=float, default=0.5, help="Adam's step (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="most steps per request (default: %(default)s)")
    parser.add_argument("--wd", type=float, default=0.001, help="weight decay (default: %(default)s)")
    parser.add_argument("--kl", type=float, default=0.0625, help="weight of the KL term (default: %(default)s)")
    parser.add_argument("--clamp", type=float, default=4.0, help="largest |delta| / |h0| (default: %(default)s)")
    parser.add_argument("--stop-loss", type=float, default=0.05, help="stop below this loss (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; more than idle cores is slow")
    options = parser.parse_args()
    if not options.check and not (options.requests and options.corpus and options.out):
        parser.error("--requests, --corpus and --out are needed unless --check is given")
    return options


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    if options.check:
        check_forward(options.model)
    else:
        make_golden(options)


if __name__ == "__main__":
    main()
