"""CrispEdit: A and B as means of outer products, the curvature as one dense list of eigenvalues' products, autograd for all else."""
import torch
from bench import padded, untouched
from training import modules_of, texts, trained


def leaves_at(seen):
    """Of a pass: keeps keys, and the outputs of down projections with their gradients."""

    def touch(place, layer, value):
        if place == "mlp":
            value = value if value.requires_grad else value.detach().requires_grad_(True)
            value.retain_grad()
        seen[place, layer] = value
        return value

    return touch


def gradients_of(model, prompt, target):
    """Keys and the summed loss's output gradients by layer, at the tokens that predict the target."""
    seen, ids = {}, prompt + target
    h = model.run_with(model.embedding[torch.tensor([ids[:-1]])], range(model.layers), leaves_at(seen))
    at = range(len(prompt) - 1, len(ids) - 1)
    (-model.logits(h[0, at]).log_softmax(-1)[range(len(target)), target].sum()).backward()
    return {layer: (seen["key", layer][0, at].detach(), seen["mlp", layer].grad[0, at]) for layer in range(model.layers)}


def text_gradients(bench, lines, layers):
    """E[g g^T] over the documents of the statistics, each by itself; of a document's first token on, all are targets."""
    model, left = bench.fresh({}), bench.tokens
    sums, count = {layer: 0 for layer in layers}, 0
    for line in lines:
        ids = bench.tokenizer.ids(line)[: min(2048, left)]
        left -= len(ids)
        if len(ids) < 2:
            continue
        of_layers = gradients_of(model, ids[:1], ids[1:])
        for layer in layers:
            sums[layer] = sums[layer] + of_layers[layer][1].T @ of_layers[layer][1]
        count += len(ids) - 1
    return {layer: total / count for layer, total in sums.items()}, count


def projector(a, b, energy):
    alpha, u_a = torch.linalg.eigh(a)
    beta, u_b = torch.linalg.eigh(b)
    products = torch.outer(beta.clamp(min=0), alpha.clamp(min=0))
    kept, total = 0.0, products.sum().item()
    for value in products.flatten().sort(descending=True).values.tolist():
        kept += value
        if kept >= energy * total:
            break
    mask = products < value
    return lambda matrix: u_b @ ((u_b.T @ matrix @ u_a) * mask) @ u_a.T


def neighbours(requests, count):
    own, found = {text(request) for request in requests}, []
    for i, request in enumerate(requests):
        mine = 0
        for step in range(1, len(requests)):
            other = dict(request, subject=requests[(i + step) % len(requests)]["subject"])
            if mine < count and text(other) not in own:
                own.add(text(other))
                found.append(other)
                mine += 1
    return found


def text(request):
    return request["prompt"].replace("{}", request["subject"])


def edit(bench, section, batches):
    model, layers, changes = bench.fresh(section), [layer for _, layer in modules_of(section)], []
    names = {layer: model.weight_name("down", layer) for layer in layers}
    gradients, tokens = bench.gradients
    sums = {layer: [bench.covariances[layer] * bench.tokens, gradients[layer] * tokens] for layer in layers}

    def join(rows, weight, only_first):
        for prompt, target in rows:
            for layer, pair in gradients_of(model, prompt, target).items():
                for side, x in enumerate(pair):
                    x = x[:1] if only_first else x
                    if layer in layers:
                        sums[layer][side] = sums[layer][side] + weight * x.T @ x

    for requests in batches:
        join(texts(bench, neighbours(requests, section["neighbours"]), section), section["neighbour_weight"], True)
        projectors = {names[layer]: projector(*sums[layer], section["energy"]) for layer in layers}
        rows = texts(bench, requests, section)
        changes.append(trained(model, list(names.values()), rows, section, lambda name, matrix: projectors[name](matrix)))
        join(rows, 1.0, False)
    return changes
