"""AnyEdit's autoregressive editing on MEMIT (MEMIT_ARE): a long target in chunks, one request after another, whole passes."""
import torch


def placed(bench, request, section):
    """Ids of the prompt in each context, and the target's in chunks."""
    prompts = [context.replace("{}", request["prompt"]) for context in section["contexts"]]
    target = bench.tokenizer.continuation_ids(prompts[0], " " + request["target"])
    size = section["values"]["chunk_tokens"]
    return [bench.tokenizer.ids(prompt) for prompt in prompts], [target[start : start + size] for start in range(0, len(target), size)]


def hidden(model, rows, touch, layers=None):
    return model.run_with(model.embedding[torch.tensor([rows])], range(model.layers if layers is None else layers), touch)[0]


def find(bench, model, request, layer, section):
    """z of each chunk at its place, the token before it: the deltas of earlier chunks stay where they are."""
    options, (prompts, chunks) = section["values"], placed(bench, request, section)
    deltas, values = [], []
    for number, chunk in enumerate(chunks):
        before = sum(chunks[:number], [])
        places = [sum(map(len, chunks[:earlier])) - 1 for earlier in range(number + 1)]  # after the prompt's tokens
        delta, start, adam = None, None, None
        for step in range(options["steps"]):
            losses = []
            for prompt in prompts:

                def touch(place, at_layer, value):
                    nonlocal delta, start, adam
                    if (place, at_layer) != (model.linear_place, layer):
                        return value
                    if delta is None:
                        start = value[0, len(prompt) + places[-1]].detach().clone()
                        delta = torch.zeros_like(start, requires_grad=True)
                        adam = torch.optim.Adam([delta], lr=options["lr"])
                    added = torch.zeros_like(value)
                    for place_after, each in zip(places, [*deltas, delta]):
                        added[0, len(prompt) + place_after] = each
                    return value + added

                h = hidden(model, prompt + before + chunk[:-1], touch)
                log_p = model.logits(h[-len(chunk) :]).log_softmax(-1)
                losses.append(-log_p[range(len(chunk)), chunk].mean())
            loss = sum(losses) / len(losses) + options["weight_decay"] * delta.norm() / start.norm() ** 2
            if loss.item() < options["stop_loss"] or step == options["steps"] - 1:
                break
            adam.zero_grad()
            loss.backward()
            adam.step()
            with torch.no_grad():
                delta *= min(1.0, (options["clamp"] * start.norm() / delta.norm()).item())
        deltas.append(delta.detach())
        values.append(start + delta.detach())
    return values


@torch.no_grad()
def seen(bench, model, requests, section, place, layer):
    """A place's values: [n, size] at the chunks' places, in each context; [m, size] at all others of plain prompt and target."""
    edited, others = [], []
    for request in requests:
        prompts, chunks = placed(bench, request, section)
        for number, prompt in enumerate(prompts):
            taken = {}

            def touch(at_place, at_layer, value):
                taken[at_place, at_layer] = value
                return value

            hidden(model, prompt + sum(chunks, []), touch, layer + 1)
            value = taken[place, layer][0].double()
            places = [len(prompt) - 1 + sum(map(len, chunks[:chunk])) for chunk in range(len(chunks))]
            edited.append((request["prompt"] + request["target"], number, value[places]))
            if number == 0:
                others.append(value[[at for at in range(len(value)) if at not in places]])
    plain = torch.cat([value for _, number, value in edited if number == 0])
    contexts = len(section["contexts"])
    rest = [torch.cat([value for _, number, value in edited if number == context]) for context in range(1, contexts)]
    return plain, plain / 2 + sum(rest) / (2 * len(rest)) if rest else plain, torch.cat(others)


def edit(bench, section, batches):
    """One batch after another; the changes of each, by weight."""
    layers, changes = section["layers"], []
    history = {layer: torch.zeros_like(bench.covariances[layer]) for layer in layers}
    model = bench.fresh(section)
    for requests in batches:
        z = torch.stack([value for request in requests for value in find(bench, model, request, layers[-1], section)]).double()
        deltas = {}
        for index, layer in enumerate(layers):
            _, keys, others = seen(bench, model, requests, section, "key", layer)
            now, _, _ = seen(bench, model, requests, section, model.linear_place, layers[-1])
            residual = (z - now) / (len(layers) - index) / (model.block_scale if model.linear_place == "block" else 1)
            system = section["covariance_weight"] * bench.covariances[layer] + history[layer] + others.T @ others + keys.T @ keys
            deltas |= model.change_kind("down", layer, residual.T @ torch.linalg.solve(system, keys.T).T)
        if section.get("history"):
            for layer in layers:
                _, keys, _ = seen(bench, model, requests, section, "key", layer)
                history[layer] += keys.T @ keys
        changes.append(deltas)
    return changes
