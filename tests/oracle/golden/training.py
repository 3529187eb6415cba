"""UltraEdit and StableEdit by their primal system with autograd's own gradients; FT, FT-L and FT-M by torch's Adam on the weights themselves."""
import torch
from bench import padded, untouched

INPUTS = dict(gate="mlp_in", up="mlp_in", down="key")
OUTPUTS = dict(gate="gate", up="up", down="mlp")
EPS = torch.finfo(torch.float32).eps


def texts(bench, requests, section):
    """(prompt ids, target ids) of each request."""
    return [(bench.tokenizer.ids(bench.text(request)), bench.target_ids(request, section)) for request in requests]


def modules_of(section):
    return [(kind, layer) for kind in ("gate", "up", "down") for layer in section["modules"].get(kind, [])]


def log_p_at(model, ids, touch, places):
    """Of (row, position, token) triples."""
    h = model.run_with(model.embedding[ids], range(model.layers), touch)
    row, at, token = torch.tensor(places).T
    return model.logits(h[row, at]).log_softmax(-1)[torch.arange(len(token)), token]


# ---- UltraEdit ----


class Normaliser:
    correction = 1  # of the variance of a pass's rows

    def __init__(self, size):
        self.n, self.mean, self.var = 0, torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)

    def update(self, x):
        b, drift = len(x), x.mean(0) - self.mean
        total = self.n + b
        self.mean = self.mean + b * drift / total
        spread = b * x.var(0, correction=self.correction) if b > 1 else 0
        self.var = self.var + spread + self.n * b * drift**2 / total
        self.n = total

    def __call__(self, x):
        return (x - self.mean) / ((self.var / (self.n - 1 + EPS)).sqrt() + EPS)


class Whitener(Normaliser):
    """StableEdit's, which keeps all rows: what is whitened is the side of the gradients, of `size` numbers."""

    correction = 0

    def __init__(self, size, gradients, ridge_of_spectrum=1e-6):
        super().__init__(size)
        self.rows, self.gradients, self.least, self.is_warm = [], gradients, ridge_of_spectrum, True

    def update(self, x):
        super().update(x)
        self.rows.extend(x)

    def __call__(self, x):
        unit, d = super().__call__(x), self.gradients
        if self.is_warm or self.n <= d + 1:
            return unit
        seen = torch.stack(self.rows)[:, -d:]
        centred = seen - seen.mean(0)
        covariance = centred.T @ centred / (self.n - d - 1 + EPS)
        spectrum, vectors = torch.linalg.eigh(covariance)
        root = vectors @ torch.diag(spectrum.clamp(min=self.least) ** -0.5) @ vectors.T
        return torch.cat((unit[:, :-d], (x[:, -d:] - seen.mean(0)) @ root), 1)


def gradients(model, rows, modules, tokens):
    """Inputs and output gradients of each module at the chosen tokens; the loss is the mean over all target tokens."""
    seen = {}

    def touch(place, layer, value):
        if not value.requires_grad:
            value = value.detach().requires_grad_(True)
        value.retain_grad()
        seen[place, layer] = value
        return value

    ids = padded([prompt + target[:-1] for prompt, target in rows])
    places = [(i, len(p) - 1 + j, token) for i, (p, t) in enumerate(rows) for j, token in enumerate(t)]
    (-log_p_at(model, ids, touch, places).mean()).backward()
    mask = torch.zeros(ids.shape, dtype=torch.bool)
    for i, (prompt, target) in enumerate(rows):
        mask[i, len(prompt) - 1 if tokens == "answer" else 0 : len(prompt) + len(target) - 1] = True
    pairs = [(seen[INPUTS[kind], at].detach(), seen[OUTPUTS[kind], at].grad) for kind, at in modules]
    return [(x[mask].double(), g[mask].double()) for x, g in pairs]


