"""CrispEdit: A and B as means of outer products, the curvature as one dense list of eigenvalues' products, autograd for all else."""
import torch
from bench import chunks, padded
from training import modules_of, texts, trained


def leaves_at(seen, layers):
    """Of a pass: keeps keys, and the outputs of down projections with their gradients."""

    def touch(place, layer, value):
        if layer in layers and place in ("key", "mlp"):
            if place == "mlp":
                value = value if value.requires_grad else value.detach().requires_grad_(True)
                value.retain_grad()
            seen[place, layer] = value
        return value

    return touch


def gradients_of(model, rows, layers):
    """Of rows (prompt, target), as ids: keys and the summed loss's output gradients by layer, at the tokens that predict the targets."""
    seen, texts = {}, [prompt + target for prompt, target in rows]
    h = model.run_with(model.embedding[padded([ids[:-1] for ids in texts])], range(model.layers), leaves_at(seen, layers))
    places = [(row, len(prompt) - 1 + i, id) for row, (prompt, target) in enumerate(rows) for i, id in enumerate(target)]
    row, at, label = torch.tensor(places).T
    (-model.logits(h[row, at]).log_softmax(-1)[range(len(label)), label].sum()).backward()
    return {layer: (seen["key", layer][row, at].detach(), seen["mlp", layer].grad[row, at]) for layer in layers}


def text_gradients(bench, lines, layers):
    """E[g g^T] over the documents of the statistics, which share passes alone; of a document's first token on, all are targets."""
    model, left, rows = bench.fresh({}), bench.tokens, []
    for line in lines:
        ids = bench.tokenizer.ids(line)[: min(2048, left)]
        left -= len(ids)
        if len(ids) > 1:
            rows.append((ids[:1], ids[1:]))
    rows.sort(key=lambda row: len(row[1]))
    sums, count = {layer: 0 for layer in layers}, sum(len(target) for _, target in rows)
    for some in chunks(rows):
        for layer, (_, gradients) in gradients_of(model, some, layers).items():
            sums[layer] = sums[layer] + gradients.T @ gradients
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
        for row in rows:
            for layer, pair in gradients_of(model, [row], layers).items():
                for side, x in enumerate(pair):
                    x = x[:1] if only_first else x
                    sums[layer][side] = sums[layer][side] + weight * x.T @ x

    for requests in batches:
        join(texts(bench, neighbours(requests, section["neighbours"]), section), section["neighbour_weight"], True)
        projectors = {names[layer]: projector(*sums[layer], section["energy"]) for layer in layers}
        rows = texts(bench, requests, section)
        changes.append(trained(model, list(names.values()), rows, section, lambda name, matrix: projectors[name](matrix)))
        join(rows, 1.0, False)
    return changes
