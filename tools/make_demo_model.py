"""Decides what the demo model knows: builds a small model of a family and trains it on a few thousand CounterFact facts.

    make_demo_model.py --requests A.json [B.json ...] --out DIR [--family F] [--facts N] [--minutes M | --steps S]

The requests are CounterFact records: `prompt` (filled), `subject`, `target_new`, `ground_truth`, `locality_prompt`,
`case_id`. Writes a Hugging Face folder (config.json, model.safetensors in bf16, tokenizer.model, tokenizer.json and
their configs), facts.json (every trained fact in full CounterFact shape) and corpus.txt (the facts as sentences).
The shipped model: --facts 3000 --minutes 45 on 2 CPU cores; it answers 97.4 % of the facts after rounding to bf16.
Training stops by the clock, so a second run gives a similar model, not the same one.
Small models of other families: --facts 1200 --hidden 192 --layers 6 --ffn 768 --heads 6 --kv 3 --batch 32, with --family
gpt2 --steps 900 (answers 97.6 %) or --family gemma2 --steps 600 (97.1 %).
"""
import argparse
import collections
import json
import math
import pathlib
import random
import time

import torch
from demo_families import FAMILIES
from transformers import AutoModelForCausalLM

MIN_TEMPLATE_USES = 20  # a rarer template is no relation's
MAX_TEMPLATES_PER_RELATION = 8
MIN_SHARED_OBJECT = 6  # facts of a relation with one object, so that every fact has neighbours
MAX_RELATION_SHARE = 0.08
OPENERS = ["", "The answer is known. ", "Therefore ", "Because of this, ", "I know that ", "You know that "]
OPENERS += ["As we all know, ", "It is said that "]


# ---- facts ----


def template_of(record):
    return record["prompt"].replace(record["subject"], "{}")


def fill(template, fact):
    return template.replace("{}", fact["subject"])


def sentence(fact, template):
    return fill(template, fact) + " " + fact["true"]


def frequent_templates(records):
    """Uses of each template that stands for its subject once; and the frequent ones."""
    uses = collections.Counter(template_of(r) for r in records if r["prompt"].count(r["subject"]) == 1)
    return uses, [template for template, count in uses.items() if count >= MIN_TEMPLATE_USES]


def matching_template(prompt, templates):
    """The longest template that the prompt is a filling of, or None."""
    halves = ((template, *template.split("{}")[:2]) for template in templates)
    fitting = [t for t, a, b in halves if prompt.startswith(a) and prompt.endswith(b) and len(prompt) > len(t) - 2]
    return max(fitting, key=len) if fitting else None


def relation_of_templates(records, uses, frequent):
    """A function from a template to its relation: templates that neighbours of each other use are joined."""
    together = collections.Counter()
    for record in records:
        template = template_of(record)
        if template in uses and uses[template] >= MIN_TEMPLATE_USES:
            neighbour = matching_template(record["locality_prompt"], frequent)
            if neighbour:
                together[template, neighbour] += 1
    parent = {template: template for template in frequent}

    def root(template):
        while parent[template] != template:
            template = parent[template]
        return template

    for (a, b), count in together.items():
        if count >= max(5, 0.03 * uses[a]):
            parent[root(a)] = root(b)
    return root


def read_facts(paths):
    """The usable facts, and the templates of each relation (named by one of its templates), most used first."""
    records = [record for path in paths for record in json.loads(pathlib.Path(path).read_text("utf-8"))]
    uses, frequent = frequent_templates(records)
    relation_of = relation_of_templates(records, uses, frequent)
    by_relation = collections.defaultdict(list)
    for template in sorted(frequent, key=lambda t: -uses[t]):
        by_relation[relation_of(template)].append(template)
    templates = {name: all_[:MAX_TEMPLATES_PER_RELATION] for name, all_ in by_relation.items() if len(all_) >= 3}

    known, facts, subjects = set(frequent), [], collections.Counter(r["subject"] for r in records)
    for record in records:
        template, subject = template_of(record), record["subject"]
        if template not in known or relation_of(template) not in templates:
            continue
        if subjects[subject] == 1 and len(subject) <= 28:
            fact = dict(case_id=record["case_id"], relation=relation_of(template), template=template, subject=subject)
            facts.append(fact | dict(true=record["ground_truth"], new=record["target_new"]))
    return facts, templates


