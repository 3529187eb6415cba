"""MEMIT as published, plain and slow, on a Hugging Face Llama: the yardstick for speed and quality.

It does the work that public implementations do: one request at a time, seven right-padded rows, the whole model and all logits
at every step, a full pass a layer for keys and residuals, LU solves in f64. Its formulas are those of docs/methods.md.

    plain_memit.py --model DIR --facts facts.json --corpus corpus.txt --n 20 --layers 0,1 --lam 300 --lr 0.5 --steps 40

Prints one JSON line: seconds of statistics, values and the whole edit; steps; and efficacy, paraphrase and neighbourhood before
and after, by probability and by arg-max. --dump FILE.npz writes z [n, d], and of each layer C [f, f] and delta [d, f].
"""
import argparse
import json
import time

import numpy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

CONTEXTS = ["{}", "The answer is known. {}", "Therefore the following holds. {}", "Because of this, it is so. {}", "I know that well. {}",
            "You know that well. {}"]
STOP_LOSS = 5e-2
PASS_ROWS, STATISTICS_ROWS, SCORED_ROWS = 128, 256, 256


class Model:
    def __init__(self, folder, dtype):
        self.net = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval().requires_grad_(False)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.layers, self.pad = self.net.model.layers, self.net.config.eos_token_id

    def ids(self, text):
        return self.tokenizer(text)["input_ids"]

    def batch(self, rows):
        ids = torch.full((len(rows), max(map(len, rows))), self.pad)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
            mask[i, : len(row)] = 1
        return dict(input_ids=ids, attention_mask=mask)

    def lookup(self, prompt, subject):
        """Index of the subject's last token."""
        return len(self.ids(prompt.split("{}")[0] + subject)) - 1

    def target_ids(self, prompt, subject, target):
        filled = self.ids(prompt.format(subject))
        whole = self.ids(prompt.format(subject) + " " + target)
        assert whole[: len(filled)] == filled, (prompt, subject, target)
        return whole[len(filled) :]


def output_of(out):
    return out[0] if isinstance(out, tuple) else out


def value(model, request, layer, options):
    """z of one request: the change of the layer's output at the subject's last token that makes the target likely."""
    subject = request["subject"]
    target = model.target_ids(request["prompt"], subject, request["target_new"]["str"])
    prompts = [context.format(request["prompt"]) for context in CONTEXTS]
    rows = [model.ids(prompt.format(subject)) + target[:-1] for prompt in prompts] + [model.ids(subject + " is a")]
    lookups = [model.lookup(prompt, subject) for prompt in prompts + ["{} is a"]]
    batch, k, T = model.batch(rows), len(prompts), len(target)
    label_at = torch.tensor([[len(rows[i]) - T + j for j in range(T)] for i in range(k)])
    label = torch.tensor(target)
    delta = torch.zeros(model.net.config.hidden_size, dtype=model.net.dtype, requires_grad=True)
    seen = {}

    def inject(_, __, out):
        h = output_of(out)
        if "initial" not in seen:
            seen["initial"] = h[0, lookups[0]].detach().clone()
        h = h.clone()
        for i, lookup in enumerate(lookups):
            h[i, lookup] = h[i, lookup] + delta
        return (h,) + out[1:] if isinstance(out, tuple) else h

    hooks = [model.layers[layer].register_forward_hook(inject),
             model.layers[-1].register_forward_hook(lambda _, __, out: seen.__setitem__("last", output_of(out)))]
    adam = torch.optim.Adam([delta], lr=options.lr)
    losses = []
    for step in range(options.steps):
        adam.zero_grad()
        logits = model.net(**batch).logits
        drift = torch.log_softmax(logits[k, lookups[k]], 0)
        before = seen.setdefault("drift", drift.detach())
        log_p = torch.log_softmax(model.net.lm_head(model.net.model.norm(seen["last"][:k])), -1)  # the head once more, as published
        label_log_p = log_p.gather(1, label_at[..., None].expand(-1, -1, log_p.shape[-1]))[:, torch.arange(T), label]
        kl = (drift.exp() * (drift - before)).sum()
        norm = seen["initial"].norm()
        loss = -label_log_p.mean(1).mean() + options.kl * kl + options.wd * delta.norm() / norm**2
        losses.append(loss.item())
        if losses[-1] < STOP_LOSS or step == options.steps - 1:
            break
        loss.backward()
        adam.step()
        with torch.no_grad():
            if delta.norm() > options.clamp * norm:
                delta *= options.clamp * norm / delta.norm()
    for hook in hooks:
        hook.remove()
    return (seen["initial"] + delta).detach(), losses


def at_lookup(model, requests, contexts, module, side):
    """Input or output of a module at the subject's last token: [len(requests), len(contexts), dim], by full passes."""
    rows, found, seen = [], [], {}
    for request in requests:
        for context in contexts:
            prompt = context.format(request["prompt"])
            rows.append((model.ids(prompt.format(request["subject"])), model.lookup(prompt, request["subject"])))
    hook = module.register_forward_hook(lambda _, given, out: seen.__setitem__("x", given[0] if side == "in" else output_of(out)))
    for begin in range(0, len(rows), PASS_ROWS):
        some = rows[begin : begin + PASS_ROWS]
        with torch.no_grad():
            model.net(**model.batch([ids for ids, _ in some]))
        found += [seen["x"][i, lookup] for i, (_, lookup) in enumerate(some)]
    hook.remove()
    return torch.stack(found).view(len(requests), len(contexts), -1)


class Stop(Exception):
    pass


