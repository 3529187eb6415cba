"""ROME, and R-ROME with its three kinds of key: one request after another, the inverse of C."""
from types import SimpleNamespace

import torch
from bench import CONTEXTS, VALUES, optimise

LAYER = 1


def edit(bench, kind, uses_covariance):
    model, deltas, name = bench.fresh(), [], None
    inverse = torch.linalg.inv(bench.covariances[LAYER])
    options = SimpleNamespace(**VALUES, nll_factor=1.0, stops_when_predicted=False)
    for index, request in enumerate(bench.batches[0]):
        if index > 0 or "mlp" not in bench.found:  # the first is found on the unedited model, whatever the key
            value = optimise(bench, model, request, LAYER, ["mlp"], options)
            bench.found.setdefault("mlp", value)
        else:
            value = bench.found["mlp"]
        keys = bench.at_lookup(model, request, "key", LAYER)
        outputs = bench.at_lookup(model, request, "mlp", LAYER)
        direction = keys[0] if kind == "prompt" else keys.mean(0)
        divided = keys.mean(0) if kind == "prefix" else keys[0]
        output = outputs.mean(0) if kind == "prefix" else outputs[0]
        u = inverse @ direction if uses_covariance else direction
        u = u / u.norm()
        delta = torch.outer((value - output) / (divided @ u), u)
        name = model.weight_name("down", LAYER)
        model.weights[name] = model.weights[name] + delta
        deltas.append(delta)
    return {f"delta.0.{name}": sum(deltas)}


def golden(method, kind, uses_covariance=True):
    def make(bench):
        section = dict(method=method, layers=[LAYER], values=VALUES, contexts=CONTEXTS, covariance=uses_covariance)
        return section | (dict(keys=kind) if method == "r-rome" else {}), edit(bench, kind, uses_covariance)

    return make


GOLDENS = {
    "rome": golden("rome", "original"),
    "rome-identity": golden("rome", "original", uses_covariance=False),
    "r-rome-prefix": golden("r-rome", "prefix"),
    "r-rome-prompt": golden("r-rome", "prompt"),
    "r-rome-original": golden("r-rome", "original"),
}
