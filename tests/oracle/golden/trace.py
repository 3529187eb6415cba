"""Decides what `lancet trace` must compute: causal tracing, plain and slow. Every run from the embeddings, a row for each sample.

Source: Meng et al. 2022, arXiv 2202.05262, section 2 and appendix B, with the protocol of docs/trace.md. Nothing is shared with
the engine; the noise comes from the generator of docs/trace.md, written down a second time.

    trace.py --model DIR --requests demo.json --pick 0,1 --samples 2 --window 3 --out trace.safetensors

Written tensors (F64): `<i>.<kind>` [tokens, layers], probability with a state put back, mean over samples; `<i>.runs` [2], the clean
and the corrupted probability; `<i>.noise` [samples, subject tokens, dims], standard normal; `<i>.tokens` I64: object, first token of
the subject, the one behind its last. The metadata entry "job" is JSON: requests, kinds, samples, window, seed, noise.
"""
import argparse
import json
import math

import torch
from bench import Model, Tokenizer
from make_golden import read_requests
from safetensors.torch import save_file

KINDS = ["hidden", "mlp", "attention"]
MASK = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def noise(seed, fact, sample, tokens, dims):
    """Standard normal numbers [tokens, dims]."""
    key = mix((mix((mix(seed) + fact) & MASK) + sample) & MASK)

    def uniform(i):
        return ((mix((key + i) & MASK) >> 11) + 1) * 2.0**-53

    numbers = [
        math.sqrt(-2 * math.log(uniform(2 * j))) * math.cos(2 * math.pi * uniform(2 * j + 1)) for j in range(tokens * dims)
    ]
    return torch.tensor(numbers, dtype=torch.float64).view(tokens, dims)


def locate(tokenizer, request):
    """Ids of the filled prompt, and the tokens [first, end) that have characters of the subject."""
    begin = request["prompt"].index("{}")
    end = begin + len(request["subject"])
    text = request["prompt"].replace("{}", request["subject"])
    encoded = tokenizer.tokenizer(text, return_offsets_mapping=True)
    inside = [i for i, (a, b) in enumerate(encoded["offset_mapping"]) if a < b and a < end and begin < b]
    return encoded["input_ids"], inside[0], inside[-1] + 1


def subject_deviation(model, tokenizer, requests):
    """Of all entries of the embeddings of the subjects' tokens."""
    tokens = []
    for request in requests:
        ids, first, end = locate(tokenizer, request)
        tokens += ids[first:end]
    embedded = model.embedding[torch.tensor(tokens)].double()
    return (embedded - embedded.mean()).square().mean().sqrt().item()


def window(layer, size, layers):
    return range(max(0, layer - size // 2), min(layers, layer - size // 2 + size))


def forward(model, ids, touch):
    h = touch("embedding", None, model.embedding[ids])
    return model.logits(model.run_with(h, range(model.layers), touch))


class Tracer:
    """One fact's runs."""

    PLACES = {"hidden": "block", "mlp": "mlp", "attention": "attn"}

    def __init__(self, model, ids, subject, size):
        self.model, self.ids, self.window = model, torch.tensor([ids]), size
        self.first, self.end = subject
        self.clean = {}
        logits = forward(model, self.ids, self.remember)
        self.object = int(logits[0, -1].argmax())
        self.clean_probability = logits[0, -1].softmax(-1)[self.object].item()

    def remember(self, place, layer, value):
        self.clean[place, layer] = value[0]
        return value

    def probability(self, added, put_back=()):
        """The object's, mean over runs whose subjects have `added` [samples, tokens, dims] on their embeddings; `put_back`: (place, layer, token)."""

        def touch(place, layer, value):
            if place == "embedding":
                value = value.clone()
                value[:, self.first : self.end] += added.to(value.dtype)
            for at in put_back:
                if at[:2] == (place, layer):
                    value = value.clone()
                    value[:, at[2]] = self.clean[place, layer][at[2]]
            return value

        return forward(self.model, self.ids.expand(len(added), -1), touch)[:, -1].softmax(-1)[:, self.object].mean().item()

    def states(self, kind, token, layer):
        place = self.PLACES[kind]
        layers = [layer] if kind == "hidden" else window(layer, self.window, self.model.layers)
        return [(place, one, token) for one in layers]

    def trace(self, added, kinds=KINDS):
        """Corrupted probability, and by kind [tokens, layers]; `added`: noise [samples, tokens, dims] as it is added."""
        maps = {}
        for kind in kinds:
            maps[kind] = torch.zeros(self.ids.shape[1], self.model.layers, dtype=torch.float64)
            for token in range(self.ids.shape[1]):
                for layer in range(self.model.layers):
                    maps[kind][token, layer] = self.probability(added, self.states(kind, token, layer))
        return self.probability(added), maps


@torch.no_grad()
def make(options):
    model, tokenizer = Model(options.model, torch.float64), Tokenizer(options.model)
    requests = read_requests(options.requests, options.pick)
    deviation = subject_deviation(model, tokenizer, requests)
    out = {}
    for index, request in enumerate(requests):
        ids, first, end = locate(tokenizer, request)
        tracer = Tracer(model, ids, (first, end), options.window)
        dims = model.embedding.shape[1]
        normal = torch.stack([noise(options.seed, index, sample, end - first, dims) for sample in range(options.samples)])
        corrupted, maps = tracer.trace(3 * deviation * normal)
        out |= {f"{index}.{kind}": restored for kind, restored in maps.items()}
        out[f"{index}.runs"] = torch.tensor([tracer.clean_probability, corrupted], dtype=torch.float64)
        out[f"{index}.noise"] = normal
        out[f"{index}.tokens"] = torch.tensor([tracer.object, first, end])
        print(f"fact {index}: {tracer.clean_probability:.4f} clean, {corrupted:.4f} corrupted", flush=True)
    job = dict(requests=requests, kinds=KINDS, samples=options.samples, window=options.window, seed=options.seed)
    save_file(out, options.out, metadata={"format": "pt", "job": json.dumps(job | dict(noise=3 * deviation))})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("model", "requests", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--pick", type=lambda text: [int(word) for word in text.split(",")], required=True)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--window", type=int, default=3)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    make(options)


if __name__ == "__main__":
    main()