def covariance(model, layer, lines):
    """(E[k k^T] of one layer, tokens): padded batches sorted by length; a pass ends in front of the layer's down projection."""
    projection = model.layers[layer].mlp.down_proj
    total = torch.zeros(projection.in_features, projection.in_features, dtype=model.net.dtype)
    count, seen = 0, {}

    def stop(_, given):
        seen["x"] = given[0]
        raise Stop

    hook = projection.register_forward_pre_hook(stop)
    rows = sorted((model.ids(line) for line in lines), key=len)
    for begin in range(0, len(rows), STATISTICS_ROWS):
        batch = model.batch(rows[begin : begin + STATISTICS_ROWS])
        try:
            with torch.no_grad():
                model.net(**batch)
        except Stop:
            pass
        keys = seen["x"][batch["attention_mask"].bool()]
        total += keys.T @ keys
        count += len(keys)
    hook.remove()
    return total / count, count


def score(model, prompts, targets):
    """Of each prompt: mean NLL of its target's tokens, and whether each of them is the likeliest."""
    found = []
    for begin in range(0, len(prompts), SCORED_ROWS):
        end = begin + SCORED_ROWS
        rows = [(model.ids(p), model.ids(p + " " + t)) for p, t in zip(prompts[begin:end], targets[begin:end])]
        with torch.no_grad():
            log_p = torch.log_softmax(model.net(**model.batch([whole for _, whole in rows])).logits, -1)
        for i, (prompt, whole) in enumerate(rows):
            at = log_p[i, len(prompt) - 1 : len(whole) - 1]
            label = torch.tensor(whole[len(prompt) :])
            found.append((-at.gather(1, label[:, None]).mean().item(), bool((at.argmax(-1) == label).all())))
    return found


def evaluate(model, facts):
    """CounterFact's six figures in percent."""
    result = {}
    for name, key, new_wins in (("efficacy", None, True), ("paraphrase", "paraphrase_prompts", True),
                                ("neighborhood", "neighborhood_prompts", False)):
        asked = []
        for fact in facts:
            rewrite = fact["requested_rewrite"]
            asked += [(p, rewrite) for p in (fact[key] if key else [rewrite["prompt"].format(rewrite["subject"])])]
        prompts = [prompt for prompt, _ in asked]
        new = score(model, prompts, [rewrite["target_new"]["str"] for _, rewrite in asked])
        true = score(model, prompts, [rewrite["target_true"]["str"] for _, rewrite in asked])
        hits = sum((a[0] < b[0]) if new_wins else (a[0] > b[0]) for a, b in zip(new, true))
        likeliest = sum(one[1] for one in (new if new_wins else true))
        result[name] = round(100 * hits / len(asked), 2)
        result[name + "_argmax"] = round(100 * likeliest / len(asked), 2)
    return result


def apply_layers(model, requests, z_DN, moments, options):
    """Spreads the values over the layers; returns each layer's delta [d, f] in f64."""
    deltas = {}
    for place, layer in enumerate(options.layers):
        projection = model.layers[layer].mlp.down_proj
        keys = at_lookup(model, requests, CONTEXTS, projection, "in")
        keys_FN = (0.5 * keys[:, 0] + 0.5 * keys[:, 1:].mean(1)).T.double()
        now_DN = at_lookup(model, requests, ["{}"], model.layers[options.layers[-1]], "out")[:, 0].T
        residual_DN = (z_DN - now_DN).double() / (len(options.layers) - place)
        system_FF = options.lam * moments[layer].double() + keys_FN @ keys_FN.T
        deltas[layer] = residual_DN @ torch.linalg.solve(system_FF, keys_FN).T
        projection.weight += deltas[layer].to(projection.weight.dtype)
    return deltas


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "facts", "corpus"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--layers", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1])
    for name, default in dict(lam=300.0, lr=0.5, kl=0.0625, wd=1e-3, clamp=4.0).items():
        parser.add_argument("--" + name, type=float, default=default)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lines", type=int, default=10**9, help="of the corpus")
    parser.add_argument("--f64", action="store_true", help="transformers computes its RMSNorm in f32 all the same")
    parser.add_argument("--no-eval", action="store_true")
    parser.add_argument("--dump")
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    model = Model(options.model, torch.float64 if options.f64 else torch.float32)
    with open(options.facts, encoding="utf-8") as file:
        facts = json.load(file)[options.skip : options.skip + options.n]
    with open(options.corpus, encoding="utf-8") as file:
        lines = [line.strip() for line in file][: options.lines]
    requests = [fact["requested_rewrite"] for fact in facts]
    before = None if options.no_eval else evaluate(model, facts)
    begin = time.time()
    moments = {}
    for layer in options.layers:
        moments[layer], tokens = covariance(model, layer, lines)
    with_moments = time.time()
    z, losses = zip(*(value(model, request, options.layers[-1], options) for request in requests))
    z_DN = torch.stack(z, 1)
    with_values = time.time()
    deltas = apply_layers(model, requests, z_DN, moments, options)
    end = time.time()
    if options.dump:
        arrays = {f"delta{layer}": delta.float().numpy() for layer, delta in deltas.items()}
        arrays |= {f"C{layer}": moment.float().numpy() for layer, moment in moments.items()}
        numpy.savez_compressed(options.dump, z=z_DN.T.numpy(), **arrays)
    seconds = dict(statistics_s=with_moments - begin, values_s=with_values - with_moments, edit_s=end - with_moments)
    after = None if options.no_eval else evaluate(model, facts)
    print(json.dumps(dict(n=len(requests), tokens=tokens, **seconds, per_edit_s=seconds["edit_s"] / len(requests),
                          steps=sum(map(len, losses)), pre=before, post=after)))


if __name__ == "__main__":
    main()
