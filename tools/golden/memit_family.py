"""MEMIT with history, the norm anchor, RECT and BLUE; EMMET; AlphaEdit; PMET: LU and inverses, full matrices."""
import math
from types import SimpleNamespace

import torch
from bench import CONTEXTS, LAYERS, VALUES, edit_layers

LAMBDA = 20.0


def section(method, **options):
    return dict(method=method, layers=LAYERS, values=VALUES, contexts=CONTEXTS, **options)


def ridge(bench, history):
    def solve(layer, keys, residual):
        system = LAMBDA * bench.covariances[layer] + history[layer] + keys @ keys.T
        return residual @ torch.linalg.solve(system, keys).T

    return solve


def no_history(bench):
    return {layer: torch.zeros_like(bench.covariances[layer]) for layer in LAYERS}


def remember(bench, model, batch, history):
    """Keys are taken with the edited weights."""
    for layer in LAYERS:
        keys = bench.keys(model, bench.batches[batch], layer).T
        history[layer] = history[layer] + keys @ keys.T


def stream(bench, solve, history=None, change=lambda z: z):
    """Both batches, one after the other."""
    model, deltas = bench.fresh(), {}
    for batch in range(len(bench.batches)):
        z = bench.first_values() if batch == 0 else bench.values(model, batch, LAYERS[-1], ["block"])
        deltas |= edit_layers(bench, model, batch, change(z), "block", solve, lambda left: left)
        if history is not None:
            remember(bench, model, batch, history)
    return deltas


def memit_history(bench):
    history = no_history(bench)
    return section("memit", covariance_weight=LAMBDA, history=True), stream(bench, ridge(bench, history), history)


def memit_anchor(bench):
    norm = bench.first_values().norm(dim=1).mean()

    def rescale(z):
        assert (z.norm(dim=1) < 3 * norm).all()
        return z * (norm / z.norm(dim=1))[:, None]

    deltas = stream(bench, ridge(bench, no_history(bench)), change=rescale)
    return section("memit", covariance_weight=LAMBDA, norm_anchor=dict(mode="rescale", limit=3.0)), deltas


def memit_rect(bench):
    model, plain = bench.fresh(), ridge(bench, no_history(bench))

    def solve(layer, keys, residual):
        delta = plain(layer, keys, residual)
        ratio = (delta / (model.weights[model.weight_name("down", layer)] + 1e-8)).abs()
        order = ratio.flatten().argsort(descending=True)
        mask = torch.zeros_like(ratio).flatten()
        mask[order[: int(0.4 * len(order))]] = 1
        return delta * mask.view_as(ratio)

    deltas = edit_layers(bench, model, 0, bench.first_values(), "block", solve, lambda left: left)
    return section("memit", covariance_weight=LAMBDA, rect=dict(keep=0.4)), deltas


def memit_blue(bench):
    """Each layer with values of its own and the whole residual, the first one edited when the second's are found."""
    model, solve, deltas = bench.fresh(), ridge(bench, no_history(bench)), {}
    for layer in LAYERS:
        z = bench.values(model, 0, layer, ["block"])
        requests = bench.batches[0]
        now = torch.stack([bench.at_lookup(model, request, "block", layer)[0] for request in requests])
        name = model.weight_name("down", layer)
        deltas[f"delta.0.{name}"] = solve(layer, bench.keys(model, requests, layer).T, (z - now).T)
        model.weights[name] = model.weights[name] + deltas[f"delta.0.{name}"]
    return section("memit", covariance_weight=LAMBDA, blue=True), deltas


def emmet(bench):
    slack, identity = 0.1, 0.5

    def solve(layer, keys, residual):
        system = LAMBDA * bench.covariances[layer]
        inverse = torch.linalg.inv(system + identity * torch.eye(len(system), dtype=system.dtype))
        inner = keys.T @ inverse @ keys
        return residual @ torch.linalg.inv(inner + slack * torch.eye(len(inner), dtype=inner.dtype)) @ keys.T @ inverse

    deltas = edit_layers(bench, bench.fresh(), 0, bench.first_values(), "block", solve, lambda left: left)
    return section("emmet", covariance_weight=LAMBDA, slack=slack, identity_weight=identity), deltas


def alphaedit(bench):
    threshold, strength, history, projector = 0.5, 0.5, no_history(bench), {}
    for layer in LAYERS:
        spectrum, vectors = torch.linalg.eigh(bench.covariances[layer])
        basis = vectors[:, spectrum < threshold]
        assert 0 < basis.shape[1] < len(vectors)
        projector[layer] = basis @ basis.T

    def solve(layer, keys, residual):
        system = projector[layer] @ (keys @ keys.T + history[layer])
        system = system + strength * torch.eye(len(system), dtype=system.dtype)
        return torch.linalg.solve(system, projector[layer] @ keys @ residual.T).T

    deltas = stream(bench, solve, history)
    return section("alphaedit", null_space_below=threshold, ridge=strength), deltas


def pmet(bench):
    values = VALUES | dict(steps=25, kl=0.02, nll_factor=1.5)
    model, options = bench.fresh(), SimpleNamespace(**values, stops_when_predicted=True)
    z = bench.values(model, 0, LAYERS[-1], ["mlp", "attn"], options)
    deltas = edit_layers(bench, model, 0, z, "mlp", ridge(bench, no_history(bench)), math.sqrt)
    return section("pmet", covariance_weight=LAMBDA) | dict(values=values), deltas


GOLDENS = {
    "memit-history": memit_history,
    "memit-anchor": memit_anchor,
    "memit-rect": memit_rect,
    "memit-blue": memit_blue,
    "emmet": emmet,
    "alphaedit": alphaedit,
    "pmet": pmet,
}
