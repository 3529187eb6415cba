"""UltraEdit by its primal system with autograd's own gradients; FT, FT-L and FT-M by torch's Adam on the weights themselves."""
import torch
from bench import padded

INPUTS = dict(gate="mlp_in", up="mlp_in", down="key")
EPS = torch.finfo(torch.float32).eps


def texts(bench, batch):
    """(prompt ids, target ids) of each request."""
    out = []
    for request in bench.batches[batch]:
        text = request["prompt"].replace("{}", request["subject"])
        out.append((bench.tokenizer.ids(text), bench.tokenizer.continuation_ids(text, " " + request["target"])))
    return out


class Normaliser:
    def __init__(self, size):
        self.n, self.mean, self.var = 0, torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)

    def update(self, x):
        b, drift = len(x), x.mean(0) - self.mean
        total = self.n + b
        self.mean = self.mean + b * drift / total
        spread = b * x.var(0) if b > 1 else 0
        self.var = self.var + spread + self.n * b * drift**2 / total
        self.n = total

    def __call__(self, x):
        return (x - self.mean) / ((self.var / (self.n - 1 + EPS)).sqrt() + EPS)


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
    log_p = model.forward_with(ids, touch).log_softmax(-1)
    picked = [log_p[i, len(p) - 1 + j, token] for i, (p, t) in enumerate(rows) for j, token in enumerate(t)]
    (-torch.stack(picked).mean()).backward()
    mask = torch.zeros(ids.shape, dtype=torch.bool)
    for i, (prompt, target) in enumerate(rows):
        mask[i, len(prompt) - 1 if tokens == "answer" else 0 : len(prompt) + len(target) - 1] = True
    output = dict(gate="gate", up="up", down="mlp")
    return [(seen[INPUTS[kind], layer].detach()[mask], seen[output[kind], layer].grad[mask]) for kind, layer in modules]


def ultraedit(tokens, size):
    modules, lr = {"gate": [2, 3], "up": [3], "down": [4]}, 1e-3

    def make(bench):
        model, deltas, normalisers = bench.fresh(), {}, {}
        flat = [(kind, layer) for kind, layers in modules.items() for layer in layers]
        for batch in range(len(bench.batches)):
            rows, parts = texts(bench, batch), []
            for start in range(0, len(rows), size):
                parts.append(gradients(model, rows[start : start + size], flat, tokens))
                for (kind, layer), (x, g) in zip(flat, parts[-1]):
                    shape = model.weights[model.weight_name(kind, layer)].shape
                    normalisers.setdefault(shape, Normaliser(sum(shape))).update(torch.cat((x, g), 1))
            for index, (kind, layer) in enumerate(flat):
                name = model.weight_name(kind, layer)
                x, g = (torch.cat([part[index][side] for part in parts]) for side in (0, 1))
                unit = normalisers[model.weights[name].shape](torch.cat((x, g), 1))
                x_unit, g_unit = unit[:, : x.shape[1]], unit[:, x.shape[1] :]
                v = -lr * (x_unit**2).sum(1, keepdim=True) * g_unit
                system = x.T @ x + torch.eye(x.shape[1], dtype=x.dtype)
                deltas[f"delta.{batch}.{name}"] = torch.linalg.solve(system, x.T @ v).T.contiguous()
            for index, (kind, layer) in enumerate(flat):
                name = model.weight_name(kind, layer)
                model.weights[name] = model.weights[name] + deltas[f"delta.{batch}.{name}"]
        return dict(method="ultraedit", modules=modules, lr=lr, tokens=tokens, batch=size), deltas

    return make


def fine_tune(method, batch=1, constraint=None, decay=0.0):
    modules, steps, lr = {"up": [5], "down": [4, 6]}, 6, 5e-4

    def loss_of(model, rows):
        ids = padded([prompt + (target[:-1] if method == "ft-m" else []) for prompt, target in rows])
        log_p = model.forward_with(ids, lambda place, layer, value: value).log_softmax(-1)
        each = []
        for i, (prompt, target) in enumerate(rows):
            last = len(prompt) - 1
            at = [last + (j if method == "ft-m" else 0) for j in range(len(target))]
            each.append(-log_p[i, at, target].mean())
        return torch.stack(each).mean()

    def make(bench):
        model, rows = bench.fresh(), texts(bench, 0) + texts(bench, 1)[:1]
        names = [model.weight_name(kind, layer) for kind, layers in modules.items() for layer in layers]
        base = {name: model.weights[name].clone() for name in names}
        for name in names:
            model.weights[name].requires_grad_(True)
        optimiser = torch.optim.Adam([model.weights[name] for name in names], lr=lr, weight_decay=decay)
        for _ in range(steps):
            total = 0.0
            for start in range(0, len(rows), batch):
                chunk = rows[start : start + batch]
                loss = loss_of(model, chunk)
                total += loss.item() * len(chunk)
                if loss.item() >= 1e-2:
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                if constraint:
                    with torch.no_grad():
                        for name in names:
                            weight = model.weights[name]
                            weight[...] = torch.clamp(weight, base[name] - constraint, base[name] + constraint)
            if total / len(rows) < 1e-2:
                break
        section = dict(method=method, modules=modules, steps=steps, lr=lr, batch=batch, weight_decay=decay)
        section |= dict(norm_constraint=constraint) if constraint else {}
        return section, {f"delta.0.{name}": (model.weights[name] - base[name]).detach() for name in names}

    return make


GOLDENS = {
    "ultraedit-answer": ultraedit("answer", size=2),
    "ultraedit-all": ultraedit("all", size=1),
    "ft": fine_tune("ft"),
    "ft-l": fine_tune("ft-l", batch=2, constraint=1e-3),
    "ft-m": fine_tune("ft-m", batch=2, decay=1e-2),
}