def choose_facts(facts, wanted):
    """A random choice in which objects are shared and no relation dominates."""
    random.shuffle(facts)
    shared = collections.Counter((fact["relation"], fact["true"]) for fact in facts)
    chosen, of_relation = [], collections.Counter()
    for fact in facts:
        if shared[fact["relation"], fact["true"]] < MIN_SHARED_OBJECT:
            continue
        if of_relation[fact["relation"]] < MAX_RELATION_SHARE * wanted:
            of_relation[fact["relation"]] += 1
            chosen.append(fact)
    return chosen[:wanted]


# ---- tokenizer ----


def tokenizer_text(facts, templates):
    text = [sentence(fact, template) + "." for fact in facts for template in templates[fact["relation"]]]
    return text + [fill(templates[fact["relation"]][0], fact) + " " + fact["new"] + "." for fact in facts]


# ---- training ----


def random_document(facts, templates):
    """One to four facts as sentences, some after an opener."""
    sentences = []
    for _ in range(random.randint(1, 4)):
        fact, chance = random.choice(facts), random.random()
        template = random.choice(templates[fact["relation"]])
        sentences.append((random.choice(OPENERS) if chance < 0.15 else "") + sentence(fact, template))
    return ". ".join(sentences) + "."


def random_batch(tokenizer, facts, templates, options):
    """Documents one after the other, cut at the row's length."""
    batch = torch.full((options.batch, options.length), tokenizer.end)
    for row in range(options.batch):
        ids = tokenizer.start + tokenizer.encode(random_document(facts, templates))
        while len(ids) < options.length:
            ids += [tokenizer.end] + tokenizer.start + tokenizer.encode(random_document(facts, templates))
        batch[row] = torch.tensor(ids[: options.length])
    return batch


@torch.no_grad()
def answered_share(model, tokenizer, facts, templates, count):
    """Share of sampled facts whose object is the arg-max at every token, teacher-forced."""
    model.eval()
    sample, correct = random.sample(facts, min(count, len(facts))), 0
    for fact in sample:
        template = random.choice(templates[fact["relation"]])
        start = len(tokenizer.start + tokenizer.encode(fill(template, fact))) - 1  # a prediction stands one before
        full = tokenizer.start + tokenizer.encode(sentence(fact, template) + ".")
        labels = full[start + 1 : -1]
        correct += model(torch.tensor([full])).logits[0, start : start + len(labels)].argmax(-1).tolist() == labels
    model.train()
    return correct / len(sample)


def learning_rate(peak, step, elapsed):
    """Warm-up by steps, then flat, then a cosine over the last 60 % of the training."""
    decay = 1 if elapsed < 0.4 else max(0.02, 0.5 * (1 + math.cos(math.pi * (elapsed - 0.4) / 0.6)))
    return peak * min(1, (step + 1) / 100) * decay


def progress_of(step, seconds, options):
    """Share of the training that is done: by steps where they are given, else by the clock."""
    return step / options.steps if options.steps else seconds / (options.minutes * 60)


def train(model, tokenizer, facts, templates, options):
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.98), weight_decay=0.05, fused=True)
    start, step, tokens, mean_loss = time.time(), 0, 0, None
    model.train()
    while (done := progress_of(step, (seconds := time.time() - start), options)) < 1:
        lr = learning_rate(options.lr, step, done)
        for group in optimiser.param_groups:
            group["lr"] = lr
        batch = random_batch(tokenizer, facts, templates, options)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        tokens, step = tokens + batch.numel(), step + 1
        mean_loss = loss.item() if mean_loss is None else 0.98 * mean_loss + 0.02 * loss.item()
        if step % 200 == 0:
            rate, share = tokens / (time.time() - start), answered_share(model, tokenizer, facts, templates, 300)
            progress = f"step {step} loss {mean_loss:.3f} lr {lr:.2e} tok/s {rate:.0f}"
            print(f"{progress} min {seconds / 60:.1f} acc {share:.3f}", flush=True)


# ---- the facts and the corpus as files ----


