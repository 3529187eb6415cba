"""ROME, and R-ROME with its three kinds of key: one request after another, the inverse of C."""
import torch


def edit(bench, section, batches):
    """The changes of each batch, by weight."""
    model, contexts = bench.fresh(section), section["contexts"]
    kind = section.get("keys", "prefix") if section["method"] == "r-rome" else "original"
    uses_covariance = section.get("covariance", True)
    inverses = {layer: torch.linalg.inv(bench.covariances[layer]) for layer in section["layers"] if uses_covariance}
    changes = []
    for batch in batches:
        deltas = {}
        for request in batch:
            for layer in section["layers"]:
                value = bench.values(model, [request], layer, ["mlp"], section)[0]
                keys = bench.at_lookup(model, [request], contexts, "key", layer)[0]
                outputs = bench.at_lookup(model, [request], contexts, "mlp", layer)[0]
                direction = keys[0] if kind == "prompt" else keys.mean(0)
                divided = keys.mean(0) if kind == "prefix" else keys[0]
                output = outputs.mean(0) if kind == "prefix" else outputs[0]
                u = inverses[layer] @ direction if uses_covariance else direction
                u = u / u.norm()
                delta = torch.outer((value - output) / (divided @ u), u)
                for name, change in model.change_kind("down", layer, delta).items():
                    deltas[name] = deltas.get(name, 0) + change
        changes.append(deltas)
    return changes
