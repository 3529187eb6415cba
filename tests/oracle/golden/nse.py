"""NSE: values on the unedited model, passes over the layers while residuals are large, the inputs that carry the keys alone."""
import torch
from training import Repair


def chosen(keys, share):
    """Places of the largest sums of |k|, as many as together have at most `share` of all."""
    size, order = keys.abs().sum(1).sort(descending=True)
    return order if share == 1 else order[size.cumsum(0) <= share * size.sum()]


def edit(bench, section, batches):
    layers, contexts = section["layers"], section["contexts"]
    history = {layer: torch.zeros_like(bench.covariances[layer]) for layer in layers}
    unedited, model, changes = bench.fresh(section), bench.fresh(section), []
    repair = Repair(bench, section) if "repair" in section else None
    for requests in batches:
        deltas, is_replay = {}, section.get("targets") == "replay"
        z = bench.values(unedited, requests, layers[0] if is_replay else layers[-1], ["block"], section)
        targets = bench.replay(unedited, requests, "block", layers, z) if is_replay else {layers[-1]: z}
        for _ in range(section["passes"]):
            far = (targets[layers[-1]] - bench.at_lookup(model, requests, ["{}"], "block", layers[-1])[:, 0]).norm(dim=1)
            taken = ((far > section["residual_above"]) & (far < section["residual_below"])).nonzero()[:, 0].tolist()
            if not taken:
                break
            some = [requests[i] for i in taken]
            for index, layer in enumerate(layers):
                keys = bench.keys(model, some, contexts, layer).T
                aim, left = (layer, 1) if is_replay else (layers[-1], len(layers) - index)
                residual = (targets[aim][taken] - bench.at_lookup(model, some, ["{}"], "block", aim)[:, 0]).T / left
                at = chosen(keys, section["neurons"])
                system = section["covariance_weight"] * bench.covariances[layer] + history[layer]
                system = system[at][:, at] + keys[at] @ keys[at].T
                name = model.weight_name("down", layer)
                delta = torch.zeros_like(model.weights[name], dtype=torch.float64)
                delta[:, at] = residual @ torch.linalg.solve(system, keys[at]).T
                deltas[name] = deltas.get(name, 0) + model.change(name, delta)
        for layer in layers:
            keys = bench.keys(model, requests, contexts, layer).T
            history[layer] += keys @ keys.T
        changes.append(repair(model, requests, deltas) if repair else deltas)
    return changes
