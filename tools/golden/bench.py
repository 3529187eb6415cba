"""What the plain versions of all methods share: the demo model in float64, requests in two batches, statistics, values.

The forward is written out with named places, so that a method can look and add anywhere; weights are plain tensors, so that a
method can train them. Nothing is shared with the engine, and nothing is done smartly.
"""
import pathlib
import sys
from types import SimpleNamespace

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from make_golden import Llama, Tokenizer, covariance, padded, read_lines, read_requests  # noqa: E402

CONTEXTS = ["{}", "The answer is known. {}", "I know that well. {}"]
VALUES = dict(steps=8, lr=0.5, weight_decay=0.001, clamp=4.0, kl=0.0625, stop_loss=0.05)
BATCHES = [[0, 298], [1, 335]]  # places in the demo's facts
LAYERS = [0, 1]


class Model(Llama):
    """A Llama whose places can be watched and changed: `touch(place, layer, tensor)` gives back what goes on."""

    def weight_name(self, kind, layer):
        return f"model.layers.{layer}.mlp.{kind}_proj.weight"

    def forward_with(self, ids, touch):
        h = touch("embedding", None, self.embedding[ids])
        for layer in range(self.layers):
            name = f"model.layers.{layer}"
            h = h + touch("attn", layer, self.attention(f"{name}.self_attn", self.norm(f"{name}.input_layernorm", h)))
            x = touch("mlp_in", layer, self.norm(f"{name}.post_attention_layernorm", h))
            gate = touch("gate", layer, self.linear(f"{name}.mlp.gate_proj", x))
            up = touch("up", layer, self.linear(f"{name}.mlp.up_proj", x))
            key = touch("key", layer, torch.nn.functional.silu(gate) * up)
            h = h + touch("mlp", layer, self.linear(f"{name}.mlp.down_proj", key))
            h = touch("block", layer, h)
        return self.logits(h)


class Bench:
    def __init__(self, folder, requests, corpus, lines):
        self.folder, self.lines = folder, lines
        self.tokenizer = Tokenizer(folder)
        self.batches = [read_requests(requests, batch) for batch in BATCHES]
        model = self.fresh()
        with torch.no_grad():
            self.covariances, self.tokens = covariance(model, self.tokenizer, read_lines(corpus, lines), LAYERS)
        self.found = {}  # values of the unedited model

    def fresh(self):
        return Model(self.folder)

    def rows(self, request, contexts):
        """Filled prompts as ids, and the subject's last token in each."""
        prompts = [context.replace("{}", request["prompt"]) for context in contexts]
        ids = [self.tokenizer.ids(prompt.replace("{}", request["subject"])) for prompt in prompts]
        return ids, torch.tensor([self.tokenizer.lookup(prompt, request["subject"]) for prompt in prompts])

    def at_lookup(self, model, request, place, layer):
        """[contexts, size]: a place's value at the lookup token of each context's prompt."""
        ids, lookup = self.rows(request, CONTEXTS)
        seen = {}
        with torch.no_grad():
            model.forward_with(padded(ids), lambda *at: seen.setdefault(at[:2], at[2]))
        return seen[place, layer][torch.arange(len(ids)), lookup]

    def keys(self, model, requests, layer):
        """[n, f]: half the plain prompt's, half the mean over the others."""
        each = [self.at_lookup(model, request, "key", layer) for request in requests]
        return torch.stack([key[0] / 2 + key[1:].mean(0) / 2 for key in each])

    def values(self, model, batch, layer, places, options=None):
        """The optimised vectors [n, d] of the first place, for batch number `batch`, on the model as it is."""
        options = options or SimpleNamespace(**VALUES, nll_factor=1.0, stops_when_predicted=False)
        return torch.stack([optimise(self, model, request, layer, places, options) for request in self.batches[batch]])

    def first_values(self):
        """Those of the first batch for MEMIT and its kin: the unedited model's, found once."""
        if "block" not in self.found:
            self.found["block"] = self.values(self.fresh(), 0, LAYERS[-1], ["block"])
        return self.found["block"]


def optimise(bench, model, request, layer, places, options):
    """z = h0 + delta at the first of the places; one delta for each, all found together."""
    prompts, lookup = bench.rows(request, CONTEXTS)
    text = request["prompt"].replace("{}", request["subject"])
    target = torch.tensor(bench.tokenizer.continuation_ids(text, " " + request["target"]))
    drift, drift_lookup = bench.rows(dict(request, prompt="{} is a"), ["{}"])
    rows = [row + target[:-1].tolist() for row in prompts] + drift
    at, row = torch.cat((lookup, drift_lookup)), torch.arange(len(rows))
    size = model.embedding.shape[1]
    deltas = {place: torch.zeros(size, dtype=torch.float64, requires_grad=True) for place in places}
    initial = {}

    def touch(place, at_layer, value):
        if at_layer != layer or place not in deltas:
            return value
        initial.setdefault(place, value[0, at[0]].detach().clone())
        return value.index_put((row, at), value[row, at] + deltas[place])

    optimiser = torch.optim.Adam(deltas.values(), lr=options.lr)
    before, factor = None, options.nll_factor
    for step in range(options.steps):
        log_p = model.forward_with(padded(rows), touch).log_softmax(-1)
        ends = [len(prompt) - 1 for prompt in prompts]
        read = torch.stack([log_p[i, end : end + len(target)] for i, end in enumerate(ends)])
        label = read.gather(2, target.expand(len(prompts), -1)[..., None])[..., 0]
        now = log_p[-1, at[-1]]
        before = now.detach() if before is None else before
        nll = factor * -label.mean(1).mean()
        kl = options.kl * (now.exp() * (now - before)).sum()
        decay = options.weight_decay * sum(deltas[p].norm() / initial[p].norm() ** 2 for p in places)
        loss = nll + kl + decay
        if loss.item() < options.stop_loss:
            break
        if options.stops_when_predicted:
            predicted = bool((read.max(-1).values == label).all())
            factor = options.nll_factor * (0.1 if predicted else 1.0)
            if predicted and kl.item() <= 0.01:
                break
        if step == options.steps - 1:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for place, delta in deltas.items():
                limit = options.clamp * initial[place].norm()
                if delta.norm() > limit:
                    delta *= limit / delta.norm()
    return (initial[places[0]] + deltas[places[0]]).detach()


def edit_layers(bench, model, batch, z, place, solve, parts):
    """Layers ascending: keys, the residual's share R / parts(layers left), delta = solve(layer, K [f, n], R [d, n])."""
    requests, deltas = bench.batches[batch], {}
    for index, layer in enumerate(LAYERS):
        keys = bench.keys(model, requests, layer).T
        now = torch.stack([bench.at_lookup(model, request, place, LAYERS[-1])[0] for request in requests])
        residual = ((z - now) / parts(len(LAYERS) - index)).T
        delta = solve(layer, keys, residual)
        name = model.weight_name("down", layer)
        model.weights[name] = model.weights[name] + delta
        deltas[f"delta.{batch}.{name}"] = delta
    return deltas
