"""MEMIT, EMMET, AlphaEdit, PMET, EvoEdit and BetaEdit, with history, the norm anchor, BLUE, forward replay, error feedback and
the text budget: LU and inverses, full matrices."""
import math

import torch
from training import Repair


def places_of(section, model):
    """Where values are found, the first of them where residuals are: PMET has two, the others what the model says."""
    return ["mlp", "attn"] if section["method"] == "pmet" else [model.linear_place]


def identity(matrix):
    return torch.eye(len(matrix), dtype=matrix.dtype)


def ridge(bench, section, history):
    def solve(layer, keys, residual):
        system = section["covariance_weight"] * bench.covariances[layer] + history[layer] + keys @ keys.T
        system = system + section.get("identity_weight", 0) * identity(system)
        return residual @ torch.linalg.solve(system, keys).T

    return solve


def equality(bench, section, history):
    def solve(layer, keys, residual):
        system = section["covariance_weight"] * bench.covariances[layer]
        inverse = torch.linalg.inv(system + section.get("identity_weight", 0) * identity(system))
        inner = keys.T @ inverse @ keys
        return residual @ torch.linalg.inv(inner + section["slack"] * identity(inner)) @ keys.T @ inverse

    return solve


def null_space(bench, section, history):
    projector = {}
    for layer in section["layers"]:
        spectrum, vectors = torch.linalg.eigh(bench.covariances[layer])
        basis = vectors[:, spectrum < section["null_space_below"]]
        assert 0 < basis.shape[1] < len(vectors)
        projector[layer] = basis @ basis.T

    def solve(layer, keys, residual):
        system = projector[layer] @ (keys @ keys.T + history[layer])
        system = system + section["ridge"] * identity(system)
        return torch.linalg.solve(system, projector[layer] @ keys @ residual.T).T

    solve.projector = projector
    return solve


def shrinking(bench, section, history):
    """EvoEdit: P loses the left singular vectors of P K once K is edited."""
    projector = {}
    for layer in section["layers"]:
        spectrum, vectors = torch.linalg.eigh(bench.covariances[layer])
        basis = vectors[:, spectrum < section["null_space_below"]]
        projector[layer] = basis @ basis.T

    def solve(layer, keys, residual):
        p = projector[layer]
        inner = keys.T @ p @ keys
        delta = residual @ torch.linalg.inv(inner + section["ridge"] * identity(inner)) @ keys.T @ p
        spent = torch.linalg.svd(p @ keys, full_matrices=False)[0]
        projector[layer] = p - spent @ spent.T
        return delta

    return solve


def refreshed(bench, section, history):
    """BetaEdit: C in the system, and P of C and the earlier keys after every `refresh` of these."""
    projector, keys_of, l1 = {}, {layer: [] for layer in section["layers"]}, section["covariance_weight"]

    def null_space_of(protected):
        spectrum, vectors = torch.linalg.eigh(protected)
        basis = vectors[:, spectrum < section["null_space_below"]]
        assert 0 < basis.shape[1] < len(vectors)
        return basis @ basis.T

    def solve(layer, keys, residual):
        c, earlier = bench.covariances[layer], keys_of[layer]
        if not earlier:
            projector[layer] = null_space_of(c)
        elif len(earlier) % section["refresh"] == 0:
            projector[layer] = null_space_of((history[layer] / len(earlier) + l1 * c) / (1 + l1))
        p = projector[layer]
        system = p @ (keys @ keys.T + history[layer] + l1 * c) + section["ridge"] * identity(c)
        history[layer] = history[layer] + keys @ keys.T
        earlier.extend(keys.T)
        return torch.linalg.solve(system, p @ keys @ residual.T).T

    return solve


SOLVES = {"evoedit": shrinking, "betaedit": refreshed, "memit": ridge, "pmet": ridge, "emmet": equality, "alphaedit": null_space}


class NormAnchor:
    """Every value gets the mean norm of the first batch's."""

    def __init__(self, section):
        self.mode, self.limit = section.get("norm_anchor", {}).get("mode", "off"), section.get("norm_anchor", {}).get("limit")
        assert self.mode in ("off", "rescale") and not (self.mode == "rescale" and section.get("blue"))
        self.norm = None

    def __call__(self, z):
        if self.mode == "off":
            return z
        if self.norm is None:
            self.norm = z.norm(dim=1).mean()
        assert (z.norm(dim=1) <= self.limit * self.norm).all(), "a value beyond the limit, which would be left out"
        return z * (self.norm / z.norm(dim=1))[:, None]


def targets_of(bench, model, requests, layers, section, anchor):
    """By layer: the last one's value, of which each takes a share, or with forward replay one for each."""
    places, is_replay = places_of(section, model), section.get("targets") == "replay"
    at = layers[0] if is_replay else layers[-1]
    z = anchor(bench.values(model, requests, at, places, section))
    return bench.replay(model, requests, places[0], layers, z) if is_replay else {at: z}


