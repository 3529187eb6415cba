"""ZeroUnlearn: W <- D W layer by layer, D by its two published factors, with full matrices and inverses."""
import torch

EPS = 0.01


def edit(bench, section, batches):
    model, layers, changes = bench.fresh(section), section["layers"], []
    c_weight, identity = section["covariance_weight"], section["identity_weight"]
    for requests in batches:
        old = [dict(request, target=request["target_true"]) for request in requests]
        z, deltas = bench.values(model, requests, layers[-1], [model.linear_place], section), {}
        for index, layer in enumerate(layers):
            forgotten = bench.values(model, old, layer, ["mlp"], section)
            keys = bench.keys(model, requests, section["contexts"], layer).T
            now = bench.at_lookup(model, requests, ["{}"], model.linear_place, layers[-1])[:, 0]
            residual = (z - now).T / (len(layers) - index)
            (name,) = model.names_of("down", layer)
            w, c = model.weights[name].double(), bench.covariances[layer]
            outputs = c_weight * w @ c + (w @ keys + residual) @ keys.T + identity * w
            inputs = c_weight * c + keys @ keys.T + identity * torch.eye(len(c), dtype=c.dtype)
            directions = torch.linalg.svd(forgotten, full_matrices=False)[2].T  # [d, n]
            p = (1 + EPS) * torch.eye(len(w), dtype=w.dtype) - directions @ directions.T
            d = p @ outputs @ w.T @ torch.linalg.inv(w @ inputs @ w.T)
            deltas |= model.change_kind("down", layer, d @ w - w)
        changes.append(deltas)
    return changes
