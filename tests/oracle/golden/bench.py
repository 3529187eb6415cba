"""What the plain versions of all methods share: the model, its statistics, values and keys.

The forward is written out with named places, so that a method can look and add anywhere; weights are plain tensors, so that a
method can train them. Nothing is shared with the engine, and nothing is done smartly: requests share a pass only because Python
is slow, and what the unedited model gives is kept because methods ask for it again. The model runs in its dtype; what it gives, and
all algebra, is float64.
"""
import json
import pathlib
import sys

import torch
from filters import rect, revive

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from make_golden import Llama, Tokenizer, covariance, padded  # noqa: E402

TOGETHER = 4  # requests of one pass


def untouched(place, layer, value):
    return value


class Editable:
    """Of a model with `weights` [d_out, d_in] by name, `dtype`, `keep`, the share that RECT leaves of a change, or None, and
    `energy`, REVIVE's, or None."""

    linear_place = "block"  # where a change of a down projection shows linearly; values and residuals are of this place
    block_scale = 1.0  # of the MLP's output in the block's
    is_edited = False
    energy = None

    def change(self, name, delta):
        """Adds delta to a weight, or what REVIVE and RECT leave of it, and returns that."""
        if self.energy is not None:
            self.unedited.setdefault(name, self.weights[name])
            delta = revive(self.unedited[name], delta, self.energy)
        delta = delta if self.keep is None else rect(self.weights[name], delta, self.keep)
        self.weights[name], self.is_edited = self.weights[name] + delta.to(self.dtype), True
        return delta

    def names_of(self, kind, layer):
        """Of the weights whose product with a layer's input is its output there: one, or one for each expert, side by side."""
        return [self.weight_name(kind, layer)]

    def change_kind(self, kind, layer, delta):
        """Changes those; gives the changes by weight. One that is 0 changes nothing, and is not named."""
        names = self.names_of(kind, layer)
        return {name: self.change(name, part) for name, part in zip(names, delta.chunk(len(names), 1)) if part.any()}

    def stored(self, name, delta):
        """A change in the orientation of the weight's file."""
        return delta


class Model(Editable, Llama):
    """A Llama whose places can be watched and changed: `touch(place, layer, tensor)` gives back what goes on."""

    def __init__(self, folder, dtype, keep=None):
        super().__init__(folder, dtype)
        self.keep = keep

    def weight_name(self, kind, layer):
        return f"model.layers.{layer}.mlp.{kind}_proj.weight"

    def run_with(self, h, layers, touch):
        for layer in layers:
            name = f"model.layers.{layer}"
            h = h + touch("attn", layer, self.attention(f"{name}.self_attn", self.norm(f"{name}.input_layernorm", h)))
            x = touch("mlp_in", layer, self.norm(f"{name}.post_attention_layernorm", h))
            gate = touch("gate", layer, self.linear(f"{name}.mlp.gate_proj", x))
            up = touch("up", layer, self.linear(f"{name}.mlp.up_proj", x))
            key = touch("key", layer, torch.nn.functional.silu(gate) * up)
            h = h + touch("mlp", layer, self.linear(f"{name}.mlp.down_proj", key))
            h = touch("block", layer, h)
        return h


class Bench:
    def __init__(self, folder, dtype=torch.float64):
        self.folder, self.dtype, self.tokenizer = folder, dtype, Tokenizer(folder)
        self.end_id = json.loads((pathlib.Path(folder) / "config.json").read_text("utf-8"))["eos_token_id"]
        self.covariances, self.tokens = {}, 0
        self.found = {}  # values of the unedited model

    def fresh(self, section):
        """The unedited model."""
        model = Model(self.folder, self.dtype, section.get("rect", {}).get("keep"))
        model.energy, model.unedited = section.get("revive", {}).get("energy"), {}
        return model

    def read_statistics(self, lines, layers):
        with torch.no_grad():
            self.covariances, self.tokens = covariance(Llama(self.folder, self.dtype), self.tokenizer, lines, sorted(layers))

    def text(self, request):
        return request["prompt"].replace("{}", request["subject"])

    def target_ids(self, request, section):
        ids = self.tokenizer.continuation_ids(self.text(request), " " + request["target"])
        return ids + [self.end_id] if section.get("target_end") == "eos" else ids

    def rows(self, request, contexts):
        """Filled prompts as ids, and the subject's last token in each."""
        prompts = [context.replace("{}", request["prompt"]) for context in contexts]
        ids = [self.tokenizer.ids(prompt.replace("{}", request["subject"])) for prompt in prompts]
        return ids, torch.tensor([self.tokenizer.lookup(prompt, request["subject"]) for prompt in prompts])

    @torch.no_grad()
    def at_lookup(self, model, requests, contexts, place, layer):
        """[n, contexts, size]: a place's value at the lookup token of each context's prompt."""
        parts = []
        for some in chunks(requests):
            ids, lookups = zip(*(self.rows(request, contexts) for request in some))
            ids, at, seen = sum(ids, []), torch.cat(lookups), {}

            def touch(*at_place):
                seen[at_place[:2]] = at_place[2]
                return at_place[2]

            model.run_with(model.embedding[padded(ids)], range(layer + 1), touch)
            parts.append(seen[place, layer][torch.arange(len(ids)), at].unflatten(0, (-1, len(contexts))))
        return torch.cat(parts).double()

    def keys(self, model, requests, contexts, layer):
        """[n, f]: half the plain prompt's, half the mean over the others."""
        each = self.at_lookup(model, requests, contexts, "key", layer)
        return each[:, 0] / 2 + each[:, 1:].mean(1) / 2 if len(contexts) > 1 else each[:, 0]

    @torch.no_grad()
    def replay(self, model, requests, place, layers, z):
        """By layer, [n, d]: a place's value at the lookup token of the plain prompts, while at the first of the layers it is z."""
        found = {layer: [] for layer in layers}
        for request, given in zip(requests, z):
            ids, at = self.rows(request, ["{}"])

            def touch(at_place, layer, value):
                if (at_place, layer) == (place, layers[0]):
                    value = value.index_put((torch.tensor([0]), at), given.to(value.dtype)[None])
                if at_place == place and layer in found:
                    found[layer].append(value[0, at[0]])
                return value

            model.run_with(model.embedding[padded(ids)], range(layers[-1] + 1), touch)
        return {layer: torch.stack(rows).double() for layer, rows in found.items()}

    def values(self, model, requests, layer, places, section):
        """The optimised vectors [n, d] at the first of the places of `layer`, on the model as it is."""
        asked = [requests, layer, places, section["contexts"], section["values"], section["method"] == "pmet", section.get("target_end")]
        name = json.dumps(asked)
        if model.is_edited or name not in self.found:
            z = torch.cat([optimise(self, model, some, layer, places, section) for some in chunks(requests)])
            if model.is_edited:
                return z
            self.found[name] = z
        return self.found[name]