def ultraedit(bench, section, batches):
    model, changes, normalisers = bench.fresh(section), [], {}
    modules, size, edits = modules_of(section), section["batch"], 0
    for requests in batches:
        rows, parts, deltas = texts(bench, requests, section), [], {}
        for start in range(0, len(rows), size):
            parts.append(gradients(model, rows[start : start + size], modules, section["tokens"]))
            for x, g in parts[-1]:
                shape = x.shape[1], g.shape[1]
                made = Whitener(sum(shape), shape[1]) if section["method"] == "stableedit" else Normaliser(sum(shape))
                normalisers.setdefault(shape, made).update(torch.cat((x, g), 1))
        for normaliser in normalisers.values():
            normaliser.is_warm = edits < section.get("warm_up", 0)
        for index, module in enumerate(modules):
            x, g = (torch.cat([part[index][side] for part in parts]) for side in (0, 1))
            unit = normalisers[x.shape[1], g.shape[1]](torch.cat((x, g), 1))
            x_unit, g_unit = unit[:, : x.shape[1]], unit[:, x.shape[1] :]
            v = -section["lr"] * (x_unit**2).sum(1, keepdim=True) * g_unit
            system = x.T @ x + section.get("ridge", 1) * torch.eye(x.shape[1], dtype=x.dtype)
            deltas |= model.change_kind(*module, torch.linalg.solve(system, x.T @ v).T)
        changes.append(deltas)
        edits += len(requests)
    return changes


# ---- FT, FT-L, FT-M ----


def losses_of(model, rows, method):
    """The mean NLL of each request's target tokens: FT reads all of them at the prompt's end."""
    forced = method in ("ft-m", "crispedit")
    ids = padded([prompt + (target[:-1] if forced else []) for prompt, target in rows])
    places = [(i, len(p) - 1 + (j if forced else 0), token) for i, (p, t) in enumerate(rows) for j, token in enumerate(t)]
    each = -log_p_at(model, ids, untouched, places)
    return torch.stack([part.mean() for part in each.split([len(target) for _, target in rows])])


@torch.no_grad()
def is_said(model, row, margin):
    """Whether each token of the target has a log p above that of every other by the margin."""
    prompt, target = row
    h = model.run_with(model.embedding[torch.tensor([prompt + target[:-1]])], range(model.layers), untouched)
    log_p = model.logits(h[0, len(prompt) - 1 :]).log_softmax(-1)
    others = [torch.cat((at[:token], at[token + 1 :])).max() for at, token in zip(log_p, target)]
    return all(at[token] - other >= margin for at, token, other in zip(log_p, target, others))


def whitening(bench, section, layer):
    """(C over its diagonal's mean + whiten)^(-1/2), of squared eigenvalues whose mean is 1."""
    c = bench.covariances[layer]
    values, vectors = torch.linalg.eigh(c / c.diagonal().mean() + section["whiten"] * torch.eye(len(c), dtype=c.dtype))
    root = vectors @ torch.diag(values**-0.5) @ vectors.T
    return root / ((root @ root).trace() / len(c)).sqrt()