class Feedback:
    """The error E of what a filter left is carried into the next solve: Delta = (R K^T - E) A^-1, E = (Delta' - Delta) A."""

    def __init__(self, bench, section, history):
        self.bench, self.section, self.history, self.lost = bench, section, history, {}

    def system(self, layer):
        return self.section["covariance_weight"] * self.bench.covariances[layer] + self.history[layer]

    def change(self, model, layer, keys, residual):
        before = self.system(layer)  # with the keys of the last batch as they are after it
        error = self.lost[layer] @ before if layer in self.lost else 0
        delta = torch.linalg.solve(before + keys @ keys.T, (residual @ keys.T - error).T).T
        changes = model.change_kind("down", layer, delta)
        self.lost[layer] = next(iter(changes.values())) - delta
        return changes


class Budget:
    """LyapLock: Delta = [R K^T + V_h K_h^T - W H - mu T C] (K K^T + H + mu C)^-1, T = W - W0, V_h the values that earlier keys
    K_h were left with, H = K_h K_h^T; mu is the least one, from lambda on, with tr(T C T^T) within the share of tr(W0 C W0^T)."""

    def __init__(self, bench, section, history):
        self.bench, self.section, self.history, self.unedited = bench, section, history, {}
        self.values = {layer: 0 for layer in section["layers"]}  # V_h K_h^T
        self.bound = []  # by change: mu / lambda

    def change(self, model, layer, keys, residual):
        (name,) = model.names_of("down", layer)
        w, c = model.weights[name].double(), self.bench.covariances[layer]
        w0 = self.unedited.setdefault(name, w)
        wanted = residual @ keys.T + self.values[layer] - w @ self.history[layer]
        most = self.section["text_budget"] * torch.trace(w0 @ c @ w0.T)

        def solved(mu):
            system = keys @ keys.T + self.history[layer] + mu * c
            delta = torch.linalg.solve(system, (wanted - mu * (w - w0) @ c).T).T
            total = w - w0 + delta
            return delta, torch.trace(total @ c @ total.T)

        low = high = self.section["covariance_weight"]
        delta, moved = solved(high)
        while moved > most:
            low, high = high, 2 * high
            delta, moved = solved(high)
        while high - low > 1e-11 * high:
            middle = (low + high) / 2
            trial, moved = solved(middle)
            if moved > most:
                low = middle
            else:
                high, delta = middle, trial
        self.bound.append(high / self.section["covariance_weight"])
        changes = model.change_kind("down", layer, delta)
        self.values[layer] = self.values[layer] + model.weights[name].double() @ keys @ keys.T
        self.history[layer] = self.history[layer] + keys @ keys.T
        return changes


def edit_layers(bench, model, requests, targets, layers, section, solve):
    """Layers ascending: keys, the residual's share, delta = solve(layer, K [f, n], R [d, n])."""
    is_pmet, deltas = section["method"] == "pmet", {}
    for index, layer in enumerate(layers):
        keys = bench.keys(model, requests, section["contexts"], layer).T
        is_own = section.get("targets") == "replay"
        aim, left = (layer, 1) if is_own else (layers[-1], len(layers) - index)
        now = bench.at_lookup(model, requests, ["{}"], places_of(section, model)[0], aim)[:, 0]
        residual = ((targets[aim] - now) / (math.sqrt(left) if is_pmet else left)).T
        if places_of(section, model)[0] == "block":
            residual = residual / model.block_scale
        if isinstance(solve, (Feedback, Budget)):
            deltas |= solve.change(model, layer, keys, residual)
        else:
            deltas |= model.change_kind("down", layer, solve(layer, keys, residual))
    return deltas


def edit(bench, section, batches):
    """One batch after another; the changes of each, by weight."""
    method, layers = section["method"], section["layers"]
    history = {layer: torch.zeros_like(bench.covariances[layer]) for layer in layers}
    model, solve, anchor = bench.fresh(section), SOLVES[method](bench, section, history), NormAnchor(section)
    if section.get("error_feedback"):
        assert method == "memit"
        solve = Feedback(bench, section, history)
    if section.get("text_budget"):
        assert method == "memit" and not section.get("history")
        solve = Budget(bench, section, history)
    stages = [layers[:1], layers[-1:]] if section.get("blue") else [layers]  # BLUE: each with values of its own
    repair = Repair(bench, section, getattr(solve, "projector", None)) if "repair" in section else None
    changes = []
    for requests in batches:
        deltas = {}
        for stage in stages:
            targets = targets_of(bench, model, requests, stage, section, anchor)
            deltas |= edit_layers(bench, model, requests, targets, stage, section, solve)
        if section.get("history", method == "alphaedit"):
            for layer in layers:  # keys are taken with the edited weights
                keys = bench.keys(model, requests, section["contexts"], layer).T
                history[layer] += keys @ keys.T
        changes.append(repair(model, requests, deltas) if repair else deltas)
    if isinstance(solve, Budget):
        assert min(solve.bound) == 1 < max(solve.bound), "a budget that some changes meet by themselves and others do not"
    return changes
