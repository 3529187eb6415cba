"""The six metrics of a model on CounterFact records, as docs/report.md defines them, by the plain forward."""
import torch
from bench import padded

METRICS = [f"{name}_{form}" for name in ("efficacy", "paraphrase", "specificity") for form in ("prob", "argmax")]
ROWS = 128  # of one pass


def continuations(tokenizer, records):
    """(metric, ids of a prompt, ids of the target that is to win, of the one that is to lose)."""
    for record in records:
        rewrite = record["requested_rewrite"]
        new, true = rewrite["target_new"]["str"], rewrite["target_true"]["str"]
        plain = [rewrite["prompt"].replace("{}", rewrite["subject"])]
        probes = [("efficacy", plain, new, true), ("paraphrase", record["paraphrase_prompts"], new, true)]
        for name, prompts, wins, loses in probes + [("specificity", record["neighborhood_prompts"], true, new)]:
            for prompt in prompts:
                both = [tokenizer.continuation_ids(prompt, " " + target) for target in (wins, loses)]
                yield name, tokenizer.ids(prompt), *both


@torch.no_grad()
def scores(model, rows):
    """Of each (prompt ids, target ids): mean NLL of the target, and whether each of its tokens is the likeliest."""
    out = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda index: sum(map(len, rows[index])))
    for start in range(0, len(order), ROWS):
        some = order[start : start + ROWS]
        h = model.run_layers(model.embedding[padded([p + t[:-1] for p, t in (rows[i] for i in some)])], range(model.layers))
        for place, index in enumerate(some):
            prompt, target = rows[index]
            log_p = model.logits(h[place, len(prompt) - 1 : len(prompt) + len(target) - 1]).log_softmax(-1)
            label = torch.tensor(target)
            nll = -log_p.gather(1, label[:, None]).mean().item()
            out[index] = nll, bool((log_p.argmax(-1) == label).all())
    return out


def measure(model, tokenizer, records):
    """Shares over all prompts of all records, each prompt counting once."""
    probes = list(continuations(tokenizer, records))
    found = scores(model, [(prompt, target) for _, prompt, *targets in probes for target in targets])
    hits = {metric: [] for metric in METRICS}
    for (name, *_), (nll, is_likeliest), (other_nll, _) in zip(probes, found[::2], found[1::2]):
        hits[f"{name}_prob"].append(nll < other_nll)
        hits[f"{name}_argmax"].append(is_likeliest)
    return {metric: sum(each) / len(each) for metric, each in hits.items()}