def mixed(x):
    """SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def shuffled(rows, number, seed=0):
    """In the order of numbers that are drawn for the pass and each place."""
    stream = mixed((mixed(seed) + number) % 2**64)
    return [rows[i] for i in sorted(range(len(rows)), key=lambda i: mixed((stream + i) % 2**64))]


def rows_of_pass(rows, section, number, earlier, seed=0):
    """The rows and, in turn, those of earlier batches, breadth-first or as given."""
    turns, count = shuffled(earlier, 0, seed + len(earlier)), min(section.get("revisit", 0), len(earlier))
    rows = rows + [turns[(number * count + i) % len(turns)] for i in range(count)]
    return shuffled(rows, number, seed) if section.get("order", "given") == "breadth-first" else rows


def train(model, names, rows, section, project=None, earlier=()):
    """Of a batch of requests, in place on the leaves model.weights[names]; `project(name, matrix)`: gradients, and steps if asked."""
    base = {name: model.weights[name].detach().clone() for name in names}
    leaves, constraint = [model.weights[name] for name in names], section.get("norm_constraint")
    adam = torch.optim.Adam(leaves, lr=section["lr"], weight_decay=section["weight_decay"])
    for number in range(section["steps"]):
        total, updates, taken = 0.0, 0, rows_of_pass(rows, section, number, earlier)
        for start in range(0, len(taken), section["batch"]):
            chunk = taken[start : start + section["batch"]]
            each = losses_of(model, chunk, section["method"])
            total += each.sum().item()
            wanted = torch.tensor([not ("margin" in section and is_said(model, row, section["margin"])) for row in chunk])
            if each.mean().item() >= section["stop_loss"] and wanted.any():
                updates += 1
                adam.zero_grad()
                (each * wanted).mean().backward()
                before = {name: model.weights[name].detach().clone() for name in names}
                for name, weight in zip(names, leaves if project else []):
                    weight.grad = project(name, weight.grad)
                adam.step()
                if project and section["projected"] == "steps":
                    with torch.no_grad():
                        for name, weight in zip(names, leaves):
                            weight[...] = before[name] + project(name, weight - before[name])
            if constraint:
                with torch.no_grad():
                    for name, weight in zip(names, leaves):
                        weight[...] = torch.clamp(weight, base[name] - constraint, base[name] + constraint)
        if total / len(taken) < section["stop_loss"] or updates == 0:
            break
    return {name: (model.weights[name] - base[name]).detach() for name in names}


def trained(model, names, rows, section, project=None, earlier=()):
    """The changes by one batch, which the model then has."""
    base = {name: model.weights[name] for name in names}
    for name in names:
        model.weights[name] = base[name].clone().requires_grad_(True)
    deltas = train(model, names, rows, section, project, earlier)
    model.weights |= base
    return {name: model.change(name, delta) for name, delta in deltas.items() if delta.any()}


def times(model, roots):
    """By name of a down projection: a matrix times its block of the layer's root."""
    of_weight = {}
    for layer, root in roots.items():
        names = model.names_of("down", layer)
        width = len(root) // len(names)  # one expert's, where there are several
        of_weight |= {name: root[e * width : (e + 1) * width, e * width : (e + 1) * width] for e, name in enumerate(names)}
    return lambda name, matrix: matrix @ of_weight[name]


class Repair:
    """After a batch of another method, FT-M of its weights with a margin, on its requests and some of earlier batches. Adam's steps
    go through `roots[layer]`: AlphaEdit's projector; the others' whitening."""

    def __init__(self, bench, section, roots=None):
        self.section = dict(method="ft-m", weight_decay=0.0, stop_loss=0.0, order="breadth-first", projected="steps") | section["repair"]
        self.section |= {"target_end": section["target_end"]} if "target_end" in section else {}
        self.bench, self.roots = bench, roots or {layer: whitening(bench, self.section, layer) for layer in section["layers"]}
        self.earlier = []

    def __call__(self, model, requests, deltas):
        """The batch's whole changes."""
        names = [name for layer in self.roots for name in model.names_of("down", layer)]
        rows = texts(self.bench, requests, self.section)
        filters, (model.keep, model.energy) = (model.keep, model.energy), (None, None)  # they are of what is solved
        repaired = trained(model, names, rows, self.section, times(model, self.roots), self.earlier)
        model.keep, model.energy = filters
        self.earlier = self.earlier + rows
        assert repaired, "a golden in which nothing is repaired shows nothing"
        return {name: deltas.get(name, 0) + repaired.get(name, 0) for name in deltas | repaired}


def fine_tune(bench, section, batches):
    model = bench.fresh(section)
    names = [name for kind, layer in modules_of(section) for name in model.names_of(kind, layer)]
    project, changes, earlier = None, [], []
    if "whiten" in section:
        section = section | dict(projected="steps")
        project = times(model, {layer: whitening(bench, section, layer) for _, layer in modules_of(section)})
    for requests in batches:
        rows = texts(bench, requests, section)
        changes.append(trained(model, names, rows, section, project, earlier))
        earlier = earlier + rows
    return changes