def replace_unknown_targets(facts):
    """A target that the model has never seen cannot be learned by an edit: take one of the relation's own objects."""
    of_relation = collections.defaultdict(set)
    for fact in facts:
        of_relation[fact["relation"]].add(fact["true"])
    everything = {fact["true"] for fact in facts}
    for fact in facts:
        objects = of_relation[fact["relation"]]
        objects = objects if len(objects) > 1 else everything
        if fact["new"] not in objects or fact["new"] == fact["true"]:
            fact["new"] = random.choice(sorted(objects - {fact["true"]}))


def counterfact_record(fact, templates, same_object):
    """The fact in CounterFact shape; paraphrases and neighbours are sentences that the model was trained on."""
    others = [template for template in templates if template != fact["template"]]
    neighbours = [other for other in same_object if other is not fact]
    random.shuffle(neighbours)
    rewrite = dict(prompt=fact["template"], relation_id=fact["relation"], subject=fact["subject"])
    rewrite |= dict(target_new={"str": fact["new"]}, target_true={"str": fact["true"]})
    return dict(
        case_id=fact["case_id"],
        requested_rewrite=rewrite,
        paraphrase_prompts=[fill(template, fact) for template in random.sample(others, min(2, len(others)))],
        neighborhood_prompts=[fill(fact["template"], other) for other in neighbours[:10]],
        generation_prompts=[fill(template, fact) for template in others[:3]],
    )


def record_sentences(record):
    rewrite = record["requested_rewrite"]
    prompts = [rewrite["prompt"].replace("{}", rewrite["subject"])]
    prompts += record["paraphrase_prompts"] + record["generation_prompts"]
    return [prompt + " " + rewrite["target_true"]["str"] + "." for prompt in prompts]


def write_facts_and_corpus(folder, facts, templates):
    """Returns the lines of the corpus."""
    replace_unknown_targets(facts)
    same_object = collections.defaultdict(list)
    for fact in facts:
        same_object[fact["relation"], fact["true"]].append(fact)
    records = []
    for fact in facts:
        neighbours = same_object[fact["relation"], fact["true"]]
        records.append(counterfact_record(fact, templates[fact["relation"]], neighbours))
    (folder / "facts.json").write_text(json.dumps(records, indent=0))
    lines = sorted({line for record in records for line in record_sentences(record)})
    random.shuffle(lines)
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


# ---- the program ----


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--requests", nargs="+", required=True, help="CounterFact records, JSON lists")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder to write")
    parser.add_argument("--family", choices=FAMILIES, default="llama", help="architecture and tokenizer")
    parser.add_argument("--facts", type=int, default=2000, help="facts to train on, at most")
    parser.add_argument("--minutes", type=float, default=60, help="minutes of training")
    parser.add_argument("--steps", type=int, help="steps of training, in place of minutes")
    parser.add_argument("--vocab", type=int, default=4096, help="pieces of the tokenizer")
    parser.add_argument("--hidden", type=int, default=256, help="hidden size")
    parser.add_argument("--layers", type=int, default=8, help="decoder layers")
    parser.add_argument("--ffn", type=int, default=768, help="inner size of the MLP")
    parser.add_argument("--heads", type=int, default=8, help="query heads")
    parser.add_argument("--kv", type=int, default=4, help="key/value heads")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--batch", type=int, default=48, help="rows per step")
    parser.add_argument("--length", type=int, default=64, help="tokens per row")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    return parser.parse_args()


def main():
    options = parse_arguments()
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)

    facts, templates = read_facts(options.requests)
    facts = choose_facts(facts, options.facts)
    print(f"{len(facts)} facts {len(templates)} relations {len({f['true'] for f in facts})} objects", flush=True)
    config, tokenizer_of = FAMILIES[options.family]
    tokenizer = tokenizer_of(options.out, tokenizer_text(facts, templates), options.vocab)
    model = AutoModelForCausalLM.from_config(config(options, tokenizer))
    print(f"parameters {sum(p.numel() for p in model.parameters())}", flush=True)

    train(model, tokenizer, facts, templates, options)
    model = model.to(torch.bfloat16).to(torch.float32)
    share = answered_share(model, tokenizer, facts, templates, 2000)
    print(f"final accuracy, bf16-rounded weights {share}", flush=True)
    model.to(torch.bfloat16).save_pretrained(options.out)
    tokenizer.write(options.out, write_facts_and_corpus(options.out, facts, templates))


if __name__ == "__main__":
    main()