def chunks(requests):
    return [requests[start : start + TOGETHER] for start in range(0, len(requests), TOGETHER)]


class Search:
    """For one request's value: one delta for each place, all found together."""

    def __init__(self, bench, request, places, section):
        self.options, self.is_pmet = section["values"], section["method"] == "pmet"
        prompts, lookup = bench.rows(request, section["contexts"])
        drift, drift_lookup = bench.rows(dict(request, prompt="{} is a"), ["{}"])
        self.target = torch.tensor(bench.target_ids(request, section))
        self.rows = [row + self.target[:-1].tolist() for row in prompts] + drift
        self.ends, self.at = [len(prompt) - 1 for prompt in prompts], torch.cat((lookup, drift_lookup))
        self.places, self.deltas, self.initial, self.before = places, {}, {}, None
        self.weight, self.predicted = self.options.get("nll_factor", 1.0), 0

    def begin(self, place, value):
        """At the first step: where the search starts from."""
        self.initial[place] = value[0, self.at[0]].detach().clone()
        self.deltas[place] = torch.zeros_like(self.initial[place], requires_grad=True)

    def loss(self, model, h):
        """Of the rows' hidden states behind the last layer."""
        labels = self.target.expand(len(self.ends), -1)
        read = torch.stack([h[i, end : end + len(self.target)] for i, end in enumerate(self.ends)])
        log_p = model.logits(read).log_softmax(-1)
        label = log_p.gather(2, labels[..., None])[..., 0]
        now = model.logits(h[-1, self.at[-1]]).log_softmax(-1)
        self.before = now.detach() if self.before is None else self.before
        nll = self.weight * -label.mean(1).mean()
        kl = self.options["kl"] * (now.exp() * (now - self.before)).sum()
        decay = sum(self.deltas[place].norm() / self.initial[place].norm() ** 2 for place in self.places)
        self.is_predicted, self.drift = bool((log_p.max(-1).values == label).all()), kl.item()
        return nll + kl + self.options["weight_decay"] * decay

    def is_finished(self, loss):
        if loss.item() < self.options["stop_loss"]:
            return True
        self.predicted = self.predicted + 1 if self.is_predicted else 0
        if self.options.get("stop") == "predicted" and self.predicted == 2:
            return True
        if self.is_pmet:
            self.weight = self.options.get("nll_factor", 1.0) * (0.1 if self.is_predicted else 1.0)
        return self.is_pmet and self.is_predicted and self.drift <= 0.01

    def update(self):
        if not hasattr(self, "adam"):
            self.adam = torch.optim.Adam(self.deltas.values(), lr=self.options["lr"])
        self.adam.step()
        self.adam.zero_grad()
        with torch.no_grad():
            for place, delta in self.deltas.items():
                limit = self.options["clamp"] * self.initial[place].norm()
                if delta.norm() > limit:
                    delta *= limit / delta.norm()


def optimise(bench, model, requests, layer, places, section):
    """z = h0 + delta of each request, found for itself: the requests share passes alone. Finished ones leave."""
    searches = [Search(bench, request, places, section) for request in requests]
    height, steps = len(searches[0].rows), section["values"]["steps"]
    with torch.no_grad():
        start = model.embedding[padded(sum((search.rows for search in searches), []))]
        start = model.run_with(start, range(layer), untouched).split(height)
    active = list(zip(searches, start))

    def touch(place, at_layer, value):
        if at_layer != layer or place not in places:
            return value
        going = [search for search, _ in active]
        for search, part in zip(going, value.split(height)):
            if place not in search.deltas:
                search.begin(place, part)
        row, at = torch.arange(len(value)), torch.cat([search.at for search in going])
        added = torch.stack([search.deltas[place] for search in going]).repeat_interleave(height, 0)
        return value.index_put((row, at), value[row, at] + added)

    for step in range(steps):
        h = model.run_with(torch.cat([rows for _, rows in active]), range(layer, model.layers), touch)
        losses = [search.loss(model, part) for (search, _), part in zip(active, h.split(height))]
        going = [index for index, loss in enumerate(losses) if not active[index][0].is_finished(loss)]
        active = [active[index] for index in going]
        if step == steps - 1 or not active:
            break
        sum(losses[index] for index in going).backward()
        for search, _ in active:
            search.update()
    return torch.stack([search.initial[places[0]] + search.deltas[places[0]] for search in searches]).detach().double()
